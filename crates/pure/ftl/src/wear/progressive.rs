//! Progressive wear leveling.
//!
//! 1. A new drive's threshold is `percent` of the endurance E; it grows with the mean erases a, and meets them at E:
//!    threshold = a (E - initial) / E + initial.
//! 2. After garbage collection has erased superblock b: if b has more erases than the threshold, the data of the least
//!    erased superblock in use goes to b, among several that of the one closed last.
//!
//! Source: [P] and [C] wear-leveling §3.5.

use super::exchange::Exchange;
use crate::blocks::Blocks;

pub(crate) struct Progressive {
    endurance: f64,
    initial: f64,
}

impl Progressive {
    pub(crate) fn new(percent: u32, endurance: u32) -> Self {
        let endurance = f64::from(endurance);
        Self { endurance, initial: f64::from(percent) / 100.0 * endurance }
    }

    pub(crate) fn choose(&self, erased: u32, blocks: &Blocks) -> Option<Exchange> {
        let mean = blocks.erases_total as f64 / blocks.all.len() as f64;
        let threshold = mean * (self.endurance - self.initial) / self.endurance + self.initial;
        if f64::from(blocks.erases(erased)) <= threshold {
            return None;
        }
        Some(Exchange { source: blocks.least_erased_in_use()?, destination: Some(erased), then: None })
    }
}
