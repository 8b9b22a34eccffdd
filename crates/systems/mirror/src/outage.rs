//! Drives that are away: their commands are lost, requests wait for them or go to the other one, and they return.

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
        // What was torn is told under the numbers of its requests.
        self.gather();
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
        if self.locks.forget(id) {
            // It has not locked its blocks.
            let request = &mut self.requests[id as usize];
            request.operation = Operation::Flush;
            self.end_without(now, id, Answer::Dropped);
        } else if let Some(held) = held {
            self.held.remove(held);
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
}

fn number<T>((number, _): (usize, T)) -> u32 {
    number as u32
}
