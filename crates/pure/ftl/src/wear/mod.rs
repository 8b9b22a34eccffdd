//! Wear leveling: which superblock's data goes where, and the sequence of the moves.
//!
//! A policy looks at the drive after an erase and may ask for a move: the data of a closed superblock goes to an
//! erased one, and then, for a swap, the data of a second superblock to the first. Moves are carried out by garbage
//! collection like any victim, only that their data goes to the superblock named. It is opened when the move is
//! planned, so that nothing else takes it; and it leaves the list of erased ones in the moment in which another has
//! entered it, so that no room promised to the host is taken.

mod dual_pool;
mod exchange;
mod heap;
mod hot_cold_swap;
mod old_block_protection;
mod policy;
mod progressive;
mod uneven_factor;

use crate::blocks::{State, Worn};
use crate::config::{ProgressiveReading, WearLeveling};
use crate::ftl::{DieRow, Ftl, Stream};
use crate::progress::{Leveling, Step};
use dual_pool::DualPool;
use exchange::Exchange;
use hot_cold_swap::HotColdSwap;
use old_block_protection::OldBlockProtection;
use progressive::Progressive;
use uneven_factor::UnevenFactor;

pub use old_block_protection::Reentries;
pub(crate) use policy::Wear;

impl Ftl {
    /// Changes the wear leveling, which begins with the erases there are; a move under way is finished.
    /// Without an endurance, [`WearLeveling::Progressive`] does nothing.
    pub fn set_wear_leveling(&mut self, policy: WearLeveling) {
        let for_early = self.kept_erased - self.config.kept_erased();
        self.config.wear_leveling = policy;
        self.kept_erased = self.config.kept_erased() + for_early;
        let by_list = match policy {
            WearLeveling::HotColdSwap { .. } | WearLeveling::UnevenFactor { .. } => true,
            WearLeveling::Progressive { .. } => self.config.progressive == ProgressiveReading::Plain,
            WearLeveling::None | WearLeveling::OldBlockProtection { .. } | WearLeveling::DualPool { .. } => false,
        };
        self.blocks.order_in_use(by_list);
        let blocks = &self.blocks;
        let wear = match policy {
            WearLeveling::None => None,
            WearLeveling::HotColdSwap { threshold } => Some(Wear::HotColdSwap(HotColdSwap::new(threshold))),
            WearLeveling::OldBlockProtection { threshold, protection } => {
                Some(Wear::OldBlockProtection(OldBlockProtection::new(threshold, protection, blocks)))
            }
            WearLeveling::DualPool { threshold } => {
                let (seed, host_slots) = (self.config.seed, self.counters.host_slots);
                Some(Wear::DualPool(Box::new(DualPool::new(threshold, seed, blocks, host_slots))))
            }
            WearLeveling::Progressive { percent } => {
                let kept = self.config.reclaim_below;
                let by_heap = (self.config.progressive == ProgressiveReading::Heap).then_some((blocks, kept));
                let of = |endurance| Wear::Progressive(Progressive::new(percent, endurance, by_heap));
                self.config.endurance.map(of)
            }
            WearLeveling::UnevenFactor { percent } => Some(Wear::UnevenFactor(UnevenFactor::new(percent, blocks))),
        };
        self.wear = wear.map(Box::new);
    }

    /// How often old block protection leveled the most erased superblock again, the lowest numbered of several; `None`
    /// under another policy.
    pub fn oldest_reentries(&self) -> Option<Reentries> {
        let Some(Wear::OldBlockProtection(policy)) = self.wear.as_deref() else { return None };
        let oldest = (0..self.layout.superblocks).rev().max_by_key(|&number| self.blocks.erases(number))?;
        Some(policy.reentries(oldest))
    }

    /// Whether a move waits for garbage collection to begin with it.
    #[inline]
    pub(crate) fn leveling_planned(&self) -> bool {
        self.leveling.is_some_and(|leveling| leveling.step == Step::Planned)
    }

