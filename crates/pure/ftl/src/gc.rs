//! Garbage collection: choose a victim, read its valid die rows, append them to the moved frontier, erase it.
//!
//! The caller paces it: it asks for reads as its flash allows, hands each back when it has completed, and erases when
//! asked to. Nothing here waits.

use crate::blocks::{State, Superblock};
use crate::config::{Frontiers, VictimPolicy, VictimTies};
use crate::ftl::{Appended, DieRow, Ftl, Stream};
use flashyard_flash::Slot;

/// A die row with data to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRead {
    /// The die row, counted over the whole drive.
    pub number: u32,
    /// First slot to read.
    pub first: Slot,
    /// Slots from the first to the last valid one.
    pub span: u32,
    /// Valid ones among them.
    pub valid: u32,
}

/// Why garbage collection should start on a new victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// It should not: only the present victim is finished.
    Nothing,
    /// Erased superblocks are scarce: the policy chooses.
    Space,
    /// The drive is idle: single-level data is folded into ordinary superblocks.
    Folding,
}

/// A superblock whose last valid slot has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// Which one, to be erased.
    pub superblock: u32,
    /// The last die row of the superblock that wear leveling has filled from it, to be programmed.
    pub row: Option<DieRow>,
}

impl Ftl {
    /// Whether erased superblocks have become scarce. Beside those not promised to the host, some must be left to it.
    #[inline]
    pub fn reclaim_needed(&self) -> bool {
        self.blocks.erased.len() + self.reclaim.erasing <= self.config.reclaim_below.max(self.kept_erased)
    }

    /// Whether a victim is being emptied, or wear leveling has chosen the next.
    #[inline]
    pub fn reclaiming(&self) -> bool {
        self.reclaim.victim.is_some() || self.leveling_planned() || !self.reclaim.refresh.is_empty()
    }

    /// Superblocks that are erased and not open.
    pub fn erased_superblocks(&self) -> u32 {
        self.blocks.erased.len()
    }

    /// Slots that garbage collection under time has gained: those of the die rows that it is done with, less what it has
    /// moved from them. They are there for the host once their superblock is erased.
    #[inline]
    pub fn reclaim_gained(&self) -> u64 {
        self.reclaim.gained
    }

    /// Slots that the host can take in before garbage collection has gained any, from the moment at which it starts.
    pub fn reclaim_reserve(&self) -> u64 {
        let kept = self.config.reclaim_below.max(self.kept_erased).saturating_sub(self.kept_erased);
        u64::from(kept) * u64::from(self.superblock_limit())
    }

    /// Whether data moved by garbage collection fills die rows together with host data.
    #[inline]
    pub fn reclaim_shares_rows(&self) -> bool {
        self.config.frontiers == Frontiers::Shared && !self.reclaim.leveled
    }

    /// The stream to which the present victim's data goes.
    #[inline]
    pub fn reclaim_stream(&self) -> Stream {
        if self.reclaim.leveled { Stream::Leveled } else { Stream::Moved }
    }

    /// The next die row to read for garbage collection, when there is work; `want` says whether to start on a new
    /// victim.
    ///
    /// `None` while reads of the victim are outstanding and none is left to issue, while its frontier has no
    /// room for another die row, or when every closed superblock is fully valid.
    pub fn reclaim_next_read(&mut self, want: Want) -> Option<RowRead> {
        let victim = self.reclaim_victim(want)?;
        let per_row = self.layout.slots_per_die_row;
        while self.reclaim.next_row < self.reclaim.rows {
            let index = self.reclaim.next_row;
            let base = victim * self.layout.slots_per_superblock + index * per_row;
            let mask = self.blocks.valid_mask(base, per_row);
            // A leveled superblock fits the superblock opened for it.
            if mask != 0
                && !self.reclaim.leveled
                && self.moved_room() < u64::from(self.reclaim.outstanding + 1) * u64::from(per_row)
            {
                return None;
            }
            self.reclaim.next_row += 1;
            if mask == 0 {
                self.reclaim.gained += u64::from(per_row);
            } else {
                self.reclaim.outstanding += 1;
                let (low, high) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
                let number = victim * self.layout.die_rows_per_superblock + index;
                return Some(RowRead {
                    number,
                    first: Slot::new(base + low),
                    span: high - low + 1,
                    valid: mask.count_ones(),
                });
            }
        }
        None
    }

