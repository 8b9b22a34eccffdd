//! ARC: two LRU lists whose shares follow what their ghosts would have hit.
//!
//! 1. T1 holds keys that were accessed once, T2 those accessed again; B1 and B2 remember what left them. `target` is the
//!    share of T1.
//! 2. A hit makes its key the newest of T2.
//! 3. A key in B1 raises the target by max(1, |B2| / |B1|), one in B2 lowers it by max(1, |B1| / |B2|); either goes to T2.
//! 4. Any other key goes to T1. Before, where |T1| + |B1| is the capacity, the oldest of B1 is forgotten, or of T1 where
//!    B1 is empty; else, where all four together are twice the capacity, the oldest of B2.
//! 5. A full cache gives room from T1 where that is above its target (or at it, for a key of B2), else from T2.
//!
//! Source: [P] Megiddo and Modha, ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003, figure 4. The target is a
//! real number.

use crate::kind::PolicyKind;
use crate::list::List;
use crate::policy::{Evicted, Inserted, Policy};
use crate::store::Store;

/// ARC. 55.3 bytes a key: as many ghosts as keys, and a bit that takes a byte for each.
#[derive(Clone, Debug)]
pub struct Arc {
    store: Store,
    /// Whether each node is of T2 or B2.
    again: Vec<bool>,
    once: Pair,
    twice: Pair,
    /// Keys that T1 should have, 0 to the capacity.
    target: f64,
}

/// A list of keys and the list of those that left it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    held: List,
    ghosts: List,
}

impl Pair {
    const EMPTY: Self = Self { held: List::EMPTY, ghosts: List::EMPTY };

    fn len(&self) -> u32 {
        self.held.len() + self.ghosts.len()
    }
}

impl Arc {
    /// An empty cache. Panics where `capacity` is 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub fn new(capacity: u32) -> Self {
        let store = Store::new(capacity, capacity);
        let again = vec![false; 2 * capacity as usize];
        Self { store, again, once: Pair::EMPTY, twice: Pair::EMPTY, target: 0.0 }
    }

    /// Adapts the target to a ghost that was asked for, and forgets the ghost.
    fn adapt(&mut self, ghost: u32) {
        let (once, twice) = (f64::from(self.once.ghosts.len()), f64::from(self.twice.ghosts.len()));
        let again = self.again[ghost as usize];
        if again {
            self.target = (self.target - (once / twice).max(1.0)).max(0.0);
        } else {
            self.target = (self.target + (twice / once).max(1.0)).min(f64::from(self.capacity()));
        }
        let list = if again { &mut self.twice.ghosts } else { &mut self.once.ghosts };
        self.store.unlink(list, ghost);
        self.store.release(ghost);
    }

    /// Room for a key that is nowhere.
    fn make_room(&mut self) -> Option<Evicted> {
        let capacity = self.capacity();
        if self.once.len() == capacity {
            if self.once.ghosts.len() == 0 {
                return self.store.release_oldest(&mut self.once.held);
            }
            self.store.release_oldest(&mut self.once.ghosts);
        } else if self.once.len() + self.twice.len() == 2 * capacity {
            self.store.release_oldest(&mut self.twice.ghosts);
        }
        self.store.is_full().then(|| self.replace(false))
    }

    /// Evicts the oldest of T1 or T2 into its ghosts. The cache must hold a key and have room for a ghost.
    fn replace(&mut self, for_twice: bool) -> Evicted {
        let len = f64::from(self.once.held.len());
        let is_above = len > self.target || (for_twice && len >= self.target);
        let again = self.once.held.len() == 0 || (!is_above && self.twice.held.len() > 0);
        let pair = if again { &mut self.twice } else { &mut self.once };
        let slot = self.store.pop(&mut pair.held).expect("a cache that is full holds a key");
        let key = self.store.key(slot);
        let ghost = self.store.ghost_of(slot);
        self.store.push(&mut pair.ghosts, ghost);
        self.again[ghost as usize] = again;
        Evicted { key, slot }
    }
}

impl Policy for Arc {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Arc
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
        if self.again[slot as usize] {
            self.store.renew(&mut self.twice.held, slot);
        } else {
            self.store.unlink(&mut self.once.held, slot);
            self.store.push(&mut self.twice.held, slot);
            self.again[slot as usize] = true;
        }
        Some(slot)
    }

    fn insert(&mut self, key: u64) -> Inserted {
        let ghost = self.store.ghost(key);
        let evicted = match ghost {
            Some(ghost) => {
                let of_twice = self.again[ghost as usize];
                self.adapt(ghost);
                self.store.is_full().then(|| self.replace(of_twice))
            }
            None => self.make_room(),
        };
        let slot = self.store.insert(key);
        let again = ghost.is_some();
        self.again[slot as usize] = again;
        let list = if again { &mut self.twice.held } else { &mut self.once.held };
        self.store.push(list, slot);
        Inserted { slot, evicted }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        let slot = self.store.slot(key)?;
        let list = if self.again[slot as usize] { &mut self.twice.held } else { &mut self.once.held };
        self.store.unlink(list, slot);
        self.store.release(slot);
        Some(slot)
    }

    fn evict(&mut self) -> Option<Evicted> {
        if self.is_empty() {
            return None;
        }
        // Ghosts beyond the capacity come from evictions ahead of need only.
        if self.once.ghosts.len() + self.twice.ghosts.len() == self.capacity() {
            let oldest = self.store.release_oldest(&mut self.twice.ghosts);
            if oldest.is_none() {
                self.store.release_oldest(&mut self.once.ghosts);
            }
        }
        Some(self.replace(false))
    }

    fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.again.capacity()
    }
}
