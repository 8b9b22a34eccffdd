//! The event queue: a four-way heap ordered by (time, insertion number).
//!
//! Four children a node halve the depth of a binary heap and keep siblings in two cache lines; the
//! insertion number makes the order total, so equal times leave in the order in which they came. Time and
//! number are one integer, so that a comparison is two instructions and no branch: which child is the least
//! cannot be predicted, and a mispredicted branch costs more than a whole level of the heap.
//!
//! An event usually makes a later one: the place of an event that was taken stays free until the next event is inserted, which
//! goes down from there. That is one way through the heap where removing and inserting would be two.

use flashyard_units::SimTime;

const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Entry<E> {
    /// Time above, insertion number below.
    key: u128,
    event: E,
}

#[inline]
fn time_of(key: u128) -> SimTime {
    SimTime::from_ps((key >> 64) as u64)
}

/// Place of the least key, the first among equals, found without a branch.
#[inline]
fn least_of(keys: [u128; ARITY]) -> usize {
    let left = usize::from(keys[1] < keys[0]);
    let right = 2 + usize::from(keys[3] < keys[2]);
    if keys[right] < keys[left] { right } else { left }
}

/// Pending events of a world.
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    /// Whether the first event has been taken, and its place is free.
    taken: bool,
    inserted: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: Vec::with_capacity(1024), taken: false, inserted: 0 }
    }
}

impl<E: Copy> EventQueue<E> {
    /// Inserts `event` to happen at `time`.
    #[inline]
    pub fn push(&mut self, time: SimTime, event: E) {
        let key = u128::from(time.as_ps()) << 64 | u128::from(self.inserted);
        self.inserted += 1;
        let place = if self.taken {
            self.taken = false;
            self.place_from_first(key)
        } else {
            self.heap.push(Entry { key, event });
            self.rise(self.heap.len() - 1, key)
        };
        self.heap[place] = Entry { key, event };
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let time = self.settle()?;
        Some((time, self.take_first()))
    }

    /// Removes the earliest event of a queue that has [settled](Self::settle). Panics if there is none.
    // In each caller, and not an option: the caller then takes what it needs of the event from the heap into registers. An event
    // that is handed over in memory is written and read in pieces of different sizes, and a processor waits a dozen cycles for
    // each of those.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> E {
        let event = self.heap[0].event;
        debug_assert!(!self.taken, "the first event is taken once");
        self.taken = true;
        event
    }

    /// Closes the gap that an event left which made no other; returns the time of the earliest event.
    #[inline(always)]
    pub(crate) fn settle(&mut self) -> Option<SimTime> {
        if self.taken {
            self.close();
        }
        self.heap.first().map(|entry| time_of(entry.key))
    }

    // Not in each caller: between other code the compiler turns the comparisons of siblings into branches.
    #[inline(never)]
    fn close(&mut self) {
        self.taken = false;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            let hole = self.sink_hole();
            let place = self.rise(hole, last.key);
            self.heap[place] = last;
        }
    }

    /// The place of a new entry where that of the first is free.
    // Not in each caller, and of the key alone: as above.
    #[inline(never)]
    fn place_from_first(&mut self, key: u128) -> usize {
        let hole = self.sink_hole();
        self.rise(hole, key)
    }

    /// Time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        let entries = self.heap.get(usize::from(self.taken)..).unwrap_or_default();
        let first = if self.taken {
            entries.iter().take(ARITY).map(|entry| entry.key).min()
        } else {
            entries.first().map(|entry| entry.key)
        };
        first.map(time_of)
    }

    /// Events waiting.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.taken)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events that wait, in no order.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        self.heap.iter().skip(usize::from(self.taken)).map(|entry| &entry.event)
    }

    /// Events inserted since the beginning.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Moves a hole from `hole` up while the parent is later than `key`; returns where it is then.
    #[inline]
    fn rise(&mut self, mut hole: usize, key: u128) -> usize {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if key >= self.heap[parent].key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        hole
    }

    /// Moves a hole from the root down to the last level, filling it with the least child each time. What
    /// then goes into the hole comes from the last level, or is new and late, and seldom rises: that saves a comparison a level.
    #[inline]
    fn sink_hole(&mut self) -> usize {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            let least = if let Some([a, b, c, d]) = heap.get(first..first + ARITY) {
                first + least_of([a.key, b.key, c.key, d.key])
            } else if let Some(last) = heap.len().checked_sub(1).filter(|&last| first <= last) {
                // The last sibling stands in for those that are missing.
                let key = |place: usize| heap[(first + place).min(last)].key;
                first + least_of([key(0), key(1), key(2), key(3)])
            } else {
                return hole;
            };
            heap[hole] = heap[least];
            hole = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_leave_in_time_order_and_in_insertion_order_at_equal_times(
            times in prop::collection::vec(0_u64..50, 0..400), pops in prop::collection::vec(any::<bool>(), 400),
        ) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (index, &time) in times.iter().enumerate() {
                queue.push(SimTime::from_ps(time), index);
                model.push((time, index));
                if pops[index] {
                    model.sort_unstable();
                    let expected = model.remove(0);
                    prop_assert_eq!(queue.pop().map(|(t, e)| (t.as_ps(), e)), Some(expected));
                }
                prop_assert_eq!(queue.next_time().map(SimTime::as_ps), model.iter().min().map(|first| first.0));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                let mut events: Vec<usize> = queue.events().copied().collect();
                events.sort_unstable();
                let mut left: Vec<usize> = model.iter().map(|entry| entry.1).collect();
                left.sort_unstable();
                prop_assert_eq!(events, left);
            }
            model.sort_unstable();
            for expected in model {
                prop_assert_eq!(queue.next_time().map(SimTime::as_ps), Some(expected.0));
                prop_assert_eq!(queue.pop().map(|(t, e)| (t.as_ps(), e)), Some(expected));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
