//! Writes: admission to the buffer, appending, programming, flushing.

use crate::command::Tag;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::pacing::{Admission, Space};
use flashyard_flash::{FlashCommand, Priority, SLOT_BYTES};
use flashyard_ftl::{DieRow, Stream};
use flashyard_kernel::Outbox;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl DataEnd {
    /// Admits a write when buffer and spare space have room for it; it waits in line otherwise.
    #[inline]
    pub(crate) fn start_write(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let count = self.commands[index].spec.count;
        let has_room = self.buffer.first_in_line().is_none() && self.buffer.has_room(count, &self.ftl);
        if has_room && self.is_its_turn(now, out) {
            self.admit_write(now, index, out);
        } else {
            self.commands.mark_wait(index, self.collection.clock(now));
            self.buffer.line_up(index);
            self.pump_reclaim(now, out);
            self.end_hopeless(now, out);
        }
    }

    /// Whether the pacer lets the next write in. It asks for an event where that is a matter of time.
    #[inline]
    fn is_its_turn(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) -> bool {
        if !self.pacer.is_on() {
            return true;
        }
        let space = self.space();
        match self.pacer.admission(now, &space) {
            Admission::Now => true,
            Admission::Collected => false,
            Admission::At(time) => {
                if self.pacer.wants_event(time) {
                    out.at(time, DriveEvent::Paced);
                }
                false
            }
        }
    }

    /// What the pacer has to know. Garbage collection that cannot go on gains nothing, and nobody waits for it.
    fn space(&self) -> Space {
        Space {
            collecting: self.ftl.reclaim_needed() && self.collection.is_under_way(&self.ftl),
            gained: self.ftl.reclaim_gained(),
            room: self.ftl.host_room().saturating_sub(self.buffer.promised()),
            reserve: self.ftl.reclaim_reserve(),
        }
    }

    /// The pacer may let the next write in.
    pub(crate) fn paced(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.pacer.event_came();
        self.admit_waiting(now, out);
    }

    fn admit_write(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let count = self.commands[index].spec.count;
        let ends = self.buffer.admit(now, index, count);
        if self.pacer.is_on() {
            let space = self.space();
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
        let command = self.program_command(row, stream);
        self.flash.issue(now, command, out);
        if let Some(parity) = self.flash.parity_command(row.number, &command) {
            self.counters.parity_programs += 1;
            self.flash.issue(now, parity, out);
        }
    }

    /// The program of a full die row, counted as outstanding from now on.
    #[inline]
    pub(crate) fn program_command(&mut self, row: DieRow, stream: Stream) -> FlashCommand {
        let (tag, priority) = match stream {
            Stream::Host => (Tag::HostRow(row.number), Priority::Foreground),
            Stream::Moved | Stream::Leveled => (Tag::MovedRow(row.number), Priority::Background),
        };
        self.buffer.program_begins();
        let command = self.ftl.program_command(row, priority, tag.pack());
        self.flash.placed(command, row.number)
    }

    /// Ends a command's last flash page when commands do not share pages; returns the die row that this filled.
    #[inline]
    pub(crate) fn pad_command(&mut self) -> Option<DieRow> {
        if self.config.ftl.coalesce {
            return None;
        }
        self.ftl.pad(Stream::Host, self.ftl.layout().slots_per_page)
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
            if !self.buffer.has_room(self.commands[index].spec.count, &self.ftl) || !self.is_its_turn(now, out) {
                break;
            }
            self.buffer.leave_line();
            self.commands.account_wait(now, index, self.collection.clock(now));
            self.admit_write(now, index, out);
        }
    }
}
