//! How commands change the map: a write when its data is in the buffer, a trim and a remap when their translation pages are
//! there.
//!
//! A change goes slot by slot. Where an entry lies in a peer's memory whose log is full, the command stops at that slot
//! and goes on when the log has room (`offsite::commit`); commands behind it keep their order.

use crate::command::{Active, CommandSpec};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::read_cache::replaced;
use crate::volatile::Version;
use flashyard_blk::Operation;
use flashyard_flash::Slot;
use flashyard_ftl::{Appended, DieRow, Stream};
use flashyard_kernel::Outbox;
use flashyard_stats::Cause;
use flashyard_units::SimTime;
use std::ops::Range;

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
            Operation::Write if self.config.has_units() => self.append_units(now, index, out),
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
            let was_lost = replaced(&mut self.lost, &mut self.read_cache, logical);
            let appended = self.ftl.append(Stream::Host, logical, spec.stamp);
            if let Some(volatile) = &mut self.volatile {
                let before = Version { slot: appended.before, lost: was_lost };
                volatile.written(logical, before, Version { slot: appended.slot, lost: false });
            }
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

    /// Goes on with a write, unit by unit; returns how many slots of its units are done if a full log of borrowed memory stops it.
    pub(crate) fn append_units(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> Option<u32> {
        let Active { spec, changed, .. } = self.commands[index];
        let units = self.config.units(&spec);
        let footprint = self.buffer.footprint(units.len() as u32);
        self.buffer.redeem(footprint - changed);
        let mut start = units.start + changed;
        while start < units.end {
            let unit = start..units.end.min(start + self.config.mapping_unit);
            if !self.offsite.may_change(&self.cache, start, self.config.mapping_unit as usize) {
                let changed = start - units.start;
                self.buffer.promise(footprint - changed);
                return Some(changed);
            }
            start = unit.end;
            let row = self.append_unit(&spec, unit, |data, logical, appended| {
                data.offsite.changed(&mut data.cache, now, logical, appended.before, appended.slot, out);
            });
            if let Some(row) = row {
                self.program(now, row, Stream::Host, out);
            }
        }
        if let Some(row) = self.buffer.pad(&mut self.ftl) {
            self.program(now, row, Stream::Host, out);
        }
        None
    }

    /// Appends one unit of a write: the host's slots, those that it leaves, and padding for those that hold nothing. Calls
    /// `changed` for each entry of the map that changes; returns the die row that the unit filled.
    pub(crate) fn append_unit(
        &mut self,
        spec: &CommandSpec,
        unit: Range<u32>,
        mut changed: impl FnMut(&mut Self, u32, &Appended),
    ) -> Option<DieRow> {
        let own = spec.first..spec.first + spec.count;
        let mut filled = None;
        for logical in unit {
            let is_own = own.contains(&logical);
            let was_lost = if is_own {
                replaced(&mut self.lost, &mut self.read_cache, logical)
            } else {
                self.lost.first_among(logical..logical + 1).is_some()
            };
            let appended = if is_own {
                let appended = self.ftl.append(Stream::Host, logical, spec.stamp);
                self.movements.note_written(&self.ftl, spec, logical, &appended);
                appended
            } else if self.ftl.lookup(logical).is_some() {
                let appended = self.ftl.append_merged(logical);
                self.counters.merged_slots += 1;
                self.movements.note_merged(&self.ftl, logical, &appended, was_lost);
                appended
            } else {
                continue;
            };
            if let Some(volatile) = &mut self.volatile {
                let before = Version { slot: appended.before, lost: was_lost };
                volatile.written(logical, before, Version { slot: appended.slot, lost: was_lost && !is_own });
            }
            changed(self, logical, &appended);
            filled = appended.row.or(filled);
        }
        self.ftl.pad(Stream::Host, self.config.mapping_unit).or(filled)
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
                replaced(&mut self.lost, &mut self.read_cache, logical);
                if let Some(volatile) = &mut self.volatile {
                    volatile.trimmed(logical);
                }
                self.offsite.changed(&mut self.cache, now, logical, before, Slot::NONE, out);
                self.movements.push(Movement::Trimmed { logical, before });
            }
        }
        None
    }
}
