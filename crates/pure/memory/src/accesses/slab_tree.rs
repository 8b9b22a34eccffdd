//! The B+-tree of the public program BTree, as it lies in virtual memory: nodes and records in slabs, each slab at the beginning of a huge page of
//! its own.
//!
//! Studies of memory in tiers and of huge pages take this program for their index. \[C\] vmitosis-workloads, `btree/btree.c`: nodes have 16
//! children or 15 keys; keys come in turn from both ends, the even ones upwards and the odd ones downwards; nodes of 48 bytes and records of 16
//! bytes come from slabs of 256 KiB, from their ends downwards, and each slab is asked for at a multiple of 2 MiB; keys and children of a node are
//! arrays of their own on the heap; elements of 16 bytes, to which records point, are two arrays.
//!
//! Its places were measured on the program itself (glibc 2.36, two million keys): no two slabs share a huge page, later slabs lie lower, and the
//! heap takes 7.383 lines of 64 bytes a node, of which four are in use, evenly over all of it: pieces between them were lent to splits and came
//! back. Here the arrays of a node lie at their mean distance.
//!
//! Functions of accesses are the places in the program: 0 nodes, 1 keys, 2 children and records of leaves, 3 records, 4 elements.

use crate::access::{Access, AccessKind, Accesses};
use crate::error::MemoryError;
use flashyard_kernel::Rng;

/// Children of a node at most; keys are one less. \[C\] `order`
const ORDER: usize = 16;
const KEYS: usize = ORDER - 1;

/// Bytes of a huge page, at whose beginning each slab lies. \[C\] `ALIGNMET`
const HUGE_PAGE: u64 = 2 << 20;
/// Bytes of a slab. \[C\] `NODE_SLAB_GROW`, `RECORD_SLAB_GROW`
const SLAB: u64 = 256 << 10;
/// Bytes of a node, a record and an element. \[C\]
const NODE: u64 = 48;
const RECORD: u64 = 16;
const ELEMENT: u64 = 16;
/// Places of a node's fields. \[C\] `struct node`
const NODE_CHILDREN: u64 = 0;
const NODE_KEYS: u64 = 8;
const NODE_IS_LEAF: u64 = 24;
const NODE_COUNT: u64 = 32;
/// Thousandths of a line of the heap for each node, and lines from a node's keys to its children. \[C\] measured on the public program
const HEAP_LINES: u64 = 7383;
const CHILDREN_BEHIND: u64 = 4;
const LINE: u64 = 64;
const WORD: u64 = 8;

/// Levels at most: nodes have seven keys at least, of which 8 to the power of 11 are more than there can be.
const LEVELS_MAX: usize = 12;

/// Keys and children of a node. Of a leaf, children are numbers of records.
#[derive(Clone, Debug, Default)]
struct Node {
    keys: [u32; KEYS],
    children: [u32; ORDER],
    count: u8,
}

/// The kind of pieces of a slab.
#[derive(Clone, Copy, Debug)]
enum Slab {
    Nodes,
    Records,
}

/// A tree after all insertions.
#[derive(Clone, Debug)]
pub struct SlabTree {
    keys: u32,
    nodes: Vec<Node>,
    root: usize,
    /// Levels above the leaves.
    height: usize,
    /// Slabs in the order in which they were asked for.
    slabs: Vec<Slab>,
    /// Numbers of the slabs of nodes, and of records, among all.
    node_slabs: Vec<u32>,
    record_slabs: Vec<u32>,
}

impl SlabTree {
    /// A tree of so many keys.
    ///
    /// Errors: a number of keys that is odd or out of range.
    pub fn build(keys: u32) -> Result<Self, MemoryError> {
        if !(2..=1 << 30).contains(&keys) || !keys.is_multiple_of(2) {
            let range = "an even number from 2 to 2^30";
            return Err(MemoryError::Range { name: "keys of a tree in slabs", value: keys.into(), range });
        }
        let mut tree = Self {
            keys,
            nodes: Vec::new(),
            root: 0,
            height: 0,
            slabs: Vec::new(),
            node_slabs: Vec::new(),
            record_slabs: Vec::new(),
        };
        for record in 0..keys {
            if u64::from(record).is_multiple_of(SLAB / RECORD) {
                tree.record_slabs.push(tree.slabs.len() as u32);
                tree.slabs.push(Slab::Records);
            }
            if record == 0 {
                tree.root = tree.new_node();
            }
            let key = if record.is_multiple_of(2) { record } else { keys - record };
            tree.insert(key, record);
        }
        Ok(tree)
    }

    /// Bytes of all huge pages in use.
    pub fn bytes(&self) -> u64 {
        self.elements_begin() + 2 * self.bytes_of_elements()
    }

