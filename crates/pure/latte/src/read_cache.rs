//! Copies of blocks that are read again: slots of the front end behind the log, by S3-FIFO with its marks in the location map.
//! Source: sheet §3.3: a first miss makes a block a candidate, a second one admits it.

use crate::location::{Locations, State};
use flashyard_cache::{MarkedS3Fifo, Marks};

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

/// The read cache.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    fifo: MarkedS3Fifo,
    from: u32,
    /// Blocks whose copies are on their way: a few.
    arriving: Vec<u32>,
}

impl ReadCache {
    /// An empty cache of `slots`, at least one, from slot `from` of the front end on.
    pub(crate) fn new(from: u32, slots: u32) -> Self {
        Self { fifo: MarkedS3Fifo::new(slots, slots), from, arriving: Vec::new() }
    }

    /// Counts a read of a copy.
    pub(crate) fn hit(&self, map: &mut Locations, block: u32) {
        MarkedS3Fifo::hit(&mut InMap { map, from: self.from.into() }, block);
    }

    /// Counts a read of the back end; `true` where the block is to be admitted.
    pub(crate) fn miss(&mut self, map: &mut Locations, block: u32) -> bool {
        self.fifo.miss(&mut InMap { map, from: self.from.into() }, block)
    }

    /// Takes a block in; returns its slot at the front end, if nothing is under way there. The block whose copy had lain there
    /// is at the back end only.
    pub(crate) fn admit(&mut self, map: &mut Locations, block: u32, pins: &[u16]) -> Option<u32> {
        let mut marks = InMap { map, from: self.from.into() };
        let slot = self.fifo.admit(&mut marks, block).slot;
        let place = self.from + slot;
        if pins[place as usize] == 0 {
            self.arriving.push(block);
            return Some(place);
        }
        self.fifo.remove(&mut marks, block, slot);
        None
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
        slot >= self.from && self.fifo.block_at(slot - self.from) == Some(block)
    }

    /// The copy in `slot`, if it is one of the cache, counts no more.
    pub(crate) fn forget(&mut self, map: &mut Locations, block: u32, slot: u32) {
        if self.holds(block, slot) {
            self.fifo.remove(&mut InMap { map, from: self.from.into() }, block, slot - self.from);
        }
    }

    /// Memory that was taken in the beginning, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.fifo.memory_bytes()
    }

    /// All copies are lost.
    pub(crate) fn clear(&mut self) {
        let slots = self.fifo.capacity();
        *self = Self::new(self.from, slots);
    }
}
