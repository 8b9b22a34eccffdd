//! W-TinyLFU: a small LRU window, and a main part that a key enters only where it is accessed more often than what would
//! leave.
//!
//! 1. Each access is counted in a sketch that forgets.
//! 2. A new key enters the window, 1 % of the cache. The oldest key of a full window goes on to the main part, and while that
//!    has no room one of two keys leaves: the one that comes from the window, unless it was accessed more often than the
//!    oldest of the main part.
//! 3. The main part is segmented: keys enter probation, a hit there moves them to the protected 80 %, and the oldest
//!    protected key goes back to probation where those are too many. The oldest is that of probation where it has one.
//!
//! Source: [P] Einziger, Friedman and Manes, TinyLFU: A Highly Efficient Cache Admission Policy, ACM TOS 2017, section 4. The sketch
//! is described with its type; a window of at least one key and ties that keep what is there are [A].

use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::sketch::Sketch;
use crate::store::Store;

/// Window, as a part of the capacity.
const WINDOW_PART: u32 = 100;
/// Protected keys, in percent of the main part.
const PROTECTED_PERCENT: u64 = 80;

/// W-TinyLFU. 35.7 bytes a key: 26.7, one for its segment, and eight of the sketch.
#[derive(Clone, Debug)]
pub struct WTinyLfu {
    store: Store,
    segments: Vec<Segment>,
    window: List,
    probation: List,
    protected: List,
    sketch: Sketch,
    window_max: u32,
    protected_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment {
    Window,
    Probation,
    Protected,
}

impl WTinyLfu {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        let store = Store::new(capacity, 0);
        let window_max = (capacity / WINDOW_PART).max(1);
        let protected = u64::from(capacity - window_max) * PROTECTED_PERCENT / 100;
        Self {
            store,
            segments: vec![Segment::Window; capacity as usize],
            window: List::EMPTY,
            probation: List::EMPTY,
            protected: List::EMPTY,
            sketch: Sketch::new(capacity),
            window_max,
            protected_max: u32::try_from(protected).expect("a share is no more than the whole"),
        }
    }

    /// Lets the oldest of the window go on, into room of the main part.
    fn admit(&mut self) {
        if let Some(slot) = self.store.pop(&mut self.window) {
            self.segments[slot as usize] = Segment::Probation;
            self.store.push(&mut self.probation, slot);
        }
    }

    /// The key that leaves the main part.
    fn victim(&self) -> Option<u32> {
        self.probation.oldest().or(self.protected.oldest())
    }
}

impl Policy for WTinyLfu {
    fn kind(&self) -> PolicyKind {
        PolicyKind::WTinyLfu
    }

    fn capacity(&self) -> u32 {
        self.store.capacity()
    }

    fn len(&self) -> u32 {
        self.store.len()
    }

    fn slot_of(&self, key: u64) -> Option<u32> {
        self.store.slot(key)
    }