    /// The victim being emptied, or one to begin with.
    #[inline]
    pub(crate) fn reclaim_victim(&mut self, want: Want) -> Option<u32> {
        if self.reclaim.victim.is_none() {
            let leveled = self.start_leveling();
            let scarce = want == Want::Space && self.erased_superblocks() <= self.kept_erased;
            let refreshed = if leveled.is_none() && !scarce {
                self.reclaim.next_refresh(&self.blocks, &mut self.reads)
            } else {
                None
            };
            let victim = match want {
                _ if leveled.is_some() => leveled?,
                _ if refreshed.is_some() => {
                    self.counters.refreshed_superblocks += 1;
                    refreshed?
                }
                Want::Nothing => return None,
                Want::Space => self.choose_victim().filter(|&victim| self.can_finish(victim))?,
                Want::Folding => self.foldable()?,
            };
            self.condemn(victim);
            self.reclaim.leveled = leveled.is_some();
        }
        self.reclaim.victim
    }

    /// The logical slots whose data is still valid in a die row, by physical slot.
    pub fn valid_in_row(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let per_row = self.layout.slots_per_die_row;
        let base = number * per_row;
        let mask = self.blocks.valid_mask(base, per_row);
        let slots = (0..per_row).filter(move |place| mask >> place & 1 == 1);
        slots.map(move |place| self.blocks.reverse.get(base + place).get())
    }

    /// Moves the slots still valid of a die row that was read; `moved` is called with every logical slot and its new
    /// place.
    pub fn reclaim_row_read(&mut self, number: u32, mut moved: impl FnMut(&mut Self, u32, Appended)) {
        let per_row = self.layout.slots_per_die_row;
        let base = number * per_row;
        let mut mask = self.blocks.valid_mask(base, per_row);
        self.reclaim.gained += u64::from(per_row - mask.count_ones());
        while mask != 0 {
            let slot = Slot::new(base + mask.trailing_zeros());
            mask &= mask - 1;
            let logical = self.blocks.reverse.get(slot.get()).get();
            let stamp = self.stamp(slot);
            let appended = self.append(self.reclaim_stream(), logical, stamp);
            moved(self, logical, appended);
        }
        self.reclaim.outstanding -= 1;
    }

    /// The superblock to erase, once its last valid slot has moved. The caller erases it on every die and
    /// then calls [`Ftl::reclaim_erased`].
    pub fn reclaim_take_emptied(&mut self) -> Option<Emptied> {
        let superblock = self.reclaim.victim?;
        let reclaim = &mut self.reclaim;
        if reclaim.next_row < reclaim.rows || reclaim.outstanding > 0 {
            return None;
        }
        reclaim.victim = None;
        reclaim.erasing += 1;
        let row = if reclaim.leveled { self.close_leveled() } else { None };
        Some(Emptied { superblock, row })
    }

    /// Records that `superblock` has been erased on all dies.
    pub fn reclaim_erased(&mut self, superblock: u32) {
        self.reclaim.erasing -= 1;
        self.note_erased(superblock);
    }

    /// A full superblock of single-level data, the lowest numbered; `None` without one.
    pub fn foldable(&self) -> Option<u32> {
        if self.single_level_in_use() == 0 {
            return None;
        }
        let ready = |superblock: &Superblock| {
            superblock.state == State::Closed && superblock.single_level && superblock.unprogrammed.is_none()
        };
        self.blocks.all.iter().position(ready).map(|number| number as u32)
    }

