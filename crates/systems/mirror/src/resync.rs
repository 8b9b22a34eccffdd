//! Copying blocks back to a drive on which they are stale: one read of the other drive and one write for each, in the
//! order of the blocks, so many at once as the configuration says.
//!
//! A copy holds the lock of its block, like a write: what is read is still current when it has been written.

use crate::request::{Copy, Purpose, Request};
use crate::world::Mirror;
use flashyard_blk::Operation;
use flashyard_units::SimTime;

impl Mirror {
    /// Begins copies of stale blocks, while both drives are there.
    #[inline]
    pub(crate) fn resync(&mut self, now: SimTime) {
        for to in 0..2 {
            if !self.sides[to].stale.is_empty() && self.sides[to].takes_writes() && self.sides[1 - to].serves {
                self.begin_copies(now, to);
            }
        }
    }

    #[cold]
    fn begin_copies(&mut self, now: SimTime, to: usize) {
        while self.resync[to].1 < self.config.resync_depth {
            let Some(block) = self.next_stale(to) else { break };
            let request = Request::new(now, Purpose::Resync { to: to as u8 }, Operation::Read, block, 1);
            let id = self.requests.insert(request) as u32;
            self.locks.acquire(id, block, 1);
            self.resync[to] = (block + 1, self.resync[to].1 + 1);
            self.send(now, id, 1 - to);
        }
    }

    /// The next block to copy to a drive: current on the other one, and not being written. After the last one, the look
    /// begins again with the first.
    fn next_stale(&self, to: usize) -> Option<u32> {
        let (stale, other) = (&self.sides[to].stale, &self.sides[1 - to].stale);
        let from = self.resync[to].0;
        let mut blocks = stale.from(from).chain(stale.from(0).take_while(|&block| block < from));
        let readable = |block| !other.contains(block) && !self.sides[1 - to].unreadable.contains(block);
        blocks.find(|&block| readable(block) && !self.locks.covers(block, 1))
    }

    /// The read or the write of a copy to the drive `to` has ended, or its drive is away.
    pub(crate) fn resync_ended(&mut self, now: SimTime, id: u32, to: usize) {
        let request = &mut self.requests[id as usize];
        let block = request.first;
        let has_read = request.operation != Operation::Read;
        if !has_read && request.copies[1 - to] == Copy::Done && self.sides[to].takes_writes() {
            // The other drive keeps this block where it is until the copy is done, or moves it with its data.
            let source = self.drives[1 - to].data.ftl.lookup(block);
            request.operation = if source.is_some() { Operation::Write } else { Operation::Trim };
            request.stamp = if source.is_some() { self.drives[1 - to].data.ftl.stamp(source) } else { 0 };
            self.send(now, id, to);
            return;
        }
        if request.unread[1 - to] {
            self.sides[1 - to].unreadable.insert(block, 1);
        }
        if has_read && request.copies[to] == Copy::Done {
            self.sides[to].stale.remove(block, 1);
            self.outages.blocks_copied += 1;
        }
        self.requests.remove(id as usize);
        self.resync[to].1 -= 1;
        self.unlock(now, id);
    }
}
