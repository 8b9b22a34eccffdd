//! S3-FIFO for very many blocks: four bytes a slot, and the rest in the location map of its owner.
//!
//! The owner of a cache of blocks has a map with an entry for each block that names its slot. Two bits of an entry count the
//! hits of a block that the cache holds; the field of the slot, unused for a block that it does not hold, says when the block
//! was last seen. So there is no index and no queue of candidates or ghosts:
//!
//! 1. The small queue holds no data. A block that misses is stamped with the number of the stamp. Where its last
//!    stamp is among the latest `history`, the block is admitted: it is in the small queue or a ghost.
//! 2. The main queue is an array of blocks by slot with a hand. To evict, the hand goes round: a block with hits gives one up,
//!    the first without leaves, with a stamp. A new block takes the free slot behind the hand.
//!
//! Source: [P] sheet `alibaba-local-storage` section 3.3, and Yang et al., SOSP 2023, whose ghosts are a table with times, too. A hand
//! over slots is first in, first out with reinsertion, without moving data. [A] Slots that a removal frees are filled first.

use crate::s3_fifo::HITS_MAX;

/// Set in a slot that holds no block; the other bits are the next such slot.
const FREE: u32 = 1 << 31;
/// Ends the chain of free slots.
const LAST: u32 = u32::MAX;
/// Bits of a stamp. More than 2^32 misses later a block may be admitted at its first access, which harms nothing.
const STAMP_BITS: u32 = 32;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;

/// Where hits and stamps of blocks are: the location map of the owner. A block needs one of them at a time.
pub trait Marks {
    /// Hits of a block that the cache holds, 0 to 3.
    fn hits(&self, block: u32) -> u8;

    /// Keeps hits, 0 to 3, of a block that the cache holds.
    fn set_hits(&mut self, block: u32, hits: u8);

    /// The stamp of a block that the cache does not hold, below 2^32; 0 where it has none.
    fn stamp(&self, block: u32) -> u64;

    /// Keeps a stamp, below 2^32, of a block that the cache does not hold.
    fn set_stamp(&mut self, block: u32, stamp: u64);
}

/// A block with its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlottedBlock {
    /// The block.
    pub block: u32,
    /// Its slot.
    pub slot: u32,
}

/// A block that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedBlock {
    /// The slot for its data.
    pub slot: u32,
    /// The block that left this slot for it.
    pub evicted: Option<SlottedBlock>,
}

/// S3-FIFO whose counters and history are [`Marks`]. 4 bytes a slot; with a map of 7 bytes a block, 11 bytes for each block
/// that the cache holds.
#[derive(Clone, Debug)]
pub struct MarkedS3Fifo {
    /// The block in each slot, or [`FREE`].
    slots: Vec<u32>,
    hand: u32,
    /// The lowest slot that was never filled.
    fresh: u32,
    /// The slot that was freed last.
    free: u32,
    len: u32,
    history: u64,
    /// The latest stamp; the first is 1.
    clock: u64,
}

impl MarkedS3Fifo {
    /// Blocks have numbers below this, with which 4 KiB blocks take 8 TiB.
    pub const BLOCKS_MAX: u32 = FREE;

    /// An empty cache of `capacity` slots that admits a block seen among the latest `history` blocks that missed or left. The
    /// usual share is as many as slots: a tenth for the small queue, and the rest for ghosts.
    ///
    /// Panics where either is 0 or the capacity is above 2^31 - 1.
    pub fn new(capacity: u32, history: u32) -> Self {
        assert!((1..FREE).contains(&capacity), "a cache has 1 to {} slots, not {capacity}", FREE - 1);
        assert!(history > 0, "without history no block is admitted");
        Self {
            slots: vec![LAST; capacity as usize],
            hand: 0,
            fresh: 0,
            free: LAST,
            len: 0,
            history: history.into(),
            clock: 0,
        }
    }

    /// Slots.
    pub fn capacity(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("it was made from 32 bits")
    }

