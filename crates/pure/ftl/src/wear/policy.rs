//! The policies of wear leveling as one value.

use super::dual_pool::DualPool;
use super::hot_cold_swap::HotColdSwap;
use super::old_block_protection::OldBlockProtection;
use super::progressive::Progressive;
use super::uneven_factor::UnevenFactor;
use crate::blocks::{Blocks, State};

/// A policy and its memory.
pub(crate) enum Wear {
    HotColdSwap(HotColdSwap),
    OldBlockProtection(OldBlockProtection),
    DualPool(Box<DualPool>),
    Progressive(Progressive),
    UnevenFactor(UnevenFactor),
}

impl Wear {
    /// Counts an erase; one that is retired is in no heap any more.
    pub(super) fn note_erase(&mut self, number: u32, blocks: &Blocks) {
        match self {
            Self::UnevenFactor(policy) => policy.note_erase(number, blocks),
            Self::OldBlockProtection(policy) => policy.least.raise(number),
            Self::Progressive(Progressive { least: Some(least), .. }) => least.raise(number),
            Self::DualPool(pools) => pools.note_erase(number),
            Self::Progressive(_) | Self::HotColdSwap(_) => {}
        }
    }

    /// Takes over erases that were set, and keeps everything else.
    pub(crate) fn project(&mut self, blocks: &Blocks) {
        match self {
            Self::UnevenFactor(policy) => *policy = policy.begun(blocks),
            Self::OldBlockProtection(policy) => policy.least.refill(|number| blocks.erases(number)),
            Self::Progressive(Progressive { least: Some(least), .. }) => least.refill(|number| blocks.erases(number)),
            Self::DualPool(pools) => pools.project(blocks),
            Self::Progressive(_) | Self::HotColdSwap(_) => {}
        }
    }

    /// A superblock is retired.
    pub(crate) fn forget(&mut self, number: u32) {
        match self {
            Self::OldBlockProtection(policy) => policy.least.remove(number),
            Self::Progressive(Progressive { least: Some(least), .. }) => least.remove(number),
            Self::DualPool(pools) => pools.leave(number),
            Self::Progressive(_) | Self::HotColdSwap(_) | Self::UnevenFactor(_) => {}
        }
    }

    /// Checks what the policy keeps against the drive. For tests.
    pub(super) fn check(&self, blocks: &Blocks) {
        let least = match self {
            Self::OldBlockProtection(policy) => &policy.least,
            Self::Progressive(Progressive { least: Some(least), .. }) => least,
            Self::DualPool(pools) => return pools.check(blocks),
            Self::UnevenFactor(policy) => return policy.check(blocks),
            Self::Progressive(_) | Self::HotColdSwap(_) => return,
        };
        let entries = least.check();
        let in_use = blocks.all.iter().filter(|superblock| superblock.state != State::Retired).count();
        assert_eq!(entries.len(), in_use, "a superblock is missing among those by erases");
        assert!(entries.iter().all(|entry| entry.erases == blocks.erases(entry.number)), "erases are out of date");
    }
}
