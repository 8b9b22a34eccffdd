//! Superblocks: their state, their current slots, and the reverse map.

use crate::allocation::Erased;
use crate::bits::{SparseBits, for_words};
use crate::config::FtlConfig;
use crate::drawn::{DrawnState, Holding};
use crate::map::SparseTable;
use crate::victim::VictimIndex;
use flashyard_flash::{Layout, Slot};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// Where a superblock is in its cycle from erase to erase.
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

/// A closed superblock for wear leveling: by erases, among equals the one closed last first. Then the number.
pub(crate) type Worn = (u32, Reverse<u64>, u32);

/// All superblocks of a drive.
pub(crate) struct Blocks {
    pub(crate) layout: Layout,
    pub(crate) all: Vec<Superblock>,
    pub(crate) erased: Erased,
    /// Closed superblocks, for wear leveling that asks for them; `None` otherwise.
    pub(crate) in_use: Option<BTreeSet<Worn>>,
    /// Erases of all superblocks.
    pub(crate) erases_total: u64,
    /// Those of them that wear leveling asked for.
    pub(crate) erases_by_leveling: u64,
    pub(crate) reverse: SparseTable,
    invalid: SparseBits,
    pub(crate) victims: VictimIndex,
}

impl Blocks {
    /// Superblocks whose first `filled` slots hold the logical slots of the same number.
    pub(crate) fn new(layout: Layout, config: &FtlConfig, filled: u32) -> Self {
        let slots = layout.slots_per_superblock;
        let mut blocks = Self {
            layout,
            all: Vec::with_capacity(layout.superblocks as usize),
            erased: Erased::new(config.allocation, layout.superblocks),
            in_use: None,
            erases_total: 0,
            erases_by_leveling: 0,
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

    /// Puts drawn contents on flash that is all erased. Those of open superblocks are the caller's to open.
    pub(crate) fn lay(&mut self, state: &DrawnState) {
        self.erased.clear();
        state.erased.iter().for_each(|&number| self.make_ready(number));
        for Holding { number, written, valid, .. } in state.open.iter().chain(&state.closed) {
            self.all[*number as usize].valid = *valid;
            let first = number * self.layout.slots_per_superblock;
            for_words(first, *written, |slot, mask| self.invalid.set_word(slot, mask & !state.valid_word(slot)));
        }
        // The oldest came first to the count that it has.
        for Holding { number, valid, .. } in state.closed.iter().rev() {
            self.all[*number as usize].state = State::Closed;
            self.victims.insert(*number, *valid);
        }
        self.reverse = SparseTable::drawn(self.layout.superblocks * self.layout.slots_per_superblock, state.reverse());
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

    /// Where filling an open superblock goes on that was filled up to slot `next` and whose outstanding programs have ended with
    /// nothing: behind the last die row that is on flash. Rows before it that are not hold nothing.
    pub(crate) fn wind_back(&mut self, number: u32, next: u32) -> u32 {
        let Some(rows) = &self.all[number as usize].unprogrammed else { return next };
        let is_missing = |row: u32| rows.words[row as usize / 64] >> (row % 64) & 1 == 1;
        let begun = next.div_ceil(self.layout.slots_per_die_row);
        let kept = (0..begun).rev().find(|&row| !is_missing(row)).map_or(0, |row| row + 1);
        let holes: Vec<u32> = (0..kept).filter(|&row| is_missing(row)).collect();
        holes.into_iter().for_each(|row| self.program_rows(number, row..row + 1));
        kept * self.layout.slots_per_die_row
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

    /// Like [`invalidate`](Self::invalidate), but leaves the count of the superblock returned to the caller: for slots
    /// in a row.
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

    /// Takes a victim that is not erased after all back among the closed superblocks.
    pub(crate) fn spare(&mut self, number: u32) {
        let superblock = &mut self.all[number as usize];
        assert_eq!(superblock.state, State::Victim, "superblock {number} was not emptied");
        superblock.state = State::Closed;
        let (valid, worn) = (superblock.valid, superblock.worn(number));
        self.victims.insert(number, valid);
        if let Some(in_use) = &mut self.in_use {
            in_use.insert(worn);
        }
    }

    /// Records that `slot`, which was given up and not erased since, is current for `logical` again.
    pub(crate) fn revive(&mut self, slot: Slot, logical: u32) {
        debug_assert!(!self.is_valid(slot), "{slot:?} was not given up");
        self.invalid.clear(slot.get());
        self.reverse.replace(slot.get(), Slot::new(logical));
        let number = self.layout.split(slot).0;
        let superblock = &mut self.all[number as usize];
        superblock.valid += 1;
        if superblock.state == State::Closed {
            let valid = superblock.valid;
            self.victims.remove(number, valid - 1);
            self.victims.insert(number, valid);
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

    /// Erases of all superblocks without those by wear leveling.
    pub(crate) fn erases_by_reclaim(&self) -> u64 {
        self.erases_total.saturating_sub(self.erases_by_leveling)
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

    /// The closed superblock of fewest erases, if its data can move; of several the one closed last.
    ///
    /// Source: \[A\] the one closed last has lost the least of its data, so that it fills the superblock to which it moves
    /// better, and that one becomes a victim later.
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

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_flash::Geometry;
    use proptest::prelude::*;

    const SUPERBLOCKS: u32 = 5;
    /// Slots of a superblock: they do not fill whole words of the valid bits.
    const SLOTS: u32 = 48;

    fn blocks(filled_slots: u32) -> Blocks {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 2,
            blocks_per_plane: SUPERBLOCKS,
            pages_per_block: 6,
            page_bytes: 8192,
            pages_per_program: 1,
        };
        let layout = Layout::new(&geometry);
        assert_eq!((layout.superblocks, layout.slots_per_superblock), (SUPERBLOCKS, SLOTS));
        let config = FtlConfig { logical_slots: 100, filled_slots, ..FtlConfig::default() };
        let mut blocks = Blocks::new(layout, &config, filled_slots);
        blocks.order_in_use(true);
        blocks
    }

    /// The owner of every slot that is current, and the state, erases and closing time of every superblock.
    struct Plain {
        owners: Vec<Option<u32>>,
        states: Vec<(State, u32, u64)>,
        /// Slots of the open superblock that are written.
        written: u32,
        time: u64,
    }

    impl Plain {
        fn new(filled: u32) -> Self {
            let state = |number: u32| if number * SLOTS < filled { State::Closed } else { State::Erased };
            Self {
                owners: (0..SUPERBLOCKS * SLOTS).map(|slot| (slot < filled).then_some(slot)).collect(),
                states: (0..SUPERBLOCKS).map(|number| (state(number), 0, 0)).collect(),
                written: 0,
                time: 0,
            }
        }

        fn of(&self, state: State) -> Vec<u32> {
            (0..SUPERBLOCKS).filter(|&number| self.states[number as usize].0 == state).collect()
        }

        fn valid(&self, number: u32) -> u32 {
            let slots = (number * SLOTS) as usize..((number + 1) * SLOTS) as usize;
            self.owners[slots].iter().flatten().count() as u32
        }

        /// Writes up to `run` slots in a row, in one piece or one by one, and closes the full ones.
        fn write(&mut self, blocks: &mut Blocks, run: u32, in_one: bool) {
            let Some(number) = self.of(State::Open).first().copied().or_else(|| self.open(blocks)) else { return };
            let count = run.min(SLOTS - self.written);
            let first = number * SLOTS + self.written;
            let logicals: Vec<u32> = (0..count).map(|place| 1000 + place).collect();
            if in_one {
                blocks.fill_run(number, Slot::new(first), &logicals);
            } else {
                (first..).zip(&logicals).for_each(|(slot, &owner)| blocks.fill(number, Slot::new(slot), owner));
            }
            (first as usize..).zip(logicals).for_each(|(slot, owner)| self.owners[slot] = Some(owner));
            self.written += count;
            if self.written == SLOTS {
                self.time += 1;
                blocks.close(number, self.time);
                self.states[number as usize].0 = State::Closed;
                self.states[number as usize].2 = self.time;
                self.written = 0;
            }
        }

        fn open(&mut self, blocks: &mut Blocks) -> Option<u32> {
            let number = blocks.erased.pop(false, false)?;
            assert_eq!(self.states[number as usize].0, State::Erased);
            blocks.open(number, false);
            self.states[number as usize].0 = State::Open;
            Some(number)
        }

        fn invalidate(&mut self, blocks: &mut Blocks, slot: u32) {
            if self.owners[slot as usize].take().is_some() {
                blocks.invalidate(Slot::new(slot));
            }
        }

        /// Empties a closed superblock and erases it.
        fn recycle(&mut self, blocks: &mut Blocks, choice: usize) {
            let closed = self.of(State::Closed);
            let Some(&number) = closed.get(choice % closed.len().max(1)) else { return };
            blocks.condemn(number);
            blocks.invalidate_all(number, SLOTS);
            self.owners[(number * SLOTS) as usize..((number + 1) * SLOTS) as usize].fill(None);
            blocks.count_erase(number);
            blocks.make_ready(number);
            self.states[number as usize] = (State::Erased, self.states[number as usize].1 + 1, 0);
        }

        fn compare(&self, blocks: &mut Blocks) {
            for slot in 0..SUPERBLOCKS * SLOTS {
                let is_erased = self.states[(slot / SLOTS) as usize].0 == State::Erased;
                let is_ahead = self.states[(slot / SLOTS) as usize].0 == State::Open && slot % SLOTS >= self.written;
                // A slot that is not written yet has no owner, whatever its bit says.
                if !is_erased && !is_ahead {
                    assert_eq!(blocks.is_valid(Slot::new(slot)), self.owners[slot as usize].is_some(), "slot {slot}");
                }
                if let Some(owner) = self.owners[slot as usize] {
                    assert_eq!(blocks.reverse.get(slot).get(), owner, "slot {slot}");
                }
            }
            for number in 0..SUPERBLOCKS {
                let superblock = &blocks.all[number as usize];
                let (state, erases, _) = self.states[number as usize];
                assert_eq!((superblock.state, superblock.erases), (state, erases), "superblock {number}");
                assert_eq!(superblock.valid, self.valid(number), "superblock {number}");
            }
            let closed = self.of(State::Closed);
            let least = closed.iter().map(|&number| self.valid(number)).min();
            assert_eq!(blocks.victims.least().map(|number| self.valid(number)), least);
            assert_eq!(blocks.erased.len(), self.of(State::Erased).len() as u32);
            assert_eq!(blocks.erases_total, self.states.iter().map(|(_, erases, _)| u64::from(*erases)).sum::<u64>());
            // By erases; of equals the one closed last, then the lowest number.
            let of = |number: u32| (self.states[number as usize].1, Reverse(self.states[number as usize].2), number);
            assert_eq!(blocks.least_erased_in_use(), closed.iter().copied().min_by_key(|&number| of(number)));
            let most = closed.iter().map(|&number| of(number).0).max();
            let oldest = closed.iter().copied().filter(|&number| Some(of(number).0) == most);
            assert_eq!(blocks.most_erased_in_use(), oldest.min_by_key(|&number| of(number)));
        }
    }

    #[test]
    fn a_mask_reaches_into_the_next_word() {
        let mut blocks = blocks(100);
        blocks.invalid.set(64);
        for (first, count) in [(1, 64), (2, 63), (63, 2), (64, 1), (40, 25)] {
            assert_eq!(blocks.valid_mask(first, count) >> (64 - first) & 1, 0, "{first}, {count}");
            assert_eq!(blocks.valid_mask(first, count).count_ones(), count - 1);
        }
    }

    #[test]
    fn memory_is_that_of_the_reverse_map_the_bits_and_the_superblocks() {
        let blocks = blocks(60);
        let each = size_of::<Superblock>() as u64 + 12;
        let parts = blocks.reverse.resident_bytes() + blocks.invalid.resident_bytes();
        assert_eq!(blocks.resident_bytes(), parts + 5 * each);
    }

    proptest! {
        #[test]
        fn superblocks_hold_what_a_plain_list_of_owners_holds(
            filled in 0_u32..100,
            steps in prop::collection::vec((0_u32..8, 0_u32..SUPERBLOCKS * SLOTS, 1_u32..20, any::<bool>()), 1..120),
        ) {
            let (mut blocks, mut plain) = (blocks(filled), Plain::new(filled));
            for (kind, slot, run, in_one) in steps {
                match kind {
                    0..3 => plain.write(&mut blocks, run, in_one),
                    3..7 => (slot..(slot + run).min(SUPERBLOCKS * SLOTS))
                        .for_each(|slot| plain.invalidate(&mut blocks, slot)),
                    _ => plain.recycle(&mut blocks, slot as usize),
                }
                plain.compare(&mut blocks);
                let count = run.min(SUPERBLOCKS * SLOTS - slot);
                let mask = (0..count).filter(|place| blocks.is_valid(Slot::new(slot + place)));
                prop_assert_eq!(blocks.valid_mask(slot, count), mask.fold(0, |mask, place| mask | 1 << place));
            }
        }

        #[test]
        fn a_set_of_rows_forgets_what_is_programmed_and_what_is_cut(
            rows in 1_u32..150, programmed in prop::collection::vec(0_u32..150, 0..80), cut in 0_u32..160,
        ) {
            let mut words = vec![u64::MAX; rows.div_ceil(64) as usize];
            for_words(rows, rows.next_multiple_of(64) - rows, |row, mask| words[row as usize / 64] &= !mask);
            let mut set = Box::new(RowSet { words, missing: rows });
            let mut plain: BTreeSet<u32> = (0..rows).collect();
            for row in programmed {
                if plain.remove(&row) {
                    set.remove(row..row + 1);
                }
            }
            let listed = |set: &RowSet| -> BTreeSet<u32> {
                (0..rows).filter(|&row| set.words[row as usize / 64] >> (row % 64) & 1 == 1).collect()
            };
            prop_assert_eq!((listed(&set), set.missing as usize), (plain.clone(), plain.len()));
            plain.retain(|&row| row < cut);
            match set.cut(cut) {
                Some(rest) => prop_assert_eq!((listed(&rest), rest.missing as usize), (plain.clone(), plain.len())),
                None => prop_assert!(plain.is_empty()),
            }
        }
    }
}
