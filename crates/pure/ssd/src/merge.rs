//! Mapping units of several slots: what a write leaves of a unit is read, merged with the data of the host, and written with it.
//!
//! Drives of large capacity map 8, 16 or 64 KiB with one entry, to have a smaller map. Here the map has an entry for each slot
//! still, but a unit is written as a whole, and lies in one piece: a write that covers it in part costs a read and a whole unit.
//! Slots of a unit that hold nothing are padded. Writes that follow each other are not joined in the buffer before they go to
//! flash. Source: \[X\] "indirection units" of quad-level drives; \[A\] that the map is of slots.

use crate::command::{Active, CommandSpec, Tag};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::read_plan::Supply;
use flashyard_flash::{Priority, Slot};
use flashyard_ftl::{Appended, DieRow, Stream};
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_stats::Cause;
use flashyard_units::SimTime;
use std::ops::Range;

/// Slots of the units, `unit` slots each, that a command touches.
fn widened(spec: &CommandSpec, unit: u32, slots: u32) -> Range<u32> {
    let end = u64::from(spec.first + spec.count).next_multiple_of(u64::from(unit));
    spec.first / unit * unit..end.min(u64::from(slots)) as u32
}

impl DataEnd {
    /// Whether a write may leave a part of a unit as it is.
    #[inline]
    pub(crate) fn has_units(&self) -> bool {
        self.config.mapping_unit > 1
    }

    fn units(&self, spec: &CommandSpec) -> Range<u32> {
        widened(spec, self.config.mapping_unit, self.config.ftl.logical_slots)
    }

    /// Slots that a write of `spec` takes of the buffer and of the flash, before commands that share no pages are rounded.
    #[inline]
    pub(crate) fn width(&self, spec: &CommandSpec) -> u32 {
        if self.has_units() { self.units(spec).len() as u32 } else { spec.count }
    }

    /// Reads what a write leaves of its first and its last unit; returns whether there is anything to wait for.
    pub(crate) fn read_rest(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> bool {
        let spec = self.commands[index].spec;
        let units = self.units(&spec);
        let mut reads = 0;
        for rest in [units.start..spec.first, spec.first + spec.count..units.end] {
            if rest.is_empty() {
                continue;
            }
            let rest = CommandSpec { first: rest.start, count: rest.len() as u32, ..spec };
            self.note_rest(index, &rest);
            let together = self.reads_together();
            self.plan.walk(&self.ftl, &rest, together, false, |_| Supply::Elsewhere);
            for group in 0..self.plan.groups.len() {
                let group = self.plan.groups[group];
                let span = group.last.get() - group.first.get() + 1;
                let tag = Tag::Merge(index).pack();
                let command = self.ftl.read_command(group.first, span, group.slots, Priority::Foreground, tag);
                let command = self.flash.placed(command, self.ftl.layout().die_row(group.first));
                if self.counts_reads {
                    self.ftl.count_reads(group.first, command.planes.count());
                }
                self.flash.issue(now, command, out);
                reads += 1;
            }
        }
        self.counters.merge_reads += u64::from(reads);
        self.commands[index].remaining = reads;
        reads > 0
    }

    /// A part of what a write leaves has been read; with the last one the write goes to the buffer.
    pub(crate) fn merge_read_done(
        &mut self,
        now: SimTime,
        index: u32,
        time: &FlashTime,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let active = &mut self.commands[index];
        active.remaining -= 1;
        if active.remaining > 0 {
            return;
        }
        // All reads were submitted at once: the last one is the path that counts.
        active.time.add(Cause::Die, time.die);
        active.time.add(Cause::Bus, time.bus);
        active.time.add(Cause::Retry, time.retry);
        active.time.add(Cause::ReclaimWait, time.background);
        active.accounted = now;
        self.merging.retain(|entry| entry.0 != index);
        self.enter_buffer(now, index, out);
    }

    /// What a write leaves of a unit cannot be read on `die`: it is lost, and its reads fail until it is written. Slots that other
    /// commands have written since are not concerned.
    pub(crate) fn merge_lost(&mut self, index: u32, die: u16) {
        self.counters.media_errors += 1;
        for &(command, logical, slot) in &self.merging {
            if command == index && self.ftl.lookup(logical) == slot && self.die_of(slot) == die {
                self.lost.add_slot(logical);
            }
        }
    }

    fn die_of(&self, slot: Slot) -> u16 {
        let row = self.ftl.layout().die_row(slot);
        match self.flash.stripes() {
            Some(stripes) => stripes.die(row),
            None => self.ftl.layout().die_and_row(self.ftl.layout().split_die_row(row).1).0,
        }
    }

    /// Notes what is read for a command, where a read may be given up.
    fn note_rest(&mut self, index: u32, rest: &CommandSpec) {
        if self.config.nand.read_retries_max.is_none() {
            return;
        }
        for logical in rest.first..rest.first + rest.count {
            let slot = self.ftl.lookup(logical);
            if slot.is_some() && self.ftl.is_programmed(slot) {
                self.merging.push((index, logical, slot));
            }
        }
    }

    /// Goes on with a write, unit by unit; returns how many slots of its units are done if a full log of borrowed memory stops it.
    pub(crate) fn append_units(
        &mut self,
        now: SimTime,
        index: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> Option<u32> {
        let Active { spec, changed, .. } = self.commands[index];
        let units = self.units(&spec);
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
            let appended = if own.contains(&logical) {
                self.replaced(logical);
                let appended = self.ftl.append(Stream::Host, logical, spec.stamp);
                self.movements.note_written(&self.ftl, spec, logical, &appended);
                appended
            } else if self.ftl.lookup(logical).is_some() {
                let appended = self.ftl.append_merged(logical);
                self.note_merged(logical, &appended);
                appended
            } else {
                continue;
            };
            changed(self, logical, &appended);
            filled = appended.row.or(filled);
        }
        self.ftl.pad(Stream::Host, self.config.mapping_unit).or(filled)
    }

    fn note_merged(&mut self, logical: u32, appended: &Appended) {
        self.counters.merged_slots += 1;
        if !self.movements.is_on() {
            return;
        }
        let Appended { slot, before, .. } = *appended;
        let moved = Movement::Moved { logical, from: before, to: slot };
        self.movements.note_appended(&self.ftl, Stream::Host, moved, slot);
        if self.lost.first_among(logical..logical + 1).is_some() {
            self.movements.push(Movement::Lost { logical, slot });
        }
    }

    /// Slots of a torn write's units of which the first `arrived` slots of the host are there: only whole ones count.
    pub(crate) fn whole_units(&self, spec: &CommandSpec, arrived: u32) -> Range<u32> {
        let units = self.units(spec);
        let there = spec.first + arrived;
        let end =
            if arrived == spec.count { units.end } else { there / self.config.mapping_unit * self.config.mapping_unit };
        units.start..end.max(units.start)
    }
}
