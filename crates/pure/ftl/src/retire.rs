//! Retirement: superblocks that are worn out, or make too many errors, are not used again once they are empty.

use crate::blocks::State;
use crate::config::FtlConfig;
use crate::ftl::Ftl;
use flashyard_flash::Slot;

impl Ftl {
    /// Whether a superblock is retired. Panics beyond the drive.
    pub fn is_retired(&self, superblock: u32) -> bool {
        self.blocks.all[superblock as usize].state == State::Retired
    }

    /// Superblocks that are retired.
    pub fn retired_superblocks(&self) -> u32 {
        self.counters.retired_superblocks as u32
    }

    /// Retires a superblock when it is next empty, whatever its erases: at once if it is erased now.
    /// Panics beyond the drive.
    pub fn retire_early(&mut self, superblock: u32) {
        self.kept_erased = self.kept_erased.max(self.config.kept_erased() + 1);
        self.blocks.all[superblock as usize].retiring = true;
        if self.blocks.take_erased(superblock) {
            self.retire(superblock);
        }
    }

    /// Takes a superblock out of use again that was retired before the layer was recovered: owners that know it do not
    /// write a retired one, but contents do not tell it from an erased one. Nothing if it is not erased.
    /// Panics beyond the drive.
    pub fn retire_again(&mut self, superblock: u32) {
        // Room is kept as a rule of retirement keeps it, whether or not there is one now.
        let without_rule = FtlConfig { retire_at: None, ..self.config };
        self.kept_erased = self.kept_erased.max(without_rule.kept_erased() + 1);
        if self.blocks.take_erased(superblock) {
            self.retire(superblock);
            self.set_wear_leveling(self.config.wear_leveling);
        }
    }

    /// Retires superblocks at this erase from now on, when they are next emptied; superblocks that are erased now stay
    /// in use until then. At least 1.
    pub fn set_retire_at(&mut self, erases: Option<u32>) {
        self.config.retire_at = erases.map(|erases| erases.max(1));
        self.kept_erased = self.kept_erased.max(self.config.kept_erased());
    }

    /// Sets the erases of every superblock, as if time had passed, and keeps map and data, the order of erased superblocks, and what the
    /// policy of wear leveling remembers. Superblocks that reach their last erase are retired: now if they are erased, when they are next
    /// emptied otherwise.
    ///
    /// Panics unless there is a count for each superblock. Source: \[C\] FF-SSD's public code sets counts and refills the heaps in their
    /// order (`AF2.py`, `do_ftl_build_heap` for a heap that has entries).
    pub fn project_erase_counts(&mut self, counts: &[u32]) {
        assert_eq!(counts.len(), self.blocks.all.len(), "one count for each superblock");
        let erased = self.blocks.erased.in_order();
        self.blocks.erased.clear();
        self.blocks.all.iter_mut().zip(counts).for_each(|(superblock, &erases)| superblock.erases = erases);
        erased.into_iter().for_each(|number| self.blocks.make_ready(number));
        self.blocks.erases_total = counts.iter().copied().map(u64::from).sum();
        self.blocks.order_in_use(self.blocks.in_use.is_some());
        if let Some(wear) = self.wear.as_deref_mut() {
            wear.project(&self.blocks);
        }
        self.retire_erased();
    }

    /// Retires erased superblocks that have reached their last erase.
    pub(crate) fn retire_erased(&mut self) {
        for number in 0..self.layout.superblocks {
            if self.retires(number) && self.blocks.take_erased(number) {
                self.retire(number);
            }
        }
    }

    /// Whether an empty superblock is to be used no more.
    pub(crate) fn retires(&self, superblock: u32) -> bool {
        let superblock = &self.blocks.all[superblock as usize];
        superblock.retiring || self.config.retire_at.is_some_and(|last| superblock.erases >= last)
    }

    /// Whether any superblock may ever be retired.
    pub fn may_retire(&self) -> bool {
        self.config.retire_at.is_some() || self.kept_erased > self.config.kept_erased()
    }

    /// Takes an empty superblock, which is not in the list of erased ones, out of use.
    pub(crate) fn retire(&mut self, superblock: u32) {
        self.blocks.all[superblock as usize].state = State::Retired;
        self.counters.retired_superblocks += 1;
        if let Some(wear) = self.wear.as_deref_mut() {
            wear.forget(superblock);
        }
    }

