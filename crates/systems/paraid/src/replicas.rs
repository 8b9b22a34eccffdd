//! Writes of FusionRAID: replicas, and their conversion.

use crate::config::{BLOCK_BYTES, WIDTH_MAX};
use crate::fusion::REPLICATED;
use crate::member::Member;
use crate::stripe::{NONE, StripeOp, Way, Work};
use crate::world::Array;
use flashyard_units::SimTime;

impl Array {
    /// Writes chunks to their homes, and a replica of each in place of each parity.
    pub(crate) fn replicate(&mut self, now: SimTime, op: &StripeOp) -> SimTime {
        let mut done = now;
        for data in (0..self.config.data()).filter(|&data| op.blocks[data] > 0) {
            let bytes = u32::from(op.blocks[data]) * BLOCK_BYTES;
            let column = self.column(op.stripe, data);
            let mut used = [usize::MAX; 3];
            used[0] = usize::from(self.places.place(op.stripe, column).drive);
            if self.drives[used[0]].backlog(now) > self.config.fusion.spike {
                used[0] = self.next_drive(now, &[]);
                self.counters.redirected += 1;
                if let Some(fusion) = &mut self.fusion {
                    fusion.state[op.stripe as usize] |= 1 << data;
                }
            }
            for copy in 1..=self.config.parities {
                used[copy] = self.next_drive(now, &used[..copy]);
            }
            for drive in &used[..=self.config.parities] {
                done = done.max(self.drives[*drive].submit(now, true, bytes));
            }
        }
        done
    }

    /// The next drive in turn that has no spike and none of the copies; the least busy one, if all have.
    fn next_drive(&mut self, now: SimTime, used: &[usize]) -> usize {
        let count = self.drives.len();
        let Some(fusion) = &mut self.fusion else { return 0 };
        let first = fusion.next;
        let free = |drive: &usize| !used.contains(drive);
        let turn = (first..first + count).map(|drive| drive % count).filter(free);
        let calm = turn.clone().find(|&drive| self.drives[drive].backlog(now) <= self.config.fusion.spike);
        let chosen =
            calm.or_else(|| turn.min_by_key(|&drive| self.drives[drive].backlog(now))).unwrap_or(first % count);
        fusion.next = (chosen + 1) % count;
        chosen
    }

    /// Chunks of a stripe that lie elsewhere, and come home now.
    pub(crate) fn take_redirected(&mut self, stripe: u32) -> u32 {
        let Some(fusion) = &mut self.fusion else { return 0 };
        let state = std::mem::take(&mut fusion.state[stripe as usize]);
        state & !REPLICATED
    }

    /// An operation has ended: its stripe has replicas now, or none any more.
    pub(crate) fn note_ended(&mut self, now: SimTime, op: &StripeOp) {
        let Some(fusion) = &mut self.fusion else { return };
        let state = &mut fusion.state[op.stripe as usize];
        match (op.work, op.way) {
            (Work::Convert, _) => {
                fusion.is_converting = false;
                self.counters.converted += 1;
            }
            (_, Way::Replicate) => {
                if *state & REPLICATED == 0 {
                    fusion.queue.push_back(op.stripe);
                }
                *state |= REPLICATED;
            }
            _ => *state = 0,
        }
        self.convert(now);
    }

    /// Makes parity of the oldest stripe, one at a time, while more than so many have replicas.
    fn convert(&mut self, now: SimTime) {
        let Some(fusion) = &mut self.fusion else { return };
        while !fusion.is_converting && fusion.queue.len() > self.config.fusion.replicated as usize {
            let Some(stripe) = fusion.queue.pop_front() else { return };
            if fusion.state[stripe as usize] & REPLICATED == 0 {
                continue;
            }
            if self.active[stripe as usize] != NONE {
                fusion.queue.push_back(stripe);
                return;
            }
            fusion.is_converting = true;
            let op = self.ops.insert(StripeOp::new(stripe, Work::Convert, [0; WIDTH_MAX])) as u32;
            self.active[stripe as usize] = op;
            return self.begin(now, op);
        }
    }
}