    /// Starts emptying `victim`.
    pub(crate) fn condemn(&mut self, victim: u32) {
        self.blocks.condemn(victim);
        self.reclaim.victim = Some(victim);
        self.reclaim.next_row = 0;
        self.reclaim.rows = self.written_slots(victim) / self.layout.slots_per_die_row;
    }

    /// Whether garbage collection has nothing under way and nothing that it could begin with.
    pub(crate) fn reclaim_is_stuck(&mut self) -> bool {
        let under_way = self.reclaim.victim.is_some() || self.leveling_planned();
        let idle = !under_way && self.reclaim.erasing == 0;
        idle && self.choose_victim().is_none_or(|victim| !self.can_finish(victim))
    }

    /// The policy's choice among closed superblocks without outstanding programs.
    fn choose_victim(&mut self) -> Option<u32> {
        let victim = match self.config.victim {
            VictimPolicy::Greedy if self.config.ties == VictimTies::LeastErased => self.fewest_valid_oldest(),
            VictimPolicy::Greedy => self.blocks.victims.least(),
            VictimPolicy::CostBenefit => self.cost_benefit_victim(),
            VictimPolicy::CapacityVariant(weights) => self.capacity_variant_victim(&weights),
            VictimPolicy::FewestValidOldest => self.fewest_valid_oldest(),
        }?;
        let valid = self.blocks.all[victim as usize].valid;
        let programmed = self.blocks.all[victim as usize].unprogrammed.is_none();
        (programmed && self.pays(valid)).then_some(victim)
    }

    /// Whether garbage collection may begin with a victim. Where superblocks retire, they may have left too little for
    /// its data; and where host data shares the frontier, no third victim may be on its way at once. Otherwise room
    /// that is lacking comes back with the victim before.
    fn can_finish(&self, victim: u32) -> bool {
        let shared = self.config.frontiers == Frontiers::Shared;
        if !shared && !self.may_retire() {
            return true;
        }
        let needed = match self.blocks.all[victim as usize].valid {
            // Nothing moves: it is erased even when no room is left at all.
            0 => 0,
            valid => u64::from(valid) + u64::from(self.layout.slots_per_die_row),
        };
        (!shared || self.reclaim.erasing < 2) && needed <= self.moved_room()
    }

    /// Whether emptying a superblock with `valid` slots frees more than it takes. Room is granted in whole die
    /// rows, so the gain must be one at least. A full single-level superblock pays too: its data fits a
    /// third of an ordinary one.
    pub(crate) fn pays(&self, valid: u32) -> bool {
        valid + self.layout.slots_per_die_row <= self.layout.slots_per_superblock
    }

    /// The greatest (1 - u) age / 2u over closed superblocks, the age counted from the closing. Among empty ones, and
    /// other equals, the oldest: the lowest number would wear some out before others.
    /// Source: [X] Rosenblum and Ousterhout, log-structured file systems.
    fn cost_benefit_victim(&self) -> Option<u32> {
        let now = self.birthday();
        let mut best: Option<(u32, (f64, u64))> = None;
        for (number, superblock) in self.blocks.all.iter().enumerate() {
            if superblock.state != State::Closed || superblock.unprogrammed.is_some() {
                continue;
            }
            let share = f64::from(superblock.valid) / f64::from(self.layout.slots_per_superblock);
            let age = now - superblock.closed_at;
            let score = if share == 0.0 { f64::INFINITY } else { (1.0 - share) * age as f64 / (2.0 * share) };
            if self.pays(superblock.valid) && best.is_none_or(|(_, most)| (score, age) > most) {
                best = Some((number as u32, (score, age)));
            }
        }
        best.map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FtlConfig, ScoreWeights};
    use crate::progress::{Leveling, Step};
    use crate::small::{LOGICAL, Nothing, SLOTS, small};
    use proptest::prelude::*;

