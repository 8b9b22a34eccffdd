//! A B+-tree whose keys really lie in nodes: it is built by insertions in random order, and look-ups tell what they read.
//!
//! Nodes follow each other in the order in which they came to be, records behind them in the order of insertion. A node has a header of 16
//! bytes, then its keys, then children or numbers of records; both take eight bytes. \[A\] sheet micro-ginkgo §8: nodes of 256 B to 4 KB.
//!
//! Functions of accesses are the places in the program: 0 headers, 1 keys, 2 children and numbers of records, 3 records.

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use flashyard_kernel::Rng;

/// Bytes of a header, and of a key, a child or a record's number.
const HEADER: u64 = 16;
const WORD: u64 = 8;

/// Inner nodes above a leaf at most: nodes have at least 7 keys, of which 4 to the power of 16 are more than there can be.
const LEVELS_MAX: usize = 16;

/// Parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BPlusTreeConfig {
    /// Keys, each inserted once.
    pub keys: u32,
    /// Bytes of a node, from 128 to 65,536, a multiple of 16.
    pub node_bytes: u32,
    /// Bytes of a record, from 8 to 65,536.
    pub record_bytes: u32,
}

/// A tree after all insertions.
#[derive(Clone, Debug)]
pub struct BPlusTree {
    config: BPlusTreeConfig,
    /// Keys of a node at most.
    fanout: usize,
    /// Keys of all nodes, `fanout` each.
    keys: Vec<u64>,
    /// Of inner nodes the child with keys from the key beside it on, of leaves the record.
    values: Vec<u32>,
    counts: Vec<u16>,
    root: usize,
    /// Levels above the leaves.
    height: usize,
}

