//! Dual pool.
//!
//! Superblocks are in a hot or a cold pool, at random at first. Each has its erases and its effective erases, those
//! since a swap changed its pool. After each host write:
//! 1. Dirty swap: if the most erased hot one is more than `threshold` ahead of the least erased cold one, the data of
//!    the hot one goes to an erased superblock and that of the cold one to the hot one; they change pools.
//! 2. If the cold one with most effective erases is more than `threshold` ahead of the hot one of fewest, it turns hot.
//! 3. If the hot pool spans more than twice the threshold, its least erased one turns cold.
//!
//! Erases alone change the inputs of these rules. So they are applied after an erase, as often as there were host
//! writes since the one before, and less often if they change nothing.
//!
//! Source: [P] and [C] wear-leveling §3.4, which follows [X] Chang, SAC 2007. [A]: a swap
//! waits until both superblocks are in use; without that the leveling is half as much as in the sheet's table.

use super::exchange::Exchange;
use crate::blocks::{Blocks, State};
use flashyard_kernel::Rng;
use std::collections::BTreeSet;

/// Superblocks by erases and by effective erases.
#[derive(Default)]
struct Pool {
    by_erases: BTreeSet<(u32, u32)>,
    by_effective: BTreeSet<(u32, u32)>,
}

pub(crate) struct DualPool {
    threshold: u32,
    hot: Pool,
    cold: Pool,
    is_hot: Vec<bool>,
    effective: Vec<u32>,
    /// Slots the host had written when the rules were last applied.
    host_slots: u64,
    /// How often they may still be applied.
    turns: u64,
}

impl DualPool {
    pub(crate) fn new(threshold: u32, seed: u64, blocks: &Blocks, host_slots: u64) -> Self {
        let mut rng = Rng::named(seed, "ftl.dual_pool");
        let mut pools = Self {
            threshold,
            hot: Pool::default(),
            cold: Pool::default(),
            is_hot: blocks.all.iter().map(|_| rng.below(2) == 1).collect(),
            effective: vec![0; blocks.all.len()],
            host_slots,
            turns: 0,
        };
        for (number, superblock) in (0..).zip(&blocks.all) {
            if superblock.state != State::Retired {
                pools.enter(number, superblock.erases);
            }
        }
        pools
    }

    /// Counts an erase. A retired superblock leaves its pool.
    pub(crate) fn note_erase(&mut self, number: u32, blocks: &Blocks) {
        let erases = blocks.erases(number);
        self.leave(number, erases - 1);
        self.effective[number as usize] += 1;
        if blocks.all[number as usize].state != State::Retired {
            self.enter(number, erases);
        }
    }

    pub(crate) fn choose(&mut self, blocks: &Blocks, host_slots: u64) -> Option<Exchange> {
        self.turns += host_slots - self.host_slots;
        // Longer than it takes every superblock to change pools, nothing new can come of it.
        self.turns = self.turns.min(blocks.all.len() as u64);
        self.host_slots = host_slots;
        while self.turns > 0 {
            self.turns -= 1;
            if let Some(exchange) = self.dirty_swap(blocks) {
                return Some(exchange);
            }
            let (warmed, cooled) = (self.resize_cold(blocks), self.resize_hot(blocks));
            if warmed == cooled {
                self.turns = 0;
            }
        }
        None
    }

    fn dirty_swap(&mut self, blocks: &Blocks) -> Option<Exchange> {
        let &(most, hot) = self.hot.by_erases.last()?;
        let &(least, cold) = self.cold.by_erases.first()?;
        let apart = most.saturating_sub(least) > self.threshold;
        if !apart || !blocks.is_movable(hot) || !blocks.is_movable(cold) {
            return None;
        }
        for number in [hot, cold] {
            self.leave(number, blocks.erases(number));
            self.effective[number as usize] = 0;
            self.is_hot[number as usize] = number == cold;
            self.enter(number, blocks.erases(number));
        }
        Some(Exchange { source: hot, destination: None, then: Some(cold) })
    }

    /// Rule 2; returns the superblock that turned hot.
    fn resize_cold(&mut self, blocks: &Blocks) -> Option<u32> {
        let (&(most, number), &(least, _)) = (self.cold.by_effective.last()?, self.hot.by_effective.first()?);
        (most.saturating_sub(least) > self.threshold).then(|| self.change_pool(number, blocks))
    }

    /// Rule 3; returns the superblock that turned cold.
    fn resize_hot(&mut self, blocks: &Blocks) -> Option<u32> {
        let (&(most, _), &(least, number)) = (self.hot.by_erases.last()?, self.hot.by_erases.first()?);
        (most - least > self.threshold.saturating_mul(2)).then(|| self.change_pool(number, blocks))
    }

    fn change_pool(&mut self, number: u32, blocks: &Blocks) -> u32 {
        self.leave(number, blocks.erases(number));
        self.is_hot[number as usize] = !self.is_hot[number as usize];
        self.enter(number, blocks.erases(number));
        number
    }

    fn leave(&mut self, number: u32, erases: u32) {
        let effective = self.effective[number as usize];
        let pool = self.pool_of(number);
        pool.by_erases.remove(&(erases, number));
        pool.by_effective.remove(&(effective, number));
    }

    fn enter(&mut self, number: u32, erases: u32) {
        let effective = self.effective[number as usize];
        let pool = self.pool_of(number);
        pool.by_erases.insert((erases, number));
        pool.by_effective.insert((effective, number));
    }

    fn pool_of(&mut self, number: u32) -> &mut Pool {
        if self.is_hot[number as usize] { &mut self.hot } else { &mut self.cold }
    }
}
