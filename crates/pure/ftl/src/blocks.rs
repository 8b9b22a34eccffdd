//! Superblocks: their state, what in them is current, and the reverse map.

use crate::allocation::Erased;
use crate::bits::{SparseBits, for_words};
use crate::config::FtlConfig;
use crate::map::SparseTable;
use crate::victim::VictimIndex;
use flashyard_flash::{Layout, Slot};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

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
    /// Empty, and never used again.
    Retired,
}

pub(crate) struct Superblock {
    pub(crate) state: State,
    /// Written in single-level mode: a third of the rows, all of the fastest kind.
    pub(crate) single_level: bool,
    /// To be retired when it is next emptied, whatever its erases.
    pub(crate) retiring: bool,
    pub(crate) valid: u32,
    pub(crate) erases: u32,
    /// Slots appended by the layer when this superblock was closed: its birthday.
    pub(crate) closed_at: u64,
    /// Die rows whose program has not completed; `None` once all have.
    pub(crate) unprogrammed: Option<Box<RowSet>>,
}

impl Superblock {
    /// Its place among those in use.
    fn worn(&self, number: u32) -> Worn {
        (self.erases, Reverse(self.closed_at), number)
    }
}

/// The die rows of a superblock that are not on flash yet.
pub(crate) struct RowSet {
    pub(crate) words: Vec<u64>,
    pub(crate) missing: u32,
}

impl RowSet {
    /// Takes out rows that are all in the set.
    fn remove(&mut self, rows: Range<u32>) {
        self.missing -= rows.len() as u32;
        for_words(rows.start, rows.len() as u32, |row, mask| self.words[row as usize / 64] &= !mask);
    }

    /// The set without the rows from `first` up; `None` when it is empty then.
    pub(crate) fn cut(mut self: Box<Self>, first: u32) -> Option<Box<Self>> {
        for (row, word) in (0..).step_by(64).zip(&mut self.words) {
            if first < row + 64 {
                *word &= (1_u64 << first.saturating_sub(row)) - 1;
            }
        }
        self.missing = self.words.iter().map(|word| word.count_ones()).sum();
        (self.missing > 0).then_some(self)
    }
}

/// A closed superblock for wear levelling: by erases, among equals the one closed last first. Then the number.
pub(crate) type Worn = (u32, Reverse<u64>, u32);

/// All superblocks of a drive.
pub(crate) struct Blocks {
    pub(crate) layout: Layout,
    pub(crate) all: Vec<Superblock>,
    pub(crate) erased: Erased,
    /// Closed superblocks, for wear levelling; `None` while there is none.
    pub(crate) in_use: Option<BTreeSet<Worn>>,
    /// Erases of all superblocks.
    pub(crate) erases_total: u64,
    pub(crate) reverse: SparseTable,
    invalid: SparseBits,
    pub(crate) victims: VictimIndex,
}