    /// Closed superblocks whose programs have completed and whose emptying frees a die row.
    fn candidates(ftl: &Ftl) -> Vec<u32> {
        let all = (0..).zip(&ftl.blocks.all);
        let closed = all.filter(|(_, block)| block.state == State::Closed && block.unprogrammed.is_none());
        let room = |block: &Superblock| ftl.layout.slots_per_superblock - block.valid >= ftl.layout.slots_per_die_row;
        closed.filter(|(_, block)| room(block)).map(|(number, _)| number).collect()
    }

    /// Whether a search over all candidates would name the policy's victim.
    fn check_victim(ftl: &mut Ftl) {
        let candidates = candidates(ftl);
        let chosen = ftl.choose_victim();
        assert_eq!(chosen.is_some(), !candidates.is_empty(), "{:?} of {candidates:?}", ftl.config.victim);
        let Some(chosen) = chosen else { return };
        assert!(candidates.contains(&chosen), "{chosen} is no candidate");
        let block = |number: u32| &ftl.blocks.all[number as usize];
        let worse: Vec<u32> = match ftl.config.victim {
            VictimPolicy::Greedy => {
                candidates.into_iter().filter(|&other| block(other).valid < block(chosen).valid).collect()
            }
            VictimPolicy::FewestValidOldest => {
                let key = |number: u32| (block(number).valid, u32::MAX - block(number).erases, number);
                candidates.into_iter().filter(|&other| key(other) < key(chosen)).collect()
            }
            VictimPolicy::CostBenefit => {
                // Benefit by cost, cross-multiplied: free space times age, by the space read and written.
                let age = |number: u32| u128::from(ftl.birthday() - block(number).closed_at);
                let valid = |number: u32| u128::from(block(number).valid);
                let slots = u128::from(ftl.layout.slots_per_superblock);
                let benefit = |number: u32| (slots - valid(number)) * age(number);
                let better = |other: u32| match (valid(other), valid(chosen)) {
                    (0, 0) => age(other) > age(chosen),
                    (0, _) => true,
                    (_, 0) => false,
                    // Nearly equal scores may be rounded either way.
                    (theirs, ours) => benefit(other) * ours * 1_000_000 > benefit(chosen) * theirs * 1_000_001,
                };
                candidates.into_iter().filter(|&other| better(other)).collect()
            }
            VictimPolicy::CapacityVariant(weights) => {
                // Nothing was read and the drive is not degraded: the free share, and the wear by 50 erases.
                let free =
                    |number: u32| 1.0 - f64::from(block(number).valid) / f64::from(ftl.layout.slots_per_superblock);
                let worn = |number: u32| f64::from(block(number).erases) / 50.0;
                let score = |number: u32| weights.invalid * free(number) + weights.age * worn(number);
                candidates.into_iter().filter(|&other| score(other) > score(chosen) + 1e-9).collect()
            }
        };
        assert!(worse.is_empty(), "{:?}: {worse:?} are better victims than {chosen}", ftl.config.victim);
    }

    /// Appends a superblock's worth of a stream's data, with its programs completed or not; returns the superblock.
    fn fill(ftl: &mut Ftl, stream: Stream, first: u32, count: u32, programmed: bool) -> u32 {
        let mut slot = Slot::NONE;
        for logical in first..first + count {
            let appended = ftl.append(stream, logical, 0);
            appended.row.filter(|_| programmed).iter().for_each(|row| ftl.row_programmed(row.number));
            slot = appended.slot;
        }
        ftl.layout.split(slot).0
    }

    /// Carries a collection that has begun to its end; returns the superblock that was erased.
    fn finish(ftl: &mut Ftl) -> Option<u32> {
        while let Some(read) = ftl.reclaim_next_read(Want::Nothing) {
            ftl.reclaim_row_read(read.number, |ftl, _, appended| {
                appended.row.iter().for_each(|row| ftl.row_programmed(row.number));
            });
        }
        let superblock = ftl.reclaim_take_emptied()?.superblock;
        ftl.reclaim_erased(superblock);
        Some(superblock)
    }

