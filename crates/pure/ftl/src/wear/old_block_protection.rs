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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{SLOTS, used};

    #[test]
    fn a_superblock_far_ahead_is_leveled_again_once_its_protection_is_over() {
        let mut blocks = used(12 * SLOTS, FtlConfig::default()).blocks;
        blocks.all[13].erases = 5;
        let mut policy = OldBlockProtection::new(4, 10, &blocks);
        let mut leveled = |blocks: &mut Blocks, erased: u32, total: u64| {
            blocks.erases_total = total;
            let exchange = policy.choose(erased, blocks);
            if let Some(exchange) = &exchange {
                assert_eq!((exchange.destination, exchange.then), (Some(erased), None));
                assert!(blocks.is_movable(exchange.source));
            }
            (exchange.is_some(), policy.reentries(erased))
        };
        let times = |all, soon| Reentries { all, soon };
        // Erases of the drive, whether the superblock is leveled then, and how often it was again.
        for (total, expected) in [
            (10, (false, times(0, 0))),
            (11, (true, times(0, 0))),
            (21, (false, times(0, 0))),
            (22, (true, times(1, 1))),
            (42, (true, times(2, 2))),
            (63, (true, times(3, 2))),
        ] {
            assert_eq!(leveled(&mut blocks, 13, total), expected, "{total}");
        }
        // Four erases ahead are not more than the threshold.
        blocks.all[14].erases = 4;
        assert_eq!(leveled(&mut blocks, 14, 1000), (false, times(0, 0)));
    }
}