impl Blocks {
    /// Superblocks of which the first `filled` slots hold the logical slots of the same number.
    pub(crate) fn new(layout: Layout, config: &FtlConfig) -> Self {
        let filled = config.filled_slots;
        let slots = layout.slots_per_superblock;
        let mut blocks = Self {
            layout,
            all: Vec::with_capacity(layout.superblocks as usize),
            erased: Erased::new(config.allocation, layout.superblocks),
            in_use: None,
            erases_total: 0,
            reverse: SparseTable::new(layout.superblocks * slots, filled),
            invalid: SparseBits::new(layout.superblocks * slots),
            victims: VictimIndex::new(layout.superblocks, slots, config.ties),
        };
        for number in 0..layout.superblocks {
            let valid = filled.saturating_sub(number * slots).min(slots);
            let state = if valid > 0 { State::Closed } else { State::Erased };
            blocks.all.push(Superblock {
                state,
                single_level: false,
                retiring: false,
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
                blocks.erased.push(number, 0);
            }
        }
        blocks
    }

    #[inline]
    pub(crate) fn is_valid(&self, slot: Slot) -> bool {
        !self.invalid.get(slot.get())
    }

    /// The validity of `slot` and of its neighbours.
    #[inline]
    pub(crate) fn validity(&self, slot: Slot) -> u64 {
        self.invalid.word(slot.get())
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

    /// Records that the slots of a superblock from `first` now hold `logicals`.
    pub(crate) fn fill_run(&mut self, superblock: u32, first: Slot, logicals: &[u32]) {
        let count = logicals.len() as u32;
        self.reverse.replace_run(first.get(), logicals);
        self.invalid.clear_run(first.get(), count);
        self.all[superblock as usize].valid += count;
    }

    /// Records that nothing in the first `slots` slots of a victim is current any more.
    pub(crate) fn invalidate_all(&mut self, victim: u32, slots: u32) {
        self.invalid.set_run(victim * self.layout.slots_per_superblock, slots);
        self.all[victim as usize].valid = 0;
    }

    /// Records that the programs of die rows of an open superblock have completed.
    pub(crate) fn program_rows(&mut self, superblock: u32, rows: Range<u32>) {
        let state = &mut self.all[superblock as usize];
        let unprogrammed = state.unprogrammed.as_mut().expect("a row is programmed once");
        unprogrammed.remove(rows);
        if unprogrammed.missing == 0 {
            state.unprogrammed = None;
        }
    }

    /// Records that `slot` is padding.
    #[inline]
    pub(crate) fn pad(&mut self, slot: Slot) {
        self.invalid.set(slot.get());
    }

    /// Records that the data in `slot` is no longer current.
    #[inline]
    pub(crate) fn invalidate(&mut self, slot: Slot) {
        let number = self.invalidate_uncounted(slot);
        self.lose(number, 1);
    }

    /// The same without the count of its superblock, which is returned: for slots in a row.
    #[inline]
    pub(crate) fn invalidate_uncounted(&mut self, slot: Slot) -> u32 {
        debug_assert!(self.is_valid(slot), "{slot:?} was invalid already");
        self.invalid.set(slot.get());
        self.layout.split(slot).0
    }

    /// Counts `slots` slots of a superblock that are no longer current.
    #[inline]
    pub(crate) fn lose(&mut self, number: u32, slots: u32) {
        let superblock = &mut self.all[number as usize];
        let before = superblock.valid;
        superblock.valid = before - slots;
        if superblock.state == State::Closed {
            self.victims.decrease(number, before, superblock.valid);
        }
    }

    /// Opens an erased superblock that was taken from the list of them.
    pub(crate) fn open(&mut self, number: u32, single_level: bool) {
        let superblock = &mut self.all[number as usize];
        debug_assert_eq!((superblock.state, superblock.valid), (State::Erased, 0));
        superblock.state = State::Open;
        superblock.single_level = single_level;
    }

    pub(crate) fn close(&mut self, number: u32, at: u64) {
        let superblock = &mut self.all[number as usize];
        superblock.state = State::Closed;
        superblock.closed_at = at;
        let (valid, worn) = (superblock.valid, superblock.worn(number));
        self.victims.insert(number, valid);
        if let Some(in_use) = &mut self.in_use {
            in_use.insert(worn);
        }
    }

    /// Takes a closed superblock out of the indexes to empty it.
    pub(crate) fn condemn(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        debug_assert_eq!(superblock.state, State::Closed);
        superblock.state = State::Victim;
        let (valid, worn) = (superblock.valid, superblock.worn(number));
        self.victims.remove(number, valid);
        if let Some(in_use) = &mut self.in_use {
            in_use.remove(&worn);
        }
    }

    /// Counts the erase of an emptied superblock.
    pub(crate) fn count_erase(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        assert_eq!((superblock.state, superblock.valid), (State::Victim, 0), "only emptied victims are erased");
        superblock.erases += 1;
        self.erases_total += 1;
    }

    /// Returns an empty superblock to the erased ones.
    pub(crate) fn make_ready(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        superblock.state = State::Erased;
        self.erased.push(number, superblock.erases);
    }

    /// Takes a superblock out of the list of erased ones; returns whether it was there.
    pub(crate) fn take_erased(&mut self, number: u32) -> bool {
        let superblock = &self.all[number as usize];
        superblock.state == State::Erased && self.erased.remove(number, superblock.erases)
    }

    /// Erases of a superblock.
    pub(crate) fn erases(&self, number: u32) -> u32 {
        self.all[number as usize].erases
    }

    /// Whether a superblock is full and all of it on flash, so that its data can move.
    pub(crate) fn is_movable(&self, number: u32) -> bool {
        let superblock = &self.all[number as usize];
        superblock.state == State::Closed && superblock.unprogrammed.is_none()
    }

    /// The closed superblock of fewest erases, if its data can move; of several the one closed last, which is the
    /// head of the public code's list.
    ///
    /// Source: \[C\] sheet wear-leveling §9, last in, first out among equals. What was closed last has lost the least of
    /// its data, so that it fills the superblock to which it moves better, and that one becomes a victim later.
    pub(crate) fn least_erased_in_use(&self) -> Option<u32> {
        let &(_, _, number) = self.in_use.as_ref()?.first()?;
        self.is_movable(number).then_some(number)
    }

    /// The closed superblock of most erases, if its data can move; of several the one closed last.
    pub(crate) fn most_erased_in_use(&self) -> Option<u32> {
        let in_use = self.in_use.as_ref()?;
        let &(most, ..) = in_use.last()?;
        let &(_, _, number) = in_use.range((most, Reverse(u64::MAX), 0)..).next()?;
        self.is_movable(number).then_some(number)
    }

    /// Indexes closed superblocks by erases from now on, or no longer.
    pub(crate) fn order_in_use(&mut self, wanted: bool) {
        let closed = |entry: &(u32, &Superblock)| entry.1.state == State::Closed;
        let worn = |(number, superblock): (u32, &Superblock)| superblock.worn(number);
        self.in_use = wanted.then(|| (0..).zip(&self.all).filter(closed).map(worn).collect());
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.reverse.resident_bytes()
            + self.invalid.resident_bytes()
            + self.all.len() as u64 * (size_of::<Superblock>() as u64 + 12)
    }
}
