//! The calls that every policy answers.

use crate::kind::PolicyKind;

/// Keys that a cache holds at most: 2^29, with which 4 KiB blocks take 2 TiB. Keys and ghosts together have numbers of 32
/// bits.
pub const CAPACITY_MAX: u32 = 1 << 29;

/// A key that left a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The key.
    pub key: u64,
    /// The slot that held its data.
    pub slot: u32,
}

/// A key that came into a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The slot of its data, below the capacity; often that of the evicted key.
    pub slot: u32,
    /// The key that made room for it.
    pub evicted: Option<Evicted>,
}

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The key was there.
    Hit {
        /// The slot of its data.
        slot: u32,
    },
    /// The key was not there, and is now.
    Miss(Inserted),
}

impl Access {
    /// Whether the key was there.
    pub fn is_hit(&self) -> bool {
        matches!(self, Self::Hit { .. })
    }
}

/// An eviction policy, and the set of keys that it manages.
///
/// A key keeps its slot for as long as the cache holds it. No call allocates memory.
pub trait Policy {
    /// Which policy this is.
    fn kind(&self) -> PolicyKind;

    /// Keys that the cache holds at most.
    fn capacity(&self) -> u32;

    /// Keys that the cache holds.
    fn len(&self) -> u32;

    /// Whether the cache holds no key.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of `key` if the cache holds it. Unlike [`touch`](Self::touch) this is no access: the policy does not notice.
    fn slot_of(&self, key: u64) -> Option<u32>;

    /// Notes an access to `key` and returns its slot; `None`, and nothing noted, where the cache does not hold it.
    fn touch(&mut self, key: u64) -> Option<u32>;

    /// Takes in `key`, which the cache must not hold, after an access that missed. Where the cache is full one key leaves.
    /// `key` itself always stays: a policy that admits only some keys keeps the new one at least until the next insertion.
    fn insert(&mut self, key: u64) -> Inserted;

    /// Forgets `key`, whose data is invalid, and returns its slot, which is free now; `None` where the cache does not hold
    /// it. Ghosts of other keys stay.
    fn remove(&mut self, key: u64) -> Option<u32>;

    /// Evicts the key that the policy holds least worth keeping, for owners that make room ahead of need; `None` when empty.
    fn evict(&mut self) -> Option<Evicted>;

    /// Memory that was taken when the policy was made, in bytes.
    fn memory_bytes(&self) -> usize;

    /// An access to `key` by an owner that admits every key.
    fn access(&mut self, key: u64) -> Access {
        match self.touch(key) {
            Some(slot) => Access::Hit { slot },
            None => Access::Miss(self.insert(key)),
        }
    }
}
