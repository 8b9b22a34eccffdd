//! Space that becomes free. Cleaning writes the valid blocks of a segment again elsewhere; discards report free blocks
//! to the device.

use crate::ahead;
use crate::device::{BLOCK_BYTES, trim};
use crate::error::FsError;
use crate::fs::{Cleaning, FileSystem};
use crate::node::WHOLE_NODE;
use flashyard_blk::{Piece, Volume};
use flashyard_units::SimTime;

/// Trim commands of one round. [A] as F2FS does by default.
const COMMANDS_PER_ROUND: usize = 8;

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

    /// Takes the valid blocks of the best victim into memory; the next checkpoint writes them elsewhere. `false` when no
    /// segment is worth it, or there is no room for more.
    fn clean_one(&mut self) -> Result<bool, FsError> {
        let Some(victim) = self.victim() else { return Ok(false) };
        self.counters.segments_cleaned += 1;
        self.counters.blocks_cleaned += u64::from(self.segments.valid_count(victim));
        self.segments.keep_out(victim);
        let first = self.layout.segment_first(victim);
        let blocks: Vec<u32> = self.segments.valid_in(victim).map(|within| first + within).collect();
        self.carry(&blocks)?;
        // A victim without valid blocks is freed by the checkpoint alone.
        self.changed = true;
        Ok(true)
    }

    /// Takes valid blocks into memory, to be written elsewhere; nodes are read together, and a segment's worth of pages.
    pub(crate) fn carry(&mut self, blocks: &[u32]) -> Result<(), FsError> {
        ahead::read_holders(self, blocks, true)?;
        blocks.chunks(self.layout.segment_blocks as usize).try_for_each(|blocks| carry_together(self, blocks))
    }

    /// Lets time pass: reports free blocks to the device, if the policy says so. `active` says whether a request came
    /// since the last call.
    ///
    /// Errors: the device fails.
    pub fn tick(&mut self, now: SimTime, active: bool) -> Result<(), FsError> {
        if active {
            self.discards.asked(now);
        }
        let Some(round) = self.discards.due(now, self.config.discards) else { return Ok(()) };
        let found = self.discard(COMMANDS_PER_ROUND, self.config.discard_blocks_min)?;
        self.discards.go_on(now + if found { round.interval } else { round.rest });
        Ok(())
    }

    /// Reports all blocks known to be free to the device, whatever the policy.
    ///
    /// Errors: the device fails.
    pub fn discard_all(&mut self) -> Result<(), FsError> {
        self.discard(usize::MAX, 1)?;
        Ok(())
    }

    fn discard(&mut self, commands: usize, least: u32) -> Result<bool, FsError> {
        let mut done = 0;
        while done < commands {
            let Some((first, end)) = self.discards.take(least) else { break };
            trim(&mut self.device, first, end - first)?;
            self.counters.blocks_discarded += u64::from(end - first);
            done += 1;
        }
        Ok(done > 0)
    }

    fn victim(&self) -> Option<u32> {
        let blocks = self.layout.segment_blocks;
        // Each block may need a node besides, and all of that must fit beside what is kept back.
        let fits = |segment: u32| {
            let written = self.dirty_blocks() + 2 * u64::from(self.segments.valid_count(segment));
            let slack = u64::from(self.segments.slack_in(segment));
            written + slack + self.reserve() <= self.segments.writable()
        };
        // A segment with blocks that were given back never becomes free.
        let has_slack = |segment: u32| self.segments.slack_in(segment) > 0 && self.segments.reserved_in(segment) == 0;
        let candidates = (0..self.segments.limit()).filter(|&segment| has_slack(segment) && fits(segment));
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

fn carry_together<D: Volume>(fs: &mut FileSystem<D>, blocks: &[u32]) -> Result<(), FsError> {
    let mut pages = Vec::new();
    let mut pieces = Vec::<Piece>::new();
    for &block in blocks {
        let (nid, slot) = fs.owner(block)?;
        let damaged = FsError::Corrupt { what: "owner", block };
        if slot == WHOLE_NODE {
            if fs.address(nid)? != block {
                return Err(damaged);
            }
            fs.node_moved(nid)?;
            continue;
        }
        let node = fs.node(nid)?;
        let (ino, page) = (node.ino, node.pages_below(slot.into()).0);
        if node.pointers.get(usize::from(slot)) != Some(&block) {
            return Err(damaged);
        }
        fs.node_moved(nid)?;
        if fs.pages.holds(ino, page) {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.first + (last.len / BLOCK_BYTES) as u64 == u64::from(block) => last.len += BLOCK_BYTES,
            _ => pieces.push(Piece { first: block.into(), skip: 0, at: pages.len() * BLOCK_BYTES, len: BLOCK_BYTES }),
        }
        pages.push((ino, page));
    }
    let mut bytes = vec![0; pages.len() * BLOCK_BYTES];
    fs.device.read_together(&pieces, &mut bytes)?;
    for (page, bytes) in pages.into_iter().zip(bytes.chunks(BLOCK_BYTES)) {
        fs.move_page(page, bytes);
    }
    Ok(())
}