    /// Plans to move the data of `source` to `destination`, which is erased and was taken from the list of erased
    /// superblocks, and then that of `then` to `source`.
    fn plan(&mut self, source: u32, destination: u32, then: Option<u32>) {
        let frontier = self.open_superblock(destination, false);
        self.frontiers[Stream::Leveled as usize] = Some(frontier);
        self.leveling = Some(Leveling { source, then, step: Step::Planned });
    }

    /// The superblock that is to be emptied for a planned move. A move whose source has meanwhile become a victim, or
    /// is not on flash, is given up.
    pub(crate) fn start_leveling(&mut self) -> Option<u32> {
        let leveling = self.leveling.as_mut().filter(|leveling| leveling.step == Step::Planned)?;
        let source = &self.blocks.all[leveling.source as usize];
        if source.state == State::Closed && source.unprogrammed.is_none() {
            leveling.step = Step::Emptying;
            self.counters.leveled_superblocks += 1;
            return Some(leveling.source);
        }
        self.leveling = None;
        self.close_leveled();
        None
    }

    /// Ends the frontier of a move: pads its last die row, which is returned, and leaves the rest unwritten.
    pub(crate) fn close_leveled(&mut self) -> Option<DieRow> {
        if let Some(leveling) = &mut self.leveling {
            leveling.step = Step::Erasing;
        }
        let lane = Stream::Leveled as usize;
        let opened = self.frontiers[lane]?;
        if opened.next == 0 {
            self.frontiers[lane] = None;
            self.blocks.all[opened.superblock as usize].unprogrammed = None;
            self.blocks.make_ready(opened.superblock);
            return None;
        }
        let row = self.pad(Stream::Leveled, self.layout.slots_per_die_row);
        // The last row may have filled the superblock.
        let Some(frontier) = self.frontiers[lane].take() else { return row };
        for index in frontier.next..frontier.limit {
            self.blocks.pad(self.layout.slot(frontier.superblock, index));
        }
        let written = frontier.next / self.layout.slots_per_die_row;
        let superblock = &mut self.blocks.all[frontier.superblock as usize];
        superblock.unprogrammed = superblock.unprogrammed.take().and_then(|rows| rows.cut(written));
        self.blocks.close(frontier.superblock, self.birthday());
        row
    }

    /// Called after every erase, when the superblock is ready again or retired.
    #[inline]
    pub(crate) fn level_after_erase(&mut self, superblock: u32) {
        if self.wear.is_some() || self.leveling.is_some() {
            self.go_on_leveling(superblock);
        }
    }

    fn go_on_leveling(&mut self, superblock: u32) {
        if let Some(wear) = self.wear.as_deref_mut() {
            wear.note_erase(superblock, &self.blocks);
        }
        let mut by_reclaim = true;
        if let Some(leveling) = self.leveling {
            if leveling.step != Step::Erasing || leveling.source != superblock {
                return;
            }
            self.leveling = None;
            self.blocks.erases_by_leveling += 1;
            by_reclaim = false;
            // A retired superblock takes nothing.
            if let Some(next) = leveling.then
                && self.blocks.take_erased(superblock)
            {
                return self.plan(next, superblock, None);
            }
        }
        let ready = self.blocks.all[superblock as usize].state == State::Erased;
        let Some(exchange) = self.choose_exchange(superblock, by_reclaim, ready) else { return };
        let destination = match exchange.destination {
            Some(destination) => self.blocks.take_erased(destination).then_some(destination),
            // One has just come in.
            None => self.blocks.erased.pop(true, self.degraded),
        };
        if let Some(destination) = destination {
            self.plan(exchange.source, destination, exchange.then);
        }
    }

