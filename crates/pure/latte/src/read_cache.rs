//! Copies of blocks that are read again: slots of the front end behind the log, by S3-FIFO with its marks in the location map, or
//! by another policy with an index of its own. Source: sheet §3.3: a first miss makes a block a candidate, a second one admits it.

use crate::config::CachePolicy;
use crate::location::{Locations, State};
use flashyard_cache::{Candidates, Inserted, MarkedS3Fifo, Marks, Policy};
use std::fmt;

/// The location map as the cache's marks: hits are visits, stamps lie where a block at the back end has no slot.
struct InMap<'a> {
    map: &'a mut Locations,
    /// First slot of the cache at the front end.
    from: u64,
}

impl Marks for InMap<'_> {
    fn hits(&self, block: u32) -> u8 {
        self.map.get(block.into()).visits
    }

    fn set_hits(&mut self, block: u32, hits: u8) {
        self.map.set_visits(block.into(), hits);
    }

    fn stamp(&self, block: u32) -> u64 {
        self.map.stamp(block.into())
    }

    fn set_stamp(&mut self, block: u32, stamp: u64) {
        // A block leaves the cache by its stamp.
        let location = self.map.get(block.into());
        if location.state == State::Clean && location.slot >= self.from {
            self.map.evict(block.into(), location.slot);
        }
        self.map.set_stamp(block.into(), stamp);
    }
}

/// Blocks that the cache holds, and when one is let in.
enum Kept {
    /// S3-FIFO whose counters and history are in the location map.
    InMap(MarkedS3Fifo),
    /// Another policy, with an index and a queue of first misses of its own.
    Apart { policy: Box<dyn Policy + Send>, seen: Candidates },
}

/// The read cache.
pub(crate) struct ReadCache {
    kept: Kept,
    policy: CachePolicy,
    from: u32,
    slots: u32,
    /// Blocks whose copies are on their way: a few.
    arriving: Vec<u32>,
}

impl fmt::Debug for ReadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCache").field("policy", &self.policy).field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl ReadCache {
    /// An empty cache of `slots`, at least one, from slot `from` of the front end on.
    pub(crate) fn new(policy: CachePolicy, from: u32, slots: u32) -> Self {
        let kept = match policy {
            CachePolicy::InMap => Kept::InMap(MarkedS3Fifo::new(slots, slots)),
            CachePolicy::Apart(kind) => Kept::Apart { policy: kind.cache(slots), seen: Candidates::new(slots) },
        };
        Self { kept, policy, from, slots, arriving: Vec::new() }
    }

    /// Counts a read of a copy.
    pub(crate) fn hit(&mut self, map: &mut Locations, block: u32) {
        match &mut self.kept {
            Kept::InMap(_) => MarkedS3Fifo::hit(&mut InMap { map, from: self.from.into() }, block),
            // One that lies in the log alone is not held.
            Kept::Apart { policy, .. } => _ = policy.touch(block.into()),
        }
    }

    /// Counts a read of the back end; `true` where the block is to be admitted.
    pub(crate) fn miss(&mut self, map: &mut Locations, block: u32) -> bool {
        match &mut self.kept {
            Kept::InMap(fifo) => fifo.miss(&mut InMap { map, from: self.from.into() }, block),
            Kept::Apart { seen, .. } => seen.offer(block.into()),
        }
    }

    /// Takes a block in; returns its slot at the front end, if nothing is under way there. The block whose copy had lain there
    /// is at the back end only.
    pub(crate) fn admit(&mut self, map: &mut Locations, block: u32, is_free: impl FnOnce(u32) -> bool) -> Option<u32> {
        let slot = match &mut self.kept {
            Kept::InMap(fifo) => fifo.admit(&mut InMap { map, from: self.from.into() }, block).slot,
            Kept::Apart { policy, .. } => {
                let Inserted { slot, evicted } = policy.insert(block.into());
                if let Some(evicted) = evicted {
                    map.evict(evicted.key, (self.from + evicted.slot).into());
                }
                slot
            }
        };
        let place = self.from + slot;
        if is_free(place) {
            self.arriving.push(block);
            return Some(place);
        }
        self.remove(map, block, slot);
        None
    }

    fn remove(&mut self, map: &mut Locations, block: u32, slot: u32) {
        match &mut self.kept {
            Kept::InMap(fifo) => fifo.remove(&mut InMap { map, from: self.from.into() }, block, slot),
            Kept::Apart { policy, .. } => _ = policy.remove(block.into()),
        }
    }

    /// Whether a copy of the block, which is at the back end alone, is on its way.
    pub(crate) fn is_admitted(&self, block: u32) -> bool {
        self.arriving.contains(&block)
    }

    /// The copy of a block has arrived, or will not.
    pub(crate) fn arrived(&mut self, block: u32) {
        if let Some(place) = self.arriving.iter().position(|&arriving| arriving == block) {
            self.arriving.swap_remove(place);
        }
    }

    /// Whether the slot is the block's.
    pub(crate) fn holds(&self, block: u32, slot: u32) -> bool {
        let Some(slot) = slot.checked_sub(self.from) else { return false };
        match &self.kept {
            Kept::InMap(fifo) => fifo.block_at(slot) == Some(block),
            Kept::Apart { policy, .. } => policy.slot_of(block.into()) == Some(slot),
        }
    }

    /// The copy in `slot`, if it is one of the cache, counts no more.
    pub(crate) fn forget(&mut self, map: &mut Locations, block: u32, slot: u32) {
        if self.holds(block, slot) {
            self.remove(map, block, slot - self.from);
        }
    }

    /// Memory that was taken in the beginning, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.kept {
            Kept::InMap(fifo) => fifo.memory_bytes(),
            Kept::Apart { policy, seen } => policy.memory_bytes() + seen.memory_bytes(),
        }
    }

    /// All copies are lost.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.policy, self.from, self.slots);
    }
}
