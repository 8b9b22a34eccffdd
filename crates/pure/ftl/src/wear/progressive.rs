//! Progressive wear leveling.
//!
//! 1. A new drive's threshold is `percent` of the endurance E; it grows with the mean erases a, and meets them at E:
//!    threshold = a (E - initial) / E + initial.
//! 2. After garbage collection has erased superblock b: if b has more erases than the threshold, the data of the least
//!    erased superblock in use goes to b, if that holds any.
//!
//! Source: [P] and [C] wear-leveling §3.5. Which superblock of several, and which erases the mean is of and how it is rounded, says
//! [`crate::ProgressiveReading`].

use super::exchange::Exchange;
use super::heap::{Top, WearHeap};
use crate::blocks::Blocks;

pub(crate) struct Progressive {
    endurance: u32,
    percent: u32,
    /// All superblocks by erases, where a heap names the youngest.
    pub(super) least: Option<WearHeap>,
    /// Superblocks that the mean does not divide by, where a heap names the youngest.
    spared: u32,
}

impl Progressive {
    /// The rule for a drive whose youngest superblock a heap names if `by_heap` has it, with the superblocks that garbage collection keeps
    /// erased.
    pub(crate) fn new(percent: u32, endurance: u32, by_heap: Option<(&Blocks, u32)>) -> Self {
        let least = by_heap.map(|(blocks, _)| WearHeap::of(Top::Least, blocks));
        Self { endurance, percent, least, spared: by_heap.map_or(0, |(_, kept)| kept) }
    }

    /// Erases beyond which a superblock is leveled.
    fn threshold(&self, blocks: &Blocks) -> f64 {
        let endurance = f64::from(self.endurance);
        let initial = f64::from(self.percent) / 100.0 * endurance;
        let superblocks = blocks.all.len() as f64;
        if self.least.is_none() {
            return blocks.erases_total as f64 / superblocks * (endurance - initial) / endurance + initial;
        }
        // Each step is in whole erases.
        let initial = initial.floor();
        let mean = (blocks.erases_by_reclaim() as f64 / (superblocks - f64::from(self.spared)).max(1.0)).floor();
        (mean * (endurance - initial) / endurance).floor() + initial
    }

    pub(crate) fn choose(&self, erased: u32, blocks: &Blocks) -> Option<Exchange> {
        if f64::from(blocks.erases(erased)) <= self.threshold(blocks) {
            return None;
        }
        let coldest = match &self.least {
            Some(least) => least.best_in_use(blocks)?.number,
            None => {
                return Some(Exchange { source: blocks.least_erased_in_use()?, destination: Some(erased), then: None });
            }
        };
        let holds_data = blocks.all[coldest as usize].valid > 0;
        holds_data.then_some(Exchange { source: coldest, destination: Some(erased), then: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{SLOTS, SUPERBLOCKS, used};

    #[test]
    fn the_threshold_grows_with_the_mean_and_the_youngest_must_hold_data() {
        for by_heap in [false, true] {
            let mut ftl = used(12 * SLOTS, FtlConfig::default());
            let blocks = &mut ftl.blocks;
            blocks.order_in_use(!by_heap);
            (0..SUPERBLOCKS).for_each(|number| blocks.all[number as usize].valid = 1);
            // A mean of 20 erases; where a heap names the superblock, without those by leveling, of all but two superblocks, and rounded.
            let policy = Progressive::new(50, 100, by_heap.then_some((&*blocks, 2)));
            blocks.erases_by_leveling = 32;
            blocks.erases_total =
                if by_heap { 20 * u64::from(SUPERBLOCKS - 2) + 32 + 13 } else { 20 * u64::from(SUPERBLOCKS) };
            let chosen = |blocks: &mut Blocks, erases| {
                blocks.all[13].erases = erases;
                policy.choose(13, blocks).map(|exchange| (exchange.destination, exchange.then))
            };
            assert_eq!(chosen(blocks, 60), None, "20 (100 - 50) / 100 + 50");
            assert_eq!(chosen(blocks, 61), Some((Some(13), None)));
            (0..SUPERBLOCKS).for_each(|number| blocks.all[number as usize].valid = 0);
            assert_eq!(chosen(blocks, 61).is_some(), !by_heap);
        }
    }
}