    /// Nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Levels of nodes, the leaves among them.
    pub fn levels(&self) -> usize {
        self.height + 1
    }

    fn heap_bytes(&self) -> u64 {
        (self.nodes.len() as u64 * HEAP_LINES).div_ceil(1000) * LINE + 2 * CHILDREN_BEHIND * LINE
    }

    /// Where slabs begin: behind the heap, which lies lowest.
    fn slabs_begin(&self) -> u64 {
        self.heap_bytes().next_multiple_of(HUGE_PAGE)
    }

    fn elements_begin(&self) -> u64 {
        self.slabs_begin() + self.slabs.len() as u64 * HUGE_PAGE
    }

    fn bytes_of_elements(&self) -> u64 {
        (u64::from(self.keys) / 2 * ELEMENT).next_multiple_of(HUGE_PAGE)
    }

    /// The address of piece `number` of those of `bytes` in `slabs`: slabs are filled from their ends, and later slabs lie lower.
    fn in_slab(&self, slabs: &[u32], number: u64, bytes: u64) -> u64 {
        let pieces = SLAB / bytes;
        let slab = u64::from(slabs[(number / pieces) as usize]);
        let page = self.slabs.len() as u64 - 1 - slab;
        self.slabs_begin() + page * HUGE_PAGE + (pieces - 1 - number % pieces) * bytes
    }

    fn node_at(&self, node: usize) -> u64 {
        self.in_slab(&self.node_slabs, node as u64, NODE)
    }

    fn record_at(&self, record: u32) -> u64 {
        self.in_slab(&self.record_slabs, record.into(), RECORD)
    }

    fn keys_at(node: usize) -> u64 {
        node as u64 * HEAP_LINES / 1000 * LINE
    }

    /// The element to which the record of `key` points. The array of odd keys lies below that of even ones.
    fn element_at(&self, key: u32) -> u64 {
        let (array, place) = if key.is_multiple_of(2) { (1, key / 2) } else { (0, (self.keys - 1 - key) / 2) };
        self.elements_begin() + array * self.bytes_of_elements() + u64::from(place) * ELEMENT
    }

    fn new_node(&mut self) -> usize {
        let node = self.nodes.len();
        if (node as u64).is_multiple_of(SLAB / NODE) {
            self.node_slabs.push(self.slabs.len() as u32);
            self.slabs.push(Slab::Nodes);
        }
        self.nodes.push(Node::default());
        node
    }

    /// The place of the child of an inner node that has `key`: behind all keys that are not above it.
    fn child_place(&self, node: usize, key: u32) -> usize {
        let Node { keys, count, .. } = &self.nodes[node];
        keys[..usize::from(*count)].partition_point(|held| *held <= key)
    }

    fn insert(&mut self, key: u32, record: u32) {
        let mut path = [(0, 0); LEVELS_MAX];
        let mut node = self.root;
        for step in &mut path[..self.height] {
            let place = self.child_place(node, key);
            *step = (node, place);
            node = self.nodes[node].children[place] as usize;
        }
        let mut carried = self.insert_in_leaf(node, key, record);
        for &(parent, place) in path[..self.height].iter().rev() {
            let Some((key, right)) = carried else { return };
            carried = self.insert_in_node(parent, place, key, right);
        }
        if let Some((key, right)) = carried {
            let left = self.root as u32;
            self.root = self.new_node();
            self.height += 1;
            assert!(self.height < LEVELS_MAX, "a tree of so many keys is not so high");
            let root = &mut self.nodes[self.root];
            (root.keys[0], root.count) = (key, 1);
            (root.children[0], root.children[1]) = (left, right);
        }
    }

    /// Puts a record into a leaf. A full leaf is split, and the lowest key and the number of the new one are returned.
    fn insert_in_leaf(&mut self, leaf: usize, key: u32, record: u32) -> Option<(u32, u32)> {
        let Node { keys, children, count } = &mut self.nodes[leaf];
        let held = usize::from(*count);
        let place = keys[..held].partition_point(|held| *held < key);
        if held < KEYS {
            keys.copy_within(place..held, place + 1);
            children.copy_within(place..held, place + 1);
            (keys[place], children[place], *count) = (key, record, *count + 1);
            return None;
        }
        let all_keys: [u32; KEYS + 1] = with(keys, place, key);
        let all_records: [u32; KEYS + 1] = with(&children[..KEYS], place, record);
        let half = KEYS.div_ceil(2);
        let right = self.new_node();
        self.nodes[leaf].fill(&all_keys[..half], &all_records[..half]);
        self.nodes[right].fill(&all_keys[half..], &all_records[half..]);
        Some((all_keys[half], right as u32))
    }

