//! Least recently used: the key whose last access is longest ago leaves.

use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::store::Store;

/// Least recently used. 26.7 bytes a key.
#[derive(Clone, Debug)]
pub struct Lru {
    store: Store,
    queue: List,
}

impl Lru {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        Self { store: Store::new(capacity, 0), queue: List::EMPTY }
    }
}

impl Policy for Lru {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Lru
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
        self.store.renew(&mut self.queue, slot);
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let evicted = if self.store.is_full() { self.evict() } else { None };
        let slot = self.store.insert(key);
        self.store.push(&mut self.queue, slot);
        Inserted { slot, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        self.store.unlink(&mut self.queue, slot);
        self.store.release(slot);
        Some(slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        self.store.release_oldest(&mut self.queue)
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }
}
