//! Dual pool.
//!
//! Superblocks are in a hot or a cold pool, at random at first. Each has its erases and its effective erases, those
//! since a swap changed its pool, or all of them before the first. After each host write:
//! 1. Dirty swap: if the most erased hot one is more than `threshold` ahead of the least erased cold one, the data of
//!    the hot one goes to an erased superblock and that of the cold one to the hot one; they change pools.
//! 2. If the cold one with most effective erases is more than `threshold` ahead of the hot one of fewest, it turns hot.
//! 3. If the hot pool spans more than twice the threshold, its least erased one turns cold.
//!
//! Erases alone change the inputs of these rules. So they are applied after an erase, as often as there were host
//! writes since the one before, and less often if they change nothing.
//!
//! Source: [P] and [C] wear-leveling §3.4, which follows [X] Chang, SAC 2007. [C]: each pool is in heaps, which name the superblock of
//! several, and a swap takes the best in use near their tops. An erase by a swap counts as an erase, not as an effective one; erases before
//! leveling begins, by preconditioning, count as both.

use super::exchange::Exchange;
use super::heap::{Top, WearHeap, listed};
use crate::blocks::{Blocks, State};
use flashyard_kernel::Rng;

pub(crate) struct DualPool {
    threshold: u32,
    hot: Hot,
    cold: Cold,
    is_hot: Vec<bool>,
    effective: Vec<u32>,
    /// Superblocks whose erase by a swap is counted already and still to come.
    owed: Vec<bool>,
    /// Slots the host had written when the rules were last applied.
    host_slots: u64,
    /// How often they may still be applied.
    turns: u64,
}

/// The hot pool: by erases from either end, and by effective erases.
struct Hot {
    most: WearHeap,
    least: WearHeap,
    least_effective: WearHeap,
}

/// The cold pool: by erases and by effective erases.
struct Cold {
    least: WearHeap,
    most_effective: WearHeap,
}

impl DualPool {
    pub(crate) fn new(threshold: u32, seed: u64, blocks: &Blocks, host_slots: u64) -> Self {
        let mut rng = Rng::named(seed, "ftl.dual_pool");
        let superblocks = blocks.all.len();
        let heap = |top| WearHeap::new(top, superblocks);
        let mut pools = Self {
            threshold,
            hot: Hot { most: heap(Top::Most), least: heap(Top::Least), least_effective: heap(Top::Least) },
            cold: Cold { least: heap(Top::Least), most_effective: heap(Top::Most) },
            is_hot: blocks.all.iter().map(|_| rng.below(2) == 1).collect(),
            effective: (0..superblocks as u32).map(|number| blocks.erases(number)).collect(),
            owed: vec![false; superblocks],
            host_slots,
            turns: 0,
        };
        listed(blocks).into_iter().for_each(|number| pools.enter(number, blocks.erases(number)));
        pools
    }

    /// Counts an erase.
    pub(crate) fn note_erase(&mut self, number: u32) {
        if std::mem::take(&mut self.owed[number as usize]) {
            return;
        }
        self.effective[number as usize] += 1;
        if self.is_hot[number as usize] {
            let Hot { most, least, least_effective } = &mut self.hot;
            [most, least, least_effective].into_iter().for_each(|heap| heap.raise(number));
        } else {
            let Cold { least, most_effective } = &mut self.cold;
            [least, most_effective].into_iter().for_each(|heap| heap.raise(number));
        }
    }

    /// Takes over erases that were set. Pools and effective erases stay.
    pub(super) fn project(&mut self, blocks: &Blocks) {
        let Self { hot: Hot { most, least, .. }, cold: Cold { least: coldest, .. }, owed, .. } = self;
        for heap in [most, least, coldest] {
            heap.refill(|number| blocks.erases(number) + u32::from(owed[number as usize]));
        }
    }

    pub(crate) fn choose(&mut self, blocks: &Blocks, host_slots: u64) -> Option<Exchange> {
        self.turns += host_slots - self.host_slots;
        // Longer than it takes every superblock to change pools, nothing new can come of it.
        self.turns = self.turns.min(blocks.all.len() as u64);
        self.host_slots = host_slots;
        while self.turns > 0 {
            self.turns -= 1;
            let exchange = self.dirty_swap(blocks);
            let (warmed, cooled) = (self.resize_cold(blocks), self.resize_hot(blocks));
            if exchange.is_some() {
                return exchange;
            }
            if warmed == cooled {
                self.turns = 0;
            }
        }
        None
    }

    fn dirty_swap(&mut self, blocks: &Blocks) -> Option<Exchange> {
        let hot = self.hot.most.best_in_use(blocks)?;
        let cold = self.cold.least.best_in_use(blocks)?;
        if hot.erases.saturating_sub(cold.erases) <= self.threshold {
            return None;
        }
        for (number, is_hot) in [(hot.number, false), (cold.number, true)] {
            self.leave(number);
            self.effective[number as usize] = 0;
            self.is_hot[number as usize] = is_hot;
            self.owed[number as usize] = true;
            self.enter(number, blocks.erases(number) + 1);
        }
        Some(Exchange { source: hot.number, destination: None, then: Some(cold.number) })
    }