    #[test]
    fn a_superblock_that_is_read_often_is_moved_once_it_is_on_flash() {
        let mut ftl = small(FtlConfig { refresh_reads: Some(100), ..FtlConfig::default() });
        let [one, two] = [0, SLOTS].map(|first| fill(&mut ftl, Stream::Host, first, SLOTS, true));
        let unprogrammed = fill(&mut ftl, Stream::Host, 2 * SLOTS, SLOTS, false);
        let open = fill(&mut ftl, Stream::Host, 3 * SLOTS, 5, true);
        let slot = |superblock: u32| Slot::new(superblock * SLOTS);
        ftl.count_reads(slot(one), 99);
        assert!(!ftl.reclaiming());
        ftl.count_reads(slot(one), 1);
        // More reads do not ask for it again.
        ftl.count_reads(slot(one), 50);
        ftl.count_reads(slot(one), 50);
        assert_eq!(ftl.reclaim.refresh, [one]);
        ftl.count_reads(slot(two), 200);
        assert!(ftl.reclaiming());
        assert_eq!((finish(&mut ftl), ftl.reads_of(one)), (Some(one), 0));
        assert!(ftl.reclaiming(), "the erase of one does not spare the other");
        assert_eq!((finish(&mut ftl), ftl.counters().refreshed_superblocks), (Some(two), 2));
        assert!(!ftl.reclaiming() && (0..2 * SLOTS).all(|logical| ftl.lookup(logical).is_some()));
        // These are read as often again before they are looked at again.
        for superblock in [unprogrammed, open] {
            ftl.count_reads(slot(superblock), 100);
            assert_eq!((finish(&mut ftl), ftl.reads_of(superblock)), (None, 0));
        }
        ftl.check();
    }

    #[test]
    fn garbage_collection_is_needed_where_erased_superblocks_and_those_under_erase_are_few() {
        let mut ftl = small(FtlConfig { reclaim_below: 4, ..FtlConfig::default() });
        assert_eq!(ftl.reclaim_reserve(), 3 * u64::from(SLOTS));
        let mut first = 0;
        while ftl.erased_superblocks() > 5 {
            fill(&mut ftl, Stream::Host, first, SLOTS, true);
            first = (first + SLOTS) % (8 * SLOTS);
        }
        assert!(!ftl.reclaim_needed());
        fill(&mut ftl, Stream::Host, first, SLOTS, true);
        assert!(ftl.reclaim_needed() && !ftl.reclaiming());
        // Five are erased, or soon will be.
        assert!(ftl.reclaim_victim(Want::Space).is_some() && ftl.reclaiming());
        while ftl.reclaim_next_read(Want::Nothing).is_some() {}
        let emptied = ftl.reclaim_take_emptied().expect("nothing is left in it").superblock;
        assert!(!ftl.reclaim_needed() && !ftl.reclaiming());
        ftl.reclaim_erased(emptied);
        assert!(!ftl.reclaim_needed());
        // Where more are kept than collection waits for, the host has nothing before it has gained.
        ftl.kept_erased = 5;
        assert_eq!((ftl.reclaim_needed(), ftl.reclaim_reserve()), (true, 0));
        ftl.leveling = Some(Leveling { source: 0, then: None, step: Step::Planned });
        assert!(ftl.reclaiming());
    }

