//! Writes: admission to the buffer, appending, programming, flushing.

use crate::command::Tag;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_flash::{FlashCommand, Priority, SLOT_BYTES};
use flashyard_ftl::{DieRow, Stream};
use flashyard_kernel::Outbox;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl DataEnd {
    /// A write reads what it leaves of its mapping units, and goes to the buffer.
    #[inline]
    pub(crate) fn start_write(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.config.has_units() {
            let command = (index, self.commands[index].spec);
            let parts = (&self.config, &mut self.ftl, &mut self.plan);
            let reads = self.merging.read_rest(now, command, parts, &mut self.flash, self.counts_reads, out);
            self.counters.merge_reads += u64::from(reads);
            self.commands[index].remaining = reads;
            if reads > 0 {
                return;
            }
        }
        self.enter_buffer(now, index, out);
    }

    /// Admits a write when buffer and spare space have room for it; it waits in line otherwise.
    #[inline]
    pub(crate) fn enter_buffer(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let count = self.config.width(&self.commands[index].spec);
        let has_room = self.buffer.first_in_line().is_none() && self.buffer.has_room(count, &self.ftl);
        if has_room && self.pacer.lets_in(now, || self.buffer.space(&self.ftl, &self.collection), out) {
            self.admit_write(now, index, out);
        } else {
            self.commands.mark_wait(index, self.collection.clock(now));
            self.buffer.line_up(index);
            self.pump_reclaim(now, out);
            self.end_hopeless(now, out);
        }
    }

    /// The pacer may let the next write in.
    pub(crate) fn paced(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.pacer.event_came();
        self.admit_waiting(now, out);
    }

    fn admit_write(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let spec = self.commands[index].spec;
        let count = self.config.width(&spec);
        let ends = self.buffer.admit(now, index, count, spec.count).max(self.link.pass(now, spec.count));
        if self.pacer.is_on() {
            let space = self.buffer.space(&self.ftl, &self.collection);
            self.pacer.admitted(now, self.buffer.footprint(count), &space);
        }
        self.commands[index].account(ends, Cause::Link);
        out.at(ends, DriveEvent::Buffered { command: index });
    }

    /// A write's data is in the buffer: append it, program the die rows it fills, acknowledge it.
    #[inline]
    pub(crate) fn buffered(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let received = self.buffer.next_received();
        debug_assert_eq!(received, Some(index), "data arrives in the order of the DMA");
        let spec = self.commands[index].spec;
        self.counters.write_bytes += u64::from(spec.count) * u64::from(SLOT_BYTES);
        self.change_map(now, index, out);
    }

    #[inline]
    pub(crate) fn program(
        &mut self,
        now: SimTime,
        row: DieRow,
        stream: Stream,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let (program, parity) = self.programs_of(row, stream);
        self.flash.issue(now, program, out);
        if let Some(parity) = parity {
            self.flash.issue(now, parity, out);
        }
        if let Some(records) = &mut self.records {
            let (journal, checkpoint) = records.take_due();
            self.counters.journal_programs += u64::from(journal);
            self.counters.checkpoint_programs += u64::from(checkpoint);
            for _ in 0..journal + checkpoint {
                self.flash.issue(now, records.program(&self.config.nand.geometry), out);
            }
        }
    }

    /// The program of a full die row, counted as outstanding from now on, and that of the parity of the stripe that it fills.
    #[inline]
    pub(crate) fn programs_of(&mut self, row: DieRow, stream: Stream) -> (FlashCommand, Option<FlashCommand>) {
        let (tag, priority) = match stream {
            Stream::Host => (Tag::HostRow(row.number), Priority::Foreground),
            Stream::Moved | Stream::Leveled => (Tag::MovedRow(row.number), Priority::Background),
        };
        self.buffer.program_begins();
        if let Some(records) = &mut self.records {
            records.note_row(&self.ftl, row.number);
        }
        let command = self.ftl.program_command(row, priority, tag.pack());
        let program = self.flash.placed(command, row.number);
        let parity = self.flash.parity_command(row.number, &program);
        self.counters.parity_programs += u64::from(parity.is_some());
        (program, parity)
    }

    /// Completes at once with power-loss protection; otherwise once everything buffered is on flash.
    pub(crate) fn flush(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.config.power_loss_protection {
            return self.complete(now, index, out);
        }
        let unit = self.ftl.layout().slots_per_die_row;
        let padding = self.ftl.padding_to(Stream::Host, unit);
        // Padding takes spare space too, and must leave the room promised to admitted writes. So do writes that have
        // begun to append.
        let begun = !self.offsite.waiting.is_empty();
        if begun || self.ftl.host_room() < self.buffer.promised() + u64::from(padding) {
            self.commands.mark_wait(index, self.collection.clock(now));
            self.buffer.hold_flush(index);
            return;
        }
        self.buffer.take(padding);
        // Moved data has an older copy on flash until its victim is erased: only the host's needs padding.
        if let Some(row) = self.ftl.pad(Stream::Host, unit) {
            self.program(now, row, Stream::Host, out);
        }
        if self.buffer.programs() == 0 {
            self.complete(now, index, out);
        } else {
            self.commands.mark_wait(index, self.collection.clock(now));
            self.buffer.wait_for_programs(index);
        }
    }

    pub(crate) fn admit_waiting(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        for _ in 0..self.buffer.flushes_held() {
            if let Some(index) = self.buffer.next_held_flush() {
                self.commands.account_wait(now, index, self.collection.clock(now));
                self.flush(now, index, out);
            }
        }
        while let Some(index) = self.buffer.first_in_line() {
            if !self.buffer.has_room(self.config.width(&self.commands[index].spec), &self.ftl)
                || !self.pacer.lets_in(now, || self.buffer.space(&self.ftl, &self.collection), out)
            {
                break;
            }
            self.buffer.leave_line();
            self.commands.account_wait(now, index, self.collection.clock(now));
            self.admit_write(now, index, out);
        }
    }
}