/// The key that is inserted as number `number`: a bijection that scatters. \[X\] the finalizer of splitmix64
const fn key_of(number: u32) -> u64 {
    let mut key = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

impl BPlusTree {
    /// A tree with all keys.
    ///
    /// Errors: numbers outside their ranges.
    pub fn build(config: BPlusTreeConfig) -> Result<Self, MemoryError> {
        let BPlusTreeConfig { keys, node_bytes, record_bytes } = config;
        for (name, value, good, range) in [
            ("keys of a tree", keys, (1..=1 << 30).contains(&keys), "1 to 2^30"),
            (
                "bytes of a node",
                node_bytes,
                (128..=1 << 16).contains(&node_bytes) && node_bytes.is_multiple_of(16),
                "a multiple of 16 from 128 to 65536",
            ),
            ("bytes of a record", record_bytes, (8..=1 << 16).contains(&record_bytes), "8 to 65536"),
        ] {
            if !good {
                return Err(MemoryError::Range { name, value: value.into(), range });
            }
        }
        let fanout = ((u64::from(node_bytes) - HEADER) / (2 * WORD)) as usize;
        let mut tree =
            Self { config, fanout, keys: Vec::new(), values: Vec::new(), counts: Vec::new(), root: 0, height: 0 };
        tree.root = tree.new_node();
        for number in 0..keys {
            tree.insert(key_of(number), number);
        }
        Ok(tree)
    }

    /// Bytes of all nodes and records.
    pub fn bytes(&self) -> u64 {
        self.records_begin() + u64::from(self.config.keys) * u64::from(self.config.record_bytes)
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.counts.len()
    }

    /// Levels of nodes, the leaves among them.
    pub fn levels(&self) -> usize {
        self.height + 1
    }

    fn records_begin(&self) -> u64 {
        (self.nodes() as u64 * u64::from(self.config.node_bytes)).next_multiple_of(4096)
    }

    fn new_node(&mut self) -> usize {
        let node = self.counts.len();
        self.keys.resize(self.keys.len() + self.fanout, 0);
        self.values.resize(self.values.len() + self.fanout, 0);
        self.counts.push(0);
        node
    }

    fn keys_of(&self, node: usize) -> &[u64] {
        let begin = node * self.fanout;
        &self.keys[begin..begin + usize::from(self.counts[node])]
    }

    /// The place in an inner node whose child has `key`. Keys below the first belong to the first child.
    fn place(&self, node: usize, key: u64) -> usize {
        self.keys_of(node).partition_point(|held| *held <= key).saturating_sub(1)
    }

    fn insert(&mut self, key: u64, record: u32) {
        let mut path = [(0, 0); LEVELS_MAX];
        let mut node = self.root;
        for step in &mut path[..self.height] {
            let place = self.place(node, key);
            *step = (node, place);
            node = self.values[node * self.fanout + place] as usize;
        }
        let place = self.keys_of(node).partition_point(|held| *held < key);
        let mut carried = self.insert_at(node, place, key, record);
        for &(parent, place) in path[..self.height].iter().rev() {
            let Some((key, child)) = carried else { return };
            carried = self.insert_at(parent, place + 1, key, child);
        }
        if let Some((key, child)) = carried {
            let (old, lowest) = (self.root, self.keys[self.root * self.fanout]);
            self.root = self.new_node();
            self.height += 1;
            assert!(self.height < LEVELS_MAX, "a tree of so many keys is not so high");
            self.insert_at(self.root, 0, lowest, old as u32);
            self.insert_at(self.root, 1, key, child);
        }
    }

    /// Puts an entry in at `place`. A full node is split, and the entry of the new one, its lowest key and its number, returned.
    fn insert_at(&mut self, node: usize, place: usize, key: u64, value: u32) -> Option<(u64, u32)> {
        if usize::from(self.counts[node]) < self.fanout {
            self.put(node, place, key, value);
            return None;
        }
        let half = self.fanout / 2;
        let right = self.new_node();
        let (from, to) = (node * self.fanout, right * self.fanout);
        self.keys.copy_within(from + half..from + self.fanout, to);
        self.values.copy_within(from + half..from + self.fanout, to);
        self.counts[node] = half as u16;
        self.counts[right] = (self.fanout - half) as u16;
        match place.checked_sub(half) {
            Some(place) if place > 0 => self.put(right, place, key, value),
            _ => self.put(node, place, key, value),
        }
        Some((self.keys[to], right as u32))
    }

    fn put(&mut self, node: usize, place: usize, key: u64, value: u32) {
        let (begin, end) = (node * self.fanout, node * self.fanout + usize::from(self.counts[node]));
        self.keys.copy_within(begin + place..end, begin + place + 1);
        self.values.copy_within(begin + place..end, begin + place + 1);
        (self.keys[begin + place], self.values[begin + place]) = (key, value);
        self.counts[node] += 1;
    }
}

/// The next step of a look-up.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Read the header of the node.
    Header,
    /// Compare with the key in the middle of a range that has the place.
    Search { low: u32, high: u32 },
    /// Follow the entry at a place.
    Follow(u32),
    /// Read a record.
    Record(u32),
}

/// Look-ups of keys that are there, each as likely as the others, without end.
#[derive(Clone, Debug)]
pub struct TreeLookups<'a> {
    tree: &'a BPlusTree,
    rng: Rng,
    key: u64,
    node: usize,
    level: usize,
    next: Next,
}

impl<'a> TreeLookups<'a> {
    /// Look-ups in `tree`.
    pub fn new(tree: &'a BPlusTree, rng: Rng) -> Self {
        let mut lookups = Self { tree, rng, key: 0, node: tree.root, level: 0, next: Next::Header };
        lookups.begin();
        lookups
    }

    fn begin(&mut self) {
        self.key = key_of(self.rng.below(self.tree.config.keys.into()) as u32);
        (self.node, self.level, self.next) = (self.tree.root, 0, Next::Header);
    }

    fn address(&self, offset: u64) -> u64 {
        self.node as u64 * u64::from(self.tree.config.node_bytes) + offset
    }
}

