//! Where keys are: an open-addressing table from keys to the numbers of their nodes.

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// An entry without a node.
const EMPTY: Entry = Entry { tag: 0, node: NONE };

/// The upper half of a key's hash beside its node: keys that are not asked for are seldom looked at.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    node: u32,
}

/// A table with linear probing. Keys are not in it but with their nodes: an entry is eight bytes, and at least a quarter of
/// the entries is empty. Deletion moves later entries back, so there are no graves, and a table never degrades.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    places: Vec<Entry>,
}

impl Index {
    /// A table for at most `entries` keys.
    pub(crate) fn new(entries: usize) -> Self {
        let places = entries + entries / 3 + 2;
        assert!(u32::try_from(places).is_ok(), "nodes have numbers of 32 bits");
        Self { places: vec![EMPTY; places] }
    }

    /// The node of `key`.
    #[inline]
    pub(crate) fn find(&self, key: u64, keys: &[u64]) -> Option<u32> {
        let tag = tag(key);
        let mut place = self.home(tag);
        loop {
            let entry = self.places[place];
            if entry.node == NONE {
                return None;
            }
            if entry.tag == tag && keys[entry.node as usize] == key {
                return Some(entry.node);
            }
            place = self.after(place);
        }
    }

    /// Adds `key`, which is not in the table, with its node.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, node: u32) {
        let tag = tag(key);
        let mut place = self.home(tag);
        while self.places[place].node != NONE {
            place = self.after(place);
        }
        self.places[place] = Entry { tag, node };
    }

    /// Gives `key`, whose node is `from`, the node `to`.
    #[inline]
    pub(crate) fn replace(&mut self, key: u64, from: u32, to: u32) {
        let place = self.place(key, from);
        self.places[place].node = to;
    }

    /// Takes `key`, whose node is `node`, out of the table.
    #[inline]
    pub(crate) fn remove(&mut self, key: u64, node: u32) {
        let mut gap = self.place(key, node);
        let mut place = self.after(gap);
        while self.places[place].node != NONE {
            // An entry may move back to the gap unless its home lies after it.
            let home = self.home(self.places[place].tag);
            if self.distance(home, place) >= self.distance(gap, place) {
                self.places[gap] = self.places[place];
                gap = place;
            }
            place = self.after(place);
        }
        self.places[gap] = EMPTY;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Entry>()
    }

    /// Where the entry of a key is whose node is known.
    #[inline]
    fn place(&self, key: u64, node: u32) -> usize {
        let mut place = self.home(tag(key));
        while self.places[place].node != node {
            assert!(self.places[place].node != NONE, "the key of a node is in the index");
            place = self.after(place);
        }
        place
    }

    /// A tag scaled to the table: sizes need not be powers of two.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.places.len() - from }
    }
}

#[inline]
fn tag(key: u64) -> u32 {
    (hash(key) >> 32) as u32
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
                    index.remove(key, node);
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
