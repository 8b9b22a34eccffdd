//! SIEVE: a hand that passes over marked keys and leaves them where they are.
//!
//! 1. A hit marks its key.
//! 2. To evict, go from the hand towards newer keys, and from the newest back to the oldest. Take the mark away from each
//!    marked key on the way; the first key without a mark leaves, and the hand stays at the next newer one.
//! 3. A new key is the newest, without a mark; the hand does not move.
//!
//! Source: [P] Zhang et al., SIEVE is Simpler than LRU, NSDI 2024, algorithm 1.

use crate::index::NONE;
use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::store::Store;

/// SIEVE. 27.7 bytes a key.
#[derive(Clone, Debug)]
pub struct Sieve {
    store: Store,
    queue: List,
    /// Where the next eviction begins; none after the newest.
    hand: Option<u32>,
    /// Whether each slot was accessed since the hand passed.
    marked: Vec<bool>,
}

impl Sieve {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        Self { store: Store::new(capacity, 0), queue: List::EMPTY, hand: None, marked: vec![false; capacity as usize] }
    }

    /// Takes a slot out of the queue and gives it up. A hand that was there goes on to the next newer one.
    fn leave(&mut self, slot: u32) -> u32 {
        if self.hand == Some(slot) {
            self.hand = self.newer(slot);
        }
        self.store.unlink(&mut self.queue, slot);
        self.store.release(slot);
        slot
    }

    fn newer(&self, slot: u32) -> Option<u32> {
        let newer = self.store.links[slot as usize].newer;
        (newer != NONE).then_some(newer)
    }
}

impl Policy for Sieve {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Sieve
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
        Some(self.leave(slot))
    }

    fn evict(&mut self) -> Option<Evicted> {
        let mut slot = self.hand.or(self.queue.oldest())?;
        while self.marked[slot as usize] {
            self.marked[slot as usize] = false;
            slot = self.newer(slot).or(self.queue.oldest())?;
        }
        let key = self.store.key(slot);
        self.hand = Some(slot);
        self.leave(slot);
        Some(Evicted { key, slot })
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.marked.capacity()
    }
}