impl Accesses for TreeLookups<'_> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        let tree = self.tree;
        let (address, depends, function) = match self.next {
            Next::Header => {
                let count = u32::from(tree.counts[self.node]);
                self.next = if count > 1 { Next::Search { low: 0, high: count } } else { Next::Follow(0) };
                (self.address(0), true, 0)
            }
            Next::Search { low, high } => {
                // The place is in low..high: the last key that is not above the one that is looked for.
                let middle = low + (high - low) / 2;
                let is_at_or_behind = tree.keys[self.node * tree.fanout + middle as usize] <= self.key;
                let (low, high) = if is_at_or_behind { (middle, high) } else { (low, middle) };
                self.next = if high - low > 1 { Next::Search { low, high } } else { Next::Follow(low) };
                (self.address(HEADER + u64::from(middle) * WORD), false, 1)
            }
            Next::Follow(place) => {
                let address = self.address(HEADER + (tree.fanout as u64 + u64::from(place)) * WORD);
                let value = tree.values[self.node * tree.fanout + place as usize];
                if self.level == tree.height {
                    self.next = Next::Record(value);
                } else {
                    (self.node, self.level, self.next) = (value as usize, self.level + 1, Next::Header);
                }
                (address, false, 2)
            }
            Next::Record(record) => {
                debug_assert_eq!(key_of(record), self.key, "it is the record of the key");
                self.begin();
                (tree.records_begin() + u64::from(record) * u64::from(tree.config.record_bytes), true, 3)
            }
        };
        // A unit of arithmetic or control goes with each access. [A]
        Some(Access { kind: AccessKind::Load, address, gap: 1, depends, function })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    impl BPlusTree {
        fn leaves(&self, node: usize, level: usize, found: &mut Vec<(u64, u32)>) {
            for (place, key) in self.keys_of(node).iter().enumerate() {
                let value = self.values[node * self.fanout + place];
                if level == self.height {
                    found.push((*key, value));
                } else {
                    self.leaves(value as usize, level + 1, found);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_tree_has_its_keys_in_order_and_half_full_nodes(keys in 1_u32..3000, words in 0_u32..20) {
            let config = BPlusTreeConfig { keys, node_bytes: 128 + 16 * words, record_bytes: 64 };
            let tree = BPlusTree::build(config).expect("it is possible");
            let mut found = Vec::new();
            tree.leaves(tree.root, 0, &mut found);
            let mut expected: Vec<(u64, u32)> = (0..keys).map(|number| (key_of(number), number)).collect();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
            let least = tree.fanout / 2;
            let rest = (0..tree.nodes()).filter(|&node| node != tree.root);
            prop_assert!(rest.into_iter().all(|node| usize::from(tree.counts[node]) >= least));
        }
    }

    #[test]
    fn lookups_go_down_the_tree_and_read_the_record_of_their_key() {
        let config = BPlusTreeConfig { keys: 100_000, node_bytes: 512, record_bytes: 100 };
        let tree = BPlusTree::build(config).expect("it is possible");
        assert_eq!(tree.levels(), 4, "31 keys a node, some 21 of them there");
        let fill = 100_000.0 / (tree.nodes() as f64 * tree.fanout as f64);
        assert!((0.6..0.8).contains(&fill), "nodes that are split in halves are full by ln 2: {fill}");
        let mut lookups = TreeLookups::new(&tree, Rng::named(1, "test"));
        let mut headers = 0;
        for _ in 0..50_000 {
            let access = lookups.next_access().expect("it has no end");
            assert!(access.address < tree.bytes());
            match access.function {
                0 => headers += 1,
                // That it is the record of its key is asserted where it is read.
                3 => assert_eq!(std::mem::take(&mut headers), tree.levels()),
                _ => {}
            }
        }
    }

    #[test]
    fn sizes_that_are_no_tree_are_refused() {
        for (keys, node_bytes, record_bytes) in [(0, 512, 64), (1, 120, 64), (1, 1000, 64), (1, 512, 4)] {
            assert!(BPlusTree::build(BPlusTreeConfig { keys, node_bytes, record_bytes }).is_err());
        }
    }
}
