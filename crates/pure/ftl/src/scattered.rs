//! A hash table from entry numbers to slot numbers: open addressing with linear probing, eight bytes a place.
//!
//! Deletion shifts followers back, so that no tombstones are left and a table that was emptied is as fast as new.

/// No entry: no table is that long.
const EMPTY: u32 = u32::MAX;

/// Places at first.
const FIRST: usize = 1024;

/// Scattered entries of a map.
#[derive(Default)]
pub(crate) struct Scattered {
    /// Key and value; a power of two of them, or none.
    places: Vec<(u32, u32)>,
    len: usize,
}

impl Scattered {
    /// Bytes of memory behind the table.
    pub(crate) fn bytes(&self) -> u64 {
        (self.places.len() * size_of::<(u32, u32)>()) as u64
    }

    /// Whether nothing is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key`.
    pub(crate) fn get(&self, key: u32) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let (found, value) = self.places[self.find(key)];
        (found == key).then_some(value)
    }

    /// Sets the value of `key` and returns the one before.
    pub(crate) fn insert(&mut self, key: u32, value: u32) -> Option<u32> {
        // Three quarters full at most: probes stay short.
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        let place = self.find(key);
        let before = std::mem::replace(&mut self.places[place], (key, value));
        if before.0 == key {
            return Some(before.1);
        }
        self.len += 1;
        None
    }

    /// Removes `key` and returns its value.
    pub(crate) fn remove(&mut self, key: u32) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut hole = self.find(key);
        let (found, value) = self.places[hole];
        if found != key {
            return None;
        }
        self.len -= 1;
        let mask = self.places.len() - 1;
        let mut next = (hole + 1) & mask;
        while self.places[next].0 != EMPTY {
            // An entry may move back to the hole unless its home lies between hole and entry.
            let home = self.home(self.places[next].0);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole].0 = EMPTY;
        Some(value)
    }

    /// The place of `key`, or the empty one where it would go.
    #[inline]
    fn find(&self, key: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut place = self.home(key);
        while self.places[place].0 != key && self.places[place].0 != EMPTY {
            place = (place + 1) & mask;
        }
        place
    }

    #[inline]
    fn home(&self, key: u32) -> usize {
        let bits = self.places.len().trailing_zeros();
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = (self.places.len() * 2).max(FIRST);
        let old = std::mem::replace(&mut self.places, vec![(EMPTY, 0); capacity]);
        for (key, value) in old.into_iter().filter(|place| place.0 != EMPTY) {
            let place = self.find(key);
            self.places[place] = (key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn entries_cost_eight_bytes_a_place_and_three_quarters_of_the_places_are_taken_at_most() {
        let mut table = Scattered::default();
        assert_eq!(table.bytes(), 0);
        for key in 0..10_000 {
            table.insert(key, 0);
            let places = table.bytes() / 8;
            assert!(places.is_power_of_two() && places >= 1024 && u64::from(key + 1) * 4 <= places * 3, "{places}");
            assert!(places == 1024 || u64::from(key + 1) * 8 > places * 3, "{places} places for {key}");
        }
    }

    #[test]
    fn what_was_removed_takes_no_place() {
        let mut table = Scattered::default();
        for key in 0..3000 {
            table.insert(key, key);
            assert_eq!((table.is_empty(), table.remove(key), table.is_empty()), (false, Some(key), true));
        }
        assert_eq!(table.bytes(), 8 * 1024);
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_map(steps in prop::collection::vec((0_u32..3000, any::<Option<u32>>()), 0..5000)) {
            let (mut table, mut model) = (Scattered::default(), BTreeMap::new());
            for (key, value) in steps {
                match value {
                    Some(value) => prop_assert_eq!(table.insert(key, value), model.insert(key, value)),
                    None => prop_assert_eq!(table.remove(key), model.remove(&key)),
                }
            }
            for key in 0..3000 {
                prop_assert_eq!(table.get(key), model.get(&key).copied());
            }
        }
    }
}
