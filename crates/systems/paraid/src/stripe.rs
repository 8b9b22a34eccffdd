//! A write of a stripe, and which of its blocks must be read first.

use crate::config::{ChunkSize, WIDTH_MAX};

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

/// Blocks of the data chunks of a stripe that are written: from which on, and how many of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) first: [u8; WIDTH_MAX],
    pub(crate) blocks: [u8; WIDTH_MAX],
}

/// A write of a stripe, or another occupation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripeOp {
    pub(crate) stripe: u32,
    pub(crate) work: Work,
    /// Blocks that are written.
    pub(crate) written: Written,
    /// Rows of 4 KiB of the stripe that it has; 0 where it has all of them.
    pub(crate) rows: u8,
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
    pub(crate) const fn new(stripe: u32, work: Work, written: Written) -> Self {
        Self { stripe, work, written, rows: 0, parts: NONE, waiting: NONE, way: Way::Full, exchange: NONE }
    }

    /// Blocks of a parity chunk that are made: those of its rows, and all of them where replicas become parity.
    pub(crate) fn span(&self, chunk: ChunkSize) -> u8 {
        match (self.work, self.rows) {
            (Work::Convert, _) => chunk.blocks(),
            (_, 0) => self.written.span(chunk),
            (_, rows) => rows,
        }
    }

    /// Whether all `data` chunks are written, as far as it has them.
    pub(crate) fn is_full(&self, data: usize, chunk: ChunkSize) -> bool {
        let all = if self.rows > 0 { self.rows } else { chunk.blocks() };
        self.written.blocks[..data].iter().all(|&blocks| blocks == all)
    }

    /// The way that reads least, with `parities` to be read; both read as much: from the other chunks, as MD has it.
    pub(crate) fn cheapest(&self, data: usize, parities: usize, chunk: ChunkSize) -> Way {
        if self.is_full(data, chunk) {
            return Way::Full;
        }
        let [modify, reconstruct] = self.written.costs(data, parities, self.span(chunk));
        if modify < reconstruct { Way::Modify } else { Way::Reconstruct }
    }
}

impl Written {
    /// Nothing at all.
    pub(crate) const NOTHING: Self = Self { first: [0; WIDTH_MAX], blocks: [0; WIDTH_MAX] };

    /// Takes in what another request writes of the stripe: behind what is there, or before it.
    pub(crate) fn join(&mut self, other: &Self, chunk: ChunkSize) {
        for data in 0..WIDTH_MAX {
            let [ours, theirs] = [self.blocks[data], other.blocks[data]];
            if theirs == 0 {
                continue;
            }
            let first = if ours == 0 { other.first[data] } else { self.first[data].min(other.first[data]) };
            // Two of 128 blocks are as many as a byte has no room for.
            self.blocks[data] = ours.saturating_add(theirs).min(chunk.blocks());
            self.first[data] = first.min(chunk.blocks() - self.blocks[data]);
        }
    }

    /// Blocks of a parity chunk that change: those of all chunks, as if none lay beside another.
    pub(crate) fn span(&self, chunk: ChunkSize) -> u8 {
        let sum: u32 = self.blocks.iter().map(|&blocks| u32::from(blocks)).sum();
        sum.min(chunk.blocks().into()) as u8
    }

    /// The first block of a parity chunk of which `span` change.
    pub(crate) fn first_of_parity(&self, span: u8, chunk: ChunkSize) -> u8 {
        let firsts = self.first.iter().zip(&self.blocks).filter(|of| *of.1 > 0).map(|of| *of.0);
        firsts.min().unwrap_or(0).min(chunk.blocks() - span)
    }

    /// Blocks that a write reads for parity of `span` blocks by either way, with `parities` to be read.
    pub(crate) fn costs(&self, data: usize, parities: usize, span: u8) -> [u32; 2] {
        let span = u32::from(span);
        let written = self.blocks[..data].iter().map(|&blocks| u32::from(blocks));
        let modify = written.clone().sum::<u32>() + span * parities as u32;
        [modify, written.map(|blocks| span.saturating_sub(blocks)).sum()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    const USUAL: ChunkSize = ChunkSize::USUAL;

    fn written(blocks: &[u8]) -> Written {
        let mut all = Written::NOTHING;
        all.blocks[..blocks.len()].copy_from_slice(blocks);
        all
    }

    fn op(blocks: &[u8]) -> StripeOp {
        StripeOp::new(0, Work::Write, written(blocks))
    }

    #[test]
    fn writes_read_as_little_as_they_can() {
        let costs = |blocks: &[u8], parities| {
            let written = written(blocks);
            written.costs(blocks.len(), parities, written.span(USUAL))
        };
        assert_eq!(op(&[16, 16]).cheapest(2, 1, USUAL), Way::Full);
        assert_eq!(costs(&[16, 0], 1), [32, 16]);
        assert_eq!(op(&[16, 0]).cheapest(2, 1, USUAL), Way::Reconstruct);
        // One chunk of four under two parities: three chunks by either way.
        assert_eq!(costs(&[16, 0, 0, 0], 2), [48, 48]);
        assert_eq!(op(&[1, 0, 0, 0, 0, 0]).cheapest(6, 1, USUAL), Way::Modify);
        assert_eq!(op(&[16, 0, 0, 0]).cheapest(4, 0, USUAL), Way::Modify, "parity is in its cache");
        // A row of both chunks reads nothing.
        assert_eq!(op(&[1, 1]).cheapest(2, 1, USUAL), Way::Reconstruct);
        assert_eq!(StripeOp { rows: 1, ..op(&[1, 1]) }.cheapest(2, 1, USUAL), Way::Full);
    }

    #[test]
    fn joined_writes_fill_stripes() {
        let mut first = op(&[16, 8]);
        first.written.join(&written(&[3, 8]), USUAL);
        assert!(first.is_full(2, USUAL));
    }

    proptest! {
        /// Whatever joins, all that is written and the parity of it lies in its chunk, for every size of chunks.
        #[test]
        fn joined_writes_stay_in_their_chunks(
            shift in 0_u32..8,
            writes in vec((0_usize..4, any::<u8>(), any::<u8>()), 1..6),
        ) {
            let chunk = ChunkSize::new(4096 << shift).expect("it is a size");
            let mut all = Written::NOTHING;
            for (data, first, blocks) in writes {
                let first = first % chunk.blocks();
                let mut one = Written::NOTHING;
                one.first[data] = first;
                one.blocks[data] = blocks % (chunk.blocks() - first) + 1;
                all.join(&one, chunk);
                let end = u32::from(all.first[data]) + u32::from(all.blocks[data]);
                prop_assert!(end <= u32::from(chunk.blocks()) && all.first[data] <= first);
            }
            let span = all.span(chunk);
            let first = all.first_of_parity(span, chunk);
            prop_assert!(u32::from(first) + u32::from(span) <= u32::from(chunk.blocks()));
        }
    }
}
