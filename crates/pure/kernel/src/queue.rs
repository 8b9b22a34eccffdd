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

/// Place of the earliest event. With three places before it unused, the children of every place are one group.
const FIRST: usize = ARITY - 1;

/// Key of a place that holds no event, later than any.
const NEVER: u128 = u128::MAX;

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
    /// Groups of siblings; the last one has an event at least. Places without an event have the key [`NEVER`].
    heap: Vec<[Entry<E>; ARITY]>,
    /// Places in use.
    used: usize,
    /// Whether the first event has been taken, and its place is free.
    taken: bool,
    inserted: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: Vec::with_capacity(256), used: 0, taken: false, inserted: 0 }
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
            let last = FIRST + self.used;
            self.used += 1;
            if last.is_multiple_of(ARITY) || self.heap.is_empty() {
                self.heap.push([Entry { key: NEVER, event }; ARITY]);
            }
            self.rise(last, key)
        };
        *self.at(place) = Entry { key, event };
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
        let event = self.heap[0][FIRST].event;
        debug_assert!(!self.is_empty(), "the first event is taken once");
        self.taken = true;
        event
    }

    /// Closes the gap that an event left which made no other; returns the time of the earliest event.
    #[inline(always)]
    pub(crate) fn settle(&mut self) -> Option<SimTime> {
        if self.taken {
            self.close();
        }
        if self.used == 0 { None } else { Some(time_of(self.heap[0][FIRST].key)) }
    }

    // Not in each caller: between other code the compiler turns the comparisons of siblings into branches.
    #[inline(never)]
    fn close(&mut self) {
        self.taken = false;
        self.used -= 1;
        let last = FIRST + self.used;
        let entry = *self.at(last);
        self.at(last).key = NEVER;
        if last.is_multiple_of(ARITY) {
            self.heap.pop();
        }
        if self.used > 0 {
            let hole = self.sink_hole();
            let place = self.rise(hole, entry.key);
            *self.at(place) = entry;
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
        let first = if self.taken {
            self.heap.get(1).map(|group| group[least_of(group.map(|entry| entry.key))].key)
        } else {
            self.heap.first().map(|group| group[FIRST].key)
        };
        first.filter(|&key| key != NEVER).map(time_of)
    }

    /// Events waiting.
    pub fn len(&self) -> usize {
        self.used - usize::from(self.taken)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events that wait, in no order.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        let places = self.heap.as_flattened().iter().skip(FIRST + usize::from(self.taken));
        places.take(self.len()).map(|entry| &entry.event)
    }

    /// Events inserted since the beginning.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    #[inline]
    fn at(&mut self, place: usize) -> &mut Entry<E> {
        &mut self.heap[place / ARITY][place % ARITY]
    }

    /// Moves a hole from `hole` up while the parent is later than `key`; returns where it is then.
    #[inline]
    fn rise(&mut self, mut hole: usize, key: u128) -> usize {
        while hole > FIRST {
            let parent = hole / ARITY + FIRST - 1;
            let entry = *self.at(parent);
            if key >= entry.key {
                break;
            }
            *self.at(hole) = entry;
            hole = parent;
        }
        hole
    }

    /// Moves a hole from the first place down to the last level, filling it with the least child each time. What then goes into the
    /// hole comes from the last level, or is new and late, and seldom rises: that saves a comparison a level.
    #[inline(always)]
    fn sink_hole(&mut self) -> usize {
        let mut hole = FIRST;
        loop {
            // Nothing overflows: these are places. The checks would be a tenth of the loop.
            let group = hole.wrapping_sub(FIRST - 1);
            let Some(&[a, b, c, d]) = self.heap.get(group) else { return hole };
            let least = least_of([a.key, b.key, c.key, d.key]);
            *self.at(hole) = self.heap[group][least];
            hole = group.wrapping_mul(ARITY) | least;
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
            prop_assert_eq!((queue.pop(), queue.next_time(), queue.events().count()), (None, None, 0));
            // An empty queue begins from the start, but for its numbers.
            queue.push(SimTime::from_ps(3), 7);
            prop_assert_eq!((queue.next_time(), queue.inserted()), (Some(SimTime::from_ps(3)), times.len() as u64 + 1));
            prop_assert_eq!(queue.pop(), Some((SimTime::from_ps(3), 7)));
        }
    }
}
