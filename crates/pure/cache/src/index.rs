//! Where keys are: an open-addressing table from keys to the numbers of their nodes.

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// A table with linear probing. Keys are not in it but with their nodes: an entry is four bytes, and at least a quarter of
/// the entries is empty. Deletion moves later entries back, so there are no graves, and a table never degrades.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    places: Vec<u32>,
}

impl Index {
    /// A table for at most `entries` keys.
    pub(crate) fn new(entries: usize) -> Self {
        let places = entries + entries / 3 + 2;
        assert!(u32::try_from(places).is_ok(), "nodes have numbers of 32 bits");
        Self { places: vec![NONE; places] }
    }

    /// The node of `key`.
    #[inline]
    pub(crate) fn find(&self, key: u64, keys: &[u64]) -> Option<u32> {
        self.place(key, keys).map(|place| self.places[place])
    }

    /// Adds `key`, which is not in the table, with its node.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, node: u32) {
        let mut place = self.home(key);
        while self.places[place] != NONE {
            place = self.after(place);
        }
        self.places[place] = node;
    }

    /// Gives `key`, which is in the table, another node.
    #[inline]
    pub(crate) fn replace(&mut self, key: u64, node: u32, keys: &[u64]) {
        let place = self.place(key, keys).expect("the key of a node is in the index");
        self.places[place] = node;
    }

    /// Takes `key`, which is in the table, out of it.
    pub(crate) fn remove(&mut self, key: u64, keys: &[u64]) {
        let mut gap = self.place(key, keys).expect("the key of a node is in the index");
        let mut place = self.after(gap);
        while self.places[place] != NONE {
            // An entry may move back to the gap unless its home lies after it.
            let home = self.home(keys[self.places[place] as usize]);
            if self.distance(home, place) >= self.distance(gap, place) {
                self.places[gap] = self.places[place];
                gap = place;
            }
            place = self.after(place);
        }
        self.places[gap] = NONE;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }

    #[inline]
    fn place(&self, key: u64, keys: &[u64]) -> Option<usize> {
        let mut place = self.home(key);
        loop {
            let node = self.places[place];
            if node == NONE {
                return None;
            }
            if keys[node as usize] == key {
                return Some(place);
            }
            place = self.after(place);
        }
    }

    /// The upper half of the hash, scaled to the table: sizes need not be powers of two.
    #[inline]
    fn home(&self, key: u64) -> usize {
        (((hash(key) >> 32) * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.places.len() - from }
    }
}

/// A permutation of 64-bit numbers without a seed, so that all machines agree. Source: [X] the finalizer of MurmurHash3.
#[inline]
pub(crate) fn hash(key: u64) -> u64 {
    let mut mixed = key;
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_full_table_finds_what_was_put_in(steps in prop::collection::vec((0_u64..60, any::<bool>()), 0..400)) {
            const ENTRIES: usize = 20;
            let mut index = Index::new(ENTRIES);
            let mut keys = vec![0; ENTRIES];
            let mut free: Vec<u32> = (0..20).collect();
            let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
            for (key, add) in steps {
                if let Some(node) = expected.get(&key).copied().filter(|_| !add) {
                    index.remove(key, &keys);
                    expected.remove(&key);
                    free.push(node);
                } else if add && !expected.contains_key(&key) && let Some(node) = free.pop() {
                    keys[node as usize] = key;
                    index.insert(key, node);
                    expected.insert(key, node);
                }
                for key in 0..60 {
                    prop_assert_eq!(index.find(key, &keys), expected.get(&key).copied());
                }
            }
        }
    }
}