    /// Rule 2; returns the superblock that turned hot.
    fn resize_cold(&mut self, blocks: &Blocks) -> Option<u32> {
        let (most, least) = (self.cold.most_effective.first()?, self.hot.least_effective.first()?);
        let apart = most.erases.saturating_sub(least.erases) > self.threshold;
        apart.then(|| self.change_pool(most.number, blocks))
    }

    /// Rule 3; returns the superblock that turned cold.
    fn resize_hot(&mut self, blocks: &Blocks) -> Option<u32> {
        let (most, least) = (self.hot.most.first()?, self.hot.least.first()?);
        let apart = most.erases.saturating_sub(least.erases) > self.threshold.saturating_mul(2);
        apart.then(|| self.change_pool(least.number, blocks))
    }

    fn change_pool(&mut self, number: u32, blocks: &Blocks) -> u32 {
        self.leave(number);
        self.is_hot[number as usize] = !self.is_hot[number as usize];
        self.enter(number, blocks.erases(number) + u32::from(self.owed[number as usize]));
        number
    }

    /// Takes a superblock out of its pool, as one that is retired.
    pub(super) fn leave(&mut self, number: u32) {
        let (Hot { most, least, least_effective }, Cold { least: coldest, most_effective }) =
            (&mut self.hot, &mut self.cold);
        [most, least, least_effective, coldest, most_effective].into_iter().for_each(|heap| heap.remove(number));
    }

    fn enter(&mut self, number: u32, erases: u32) {
        let effective = self.effective[number as usize];
        if self.is_hot[number as usize] {
            self.hot.most.insert(number, erases);
            self.hot.least.insert(number, erases);
            self.hot.least_effective.insert(number, effective);
        } else {
            self.cold.least.insert(number, erases);
            self.cold.most_effective.insert(number, effective);
        }
    }

    /// Checks the heaps against the counts. For tests.
    pub(super) fn check(&self, blocks: &Blocks) {
        let by_erases = [&self.hot.most, &self.hot.least, &self.cold.least];
        let by_effective = [&self.hot.least_effective, &self.cold.most_effective];
        for entry in by_erases.into_iter().flat_map(WearHeap::check) {
            let number = entry.number as usize;
            assert_eq!(entry.erases, blocks.erases(entry.number) + u32::from(self.owed[number]), "superblock {number}");
        }
        for entry in by_effective.into_iter().flat_map(WearHeap::check) {
            assert_eq!(entry.erases, self.effective[entry.number as usize], "superblock {}", entry.number);
        }
        let in_use = blocks.all.iter().filter(|superblock| superblock.state != State::Retired).count();
        assert_eq!(
            by_effective.map(|heap| heap.check().len()).iter().sum::<usize>(),
            in_use,
            "a superblock has no pool"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{SLOTS, used};

    #[test]
    fn the_rules_are_applied_once_for_each_slot_that_the_host_wrote() {
        let mut blocks = used(9 * SLOTS, FtlConfig::default()).blocks;
        let mut pools = DualPool::new(1, 1, &blocks, 5);
        // Two cold ones are erased often, so that the second rule finds one after the other.
        let often: Vec<u32> = (9..16).filter(|&number| !pools.is_hot[number as usize]).take(2).collect();
        assert_eq!(often.len(), 2, "both are erased now, so that no swap is due");
        for &number in &often {
            for _ in 0..5 {
                blocks.all[number as usize].erases += 1;
                pools.note_erase(number);
            }
        }
        for (host_slots, warmed) in [(5, 0), (6, 1), (7, 2)] {
            assert!(pools.choose(&blocks, host_slots).is_none());
            assert_eq!(often.iter().filter(|&&number| pools.is_hot[number as usize]).count(), warmed);
            pools.check(&blocks);
        }
    }

    #[test]
    fn pools_change_beyond_the_threshold_and_beyond_twice_that() {
        let mut blocks = used(9 * SLOTS, FtlConfig::default()).blocks;
        let mut pools = DualPool::new(1, 1, &blocks, 0);
        let one =
            |pools: &DualPool, is_hot| pools.is_hot.iter().position(|&hot| hot == is_hot).expect("some are") as u32;
        let (cold, hot) = (one(&pools, false), one(&pools, true));
        let mut erase = |pools: &mut DualPool, number: u32| {
            blocks.all[number as usize].erases += 1;
            pools.note_erase(number);
            (pools.resize_cold(&blocks), pools.resize_hot(&blocks))
        };
        assert_eq!([0; 2].map(|_| erase(&mut pools, cold)), [(None, None), (Some(cold), None)]);
        assert_eq!([0; 2].map(|_| erase(&mut pools, hot)), [(None, None); 2]);
        let (_, cooled) = erase(&mut pools, hot);
        assert!(cooled.is_some_and(|cooled| cooled != hot && !pools.is_hot[cooled as usize]));
        // An erase that a swap has counted stays counted in the other pool.
        pools.leave(hot);
        pools.owed[hot as usize] = true;
        pools.enter(hot, blocks.erases(hot) + 1);
        pools.change_pool(hot, &blocks);
        pools.check(&blocks);
    }
}
