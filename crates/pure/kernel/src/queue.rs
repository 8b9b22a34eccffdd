//! The event queue: a four-way heap ordered by (time, insertion number).
//!
//! Four children a node halve the depth of a binary heap and keep siblings in two cache lines; the
//! insertion number makes the order total, so equal times leave in the order in which they came. Time and
//! number are one integer, so that a comparison is two instructions and no branch: which child is the least
//! cannot be predicted, and a mispredicted branch costs more than a whole level of the heap.

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
    inserted: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: Vec::with_capacity(1024), inserted: 0 }
    }
}

impl<E: Copy> EventQueue<E> {
    /// Inserts `event` to happen at `time`.
    #[inline]
    pub fn push(&mut self, time: SimTime, event: E) {
        let key = u128::from(time.as_ps()) << 64 | u128::from(self.inserted);
        let entry = Entry { key, event };
        self.inserted += 1;
        self.heap.push(entry);
        let last = self.heap.len() - 1;
        self.rise(last, entry);
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let time = self.next_time()?;
        Some((time, self.take_first()))
    }

    /// Removes the earliest event. Panics if there is none.
    // In each caller, and not an option: the caller then takes what it needs of the event from the heap into registers. An event
    // that is handed over in memory is written and read in pieces of different sizes, and a processor waits a dozen cycles for
    // each of those.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> E {
        let event = self.heap[0].event;
        self.remove_first();
        event
    }

    /// Closes the gap that the earliest event leaves.
    // Not in each caller: between other code the compiler turns the comparisons of siblings into branches.
    #[inline(never)]
    fn remove_first(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            let hole = self.sink_hole();
            self.rise(hole, last);
        }
    }

    /// Time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<SimTime> {
        self.heap.first().map(|entry| time_of(entry.key))
    }

    /// Events waiting.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The events that wait, in no order.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        self.heap.iter().map(|entry| &entry.event)
    }

    /// Events inserted since the beginning.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Puts `entry` into the hole at `hole`, or above it while its parent is later.
    #[inline]
    fn rise(&mut self, mut hole: usize, entry: Entry<E>) {
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if entry.key >= self.heap[parent].key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Moves a hole from the root down to the last level, filling it with the least child each time. What
    /// then goes into the hole comes from the last level and seldom rises: that saves a comparison a level.
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