    #[test]
    fn a_victim_is_begun_with_where_its_data_has_room_and_two_erases_are_not_under_way() {
        let shared = FtlConfig { frontiers: Frontiers::Shared, ..FtlConfig::default() };
        let retires = FtlConfig { retire_at: Some(9), ..FtlConfig::default() };
        // Policies, erases under way, erased superblocks left, slots trimmed of the victim's.
        for (config, erasing, left, trimmed, expected) in [
            (FtlConfig::default(), 2, 0, 8, true),
            (retires, 2, 1, 8, true),
            (retires, 0, 0, 8, false),
            (retires, 0, 0, SLOTS, true),
            (retires, 0, 1, 3, false),
            (retires, 0, 1, 4, true),
            (shared, 1, 1, 8, true),
            (shared, 2, 1, 8, false),
            (shared, 0, 0, 8, false),
        ] {
            let mut ftl = small(config);
            let victim = fill(&mut ftl, Stream::Host, 0, SLOTS, true);
            (0..trimmed).for_each(|logical| _ = ftl.trim(logical));
            ftl.reclaim.erasing = erasing;
            while ftl.erased_superblocks() > left {
                ftl.blocks.erased.pop(true, false);
            }
            assert_eq!(ftl.can_finish(victim), expected, "{erasing}, {left}, {trimmed}");
        }
    }

    #[test]
    fn of_equal_victims_the_greedy_policy_takes_the_one_that_its_ties_name() {
        for (ties, expected) in
            [(VictimTies::NewestFirst, 1), (VictimTies::OldestFirst, 0), (VictimTies::LeastErased, 0)]
        {
            let mut ftl = small(FtlConfig { ties, ..FtlConfig::default() });
            for number in 0..2 {
                fill(&mut ftl, Stream::Host, number * SLOTS, SLOTS, true);
            }
            [0, SLOTS].into_iter().for_each(|first| (0..10).for_each(|place| _ = ftl.trim(first + place)));
            assert_eq!(ftl.choose_victim(), Some(expected), "{ties:?}");
        }
    }

    #[test]
    fn a_victim_is_not_erased_before_its_last_row_was_moved() {
        let mut ftl = small(FtlConfig::default());
        let victim = fill(&mut ftl, Stream::Host, 0, SLOTS, true);
        // Rows 3 and 11 are valid.
        for place in (0..SLOTS).filter(|place| ![3, 11].contains(&(place / 4))) {
            ftl.trim(place);
        }
        ftl.condemn(victim);
        let first = ftl.reclaim_next_read(Want::Nothing).expect("a row is valid");
        ftl.reclaim_row_read(first.number, |_, _, _| {});
        assert_eq!(ftl.reclaim_take_emptied(), None, "a row was not read");
        let last = ftl.reclaim_next_read(Want::Nothing).expect("another row is valid");
        assert_eq!(
            (ftl.reclaim_next_read(Want::Nothing), ftl.reclaim_take_emptied()),
            (None, None),
            "it is being read"
        );
        ftl.reclaim_row_read(last.number, |_, _, _| {});
        assert_eq!(ftl.reclaim_take_emptied().map(|emptied| emptied.superblock), Some(victim));
    }

    #[test]
    fn a_refresh_comes_after_a_move_that_is_planned_and_after_room_that_is_scarce() {
        let layer = || {
            let mut ftl = small(FtlConfig { refresh_reads: Some(10), ..FtlConfig::default() });
            let often = fill(&mut ftl, Stream::Host, 0, SLOTS, true);
            let other = fill(&mut ftl, Stream::Host, SLOTS, SLOTS, true);
            (0..SLOTS / 2).for_each(|place| _ = ftl.trim(SLOTS + place));
            ftl.count_reads(Slot::new(often * SLOTS), 10);
            (ftl, often, other)
        };
        for (want, scarce, is_refreshed) in [
            (Want::Space, true, false),
            (Want::Space, false, true),
            (Want::Nothing, true, true),
            (Want::Nothing, false, true),
        ] {
            let (mut ftl, often, other) = layer();
            ftl.kept_erased = ftl.erased_superblocks() - u32::from(!scarce);
            assert_eq!(ftl.reclaim_victim(want), Some(if is_refreshed { often } else { other }), "{want:?}, {scarce}");
            assert_eq!(ftl.counters().refreshed_superblocks, u64::from(is_refreshed));
        }
        let (mut ftl, often, other) = layer();
        ftl.leveling = Some(Leveling { source: other, then: None, step: Step::Planned });
        assert_eq!(ftl.reclaim_victim(Want::Nothing), Some(other));
        assert_eq!(ftl.reclaim.refresh, [often], "its turn comes");
    }