    /// Blocks that the cache holds.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block in `slot`.
    pub fn block_at(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize).copied().filter(|entry| entry & FREE == 0)
    }

    /// Counts an access to a block that the cache holds.
    #[inline]
    pub fn hit(marks: &mut impl Marks, block: u32) {
        let hits = marks.hits(block);
        if hits < HITS_MAX {
            marks.set_hits(block, hits + 1);
        }
    }

    /// Counts an access to a block that the cache does not hold. `true` where the block was seen lately and is to be admitted.
    #[inline]
    pub fn miss(&mut self, marks: &mut impl Marks, block: u32) -> bool {
        let stamp = marks.stamp(block);
        let age = self.clock.wrapping_sub(stamp) & STAMP_MASK;
        let is_known = stamp != 0 && age < self.history;
        if !is_known {
            self.stamp(marks, block);
        }
        is_known
    }

    /// Takes `block` in, which the cache does not hold. Its data goes to the slot; the owner's map names that from now on.
    ///
    /// Panics from [`BLOCKS_MAX`](Self::BLOCKS_MAX) on.
    pub fn admit(&mut self, marks: &mut impl Marks, block: u32) -> MovedBlock {
        assert!(block < FREE, "blocks have numbers of 31 bits, not {block}");
        let evicted = if self.len == self.capacity() { self.evict(marks) } else { None };
        let slot = self.take_slot();
        self.slots[slot as usize] = block;
        self.len += 1;
        marks.set_hits(block, 0);
        MovedBlock { slot, evicted }
    }

    /// Evicts the first block without hits from the hand on; `None` when empty.
    pub fn evict(&mut self, marks: &mut impl Marks) -> Option<SlottedBlock> {
        if self.len == 0 {
            return None;
        }
        loop {
            let slot = self.hand;
            self.hand = if slot + 1 == self.capacity() { 0 } else { slot + 1 };
            let Some(block) = self.block_at(slot) else { continue };
            match marks.hits(block) {
                0 => {
                    self.free_slot(slot);
                    self.stamp(marks, block);
                    return Some(SlottedBlock { block, slot });
                }
                hits => marks.set_hits(block, hits - 1),
            }
        }
    }

    /// Frees the slot of a block whose data is invalid. The block counts as never seen.
    ///
    /// Panics where the slot does not hold the block: the map and the cache disagree.
    pub fn remove(&mut self, marks: &mut impl Marks, block: u32, slot: u32) {
        assert_eq!(self.block_at(slot), Some(block), "slot {slot} does not hold block {block}");
        self.free_slot(slot);
        marks.set_stamp(block, 0);
    }

    /// Memory that was taken in the beginning, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    fn stamp(&mut self, marks: &mut impl Marks, block: u32) {
        self.clock = (self.clock + 1) & STAMP_MASK;
        // 0 means none.
        self.clock = self.clock.max(1);
        marks.set_stamp(block, self.clock);
    }

    fn take_slot(&mut self) -> u32 {
        if self.free == LAST {
            self.fresh += 1;
            return self.fresh - 1;
        }
        let slot = self.free;
        let next = self.slots[slot as usize];
        self.free = if next == LAST { LAST } else { next & !FREE };
        slot
    }

    fn free_slot(&mut self, slot: u32) {
        self.slots[slot as usize] = self.free | FREE;
        self.free = slot;
        self.len -= 1;
    }
}

/// A location map of 8 bytes a block with room to spare: 32 bits of a slot or a stamp, two of hits, one that says which.
#[derive(Clone, Debug)]
pub struct PackedMarks {
    entries: Vec<u64>,
}

impl PackedMarks {
    const HITS_SHIFT: u32 = STAMP_BITS;
    const HELD: u64 = 1 << (STAMP_BITS + 2);

    /// A map of so many blocks, none of them held or seen.
    pub fn new(blocks: u32) -> Self {
        Self { entries: vec![0; blocks as usize] }
    }

    /// The slot of a block that the cache holds.
    pub fn slot(&self, block: u32) -> Option<u32> {
        let entry = self.entries[block as usize];
        (entry & Self::HELD != 0).then(|| u32::try_from(entry & STAMP_MASK).expect("slots have 32 bits"))
    }

    /// Says that the cache holds a block in this slot, and keeps its hits.
    pub fn set_slot(&mut self, block: u32, slot: u32) {
        let hits = u64::from(self.hits(block)) << Self::HITS_SHIFT;
        self.entries[block as usize] = Self::HELD | hits | u64::from(slot);
    }
}

impl Marks for PackedMarks {
    fn hits(&self, block: u32) -> u8 {
        (self.entries[block as usize] >> Self::HITS_SHIFT & 3) as u8
    }

    fn set_hits(&mut self, block: u32, hits: u8) {
        let entry = &mut self.entries[block as usize];
        *entry = *entry & !(3 << Self::HITS_SHIFT) | u64::from(hits) << Self::HITS_SHIFT;
    }

    fn stamp(&self, block: u32) -> u64 {
        self.entries[block as usize] & STAMP_MASK
    }

    fn set_stamp(&mut self, block: u32, stamp: u64) {
        self.entries[block as usize] = stamp;
    }
}
