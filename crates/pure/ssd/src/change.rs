//! How commands change the map: a write when its data is in the buffer, a trim and a remap when their translation pages are
//! there.
//!
//! A change goes slot by slot. Where an entry lies in a peer's memory whose log is full, the command stops at that slot
//! and goes on when the log has room (`offsite::commit`); commands behind it keep their order.

use crate::command::Active;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use flashyard_blk::Operation;
use flashyard_flash::Slot;
use flashyard_ftl::Stream;
use flashyard_kernel::Outbox;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl DataEnd {
    /// Changes the map for a write, trim or remap, in line behind those that wait for their log.
    #[inline]
    pub(crate) fn change_map(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !self.offsite.waiting.is_empty() || !self.change_rest(now, index, out) {
            self.offsite.counters.waits += 1;
            self.offsite.waiting.push_back(index);
        }
    }

    /// Goes on with a write, trim or remap where it stopped; returns whether it has completed.
    #[inline]
    pub(crate) fn change_rest(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> bool {
        let operation = self.commands[index].spec.operation;
        let stopped = match operation {
            Operation::Write if self.has_units() => self.append_units(now, index, out),
            Operation::Write => self.append_rest(now, index, out),
            Operation::Remap => self.remap_rest(now, index, out),
            _ => self.trim_rest(now, index, out),
        };
        let active = &mut self.commands[index];
        if let Some(changed) = stopped {
            active.changed = changed;
            return false;
        }
        active.account(now, Cause::InterDrive);
        self.complete(now, index, out);
        if operation == Operation::Write {
            self.pump_reclaim(now, out);
            self.end_hopeless(now, out);
        }
        true
    }

    /// Appends a write's slots and programs the die rows that they fill; returns the slot at which a full log stops it.
    #[inline]
    fn append_rest(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) -> Option<u32> {
        let Active { spec, changed, .. } = self.commands[index];
        let footprint = self.buffer.footprint(spec.count);
        self.buffer.redeem(footprint - changed);
        for logical in spec.first + changed..spec.first + spec.count {
            if !self.offsite.may_change(&self.cache, logical, 1) {
                let changed = logical - spec.first;
                self.buffer.promise(footprint - changed);
                return Some(changed);
            }
            self.replaced(logical);
            let appended = self.ftl.append(Stream::Host, logical, spec.stamp);
            self.offsite.changed(&mut self.cache, now, logical, appended.before, appended.slot, out);
            self.movements.note_written(&self.ftl, &spec, logical, &appended);
            if let Some(row) = appended.row {
                self.program(now, row, Stream::Host, out);
            }
        }
        if let Some(row) = self.buffer.pad(&mut self.ftl) {
            self.program(now, row, Stream::Host, out);
        }
        None
    }

    /// Takes a trim's slots out of the map; returns the slot at which a full log stops it.
    fn trim_rest(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) -> Option<u32> {
        let Active { spec, changed, .. } = self.commands[index];
        for logical in spec.first + changed..spec.first + spec.count {
            if !self.offsite.may_change(&self.cache, logical, 1) {
                return Some(logical - spec.first);
            }
            if let Some(before) = self.ftl.trim(logical) {
                self.buffer.worn_out = false;
                self.replaced(logical);
                self.offsite.changed(&mut self.cache, now, logical, before, Slot::NONE, out);
                self.movements.push(Movement::Trimmed { logical, before });
            }
        }
        None
    }
}