    /// Puts a child behind that at `place` of an inner node. A full node is split, and the key between both and the number of the new one are
    /// returned.
    fn insert_in_node(&mut self, node: usize, place: usize, key: u32, child: u32) -> Option<(u32, u32)> {
        let Node { keys, children, count } = &mut self.nodes[node];
        let held = usize::from(*count);
        if held < KEYS {
            keys.copy_within(place..held, place + 1);
            children.copy_within(place + 1..=held, place + 2);
            (keys[place], children[place + 1], *count) = (key, child, *count + 1);
            return None;
        }
        let all_keys: [u32; KEYS + 1] = with(keys, place, key);
        let all_children: [u32; ORDER + 1] = with(children, place + 1, child);
        let half = ORDER.div_ceil(2);
        let right = self.new_node();
        self.nodes[node].fill(&all_keys[..half - 1], &all_children[..half]);
        self.nodes[right].fill(&all_keys[half..], &all_children[half..]);
        Some((all_keys[half - 1], right as u32))
    }
}

impl Node {
    fn fill(&mut self, keys: &[u32], children: &[u32]) {
        self.keys[..keys.len()].copy_from_slice(keys);
        self.children[..children.len()].copy_from_slice(children);
        self.count = keys.len() as u8;
    }
}

/// `held` with `value` put in at `place`.
fn with<const MORE: usize>(held: &[u32], place: usize, value: u32) -> [u32; MORE] {
    let mut all = [0; MORE];
    all[..place].copy_from_slice(&held[..place]);
    all[place] = value;
    all[place + 1..=held.len()].copy_from_slice(&held[place..]);
    all
}

/// The next access of a look-up.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A field of the node, then what comes behind it.
    IsLeaf,
    Count,
    Keys,
    /// The key at a place: the program compares one after the other.
    Key(u8),
    /// Where the children are.
    Children,
    Child,
    Record(u32),
    Element,
}

/// Look-ups without end, two for each random number, as the public program makes them. \[C\] keys are the number and four times its successor,
/// both modulo the number of keys.
#[derive(Clone, Debug)]
pub struct SlabLookups<'a> {
    tree: &'a SlabTree,
    rng: Rng,
    /// Four times the successor of the number, if it is to be looked up next.
    second: Option<u32>,
    key: u32,
    node: usize,
    level: usize,
    /// Place of the child or record in the node, once it is known.
    place: usize,
    next: Next,
}

impl<'a> SlabLookups<'a> {
    /// Look-ups in `tree`.
    pub fn new(tree: &'a SlabTree, rng: Rng) -> Self {
        let mut lookups = Self { tree, rng, second: None, key: 0, node: 0, level: 0, place: 0, next: Next::IsLeaf };
        lookups.begin();
        lookups
    }

    fn begin(&mut self) {
        let keys = u64::from(self.tree.keys);
        self.key = self.second.take().unwrap_or_else(|| {
            // The program's generator gives 31 bits. [C]
            let number = self.rng.below(1 << 31);
            self.second = Some((((number + 1) << 2) % keys) as u32);
            (number % keys) as u32
        });
        (self.node, self.level, self.next) = (self.tree.root, 0, Next::IsLeaf);
    }

    const fn is_at_leaf(&self) -> bool {
        self.level == self.tree.height
    }

    /// Whether the comparison with the key at `place` ends the search in this node, and at which child or record.
    fn found(&self, place: usize) -> Option<usize> {
        let Node { keys, count, .. } = &self.tree.nodes[self.node];
        let held = keys[place];
        let is_last = place + 1 == usize::from(*count);
        match (self.is_at_leaf(), held) {
            (true, held) if held == self.key => Some(place),
            (false, held) if held > self.key => Some(place),
            (false, _) if is_last => Some(place + 1),
            _ => None,
        }
    }
}

