//! Old block protection.
//!
//! After garbage collection has erased superblock b:
//! 1. c is the least erased superblock in use, among several the one that the heap names.
//! 2. If b is more than `threshold` erases ahead of c, and was not leveled during the last `protection` erases of
//!    the drive by garbage collection, the data of c goes to b and c is erased: b rests under data that seldom changes.
//!
//! Source: [P] wear-leveling §3.3, with the trigger of [C]: erases by leveling do not count towards the protection.

use super::exchange::Exchange;
use super::heap::{Top, WearHeap};
use crate::blocks::Blocks;

pub(crate) struct OldBlockProtection {
    threshold: u32,
    protection: u64,
    /// All superblocks by erases.
    pub(super) least: WearHeap,
    /// Erases by garbage collection when each superblock was leveled last; 0 before.
    leveled_at: Vec<u64>,
    reentries: Vec<Reentries>,
}

/// How often a superblock was leveled again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reentries {
    /// In all.
    pub all: u32,
    /// Before as many erases of the drive had passed since the end of its protection as that had lasted.
    pub soon: u32,
}

impl OldBlockProtection {
    pub(crate) fn new(threshold: u32, protection: u64, blocks: &Blocks) -> Self {
        Self {
            threshold,
            protection,
            least: WearHeap::of(Top::Least, blocks),
            leveled_at: vec![0; blocks.all.len()],
            reentries: vec![Reentries::default(); blocks.all.len()],
        }
    }

    /// How often a superblock was leveled again.
    pub(crate) fn reentries(&self, superblock: u32) -> Reentries {
        self.reentries[superblock as usize]
    }

    pub(crate) fn choose(&mut self, erased: u32, blocks: &Blocks) -> Option<Exchange> {
        let coldest = self.least.best_in_use(blocks)?;
        let ahead = blocks.erases(erased).saturating_sub(coldest.erases);
        let leveled_at = &mut self.leveled_at[erased as usize];
        let rested = blocks.erases_by_reclaim().saturating_sub(*leveled_at);
        if ahead <= self.threshold || rested <= self.protection {
            return None;
        }
        if *leveled_at > 0 {
            let reentries = &mut self.reentries[erased as usize];
            reentries.all += 1;
            reentries.soon += u32::from(rested <= self.protection.saturating_mul(2));
        }
        *leveled_at = blocks.erases_by_reclaim();
        Some(Exchange { source: coldest.number, destination: Some(erased), then: None })
    }
}
