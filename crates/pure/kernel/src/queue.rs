//! The event queue: a four-way heap ordered by (time, insertion number).
//!
//! Four children a node halve the depth of a binary heap and keep siblings in two cache lines; the
//! insertion number makes the order total, so equal times leave in the order in which they came.

use flashyard_units::SimTime;

const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Entry<E> {
    time: SimTime,
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        (self.time, self.order) < (other.time, other.order)
    }
}

/// Pending events of one world.
///
/// Invariant: `pop` returns events in order of time, and in order of insertion at equal times.
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
    /// Adds `event`, due at `time`.
    #[inline]
    pub fn push(&mut self, time: SimTime, event: E) {
        let entry = Entry { time, order: self.inserted, event };
        self.inserted += 1;
        self.heap.push(entry);
        let mut hole = self.heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Removes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        let first = *self.heap.first()?;
        let last = self.heap.pop().expect("a heap with a first entry has a last one");
        if !self.heap.is_empty() {
            self.sink(last);
        }
        Some((first.time, first.event))
    }

    /// When the earliest event is due.
    pub fn next_time(&self) -> Option<SimTime> {
        self.heap.first().map(|entry| entry.time)
    }

    /// The number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Events ever inserted: a measure of work that does not depend on the machine.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Lets `entry` sink from the root to its place.
    #[inline]
    fn sink(&mut self, entry: Entry<E>) {
        let len = self.heap.len();
        let heap = &mut self.heap[..len];
        let mut hole = 0;
        loop {
            let first_child = hole * ARITY + 1;
            if first_child >= len {
                break;
            }
            let mut least = first_child;
            for child in first_child + 1..(first_child + ARITY).min(len) {
                if heap[child].before(&heap[least]) {
                    least = child;
                }
            }
            if !heap[least].before(&entry) {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
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
