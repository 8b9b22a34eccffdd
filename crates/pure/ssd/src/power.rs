//! Power cuts and restarts.
//!
//! The own memory of a protected drive survives: map, write buffer, garbage collection state and cached translation pages.
//! Commands under way vanish. A write whose data was arriving keeps the whole slots that had arrived: a torn
//! write. Flash operations under way are done again. A drive without protection keeps what is on flash (`unprotected`).

use crate::command::{Active, CommandSpec, Tag};
use crate::data::DataEnd;
use crate::drive::Drive;
use crate::event::{DriveEffect, DriveEvent};
use crate::supply::Power;
use flashyard_blk::Operation;
use flashyard_flash::{Priority, Slot};
use flashyard_ftl::{DieRow, Stream};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl Drive {
    /// Changes with every power cut. The owner keeps it with every event that the drive asks for, and drops events
    /// of another generation.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.data.generation
    }

    /// Whether the drive takes commands.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.data.power == Power::Ready
    }

    /// The power fails: all jobs and commands under way vanish without a completion. Completions of reads that were
    /// announced in advance and lie after `now` do not come about: dropping them is the owner's part, as is dropping
    /// events of the old generation. Without effect on a drive that is off.
    ///
    /// Panics on a drive without power-loss protection that does not expect it (`DriveConfig::expects_power_cuts`).
    pub fn power_cut(&mut self, now: SimTime) {
        let protected = self.config().power_loss_protection;
        assert!(protected || self.data.volatile.is_some(), "a power cut on a drive that was not prepared for it");
        let had_power = self.data.power != Power::Off;
        self.compute.power_cut();
        self.data.power_cut(now, protected);
        if had_power && !protected {
            self.lose_memory();
        }
    }

    /// The controller is reset: as a power cut of a protected drive, as the drive's memory keeps its power.
    /// [`Drive::power_restore`] starts it again.
    ///
    /// Source: \[X\] NVMe knows the write cache as volatile by power, and asks for no flush before a reset.
    pub fn reset(&mut self, now: SimTime) {
        self.compute.power_cut();
        self.data.power_cut(now, true);
    }

    /// The power returns: flash operations that were cut short begin again, and the drive says
    /// [`DriveEffect::Ready`] once it takes commands again. Without effect on a drive that has power.
    pub fn power_restore(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let was_off = self.data.power == Power::Off;
        self.data.power_restore(now, out);
        if was_off {
            self.resume_moves(now, out);
        }
        if self.data.collection.hurries {
            self.hurry_copies(now, out);
        }
    }
}

impl DataEnd {
    fn power_cut(&mut self, now: SimTime, keeps_memory: bool) {
        if self.power == Power::Off {
            return;
        }
        self.power = Power::Off;
        self.generation = self.generation.wrapping_add(1);
        self.flash.power_cut(now);
        if keeps_memory {
            self.tear_writes(now);
        }
        self.offsite.lose_everything(&mut self.cache, &self.ftl);
        self.forget_commands(now);
        self.collection.power_cut(now);
        self.pacer.event_came();
        self.read_dma.reset(now);
        self.link.reset(now);
    }

    fn power_restore(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.power != Power::Off {
            return;
        }
        self.power = Power::Restoring;
        self.flash.power_restore(now, out);
        self.collection.erase_released(now, &self.ftl, &mut self.flash, self.volatile.as_deref(), out);
        self.scan.begin(now, &self.ftl, &mut self.flash, out);
        self.pump_reclaim(now, out);
        self.offsite.want_everything();
        self.recover_next(now, out);
        self.become_ready(out);
    }

    /// Keeps the slots that had arrived of each write whose data was on its way.
    fn tear_writes(&mut self, now: SimTime) {
        // Writes that wait for a log have not been acknowledged: they end where they are.
        for index in std::mem::take(&mut self.offsite.waiting) {
            let Active { spec, changed, .. } = self.commands[index];
            if spec.operation == Operation::Write {
                // Changed slots may be on flash already and not count any more: only the rest is sure to.
                self.buffer.take(self.buffer.footprint(changed));
                self.buffer.give_back(self.buffer.footprint(self.config.width(&spec)));
                self.end_torn();
            }
        }
        while let Some(index) = self.buffer.next_received() {
            let active = &self.commands[index];
            let spec = active.spec;
            let whole = self.buffer.dma.span_of(spec.count);
            // The write is accounted for up to the end of its DMA.
            let left = active.accounted.saturating_since(now).min(whole);
            let elapsed = u128::from((whole - left).as_ps());
            let arrived = (u128::from(spec.count) * elapsed / u128::from(whole.as_ps().max(1))) as u32;
            self.buffer.give_back(self.buffer.footprint(self.config.width(&spec)));
            let kept = self.keep_torn(&spec, arrived);
            self.buffer.take(self.buffer.footprint(kept));
        }
    }

    /// Appends the first `arrived` slots of a write, in whole mapping units, as far as logs have room; returns how many slots
    /// that were.
    fn keep_torn(&mut self, spec: &CommandSpec, arrived: u32) -> u32 {
        let units = self.config.whole_units(spec, arrived);
        let mut start = units.start;
        while start < units.end {
            let unit = start..units.end.min(start + self.config.mapping_unit);
            if !self.offsite.may_change(&self.cache, start, self.config.mapping_unit as usize) {
                break;
            }
            start = unit.end;
            let row = self.append_unit(spec, unit, |data, logical, appended| {
                data.offsite.record(&mut data.cache, logical, appended.before, appended.slot);
            });
            if let Some(row) = row {
                self.interrupt_program(row);
            }
        }
        self.end_torn();
        start - units.start
    }

    fn end_torn(&mut self) {
        if let Some(row) = self.buffer.pad(&mut self.ftl) {
            self.interrupt_program(row);
        }
    }

    /// A die row that a torn write has filled is programmed when there is power.
    fn interrupt_program(&mut self, row: DieRow) {
        let (program, parity) = self.programs_of(row, Stream::Host);
        [program].into_iter().chain(parity).for_each(|command| self.flash.interrupt(command));
    }

    fn forget_commands(&mut self, now: SimTime) {
        self.counters.vanished = self.counters.executed - self.counters.completed;
        // Reads that will not complete have found these stamps: their tags may be given to others.
        self.stamps_read.clear();
        self.commands.clear();
        let per_row = self.ftl.layout().slots_per_die_row;
        for row in self.rebuilds.clear() {
            let (first, tag) = (Slot::new(row * per_row), Tag::Reclaim(row).pack());
            let command = self.ftl.read_command(first, per_row, per_row, Priority::Background, tag);
            self.flash.interrupt(self.flash.placed(command, row));
        }
        self.merging.clear();
        if let Some(cache) = &mut self.read_cache {
            cache.clear();
        }
        self.buffer.forget_commands(now);
        self.loads.forget(|page| self.cache.drop_unread(page));
    }
}
