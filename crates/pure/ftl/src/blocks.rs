//! Superblocks: their state, what in them is current, and the reverse map.

use crate::bits::SparseBits;
use crate::map::SparseTable;
use crate::victim::VictimIndex;
use flashyard_flash::{Layout, Slot};
use std::collections::VecDeque;

/// Where a superblock is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Ready for writing.
    Erased,
    /// A write frontier.
    Open,
    /// Full; may become a victim.
    Closed,
    /// Being emptied or erased.
    Victim,
}

pub(crate) struct Superblock {
    pub(crate) state: State,
    /// Written in single-level mode: a third of the rows, all of the fastest kind.
    pub(crate) single_level: bool,
    pub(crate) valid: u32,
    pub(crate) erases: u32,
    /// Slots appended by the layer when this superblock was closed: its birthday.
    pub(crate) closed_at: u64,
    /// Die rows whose program has not completed; `None` once all have.
    pub(crate) unprogrammed: Option<Box<RowSet>>,
}

/// The die rows of a superblock that are not on flash yet.
pub(crate) struct RowSet {
    pub(crate) words: Vec<u64>,
    pub(crate) missing: u32,
}

/// All superblocks of a drive.
pub(crate) struct Blocks {
    pub(crate) layout: Layout,
    pub(crate) all: Vec<Superblock>,
    pub(crate) erased: VecDeque<u32>,
    pub(crate) reverse: SparseTable,
    invalid: SparseBits,
    pub(crate) victims: VictimIndex,
}

impl Blocks {
    /// Superblocks of which the first `filled` slots hold the logical slots of the same number.
    pub(crate) fn new(layout: Layout, filled: u32) -> Self {
        let slots = layout.slots_per_superblock;
        let mut blocks = Self {
            layout,
            all: Vec::with_capacity(layout.superblocks as usize),
            erased: VecDeque::with_capacity(layout.superblocks as usize),
            reverse: SparseTable::new(layout.superblocks * slots, filled),
            invalid: SparseBits::new(layout.superblocks * slots),
            victims: VictimIndex::new(layout.superblocks, slots),
        };
        for number in 0..layout.superblocks {
            let valid = filled.saturating_sub(number * slots).min(slots);
            let state = if valid > 0 { State::Closed } else { State::Erased };
            blocks.all.push(Superblock {
                state,
                single_level: false,
                valid,
                erases: 0,
                closed_at: 0,
                unprogrammed: None,
            });
            if valid > 0 {
                blocks.victims.insert(number, valid);
                // The tail of a partly filled superblock is padding.
                for index in valid..slots {
                    blocks.invalid.set(number * slots + index);
                }
            } else {
                blocks.erased.push_back(number);
            }
        }
        blocks
    }

    #[inline]
    pub(crate) fn is_valid(&self, slot: Slot) -> bool {
        !self.invalid.get(slot.get())
    }

    /// The valid slots among `count` (at most 64) from `first`, as a mask; bit 0 is `first`.
    #[inline]
    pub(crate) fn valid_mask(&self, first: u32, count: u32) -> u64 {
        let shift = first & 63;
        let mut invalid = self.invalid.word(first) >> shift;
        if shift + count > 64 {
            invalid |= self.invalid.word(first + 64 - shift) << (64 - shift);
        }
        !invalid & (u64::MAX >> (64 - count))
    }

    /// Records that `slot` now holds `logical`.
    #[inline]
    pub(crate) fn fill(&mut self, superblock: u32, slot: Slot, logical: u32) {
        self.reverse.replace(slot.get(), Slot::new(logical));
        self.invalid.clear(slot.get());
        self.all[superblock as usize].valid += 1;
    }

    /// Records that `slot` is padding.
    #[inline]
    pub(crate) fn pad(&mut self, slot: Slot) {
        self.invalid.set(slot.get());
    }

    /// Records that the data in `slot` is no longer current.
    #[inline]
    pub(crate) fn invalidate(&mut self, slot: Slot) {
        debug_assert!(self.is_valid(slot), "{slot:?} was invalid already");
        self.invalid.set(slot.get());
        let (number, _) = self.layout.split(slot);
        let superblock = &mut self.all[number as usize];
        superblock.valid -= 1;
        if superblock.state == State::Closed {
            self.victims.decrease(number, superblock.valid);
        }
    }

    /// Takes the superblock that has been erased longest and opens it.
    pub(crate) fn open(&mut self, single_level: bool) -> Option<u32> {
        let number = self.erased.pop_front()?;
        let superblock = &mut self.all[number as usize];
        debug_assert_eq!((superblock.state, superblock.valid), (State::Erased, 0));
        superblock.state = State::Open;
        superblock.single_level = single_level;
        Some(number)
    }

    pub(crate) fn close(&mut self, number: u32, at: u64) {
        let superblock = &mut self.all[number as usize];
        superblock.state = State::Closed;
        superblock.closed_at = at;
        let valid = superblock.valid;
        self.victims.insert(number, valid);
    }

    /// Takes a closed superblock out of the index to empty it.
    pub(crate) fn condemn(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        debug_assert_eq!(superblock.state, State::Closed);
        superblock.state = State::Victim;
        let valid = superblock.valid;
        self.victims.remove(number, valid);
    }

    /// Returns an emptied superblock to the erased ones.
    pub(crate) fn erased(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        assert_eq!((superblock.state, superblock.valid), (State::Victim, 0), "only emptied victims are erased");
        superblock.state = State::Erased;
        superblock.erases += 1;
        self.erased.push_back(number);
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.reverse.resident_bytes()
            + self.invalid.resident_bytes()
            + self.all.len() as u64 * (size_of::<Superblock>() as u64 + 12)
    }
}
