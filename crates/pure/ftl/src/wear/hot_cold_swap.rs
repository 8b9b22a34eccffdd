//! Hot-cold swap, the ancestor of the others.
//!
//! After garbage collection has erased a superblock: if the most and the least erased superblocks in use are more than
//! `threshold` erases apart, they exchange their data, by way of an erased one.
//!
//! Source: [P] wear-leveling §3.2, which names the flaw: the same superblock may be picked again.

use super::exchange::Exchange;
use crate::blocks::Blocks;

pub(crate) struct HotColdSwap {
    threshold: u32,
}

impl HotColdSwap {
    pub(crate) fn new(threshold: u32) -> Self {
        Self { threshold }
    }

    pub(crate) fn choose(&self, blocks: &Blocks) -> Option<Exchange> {
        let (oldest, youngest) = (blocks.most_erased_in_use()?, blocks.least_erased_in_use()?);
        let apart = blocks.erases(oldest) - blocks.erases(youngest);
        (apart > self.threshold).then_some(Exchange { source: oldest, destination: None, then: Some(youngest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FtlConfig;
    use crate::small::{SLOTS, used};

    #[test]
    fn superblocks_are_swapped_beyond_the_threshold() {
        let mut blocks = used(3 * SLOTS, FtlConfig::default()).blocks;
        [(0, 7), (1, 4), (2, 5)].into_iter().for_each(|(number, erases)| blocks.all[number].erases = erases);
        blocks.order_in_use(true);
        let chosen = |threshold| HotColdSwap::new(threshold).choose(&blocks).map(|swap| (swap.source, swap.then));
        assert_eq!([chosen(2), chosen(3)], [Some((0, Some(1))), None]);
    }
}