    /// Whether the host can never write `slots` slots: it is not promised the room, and garbage collection has nothing
    /// under way and finds nothing that pays. For a drive in time, whose writes would wait for ever.
    pub fn is_out_of_room(&mut self, slots: u64) -> bool {
        self.host_room() < slots && self.reclaim_is_stuck()
    }

    /// Erased superblocks at which a write without time is refused, although garbage collection could go on: the rest
    /// lets a host that then trims reclaim the space. Without them a drive whose last victims all retire is stuck,
    /// whatever is trimmed. 0, as when new, for none.
    pub fn set_reserve(&mut self, erased: u32) {
        self.reserve = erased;
    }

    /// Whether the drive is degraded: [`crate::Allocation::WearFocusing`], [`crate::Allocation::OldestFirst`], the
    /// capacity-variant victim and that of fewest valid slots and most erases then choose otherwise.
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Sets the degraded mode. Source: [P] cvss §3.7.
    pub fn set_degraded(&mut self, on: bool) {
        self.degraded = on;
    }

    /// Counts a host read of the data at `slot`, for scores and disturbance.
    #[inline]
    pub fn count_read(&mut self, slot: Slot) {
        self.count_reads(slot, 1);
    }

    /// Counts host reads of `pages` pages of the superblock of `slot`.
    #[inline]
    pub fn count_reads(&mut self, slot: Slot, pages: u32) {
        if self.reads.is_empty() {
            self.reads = vec![0; self.layout.superblocks as usize];
        }
        let (superblock, _) = self.layout.split(slot);
        let reads = &mut self.reads[superblock as usize];
        let before = *reads;
        *reads = before.saturating_add(pages);
        if let Some(most) = self.config.refresh_reads
            && before < most
            && *reads >= most
        {
            self.reclaim.refresh.push_back(superblock);
        }
    }

    /// Host reads of a superblock that were counted since it was erased.
    #[inline]
    pub fn reads_of(&self, superblock: u32) -> u32 {
        self.reads.get(superblock as usize).copied().unwrap_or(0)
    }
}

