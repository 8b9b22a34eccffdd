//! Cleaning: the valid blocks of a segment are written again elsewhere, and the segment becomes free.

use crate::error::FsError;
use crate::fs::FileSystem;
use crate::nodes::WHOLE_NODE;
use flashyard_blk::Volume;

/// Choice of the segment to clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The segment with the fewest valid blocks.
    Greedy,
    /// The segment with the most space freed for its cost, times the checkpoints since it was written:
    /// `(free / (used + free of a copy)) * age`, as in Sprite LFS. [X]
    CostBenefit,
}

impl<D: Volume> FileSystem<D> {
    /// Cleans one segment now, whatever the need; returns whether there was one worth it.
    ///
    /// Errors: the device fails.
    pub fn clean(&mut self) -> Result<bool, FsError> {
        self.sync()?;
        let cleaned = self.clean_one()?;
        self.sync()?;
        Ok(cleaned)
    }

    /// Takes the valid blocks of the best victim into memory; the next checkpoint writes them elsewhere. Nothing else
    /// may be dirty. `false` when no segment is worth it.
    pub(crate) fn clean_one(&mut self) -> Result<bool, FsError> {
        let Some(victim) = self.victim() else { return Ok(false) };
        self.counters.segments_cleaned += 1;
        self.counters.blocks_cleaned += u64::from(self.segments.valid_count(victim));
        let first = self.layout.segment_first(victim);
        let blocks: Vec<u32> = self.segments.valid_in(victim).map(|within| first + within).collect();
        for block in blocks {
            self.carry(block)?;
        }
        // A victim without valid blocks is freed by the checkpoint alone.
        self.changed = true;
        Ok(true)
    }

    /// Takes one valid block into memory, to be written elsewhere.
    pub(crate) fn carry(&mut self, block: u32) -> Result<(), FsError> {
        let (nid, slot) = self.owner(block)?;
        let damaged = FsError::Corrupt { what: "owner", block };
        if slot == WHOLE_NODE {
            if self.address(nid)? != block {
                return Err(damaged);
            }
            self.node_moved(nid)?;
            return Ok(());
        }
        let node = self.node(nid)?;
        let (ino, page) = (node.ino, node.pages_below(slot.into()).0);
        if node.pointers.get(usize::from(slot)) != Some(&block) {
            return Err(damaged);
        }
        self.move_page(ino, page, nid)
    }

    fn victim(&self) -> Option<u32> {
        let blocks = self.layout.segment_blocks;
        // Each block may need a node besides, and all of that must fit.
        let fits = |valid: u32| u64::from(valid) * 2 <= self.segments.writable();
        let candidates = (0..self.segments.limit()).filter(|&segment| {
            let valid = self.segments.valid_count(segment);
            let closed = !self.segments.is_free(segment) && !self.segments.is_open(segment);
            closed && !self.segments.is_reserved(segment) && valid < blocks && fits(valid)
        });
        match self.config.cleaning {
            Cleaning::Greedy => candidates.min_by_key(|&segment| self.segments.valid_count(segment)),
            Cleaning::CostBenefit => candidates.max_by_key(|&segment| {
                let valid = u64::from(self.segments.valid_count(segment));
                let age = (self.version + 1).saturating_sub(self.segments.written(segment)).max(1);
                // The lowest of equals, like the other rule.
                let score = (u64::from(blocks) - valid) * 1024 * age / (u64::from(blocks) + valid);
                (score, std::cmp::Reverse(segment))
            }),
        }
    }
}
