//! Progressive wear leveling.
//!
//! 1. A new drive's threshold is `percent` of the endurance E; it grows with the mean erases a, and meets them at E:
//!    threshold = a (E - initial) / E + initial.
//! 2. After garbage collection has erased superblock b: if b has more erases than the threshold, the data of the least
//!    erased superblock in use goes to b, if that holds any; among several it is the one that the heap names.
//!
//! Source: [P] and [C] wear-leveling §3.5. [C]: the mean is that of erases by garbage collection; those by leveling wear
//! superblocks out, but do not count towards it.

use super::exchange::Exchange;
use super::heap::{Top, WearHeap};
use crate::blocks::Blocks;

pub(crate) struct Progressive {
    endurance: f64,
    initial: f64,
    /// All superblocks by erases.
    pub(super) least: WearHeap,
}

impl Progressive {
    pub(crate) fn new(percent: u32, endurance: u32, blocks: &Blocks) -> Self {
        let endurance = f64::from(endurance);
        let initial = f64::from(percent) / 100.0 * endurance;
        Self { endurance, initial, least: WearHeap::of(Top::Least, blocks) }
    }

    pub(crate) fn choose(&self, erased: u32, blocks: &Blocks) -> Option<Exchange> {
        let mean = blocks.erases_by_reclaim() as f64 / blocks.all.len() as f64;
        let threshold = mean * (self.endurance - self.initial) / self.endurance + self.initial;
        if f64::from(blocks.erases(erased)) <= threshold {
            return None;
        }
        let coldest = self.least.best_in_use(blocks)?.number;
        let holds_data = blocks.all[coldest as usize].valid > 0;
        holds_data.then_some(Exchange { source: coldest, destination: Some(erased), then: None })
    }
}
