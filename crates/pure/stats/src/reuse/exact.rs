//! Exact stack distances.

use super::recency::Recency;

/// No access yet.
const NEVER: u32 = u32::MAX;

/// Exact stack distances of accesses to keys that are numbered from zero without gaps.
///
/// Time O(log n) an access; memory 4 bytes a key and a quarter of a byte to one byte for its place in time.
#[derive(Clone, Debug)]
pub struct ReuseDistances {
    /// Slot of the last access to each key.
    last: Vec<u32>,
    recency: Recency,
}

impl Default for ReuseDistances {
    fn default() -> Self {
        Self::new()
    }
}

impl ReuseDistances {
    /// No access yet.
    pub fn new() -> Self {
        Self { last: Vec::new(), recency: Recency::new() }
    }

    /// Counts an access to `key` and returns its stack distance, above zero; `None` for the first one to it.
    ///
    /// Panics beyond 2^30 keys.
    #[inline]
    pub fn access(&mut self, key: u32) -> Option<u32> {
        let index = key as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, NEVER);
        }
        let before = self.last[index];
        let distance = (before != NEVER).then(|| {
            let distance = self.recency.count_from(before);
            self.recency.clear(before);
            distance
        });
        // Its mark is gone already: it must not be ranked with the others.
        self.last[index] = NEVER;
        if self.recency.is_full() {
            self.compact();
        }
        self.last[index] = self.recency.append();
        distance
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.last.capacity() * size_of::<u32>() + self.recency.bytes()
    }

    #[cold]
    fn compact(&mut self) {
        for slot in self.last.iter_mut().filter(|slot| **slot != NEVER) {
            *slot = self.recency.rank(*slot);
        }
        self.recency.compact();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The stack itself: most recently used key first.
    fn naive(keys: &[u32]) -> Vec<Option<u32>> {
        let mut stack: Vec<u32> = Vec::new();
        let mut distances = Vec::new();
        for &key in keys {
            let place = stack.iter().position(|&other| other == key);
            distances.push(place.map(|place| place as u32 + 1));
            stack.retain(|&other| other != key);
            stack.insert(0, key);
        }
        distances
    }

    #[test]
    fn the_same_key_twice_in_a_row_is_one_apart() {
        let mut reuse = ReuseDistances::new();
        let distances: Vec<_> = [0, 0, 1, 2, 0, 2].into_iter().map(|key| reuse.access(key)).collect();
        assert_eq!(distances, [None, Some(1), None, None, Some(3), Some(2)]);
    }

    #[test]
    fn a_loop_over_many_keys_is_as_far_apart_as_it_is_long() {
        let mut reuse = ReuseDistances::new();
        for round in 0..4 {
            for key in 0..20_000 {
                assert_eq!(reuse.access(key), (round > 0).then_some(20_000));
            }
        }
        // Four bytes a key and at least a quarter of a byte for its place in time.
        let least = 4 * reuse.last.capacity() + 20_000 / 4;
        assert!((least..20_000 * 8).contains(&reuse.bytes()), "{} bytes", reuse.bytes());
    }

    proptest! {
        #[test]
        fn distances_are_those_of_a_plain_stack(keys in prop::collection::vec(0_u32..40, 0..3_000)) {
            let mut reuse = ReuseDistances::new();
            let found: Vec<Option<u32>> = keys.iter().map(|&key| reuse.access(key)).collect();
            prop_assert_eq!(found, naive(&keys));
        }

        #[test]
        fn renumbering_changes_no_distance(keys in prop::collection::vec(0_u32..900, 2_000..5_000)) {
            let mut reuse = ReuseDistances::new();
            let found: Vec<Option<u32>> = keys.iter().map(|&key| reuse.access(key)).collect();
            prop_assert_eq!(found, naive(&keys));
        }
    }
}
