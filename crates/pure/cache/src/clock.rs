//! CLOCK: first in, first out with a second chance.
//!
//! 1. A hit marks its key.
//! 2. To evict, look at the oldest key. Where it is marked, take the mark away and make it the newest; else it leaves.
//!
//! Source: [X] Corbató, A Paging Experiment with the Multics System, 1968; here as a queue, which is the same as a hand that
//! goes round.

use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::store::Store;

/// CLOCK with one bit. 27.7 bytes a key.
#[derive(Clone, Debug)]
pub struct Clock {
    store: Store,
    queue: List,
    /// Whether each slot was accessed since it was looked at.
    marked: Vec<bool>,
}

impl Clock {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        Self { store: Store::new(capacity, 0), queue: List::EMPTY, marked: vec![false; capacity as usize] }
    }
}

impl Policy for Clock {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Clock
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
        self.marked[slot as usize] = true;
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let evicted = if self.store.is_full() { self.evict() } else { None };
        let slot = self.store.insert(key);
        self.marked[slot as usize] = false;
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
        while let Some(slot) = self.queue.oldest().filter(|&slot| self.marked[slot as usize]) {
            self.marked[slot as usize] = false;
            self.store.renew(&mut self.queue, slot);
        }
        self.store.release_oldest(&mut self.queue)
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.marked.capacity()
    }
}