/// Queues the superblocks that are due for a refresh and in no queue: reads were counted before they came to be as they are.
pub(crate) fn note_due_refreshes(ftl: &mut Ftl) {
    let Some(most) = ftl.config.refresh_reads else { return };
    for number in 0..ftl.layout.superblocks {
        let is_closed = ftl.blocks.all[number as usize].state == State::Closed;
        if is_closed && ftl.reads_of(number) >= most && !ftl.reclaim.refresh.contains(&number) {
            ftl.reclaim.refresh.push_back(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{VictimTies, WearLeveling};
    use crate::cut::PowerCut;
    use crate::gc::Want;
    use crate::progress::{self, Leveling};
    use crate::small::{LOGICAL, Nothing, SLOTS, SUPERBLOCKS, geometry, small, used};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u32),
        Trim(u32),
        RetireEarly(u32),
        RetireAt(Option<u32>),
        Project(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            60 => (0..LOGICAL).prop_map(|logical| Step::Write(logical % 60)),
            20 => (0..LOGICAL).prop_map(Step::Write),
            10 => (0..LOGICAL).prop_map(Step::Trim),
            1 => (0..SUPERBLOCKS).prop_map(Step::RetireEarly),
            1 => prop::option::of(3_u32..40).prop_map(Step::RetireAt),
            1 => (0_u32..3).prop_map(Step::Project),
        ]
    }

    /// Knowledge that the layer must have: stamps of written data, and superblocks that were to be retired.
    #[derive(Default)]
    struct Plain {
        stamps: BTreeMap<u32, u64>,
        condemned: BTreeSet<u32>,
        retired: BTreeSet<u32>,
        stamp: u64,
    }

    impl Plain {
        fn take(&mut self, ftl: &mut Ftl, step: Step) {
            match step {
                Step::Write(logical) => {
                    self.stamp += 1;
                    let erased = ftl.blocks.erased.len();
                    if ftl.age_write(logical, self.stamp, &mut Nothing::default()).is_ok() {
                        self.stamps.insert(logical, self.stamp);
                    } else {
                        let (retired, condemned) = (ftl.retired_superblocks(), &self.condemned);
                        assert!(retired > 0, "worn out without a reason, {erased} are erased, {condemned:?} are to be");
                    }
                }
                Step::Trim(logical) => {
                    ftl.trim(logical);
                    self.stamps.remove(&logical);
                }
                // More would leave no room for the data.
                Step::RetireEarly(number) if self.condemned.len() < 3 => {
                    let is_empty = ftl.blocks.all[number as usize].state == State::Erased;
                    ftl.retire_early(number);
                    self.condemned.insert(number);
                    assert!(ftl.is_retired(number) || !is_empty, "an erased one is retired at once");
                }
                Step::RetireEarly(_) => {}
                Step::RetireAt(erases) => ftl.set_retire_at(erases),
                Step::Project(more) => {
                    let counts: Vec<u32> = ftl.erase_counts().map(|count| count + more).collect();
                    ftl.project_erase_counts(&counts);
                    assert!(ftl.erase_counts().eq(counts), "erases are those that were set");
                }
            }
        }

        fn compare(&mut self, ftl: &Ftl) {
            ftl.check();
            let retired: BTreeSet<u32> = (0..SUPERBLOCKS).filter(|&number| ftl.is_retired(number)).collect();
            assert!(retired.is_superset(&self.retired), "{:?} came back as {retired:?}", self.retired);
            assert_eq!(retired.len() as u32, ftl.retired_superblocks());
            for &number in &retired {
                assert_eq!(ftl.blocks.all[number as usize].valid, 0, "superblock {number} is retired and holds data");
            }
            self.retired = retired;
            for logical in 0..LOGICAL {
                let slot = ftl.lookup(logical);
                let found = slot.is_some().then(|| ftl.stamp(slot));
                assert_eq!(found, self.stamps.get(&logical).copied(), "slot {logical}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn what_is_retired_holds_nothing_and_never_comes_back(
            steps in prop::collection::vec(step(), 200..2500), leveled: bool,
        ) {
            let wear_leveling = if leveled { WearLeveling::HotColdSwap { threshold: 4 } } else { WearLeveling::None };
            let config = FtlConfig { stamps: true, wear_leveling, endurance: Some(50), ..FtlConfig::default() };
            let (mut ftl, mut plain) = (small(config), Plain::default());
            for (number, step) in steps.into_iter().enumerate() {
                plain.take(&mut ftl, step);
                if number % 16 == 0 || !matches!(step, Step::Write(_) | Step::Trim(_)) {
                    plain.compare(&ftl);
                }
            }
            plain.compare(&ftl);
            // Owners that know the retired superblocks name them again after a start.
            let config = *ftl.config();
            let mut again = Ftl::recovered(&geometry(), FtlConfig { stamps: false, retire_at: None, ..config }, &ftl.contents())
                .expect("these are contents of a layer");
            plain.retired.iter().for_each(|&number| again.retire_again(number));
            again.check();
            prop_assert!((0..SUPERBLOCKS).all(|number| again.is_retired(number) == ftl.is_retired(number)));
            prop_assert!((0..LOGICAL).all(|logical| again.lookup(logical) == ftl.lookup(logical)));
        }
    }

    #[test]
    fn a_refresh_that_is_due_outlasts_a_power_cut_in_its_midst_and_a_time_without_power() {
        const MOST: u32 = 100;
        let mut ftl = used(3 * SLOTS, FtlConfig { refresh_reads: Some(MOST), ..FtlConfig::default() });
        let (one, _) = ftl.layout.split(ftl.lookup(0));
        ftl.count_reads(ftl.lookup(0), MOST);
        let again = |ftl: &Ftl| {
            let again = Ftl::from_aged(&geometry(), *ftl.config(), &ftl.aged_state());
            again.expect("it is the state of a layer").reclaim.refresh
        };
        assert_eq!((&ftl.reclaim.refresh, &again(&ftl)), (&[one].into(), &[one].into()));
        assert_eq!(ftl.reclaim_victim(Want::Nothing), Some(one));
        assert!(ftl.reclaim.refresh.is_empty());
        assert_eq!(PowerCut::default().strike(&mut ftl), []);
        // It is an ordinary superblock again, and reads beyond the most do not ask for it.
        assert_eq!((&ftl.reclaim.refresh, &again(&ftl)), (&[one].into(), &[one].into()));
        // One that was queued already is queued once.
        PowerCut::default().strike(&mut ftl);
        assert_eq!(ftl.reclaim.refresh, [one]);
        ftl.check();
    }

    #[test]
    fn room_for_retirement_is_kept_once_whether_a_rule_or_an_owner_retires() {
        for (retire_at, before) in [(None, 1), (Some(5), 2)] {
            let mut ftl = small(FtlConfig { retire_at, ..FtlConfig::default() });
            assert_eq!((ftl.kept_erased, ftl.may_retire()), (before, retire_at.is_some()));
            ftl.retire_again(3);
            assert_eq!((ftl.kept_erased, ftl.is_retired(3), ftl.may_retire()), (2, true, true));
        }
    }

    #[test]
    fn a_rule_that_is_set_later_is_at_least_one_erase_and_keeps_its_room() {
        let mut ftl = small(FtlConfig::default());
        ftl.set_retire_at(Some(0));
        assert_eq!((ftl.config.retire_at, ftl.kept_erased, ftl.may_retire()), (Some(1), 2, true));
        ftl.set_retire_at(None);
        assert_eq!((ftl.config.retire_at, ftl.kept_erased), (None, 2), "room that was promised to retirement stays");
    }

    #[test]
    fn a_drive_is_out_of_room_where_nothing_is_under_way_and_nothing_pays() {
        let full = || small(FtlConfig { filled_slots: 9 * SLOTS, ..FtlConfig::default() });
        let mut ftl = full();
        let room = ftl.host_room();
        assert_eq!((ftl.is_out_of_room(room), ftl.is_out_of_room(room + 1)), (false, true), "all of it is valid");
        // A victim pays, but for the room that it needs.
        (0..8).for_each(|logical| _ = ftl.trim(logical));
        assert!(!ftl.is_out_of_room(u64::MAX));
        ftl.kept_erased += 1;
        assert!(ftl.may_retire() && !ftl.is_out_of_room(u64::MAX));
        ftl.blocks.erased.clear();
        assert!(ftl.is_out_of_room(u64::MAX), "nothing can move");
        // Something is under way, and nothing else pays.
        for under_way in [
            |ftl: &mut Ftl| ftl.reclaim.victim = Some(0),
            |ftl: &mut Ftl| ftl.reclaim.erasing = 1,
            |ftl: &mut Ftl| ftl.leveling = Some(Leveling { source: 0, then: None, step: progress::Step::Planned }),
        ] {
            let mut ftl = full();
            under_way(&mut ftl);
            assert!(!ftl.is_out_of_room(u64::MAX));
        }
    }

    #[test]
    fn a_reserve_is_kept_although_collection_could_go_on() {
        let mut ftl = small(FtlConfig { reclaim_below: 4, ..FtlConfig::default() });
        let write = |ftl: &mut Ftl, number: u32| ftl.age_write(number % 50, 0, &mut Nothing::default());
        ftl.set_reserve(4);
        assert!((0..10 * LOGICAL).any(|number| write(&mut ftl, number).is_err()), "nothing is refused");
        assert_eq!(ftl.erased_superblocks(), 4);
        // A smaller one is out of reach: collection keeps more.
        ftl.set_reserve(2);
        for number in 0..LOGICAL {
            write(&mut ftl, number).expect("there is spare room");
            assert!(ftl.erased_superblocks() >= 4, "{} are erased", ftl.erased_superblocks());
        }
    }

    #[test]
    fn reads_are_counted_until_their_superblock_is_erased() {
        let mut ftl = small(FtlConfig { ties: VictimTies::OldestFirst, ..FtlConfig::default() });
        ftl.age_write(3, 0, &mut Nothing::default()).expect("it is new");
        let slot = ftl.lookup(3);
        let (superblock, _) = ftl.layout().split(slot);
        ftl.count_read(slot);
        assert_eq!(ftl.reads_of(superblock), 1);
        ftl.count_reads(slot, u32::MAX);
        assert_eq!(ftl.reads_of(superblock), u32::MAX, "they are counted no further than that");
        while ftl.erase_counts().nth(superblock as usize) == Some(0) {
            for logical in 0..LOGICAL {
                ftl.age_write(logical, 0, &mut Nothing::default()).expect("nothing is retired");
            }
        }
        assert_eq!(ftl.reads_of(superblock), 0);
    }
}