    fn touch(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        self.sketch.note(key);
        match self.segments[slot as usize] {
            Segment::Window => self.store.renew(&mut self.window, slot),
            Segment::Protected => self.store.renew(&mut self.protected, slot),
            Segment::Probation => {
                self.store.unlink(&mut self.probation, slot);
                self.store.push(&mut self.protected, slot);
                self.segments[slot as usize] = Segment::Protected;
                if self.protected.len() > self.protected_max
                    && let Some(oldest) = self.store.pop(&mut self.protected)
                {
                    self.store.push(&mut self.probation, oldest);
                    self.segments[oldest as usize] = Segment::Probation;
                }
            }
        }
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        self.sketch.note(key);
        let evicted = if self.store.is_full() { self.evict() } else { None };
        if self.window.len() == self.window_max {
            self.admit();
        }
        let slot = self.store.insert(key);
        self.segments[slot as usize] = Segment::Window;
        self.store.push(&mut self.window, slot);
        Inserted { slot, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        let list = match self.segments[slot as usize] {
            Segment::Window => &mut self.window,
            Segment::Probation => &mut self.probation,
            Segment::Protected => &mut self.protected,
        };
        self.store.unlink(list, slot);
        self.store.release(slot);
        Some(slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        let count = |slot: u32| self.sketch.count(self.store.key(slot));
        let leaving = match (self.window.oldest(), self.victim()) {
            (Some(candidate), Some(victim)) if count(candidate) > count(victim) => victim,
            (Some(candidate), _) => candidate,
            (None, victim) => victim?,
        };
        let key = self.store.key(leaving);
        self.remove(key).map(|slot| Evicted { key, slot })
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.segments.capacity() * size_of::<Segment>() + self.sketch.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Access;
    use proptest::prelude::*;

    fn take(keys: &mut Vec<u64>, key: u64) -> bool {
        let place = keys.iter().position(|&held| held == key);
        place.map(|place| keys.remove(place)).is_some()
    }

    /// A literal reading, on vectors whose oldest is first. It counts in the same sketch.
    struct Naive {
        window_max: usize,
        capacity: usize,
        protected_max: usize,
        window: Vec<u64>,
        probation: Vec<u64>,
        protected: Vec<u64>,
        sketch: Sketch,
    }

    impl Naive {
        fn new(capacity: usize) -> Self {
            let window_max = (capacity / 100).max(1);
            Self {
                window_max,
                capacity,
                protected_max: (capacity - window_max) * 80 / 100,
                window: Vec::new(),
                probation: Vec::new(),
                protected: Vec::new(),
                sketch: Sketch::new(capacity as u32),
            }
        }

        fn access(&mut self, key: u64) -> (bool, Option<u64>) {
            self.sketch.note(key);
            if take(&mut self.window, key) {
                self.window.push(key);
                return (true, None);
            }
            if take(&mut self.probation, key) || take(&mut self.protected, key) {
                self.protected.push(key);
                if self.protected.len() > self.protected_max {
                    let back = self.protected.remove(0);
                    self.probation.push(back);
                }
                return (true, None);
            }
            let is_full = self.window.len() + self.probation.len() + self.protected.len() == self.capacity;
            let evicted = if is_full { self.evict() } else { None };
            if self.window.len() == self.window_max {
                let next = self.window.remove(0);
                self.probation.push(next);
            }
            self.window.push(key);
            (false, evicted)
        }

        fn remove(&mut self, key: u64) {
            let _ = take(&mut self.window, key) || take(&mut self.probation, key) || take(&mut self.protected, key);
        }

        fn evict(&mut self) -> Option<u64> {
            let candidate = self.window.first().copied();
            let victim = self.probation.first().or(self.protected.first()).copied();
            let leaves = match (candidate, victim) {
                (Some(candidate), Some(victim)) if self.sketch.count(candidate) > self.sketch.count(victim) => victim,
                (Some(candidate), _) => candidate,
                (None, victim) => victim?,
            };
            self.remove(leaves);
            Some(leaves)
        }
    }

    proptest! {
        #[test]
        fn it_is_a_window_and_segments(
            capacity in 1_u32..250,
            steps in prop::collection::vec((0_u64..400, 0_u32..24), 0..1_500),
        ) {
            let mut cache = WTinyLfu::new(capacity);
            let mut naive = Naive::new(capacity as usize);
            for (key, choice) in steps {
                match choice {
                    0 => {
                        cache.remove(key);
                        naive.remove(key);
                    }
                    1 => prop_assert_eq!(cache.evict().map(|evicted| evicted.key), naive.evict()),
                    // Half of the accesses go to few keys.
                    _ => {
                        let key = if choice % 2 == 0 { key % 30 } else { key };
                        let expected = naive.access(key);
                        let found = match cache.access(key) {
                            Access::Hit { .. } => (true, None),
                            Access::Miss(inserted) => (false, inserted.evicted.map(|evicted| evicted.key)),
                        };
                        prop_assert_eq!(found, expected);
                    }
                }
                let held = [&naive.window, &naive.probation, &naive.protected].map(Vec::len).iter().sum::<usize>();
                prop_assert_eq!((cache.len() as usize, cache.len() <= capacity), (held, true));
            }
        }
    }
}
