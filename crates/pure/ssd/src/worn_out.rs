//! Writes to a drive that is worn out: they end as failed instead of waiting for room that never comes.

use crate::data::DataEnd;
use crate::drive::{DriveEffect, DriveEvent};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Whether the drive takes no writes for want of room, as far as anybody has tried.
    pub fn is_worn_out(&self) -> bool {
        self.worn_out
    }

    /// Fails writes that wait for room once nothing that is under way can make any.
    #[inline]
    pub(crate) fn end_hopeless(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !self.write_waiters.is_empty() && self.programs_outstanding == 0 {
            self.end_hopeless_slow(now, out);
        }
    }

    #[cold]
    fn end_hopeless_slow(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let changes_wait = !self.receiving.is_empty() || !self.offsite.is_still();
        if changes_wait || !self.pump.is_idle() || self.grace.is_holding() {
            return;
        }
        while let Some(&index) = self.write_waiters.front() {
            let spec = self.active[index as usize].spec;
            let slots = u64::from(self.footprint(spec.count));
            if !self.ftl.is_worn_out(self.promised_slots + slots) {
                // A smaller one behind those that failed.
                return self.admit_waiting(now, out);
            }
            self.write_waiters.pop_front();
            self.worn_out = true;
            self.account_wait(now, index);
            out.emit(DriveEffect::WriteFailed { tag: spec.tag });
            self.complete(now, index, out);
        }
    }
}