    #[test]
    fn of_equal_victims_by_cost_and_benefit_the_lowest_number_is_emptied() {
        let policies = FtlConfig { victim: VictimPolicy::CostBenefit, filled_slots: LOGICAL, ..FtlConfig::default() };
        let mut ftl = small(policies);
        // All were filled at once, and these lose as much.
        [5, 2, 7].into_iter().for_each(|number| (0..10).for_each(|place| _ = ftl.trim(number * SLOTS + place)));
        assert_eq!(ftl.choose_victim(), Some(2));
    }

    #[test]
    fn no_more_rows_are_read_than_there_is_room_for() {
        let mut ftl = small(FtlConfig::default());
        // Two die rows are left for moved data, and nothing is erased.
        fill(&mut ftl, Stream::Moved, 0, SLOTS - 8, true);
        for superblock in 0..15 {
            let first = SLOTS - 8 + superblock * 28;
            fill(&mut ftl, Stream::Host, first, 28, true);
            fill(&mut ftl, Stream::Host, first, 20, true);
        }
        assert_eq!((ftl.erased_superblocks(), ftl.moved_room()), (0, 8));
        let reads: Vec<RowRead> = std::iter::from_fn(|| ftl.reclaim_next_read(Want::Space)).collect();
        assert_eq!(reads.iter().map(|read| (read.span, read.valid)).collect::<Vec<_>>(), [(4, 4), (4, 4)]);
    }

    #[test]
    fn empty_rows_are_passed_over_without_any_room() {
        let mut ftl = small(FtlConfig::default());
        let victim = fill(&mut ftl, Stream::Host, 0, SLOTS, true);
        (0..20).for_each(|place| _ = ftl.trim(place));
        ftl.blocks.erased.clear();
        ftl.condemn(victim);
        assert_eq!((ftl.reclaim_next_read(Want::Nothing), ftl.moved_room(), ftl.reclaim_gained()), (None, 0, 20));
        // Data that wear leveling moves has its superblock already.
        ftl.reclaim.leveled = true;
        assert!(ftl.reclaim_next_read(Want::Nothing).is_some());
    }

    #[test]
    fn single_level_data_is_folded_once_its_superblock_is_full_and_on_flash() {
        let mut ftl = small(FtlConfig { slc_superblocks: 1, ..FtlConfig::default() });
        // Ordinary ones of lower numbers are no candidates.
        let ordinary = fill(&mut ftl, Stream::Moved, 0, SLOTS, true);
        fill(&mut ftl, Stream::Leveled, SLOTS, 1, true);
        assert_eq!((ftl.foldable(), ftl.single_level_in_use()), (None, 0));
        // A third of the rows: one page of each cell.
        let cached = fill(&mut ftl, Stream::Host, 100, SLOTS / 3 - 1, true);
        assert_eq!((ftl.foldable(), ftl.single_level_in_use()), (None, 1));
        assert_eq!([ordinary, cached].map(|number| ftl.is_single_level(number)), [false, true]);
        let last = ftl.append(Stream::Host, 200, 0).row.expect("it fills a row");
        assert_eq!(ftl.foldable(), None, "its last row is not on flash");
        ftl.row_programmed(last.number);
        assert_eq!(ftl.foldable(), Some(cached));
    }

