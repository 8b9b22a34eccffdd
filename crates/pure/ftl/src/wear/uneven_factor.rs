//! Uneven factor: one superblock is leveled after each erase for as long as the wear of the whole drive is too uneven.
//!
//! After garbage collection has erased a superblock: if the square of all erases is at most a share of its value with
//! even wear, n times the sum of their squares (Jain's index of fairness), the data of the least erased superblock in
//! use moves to where moved data goes. Unlike a threshold in erases, a share means the same at every age.
//!
//! Source: \[P\] sheet ff-ssd §4 names the "uneven factor"; \[C\] static wear leveling of the later version of the public
//! simulator SimpleSSD, whose default share is 0.7. There it goes with [`crate::Allocation::YoungestFirst`].

use super::exchange::Exchange;
use crate::blocks::Blocks;

pub(crate) struct UnevenFactor {
    percent: u32,
    /// Sum of the squares of all erases.
    squares: u64,
}

impl UnevenFactor {
    pub(crate) fn new(percent: u32, blocks: &Blocks) -> Self {
        Self { percent, squares: blocks.all.iter().map(|block| u64::from(block.erases).pow(2)).sum() }
    }

    /// The rule for erases that were set.
    pub(super) fn begun(&self, blocks: &Blocks) -> Self {
        Self::new(self.percent, blocks)
    }

    /// Counts an erase.
    pub(crate) fn note_erase(&mut self, number: u32, blocks: &Blocks) {
        self.squares += 2 * u64::from(blocks.erases(number)) - 1;
    }

    /// Checks the sum against the counts. For tests.
    pub(crate) fn check(&self, blocks: &Blocks) {
        assert_eq!(self.squares, Self::new(self.percent, blocks).squares, "the squares do not add up");
    }

    pub(crate) fn choose(&self, blocks: &Blocks) -> Option<Exchange> {
        let even = blocks.all.len() as u128 * u128::from(self.squares);
        if 100 * u128::from(blocks.erases_total).pow(2) > u128::from(self.percent) * even {
            return None;
        }
        Some(Exchange { source: blocks.least_erased_in_use()?, destination: None, then: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{SLOTS, SUPERBLOCKS, used};

    #[test]
    fn wear_is_leveled_while_its_evenness_is_at_most_a_share() {
        let mut ftl = used(12 * SLOTS, FtlConfig::default());
        let blocks = &mut ftl.blocks;
        blocks.order_in_use(true);
        // Half of them with three erases and half with one: 32^2 of 16 times 80, or 80 %.
        (0..SUPERBLOCKS).for_each(|number| blocks.all[number as usize].erases = if number % 2 == 0 { 3 } else { 1 });
        blocks.erases_total = 32;
        let chosen = |percent| {
            let exchange = UnevenFactor::new(percent, blocks).choose(blocks)?;
            assert_eq!((exchange.destination, exchange.then), (None, None));
            Some(exchange.source)
        };
        assert_eq!(chosen(79), None);
        assert_eq!(chosen(80), blocks.least_erased_in_use());
        assert!(chosen(100).is_some());
    }
}
