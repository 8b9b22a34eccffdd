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