    #[test]
    fn moved_data_shares_rows_with_the_hosts_where_it_shares_their_frontier() {
        let shares = |frontiers, leveled| {
            let mut ftl = small(FtlConfig { frontiers, coalesce: true, ..FtlConfig::default() });
            ftl.reclaim.leveled = leveled;
            ftl.reclaim_shares_rows()
        };
        assert!(shares(Frontiers::Shared, false));
        let apart = [(Frontiers::Shared, true), (Frontiers::Separate, false), (Frontiers::Separate, true)];
        assert!(apart.into_iter().all(|(frontiers, leveled)| !shares(frontiers, leveled)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_victim_is_the_best_of_all_that_could_be_emptied(
            policy in 0_usize..4, slc_superblocks in 0_u32..3, slc_grows: bool, writes in prop::collection::vec(0..LOGICAL, 400..2500),
        ) {
            let victim = [
                VictimPolicy::Greedy,
                VictimPolicy::CostBenefit,
                VictimPolicy::FewestValidOldest,
                VictimPolicy::CapacityVariant(ScoreWeights::default()),
            ][policy];
            let mut ftl = small(FtlConfig { victim, slc_superblocks, slc_grows, endurance: Some(50), ..FtlConfig::default() });
            for (number, logical) in writes.into_iter().enumerate() {
                // Some slots are written again and again, so that superblocks differ.
                let logical = if number % 3 == 0 { logical } else { logical % 40 };
                ftl.age_write(logical, 0, &mut Nothing::default()).expect("there is spare room");
                if number % 7 == 0 {
                    check_victim(&mut ftl);
                }
            }
            ftl.check();
        }

        #[test]
        fn a_collection_moves_exactly_what_is_valid_and_in_the_order_of_its_slots(
            writes in prop::collection::vec(0..LOGICAL, 300..1500),
        ) {
            let mut ftl = small(FtlConfig { stamps: true, ..FtlConfig::default() });
            for (stamp, logical) in (1..).zip(&writes) {
                ftl.age_write(*logical, stamp, &mut Nothing::default()).expect("there is spare room");
            }
            let Some(victim) = ftl.reclaim_victim(Want::Space) else { return Ok(()) };
            let owners = |ftl: &Ftl| -> Vec<(u32, u64)> {
                let stamp = |logical| (logical, ftl.stamp(ftl.lookup(logical)));
                let mut held: Vec<_> = (0..LOGICAL).filter(|&logical| ftl.lookup(logical).is_some()).collect();
                held.sort_unstable_by_key(|&logical| ftl.lookup(logical).get());
                held.retain(|&logical| ftl.layout.split(ftl.lookup(logical)).0 == victim);
                held.into_iter().map(stamp).collect()
            };
            let expected = owners(&ftl);
            let gained = ftl.reclaim_gained();
            let mut found = Vec::new();
            while let Some(read) = ftl.reclaim_next_read(Want::Nothing) {
                prop_assert!(read.span >= 1 && read.span <= ftl.layout.slots_per_die_row);
                let listed: Vec<u32> = ftl.valid_in_row(read.number).collect();
                prop_assert!(!listed.is_empty(), "an empty row is not read");
                prop_assert_eq!((ftl.layout.die_row(read.first), ftl.owner(read.first)), (read.number, Some(listed[0])));
                let mut moved = Vec::new();
                ftl.reclaim_row_read(read.number, |ftl, logical, _| {
                    moved.push(logical);
                    found.push((logical, ftl.stamp(ftl.lookup(logical))));
                });
                prop_assert_eq!(listed, moved);
            }
            prop_assert_eq!(&found, &expected);
            prop_assert!(owners(&ftl).is_empty(), "something stayed behind");
            prop_assert_eq!(ftl.reclaim_gained() - gained, u64::from(SLOTS) - found.len() as u64);
            let emptied = ftl.reclaim_take_emptied().expect("nothing is left in it");
            prop_assert_eq!(emptied.superblock, victim);
            ftl.reclaim_erased(victim);
            ftl.check();
        }
    }
}