impl Accesses for SlabLookups<'_> {
    #[inline]
    fn next_access(&mut self) -> Option<Access> {
        let tree = self.tree;
        let (address, depends, function) = match self.next {
            Next::IsLeaf => {
                self.next = Next::Count;
                (tree.node_at(self.node) + NODE_IS_LEAF, true, 0)
            }
            Next::Count => {
                self.next = Next::Keys;
                (tree.node_at(self.node) + NODE_COUNT, false, 0)
            }
            Next::Keys => {
                self.next = Next::Key(0);
                (tree.node_at(self.node) + NODE_KEYS, false, 0)
            }
            Next::Key(place) => {
                self.next = match self.found(place.into()) {
                    Some(place) => {
                        self.place = place;
                        Next::Children
                    }
                    None => Next::Key(place + 1),
                };
                (SlabTree::keys_at(self.node) + u64::from(place) * WORD, place == 0, 1)
            }
            Next::Children => {
                self.next = Next::Child;
                (tree.node_at(self.node) + NODE_CHILDREN, false, 0)
            }
            Next::Child => {
                let address = SlabTree::keys_at(self.node) + CHILDREN_BEHIND * LINE + self.place as u64 * WORD;
                let child = tree.nodes[self.node].children[self.place];
                if self.is_at_leaf() {
                    self.next = Next::Record(child);
                } else {
                    (self.node, self.level, self.next) = (child as usize, self.level + 1, Next::IsLeaf);
                }
                (address, true, 2)
            }
            Next::Record(record) => {
                self.next = Next::Element;
                (tree.record_at(record), true, 3)
            }
            Next::Element => {
                let address = tree.element_at(self.key);
                self.begin();
                (address, true, 4)
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
    use std::collections::BTreeSet;

    impl SlabTree {
        fn leaves(&self, node: usize, level: usize, found: &mut Vec<(u32, u32)>) {
            let Node { keys, children, count } = &self.nodes[node];
            let count = usize::from(*count);
            if level == self.height {
                found.extend(keys[..count].iter().copied().zip(children[..count].iter().copied()));
            } else {
                children[..=count].iter().for_each(|child| self.leaves(*child as usize, level + 1, found));
            }
        }
    }

    #[test]
    fn trees_have_as_many_nodes_as_those_of_the_public_program() {
        // The program was built with so many elements, and its nodes were counted.
        for (keys, nodes) in [(2000, 274), (20_000, 2745), (200_000, 27_454)] {
            assert_eq!(SlabTree::build(keys).expect("it is possible").nodes(), nodes);
        }
    }

    #[test]
    fn slabs_have_huge_pages_of_their_own_and_the_heap_is_in_use_by_half() {
        let tree = SlabTree::build(200_000).expect("it is possible");
        let pages = |bytes: u64| bytes.div_ceil(HUGE_PAGE);
        let slabs = 200_000_u64.div_ceil(SLAB / RECORD) + 27_454_u64.div_ceil(SLAB / NODE);
        assert_eq!(tree.bytes() / HUGE_PAGE, pages(tree.heap_bytes()) + slabs + 2 * pages(100_000 * ELEMENT));
        let arrays = (0..tree.nodes()).map(SlabTree::keys_at).flat_map(|keys| {
            let children = keys + CHILDREN_BEHIND * LINE;
            [keys, keys + LINE, children, children + LINE]
        });
        let lines: BTreeSet<u64> = arrays.collect();
        assert_eq!(lines.len(), 4 * tree.nodes(), "no two arrays share a line");
        let share = (lines.len() as u64 * LINE) as f64 / tree.heap_bytes() as f64;
        assert!((0.53..0.55).contains(&share), "0.542 in the public program: {share}");
        // Nothing else lies in the pages of the first nodes and records.
        assert_eq!(tree.record_at(0) % HUGE_PAGE, SLAB - RECORD);
        assert_eq!(tree.node_at(0) % HUGE_PAGE, (SLAB / NODE - 1) * NODE);
        assert_eq!(tree.record_at(0) / HUGE_PAGE, tree.node_at(0) / HUGE_PAGE + 1, "later slabs lie lower");
    }

    proptest! {
        #[test]
        fn a_tree_has_its_keys_in_order(half in 1_u32..3000) {
            let tree = SlabTree::build(2 * half).expect("it is possible");
            let mut found = Vec::new();
            tree.leaves(tree.root, 0, &mut found);
            let record = |key: u32| if key.is_multiple_of(2) { key } else { 2 * half - key };
            prop_assert_eq!(found, (0..2 * half).map(|key| (key, record(key))).collect::<Vec<_>>());
        }

        #[test]
        fn lookups_read_the_record_and_the_element_of_their_key(half in 1_u32..20_000, seed: u64) {
            let tree = SlabTree::build(2 * half).expect("it is possible");
            let mut lookups = SlabLookups::new(&tree, Rng::named(seed, "test"));
            let (mut nodes, mut seen) = (BTreeSet::new(), 0);
            while seen < 20 {
                let key = lookups.key;
                let access = lookups.next_access().expect("it has no end");
                prop_assert!(access.address < tree.bytes());
                match access.function {
                    0 => { nodes.insert(lookups.node); }
                    3 => {
                        let record = if key.is_multiple_of(2) { key } else { 2 * half - key };
                        prop_assert_eq!(access.address, tree.record_at(record));
                    }
                    4 => {
                        prop_assert_eq!(access.address, tree.element_at(key));
                        prop_assert_eq!(std::mem::take(&mut nodes).len(), tree.levels());
                        seen += 1;
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn numbers_of_keys_that_make_no_tree_are_refused() {
        for keys in [0, 1, 7, (1 << 30) + 2] {
            assert!(SlabTree::build(keys).is_err());
        }
    }
}
