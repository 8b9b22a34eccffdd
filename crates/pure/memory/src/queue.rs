//! The load/store queue and the reorder window, in program order.

use flashyard_units::{SimSpan, SimTime};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Number of the instruction.
    number: u64,
    /// When it and all before it have retired.
    retired: SimTime,
    /// When its place in the queue is free, and those of all before it.
    freed: SimTime,
    is_load: bool,
}

/// The last accesses of a core, as many as its load/store queue holds.
///
/// A load holds the reorder window until its data is there; a store retires at once and holds its place in the queue until it
/// is done.
#[derive(Clone, Debug)]
pub(crate) struct AccessQueue {
    ring: Vec<Entry>,
    mask: usize,
    places: u64,
    /// Accesses so far.
    count: u64,
    /// The first access that may still hold the window.
    first: u64,
    /// Loads from there on.
    loads: u32,
    window: u64,
}

impl AccessQueue {
    pub(crate) fn new(places: u32, window: u32) -> Self {
        let size = places.next_power_of_two() as usize;
        Self {
            ring: vec![Entry::default(); size],
            mask: size - 1,
            places: places.into(),
            count: 0,
            first: 0,
            loads: 0,
            window: window.into(),
        }
    }

    #[inline]
    fn at(&self, place: u64) -> &Entry {
        &self.ring[place as usize & self.mask]
    }

    #[inline]
    fn leave(&mut self) -> SimTime {
        let entry = *self.at(self.first);
        self.first += 1;
        self.loads -= u32::from(entry.is_load);
        entry.retired
    }

    /// When instruction `number` is dispatched: not before the instruction a window ahead has retired, and those from its window on
    /// have been dispatched since, one in `step`, a time in 65,536ths of a picosecond.
    #[inline]
    pub(crate) fn window_opens(&mut self, number: u64, now: SimTime, step: u64) -> SimTime {
        let mut opens = now;
        while self.first < self.count {
            let fits_with = self.at(self.first).number + self.window;
            let Some(beyond) = number.checked_sub(fits_with) else { break };
            opens = opens.max(self.leave() + SimSpan::from_ps((beyond * step) >> 16));
        }
        opens
    }

    /// When the queue has a place.
    #[inline]
    pub(crate) fn place_at(&mut self, now: SimTime) -> SimTime {
        if self.count < self.places {
            return now;
        }
        let last = self.count - self.places;
        while self.first <= last {
            self.leave();
        }
        self.at(last).freed.max(now)
    }

    /// Loads among the instructions of the window up to `number`.
    pub(crate) fn load_share(&self, number: u64) -> f64 {
        f64::from(self.loads) / number.clamp(1, self.window) as f64
    }

    /// Puts instruction `number` in.
    #[inline]
    pub(crate) fn push(&mut self, number: u64, is_load: bool, now: SimTime, done: SimTime) {
        let before = if self.count == 0 { Entry::default() } else { *self.at(self.count - 1) };
        let retired = if is_load { done } else { now };
        let entry = Entry { number, retired: before.retired.max(retired), freed: before.freed.max(done), is_load };
        let place = self.count as usize & self.mask;
        self.ring[place] = entry;
        self.count += 1;
        self.loads += u32::from(is_load);
    }

    /// When everything has retired and is done.
    pub(crate) fn drained(&self) -> SimTime {
        if self.count == 0 { SimTime::ZERO } else { self.at(self.count - 1).freed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picosecond for an instruction.
    const STEP: u64 = 1 << 16;

    const fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    #[test]
    fn a_load_holds_the_window_and_a_store_does_not() {
        let mut queue = AccessQueue::new(4, 10);
        queue.push(1, false, at(0), at(1000));
        assert_eq!(queue.window_opens(11, at(5), STEP), at(5), "the store retired at once");
        queue.push(12, true, at(5), at(700));
        assert_eq!(queue.window_opens(21, at(6), STEP), at(6));
        assert_eq!(queue.window_opens(22, at(6), STEP), at(700));
    }

    #[test]
    fn instructions_beyond_the_window_are_dispatched_once_it_opens() {
        let mut queue = AccessQueue::new(4, 10);
        queue.push(1, true, at(0), at(700));
        queue.push(3, true, at(0), at(720));
        assert_eq!(queue.window_opens(31, at(60), STEP), at(738), "18 after the second one retired");
        queue.push(31, true, at(738), at(1000));
        assert_eq!(queue.window_opens(46, at(755), STEP), at(1005), "five after the tenth behind it");
    }

    #[test]
    fn the_queue_gives_places_back_in_program_order() {
        let mut queue = AccessQueue::new(2, 1000);
        queue.push(1, false, at(0), at(900));
        queue.push(2, true, at(0), at(100));
        assert_eq!(queue.place_at(at(1)), at(900), "the store before it is not done");
        queue.push(3, true, at(900), at(1000));
        assert_eq!(queue.place_at(at(901)), at(901), "the load was done long ago");
        assert_eq!(queue.drained(), at(1000));
    }

    #[test]
    fn loads_of_the_window_are_counted() {
        let mut queue = AccessQueue::new(64, 8);
        for number in 1..=40_u64 {
            queue.window_opens(number, at(0), STEP);
            if number % 2 == 0 {
                queue.push(number, true, at(0), at(0));
            }
        }
        assert!((queue.load_share(40) - 0.5).abs() < 1e-9, "{}", queue.load_share(40));
    }
}
