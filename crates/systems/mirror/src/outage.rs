//! Drives that are away: their commands are lost, requests wait for them or go to the other one, and they return.
//!
//! Blocks that are stale on a returned drive are copied back: one read of the other drive and one write for each, in the
//! order of the blocks, as many at once as the configuration says. A copy holds the lock of its block, like a write: what
//! is read is still current when it has been written.

use crate::request::{Copy, Event, Purpose, Request};
use crate::world::Mirror;
use flashyard_blk::Operation;
use flashyard_served::Answer;
use flashyard_units::SimTime;

impl Mirror {
    /// Takes the power of `drive` away until `until`, or for longer if it is to be longer without already. Its commands
    /// vanish, and the host knows.
    pub(crate) fn cut_power(&mut self, now: SimTime, drive: usize, until: SimTime) {
        let side = &mut self.sides[drive];
        side.off_until = side.off_until.max(until);
        if until < SimTime::MAX {
            self.runner.queue.push(until, Event::PowerOn { drive: drive as u8 });
        }
        if side.off {
            return;
        }
        (side.off, side.serves) = (true, false);
        side.breaks += 1;
        self.outages.breaks += 1;
        self.drives[drive].power_cut(now);
        // Slots of torn writes are told under the numbers of its requests.
        if let Some(book) = &mut self.book {
            book.gather(&mut self.drives, &self.requests, &self.commands);
        }
        let lost: Vec<u32> = self.commands.iter().filter(|(_, command)| command.drive == drive).map(number).collect();
        for number in lost {
            let Some(command) = self.commands.remove(number as usize) else { continue };
            if let Some(book) = &mut self.book {
                book.forget_stamps(number);
            }
            self.sides[drive].depth.fall(now);
            self.requests[command.request as usize].copies[drive] = Copy::Lost;
            self.copy_ended(now, command.request);
        }
    }

    /// Gives the drive its power back, unless it is to be without for longer.
    pub(crate) fn power_on(&mut self, now: SimTime, drive: usize) {
        let side = &mut self.sides[drive];
        if side.off && now >= side.off_until {
            side.off = false;
            self.on_drive(now, drive, |drive, now, out| drive.power_restore(now, out));
        }
    }

    /// A drive takes commands again: so do requests that wait for one, and blocks that it lacks are copied to it.
    #[cold]
    pub(crate) fn drives_ready(&mut self, now: SimTime) {
        for drive in 0..2 {
            let side = &mut self.sides[drive];
            side.serves |= !side.off && self.drives[drive].is_ready();
        }
        self.send_held(now);
        self.resync(now);
    }

    /// No drive can take the request now: it waits for one, if one will come.
    #[cold]
    pub(crate) fn hold(&mut self, now: SimTime, id: u32) {
        if self.sides.iter().all(|side| side.worn_out) && self.requests[id as usize].changes_data() {
            return self.end_without(now, id, Answer::Failed);
        }
        self.held.push(id);
    }

    /// Gives up what a client asked for under `token`: at once if no drive has it, and otherwise when none has it any
    /// more.
    pub(crate) fn drop_request(&mut self, now: SimTime, token: u32) {
        let of_token = |request: &Request| request.purpose == Purpose::Asked { token };
        let Some(id) = self.requests.iter().find(|(_, request)| of_token(request)).map(number) else { return };
        let held = self.held.iter().position(|&held| held == id);
        self.requests[id as usize].given_up = true;
        if let Some(held) = held {
            self.held.remove(held);
        }
        if held.is_some() || self.locks.forget(id) {
            self.end_without(now, id, Answer::Dropped);
        }
    }

    /// Tries once more to send what is held.
    #[cold]
    pub(crate) fn send_held(&mut self, now: SimTime) {
        for id in std::mem::take(&mut self.held) {
            self.dispatch(now, id);
        }
    }

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
        while self.resync[to].under_way < self.config.resync_depth {
            let Some(block) = self.next_stale(to) else { break };
            let request = Request::new(now, Purpose::Resync { to: to as u8 }, Operation::Read, block, 1);
            let id = self.requests.insert(request) as u32;
            self.locks.acquire(id, block, 1);
            self.resync[to].next = block + 1;
            self.resync[to].under_way += 1;
            self.send(now, id, 1 - to);
        }
    }

    /// The next block to copy to a drive: current on the other one, and not being written. After the last one, the look
    /// begins again with the first.
    fn next_stale(&self, to: usize) -> Option<u32> {
        let (stale, other) = (&self.sides[to].stale, &self.sides[1 - to].stale);
        let from = self.resync[to].next;
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
        self.resync[to].under_way -= 1;
        self.unlock(now, id);
    }
}

fn number<T>((number, _): (usize, T)) -> u32 {
    number as u32
}