    /// Move that the policy asks for after the erase of `superblock` by garbage collection, or by a move; `ready`
    /// unless it is retired.
    fn choose_exchange(&mut self, superblock: u32, by_reclaim: bool, ready: bool) -> Option<Exchange> {
        let blocks = &self.blocks;
        match self.wear.as_deref_mut()? {
            _ if !ready => None,
            Wear::DualPool(pools) => pools.choose(blocks, self.counters.host_slots),
            _ if !by_reclaim => None,
            Wear::HotColdSwap(policy) => policy.choose(blocks),
            Wear::OldBlockProtection(policy) => policy.choose(superblock, blocks),
            Wear::Progressive(_) if !self.config.levels(blocks.erases(superblock)) => None,
            Wear::Progressive(policy) => policy.choose(superblock, blocks),
            Wear::UnevenFactor(policy) => policy.choose(blocks),
        }
    }

    /// Checks the invariants of wear leveling. For tests.
    pub(crate) fn check_wear(&self) {
        if let Some(wear) = self.wear.as_deref() {
            wear.check(&self.blocks);
        }
        if let Some(in_use) = &self.blocks.in_use {
            let closed = self.blocks.all.iter().filter(|superblock| superblock.state == State::Closed).count();
            assert_eq!(in_use.len(), closed, "the index by erases and the states differ");
            let current = |&(erases, _, number): &Worn| self.blocks.all[number as usize].erases == erases;
            assert!(in_use.iter().all(current), "the index by erases is out of date");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{LOGICAL, Nothing, SLOTS, small, used};

    /// Superblocks that progressive wear leveling moves while superblocks of these erases take part.
    fn leveled(erases: Option<(u32, u32)>) -> u64 {
        let wear_leveling = WearLeveling::Progressive { percent: 2 };
        let config = FtlConfig { wear_leveling, leveled_erases: erases, endurance: Some(100), ..FtlConfig::default() };
        let mut ftl = small(config);
        for number in 0..LOGICAL * 20 {
            // Most slots are written once, and a tenth of them again and again.
            let logical = if number < LOGICAL { number } else { number % (LOGICAL / 10) };
            ftl.age_write(logical, 0, &mut Nothing::default()).expect("nothing is retired");
        }
        ftl.check();
        ftl.counters().leveled_superblocks
    }

    #[test]
    fn a_move_is_given_up_where_its_source_is_not_on_flash_or_is_a_victim() {
        let plan = |ftl: &mut Ftl| {
            ftl.frontiers[Stream::Host as usize] = None;
            let destination = ftl.blocks.erased.pop(true, false).expect("some are erased");
            ftl.plan(0, destination, Some(1));
            assert!(ftl.leveling_planned());
            destination
        };
        let mut ftl = used(2 * SLOTS, FtlConfig::default());
        plan(&mut ftl);
        assert_eq!((ftl.start_leveling(), ftl.counters().leveled_superblocks), (Some(0), 1));
        for is_victim in [false, true] {
            let mut ftl = used(2 * SLOTS, FtlConfig::default());
            let destination = plan(&mut ftl);
            if is_victim {
                ftl.condemn(0);
            } else {
                ftl.blocks.all[0].unprogrammed = ftl.blocks.all[destination as usize].unprogrammed.take();
            }
            assert_eq!((ftl.start_leveling(), ftl.leveling.is_some()), (None, false));
            assert_eq!((ftl.counters().leveled_superblocks, ftl.erased_superblocks()), (0, 14));
        }
    }

    #[test]
    fn a_superblock_that_retires_leaves_the_policies_and_asks_for_no_move() {
        let swap = WearLeveling::HotColdSwap { threshold: 0 };
        for (retires, is_planned) in [(false, true), (true, false)] {
            let mut ftl = used(3 * SLOTS, FtlConfig::default());
            ftl.blocks.all[1].erases = 5;
            ftl.blocks.erases_total = 5;
            ftl.set_wear_leveling(swap);
            if retires {
                ftl.retire_early(12);
            }
            ftl.level_after_erase(12);
            assert_eq!(ftl.leveling_planned(), is_planned);
        }
        let protection = WearLeveling::OldBlockProtection { threshold: 1, protection: 1 };
        for policy in [protection, WearLeveling::DualPool { threshold: 1 }] {
            let mut ftl = used(3 * SLOTS, FtlConfig { wear_leveling: policy, ..FtlConfig::default() });
            ftl.retire_early(12);
            ftl.check();
        }
    }

    #[test]
    fn reentries_are_those_of_the_most_erased_superblock() {
        let wear_leveling = WearLeveling::OldBlockProtection { threshold: 0, protection: 0 };
        let mut ftl = used(12 * SLOTS, FtlConfig { wear_leveling, ..FtlConfig::default() });
        assert_eq!(ftl.oldest_reentries(), Some(Reentries::default()));
        (ftl.blocks.all[13].erases, ftl.blocks.all[14].erases) = (9, 8);
        for total in [20, 40, 60] {
            ftl.blocks.erases_total = total;
            let Some(Wear::OldBlockProtection(policy)) = ftl.wear.as_deref_mut() else { panic!("it is another") };
            assert!(policy.choose(13, &ftl.blocks).is_some());
        }
        assert_eq!(ftl.oldest_reentries(), Some(Reentries { all: 2, soon: 0 }));
        ftl.set_wear_leveling(WearLeveling::None);
        assert_eq!(ftl.oldest_reentries(), None);
    }

    #[test]
    fn erases_that_stay_as_they_are_change_nothing_that_is_remembered() {
        let policies = [
            WearLeveling::HotColdSwap { threshold: 2 },
            WearLeveling::OldBlockProtection { threshold: 2, protection: 3 },
            WearLeveling::DualPool { threshold: 2 },
            WearLeveling::Progressive { percent: 2 },
            WearLeveling::UnevenFactor { percent: 90 },
        ];
        for wear_leveling in policies {
            let config = FtlConfig { wear_leveling, endurance: Some(100), ..FtlConfig::default() };
            let erases = |projects: bool| {
                let mut ftl = small(config);
                for number in 0..LOGICAL * 20 {
                    // Most slots are written once, and a tenth of them again and again.
                    let logical = if number < LOGICAL { number } else { number % (LOGICAL / 10) };
                    ftl.age_write(logical, 0, &mut Nothing::default()).expect("nothing is retired");
                    if projects && number % 100 == 0 {
                        let counts: Vec<u32> = ftl.erase_counts().collect();
                        ftl.project_erase_counts(&counts);
                        ftl.check();
                    }
                }
                (ftl.erase_counts().collect::<Vec<_>>(), *ftl.counters())
            };
            let (kept, projected) = (erases(false), erases(true));
            assert!(kept.1.leveled_superblocks > 0 || matches!(wear_leveling, WearLeveling::UnevenFactor { .. }));
            assert_eq!(projected, kept, "{wear_leveling:?}");
        }
    }

    #[test]
    fn the_erase_of_another_superblock_ends_no_move() {
        let mut ftl = used(2 * SLOTS, FtlConfig::default());
        for (step, erased, goes_on) in
            [(Step::Erasing, 5, true), (Step::Emptying, 0, true), (Step::Planned, 0, true), (Step::Erasing, 0, false)]
        {
            ftl.leveling = Some(Leveling { source: 0, then: None, step });
            ftl.level_after_erase(erased);
            assert_eq!(ftl.leveling.is_some(), goes_on, "{step:?}, {erased}");
        }
        assert_eq!(ftl.blocks.erases_by_leveling, 1);
    }

    #[test]
    fn progressive_wear_leveling_keeps_to_its_erases() {
        let all = leveled(None);
        assert!(all > 2, "{all} superblocks are leveled");
        assert_eq!(leveled(Some((0, u32::MAX))), all);
        assert_eq!(leveled(Some((1000, u32::MAX))), 0, "no superblock is erased so often");
        let some = leveled(Some((8, 10)));
        assert!(some > 0 && some < all, "{some} of {all} superblocks are leveled");
    }
}
