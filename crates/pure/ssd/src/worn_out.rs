//! Writes that a drive can never admit, because it is worn out or because they are larger than its spare space: they end
//! as failed instead of waiting for room that never comes.

use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_ftl::Want;
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Whether the drive takes no writes for want of room, as far as writes have shown.
    pub fn is_worn_out(&self) -> bool {
        self.buffer.worn_out
    }

    /// Fails writes that wait for room once nothing that is under way can make any.
    #[inline]
    pub(crate) fn end_hopeless(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.buffer.first_in_line().is_some() && self.buffer.programs() == 0 {
            self.end_hopeless_slow(now, out);
        }
    }

    #[cold]
    fn end_hopeless_slow(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let changes_wait = self.buffer.is_receiving() || !self.offsite.is_still();
        if changes_wait || !self.collection.is_idle() || self.collection.is_holding() {
            return;
        }
        while let Some(index) = self.buffer.first_in_line() {
            let spec = self.commands[index].spec;
            let slots = u64::from(self.buffer.footprint(self.config.width(&spec)));
            if self.ftl.host_room() < self.buffer.promised() + slots && !self.ftl.reclaim_needed() {
                // Larger than the room that garbage collection keeps for the host.
                self.pump_reclaim_slow(now, Want::Space, out);
                if !self.collection.is_idle() || self.buffer.programs() > 0 {
                    return;
                }
            }
            if !self.ftl.is_out_of_room(self.buffer.promised() + slots) {
                // A smaller one behind those that failed.
                return self.admit_waiting(now, out);
            }
            self.buffer.leave_line();
            self.buffer.worn_out = self.ftl.may_retire();
            self.commands.account_wait(now, index, self.collection.clock(now));
            out.emit(DriveEffect::WriteFailed { tag: spec.tag });
            self.complete(now, index, out);
        }
    }
}
