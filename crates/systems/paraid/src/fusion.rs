//! FusionRAID's writes in two phases: replicas first, parity later, and around drives that are slow just now. Source: sheet paraid §5.
//!
//! Its map has an entry for each chunk, of 5 B \[P\], and new data goes to new places. A write of a part of a chunk copies the rest of it
//! therefore, unless the chunk has replicas, which are written in place.
//!
//! A read of redirected data goes to its home drive here, where a conversion will bring it: \[A\], as reads of it are rare.

use crate::base::{Base, Piece};
use crate::config::ChunkSize;
use crate::stripe::{StripeOp, Way, Work};
use flashyard_array::learned::Place;
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// Chunks of a stripe that have replicas, from this bit of its state on; those below say which of them lie elsewhere.
const REPLICATED: u32 = 16;

/// Stripes that were replicated.
#[derive(Debug)]
pub(crate) struct Fusion {
    /// By stripe: which of its chunks have replicas, and which lie elsewhere.
    state: Vec<u32>,
    /// Stripes with replicas, the oldest first.
    pub(crate) queue: VecDeque<u32>,
    pub(crate) is_converting: bool,
    /// The drive that gets the next replica.
    pub(crate) next: usize,
}

impl Fusion {
    pub(crate) fn new(stripes: usize) -> Self {
        Self { state: vec![0; stripes], queue: VecDeque::new(), is_converting: false, next: 0 }
    }
}

impl Fusion {
    /// Whether a stripe has replicas.
    pub(crate) fn is_replicated(&self, stripe: u32) -> bool {
        self.state[stripe as usize] >> REPLICATED != 0
    }

    /// Blocks of a chunk that a write of `blocks` of them must read first.
    pub(crate) fn rest(&self, stripe: u32, data: usize, blocks: u8, chunk: ChunkSize) -> u8 {
        let has_replicas = self.state[stripe as usize] & 1 << (REPLICATED as usize + data) != 0;
        if blocks == 0 || has_replicas { 0 } else { chunk.blocks() - blocks }
    }

    /// Writes chunks to their homes, and a replica of each in place of each parity.
    pub(crate) fn replicate(&mut self, base: &mut Base, now: SimTime, op: &StripeOp) -> SimTime {
        let mut done = now;
        let chunk = base.config.chunk;
        for data in (0..base.config.data()).filter(|&data| op.written.blocks[data] > 0) {
            let (first, blocks) = (op.written.first[data], op.written.blocks[data]);
            let copies = self.rest(op.stripe, data, blocks, chunk) > 0;
            let piece = if copies { Piece::of_blocks(0, chunk.blocks()) } else { Piece::of_blocks(first, blocks) };
            let column = base.column(op.stripe, data);
            let mut used = [usize::MAX; 3];
            used[0] = usize::from(base.places.place(op.stripe, column).drive);
            let is_away = base.config.failed == Some(used[0]);
            if is_away || base.drives[used[0]].backlog(now) > base.config.fusion.spike {
                used[0] = self.next_drive(base, now, &[]);
                base.counters.redirected += 1;
                self.state[op.stripe as usize] |= 1 << data;
            }
            for copy in 1..=base.config.parities {
                used[copy] = self.next_drive(base, now, &used[..copy]);
            }
            for drive in &used[..=base.config.parities] {
                // Where few drives are left, a replica may have none.
                if base.config.failed == Some(*drive) {
                    continue;
                }
                // Where replicas lie on their drives matters to SSDs alone.
                let chunks = base.config.chunk.in_bytes(base.config.drives[*drive].capacity);
                let place = Place { drive: *drive as u8, chunk: op.stripe % chunks.max(1) as u32 };
                done = done.max(base.send(now, place, true, piece));
            }
        }
        done
    }

    /// The next drive in turn that has no spike and none of the copies; the least busy one, if all have.
    fn next_drive(&mut self, base: &Base, now: SimTime, used: &[usize]) -> usize {
        let count = base.drives.len();
        let first = self.next;
        let free = |drive: &usize| !used.contains(drive) && base.config.failed != Some(*drive);
        let turn = (first..first + count).map(|drive| drive % count).filter(free);
        let calm = turn.clone().find(|&drive| base.drives[drive].backlog(now) <= base.config.fusion.spike);
        let chosen =
            calm.or_else(|| turn.min_by_key(|&drive| base.drives[drive].backlog(now))).unwrap_or(first % count);
        self.next = (chosen + 1) % count;
        chosen
    }

    /// Chunks of a stripe that lie elsewhere, and come home now.
    pub(crate) fn take_redirected(&mut self, stripe: u32) -> u32 {
        let state = std::mem::take(&mut self.state[stripe as usize]);
        state & ((1 << REPLICATED) - 1)
    }

    /// An operation has ended: its stripe has replicas now, or none any more.
    pub(crate) fn note_ended(&mut self, base: &mut Base, op: &StripeOp) {
        let state = &mut self.state[op.stripe as usize];
        match (op.work, op.way) {
            (Work::Convert, _) => {
                self.is_converting = false;
                base.counters.converted += 1;
            }
            (_, Way::Replicate) => {
                if *state >> REPLICATED == 0 {
                    self.queue.push_back(op.stripe);
                }
                for (data, _) in op.written.blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
                    *state |= 1 << (REPLICATED as usize + data);
                }
            }
            _ => *state = 0,
        }
    }
}
