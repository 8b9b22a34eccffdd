//! FusionRAID's writes in two phases: replicas first, parity later, and around drives that are slow just now. Source: sheet paraid §5.
//!
//! A read of redirected data goes to its home drive here, where a conversion will bring it: \[A\], as reads of it are rare.

use crate::base::{Base, Piece};
use crate::stripe::{StripeOp, Way, Work};
use flashyard_array::learned::Place;
use flashyard_units::SimTime;
use std::collections::VecDeque;

/// A stripe that has replicas in place of parity.
pub(crate) const REPLICATED: u32 = 1 << 31;

/// Stripes that were replicated.
#[derive(Debug)]
pub(crate) struct Fusion {
    /// By stripe: whether it has replicas, and which of its chunks lie elsewhere.
    pub(crate) state: Vec<u32>,
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
    /// Writes chunks to their homes, and a replica of each in place of each parity.
    pub(crate) fn replicate(&mut self, base: &mut Base, now: SimTime, op: &StripeOp) -> SimTime {
        let mut done = now;
        for data in (0..base.config.data()).filter(|&data| op.written.blocks[data] > 0) {
            let piece = Piece::of_blocks(op.written.first[data], op.written.blocks[data]);
            let column = base.column(op.stripe, data);
            let mut used = [usize::MAX; 3];
            used[0] = usize::from(base.places.place(op.stripe, column).drive);
            if base.drives[used[0]].backlog(now) > base.config.fusion.spike {
                used[0] = self.next_drive(base, now, &[]);
                base.counters.redirected += 1;
                self.state[op.stripe as usize] |= 1 << data;
            }
            for copy in 1..=base.config.parities {
                used[copy] = self.next_drive(base, now, &used[..copy]);
            }
            for drive in &used[..=base.config.parities] {
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
        let free = |drive: &usize| !used.contains(drive);
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
        state & !REPLICATED
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
                if *state & REPLICATED == 0 {
                    self.queue.push_back(op.stripe);
                }
                *state |= REPLICATED;
            }
            _ => *state = 0,
        }
    }
}
