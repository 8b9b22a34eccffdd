//! A write of a stripe, and which of its blocks must be read first.

use crate::config::{CHUNK_BLOCKS, WIDTH_MAX};

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// The occupation of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Writes of requests.
    Write,
    /// FusionRAID makes parity of what was replicated.
    Convert,
    /// A chunk of it is exchanged, by a move or by the write of another stripe.
    Exchanged,
}

/// A write of a stripe, or another occupation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeOp {
    pub(crate) stripe: u32,
    pub(crate) work: Work,
    /// Blocks of each data chunk that are written.
    pub(crate) blocks: [u8; WIDTH_MAX],
    /// The first request's part in it.
    pub(crate) parts: u32,
    /// The occupation of the stripe after this one.
    pub(crate) waiting: u32,
    /// How parity comes about.
    pub(crate) way: Way,
    /// The number of the exchange that goes with it.
    pub(crate) exchange: u32,
}

/// A request's part in a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) request: u32,
    pub(crate) next: u32,
}

/// How parity of a write comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// All of it is written.
    Full,
    /// From what it was and what the written chunks were.
    Modify,
    /// From the chunks that are not written.
    Reconstruct,
    /// Its drive is gone.
    NoParity,
    /// Later: replicas for now.
    Replicate,
}

impl StripeOp {
    pub(crate) const fn new(stripe: u32, work: Work, blocks: [u8; WIDTH_MAX]) -> Self {
        Self { stripe, work, blocks, parts: NONE, waiting: NONE, way: Way::Full, exchange: NONE }
    }

    /// Takes in what another request writes of the stripe.
    pub(crate) fn join(&mut self, blocks: &[u8; WIDTH_MAX]) {
        for (of, more) in self.blocks.iter_mut().zip(blocks) {
            *of = (*of + more).min(CHUNK_BLOCKS);
        }
    }

    /// Blocks of a parity chunk that change: those of all chunks, as if none lay beside another.
    pub(crate) fn span(&self) -> u8 {
        let sum: u32 = self.blocks.iter().map(|&blocks| u32::from(blocks)).sum();
        sum.min(CHUNK_BLOCKS.into()) as u8
    }

    /// Whether all `data` chunks are written.
    pub(crate) fn is_full(&self, data: usize) -> bool {
        self.blocks[..data].iter().all(|&blocks| blocks == CHUNK_BLOCKS)
    }

    /// Blocks that a write reads for parity by either way, with `parities` to be read.
    pub(crate) fn costs(&self, data: usize, parities: usize) -> [u32; 2] {
        let span = u32::from(self.span());
        let written = self.blocks[..data].iter().map(|&blocks| u32::from(blocks));
        let modify = written.clone().sum::<u32>() + span * parities as u32;
        [modify, written.map(|blocks| span.saturating_sub(blocks)).sum()]
    }

    /// The way that reads least; both read as much: from the other chunks, as MD has it.
    pub(crate) fn cheapest(&self, data: usize, parities: usize) -> Way {
        if self.is_full(data) {
            return Way::Full;
        }
        let [modify, reconstruct] = self.costs(data, parities);
        if modify < reconstruct { Way::Modify } else { Way::Reconstruct }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(blocks: &[u8]) -> StripeOp {
        let mut all = [0; WIDTH_MAX];
        all[..blocks.len()].copy_from_slice(blocks);
        StripeOp::new(0, Work::Write, all)
    }

    #[test]
    fn writes_read_as_little_as_they_can() {
        assert_eq!(op(&[16, 16]).cheapest(2, 1), Way::Full);
        assert_eq!(op(&[16, 0]).costs(2, 1), [32, 16]);
        assert_eq!(op(&[16, 0]).cheapest(2, 1), Way::Reconstruct);
        // One chunk of four under two parities: three chunks by either way.
        assert_eq!(op(&[16, 0, 0, 0]).costs(4, 2), [48, 48]);
        assert_eq!(op(&[1, 0, 0, 0, 0, 0]).cheapest(6, 1), Way::Modify);
        assert_eq!(op(&[16, 0, 0, 0]).cheapest(4, 0), Way::Modify, "parity is in its cache");
    }

    #[test]
    fn joined_writes_fill_stripes() {
        let mut first = op(&[16, 8]);
        first.join(&op(&[3, 8]).blocks);
        assert!(first.is_full(2));
    }
}
