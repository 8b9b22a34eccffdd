//! Nodes of keys: those that a cache holds, whose number is their slot, and those that it remembers.

use crate::index::{Index, NONE};
use crate::list::{Link, List, UNLINKED};
use crate::policy::{CAPACITY_MAX, Evicted};

/// Nodes from `first` on, taken one by one and given back.
#[derive(Clone, Copy, Debug)]
struct Pool {
    /// The lowest node that was never taken.
    fresh: u32,
    end: u32,
    /// The node that was given back last; the one before it is its older neighbour.
    free: u32,
    used: u32,
}

impl Pool {
    fn new(first: u32, end: u32) -> Self {
        Self { fresh: first, end, free: NONE, used: 0 }
    }

    fn take(&mut self, links: &[Link]) -> u32 {
        self.used += 1;
        if self.free != NONE {
            let node = self.free;
            self.free = links[node as usize].older;
            return node;
        }
        assert!(self.fresh < self.end, "a policy makes room before it takes a node");
        self.fresh += 1;
        self.fresh - 1
    }

    fn give(&mut self, links: &mut [Link], node: u32) {
        links[node as usize].older = self.free;
        self.free = node;
        self.used -= 1;
    }
}

/// Keys with their nodes. Nodes below the capacity are slots; the nodes from there on are ghosts.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    keys: Vec<u64>,
    pub(crate) links: Vec<Link>,
    index: Index,
    slots: Pool,
    ghosts: Pool,
    capacity: u32,
}

impl Store {
    /// Nodes for `capacity` keys and as many `ghosts`. Panics where the capacity is 0 or above [`CAPACITY_MAX`].
    pub(crate) fn new(capacity: u32, ghosts: u32) -> Self {
        assert!((1..=CAPACITY_MAX).contains(&capacity), "a cache holds 1 to {CAPACITY_MAX} keys, not {capacity}");
        let nodes = capacity + ghosts;
        Self {
            keys: vec![0; nodes as usize],
            links: vec![UNLINKED; nodes as usize],
            index: Index::new(nodes as usize),
            slots: Pool::new(0, capacity),
            ghosts: Pool::new(capacity, nodes),
            capacity,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Keys with a slot.
    pub(crate) fn len(&self) -> u32 {
        self.slots.used
    }

    pub(crate) fn is_full(&self) -> bool {
        self.slots.used == self.capacity
    }

    #[inline]
    pub(crate) fn is_slot(&self, node: u32) -> bool {
        node < self.capacity
    }

    #[inline]
    pub(crate) fn key(&self, node: u32) -> u64 {
        self.keys[node as usize]
    }

    /// The slot or the ghost of `key`.
    #[inline]
    pub(crate) fn node(&self, key: u64) -> Option<u32> {
        self.index.find(key, &self.keys)
    }

    /// The slot of `key`.
    #[inline]
    pub(crate) fn slot(&self, key: u64) -> Option<u32> {
        self.node(key).filter(|&node| self.is_slot(node))
    }

    /// The ghost of `key`.
    #[inline]
    pub(crate) fn ghost(&self, key: u64) -> Option<u32> {
        self.node(key).filter(|&node| !self.is_slot(node))
    }

    /// A slot for `key`, which has no node.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64) -> u32 {
        debug_assert_eq!(self.node(key), None, "a key that the cache holds is inserted");
        let node = self.slots.take(&self.links);
        self.keys[node as usize] = key;
        self.index.insert(key, node);
        node
    }

    /// Turns a slot into a ghost, which is returned. Neither is in a list.
    #[inline]
    pub(crate) fn ghost_of(&mut self, slot: u32) -> u32 {
        let key = self.key(slot);
        let ghost = self.ghosts.take(&self.links);
        self.keys[ghost as usize] = key;
        self.index.replace(key, slot, ghost);
        self.slots.give(&mut self.links, slot);
        ghost
    }

    /// Gives up a node, which is in no list.
    #[inline]
    pub(crate) fn release(&mut self, node: u32) {
        self.index.remove(self.key(node), node);
        let pool = if node < self.capacity { &mut self.slots } else { &mut self.ghosts };
        pool.give(&mut self.links, node);
    }

    /// Takes the oldest node of `list` out of it and gives it up.
    pub(crate) fn release_oldest(&mut self, list: &mut List) -> Option<Evicted> {
        let slot = self.pop(list)?;
        let key = self.key(slot);
        self.release(slot);
        Some(Evicted { key, slot })
    }

    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, node: u32) {
        list.push(&mut self.links, node);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, list: &mut List, node: u32) {
        list.unlink(&mut self.links, node);
    }

    #[inline]
    pub(crate) fn renew(&mut self, list: &mut List, node: u32) {
        list.renew(&mut self.links, node);
    }

    /// Takes the oldest node of `list` out of it.
    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<u32> {
        let node = list.oldest()?;
        list.unlink(&mut self.links, node);
        Some(node)
    }

    /// 8 bytes a key, 8 bytes of links and 8 bytes in the index with a third of slack: 26.7 bytes a node.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<u64>() + self.links.capacity() * size_of::<Link>() + self.index.memory_bytes()
    }
}
