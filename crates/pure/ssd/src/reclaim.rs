//! Keeps garbage collection going in time: as many reads in flight as allowed, never more than its frontier can take.

use crate::command::Tag;
use crate::counters::DataCounters;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::volatile::Version;
use flashyard_flash::Priority;
use flashyard_ftl::{Appended, Stream, Want};
use flashyard_kernel::Outbox;
use flashyard_units::SimTime;

impl DataEnd {
    /// Issues garbage collection reads and erases as far as limits allow.
    #[inline]
    pub(crate) fn pump_reclaim(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.ftl.reclaim_needed() || self.ftl.reclaiming() {
            let want = if self.ftl.reclaim_needed() { Want::Space } else { Want::Nothing };
            self.pump_reclaim_slow(now, want, out);
        }
        self.collection.note(now, &self.ftl);
    }

    /// Folds single-level data while no command is under way: the next command finds the cache empty.
    #[inline]
    pub(crate) fn fold_when_idle(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let DataCounters { executed, completed, vanished, .. } = self.counters;
        let idle = executed == completed + vanished;
        if idle && self.ftl.single_level_in_use() > 0 && !self.ftl.reclaiming() && self.ftl.foldable().is_some() {
            self.pump_reclaim_slow(now, Want::Folding, out);
            self.collection.note(now, &self.ftl);
        }
    }

    pub(crate) fn pump_reclaim_slow(
        &mut self,
        now: SimTime,
        want: Want,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        // One victim at a time must come back after a power cut: more might not find the room to move again.
        let want = if self.collection.holds_needed() { Want::Nothing } else { want };
        // Rows that garbage collection has read must not pile up before programs that wait for their turn.
        let shares_rows = self.ftl.reclaim_shares_rows();
        while self.collection.reads() + self.flash.programs_held(shares_rows) < self.config.reclaim_reads {
            let Some(read) = self.ftl.reclaim_next_read(want) else { break };
            self.collection.read_begins();
            let tag = Tag::Reclaim(read.number).pack();
            let command = self.ftl.read_command(read.first, read.span, read.valid, Priority::Background, tag);
            self.flash.issue(now, self.flash.placed(command, read.number), out);
        }
        let stream = self.ftl.reclaim_stream();
        if let Some(emptied) = self.ftl.reclaim_take_emptied() {
            if let Some(row) = emptied.row {
                self.program(now, row, stream, out);
            }
            self.collection.grace.hold(emptied.superblock);
            self.collection.erase_released(now, &self.ftl, &mut self.flash, self.volatile.as_deref(), out);
        }
    }

    /// A die row has been read for garbage collection: a core moves it where that takes firmware.
    pub(crate) fn reclaim_read_done(
        &mut self,
        now: SimTime,
        number: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if self.config.firmware.cycles_per_moved_slice > 0 {
            self.collection.give_to_cores(number);
        } else {
            self.collect(now, number, out);
        }
    }

    /// Moves what is still valid of a die row that was read.
    pub(crate) fn collect(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !self.offsite.may_move(&self.cache, &self.ftl, number) {
            return;
        }
        self.collection.read_ends();
        let stream = self.ftl.reclaim_stream();
        let shares_rows = self.ftl.reclaim_shares_rows();
        let lost = self.lost.take_row(number);
        let mut moved = std::mem::take(&mut self.collection.moved);
        self.ftl.reclaim_row_read(number, |_, logical, appended| moved.push((logical, appended)));
        if shares_rows {
            // A row gives back a buffer slot for each of its slots, of whatever stream.
            self.buffer.take(moved.len() as u32);
        }
        for (logical, appended) in moved.drain(..) {
            self.offsite.changed(&mut self.cache, now, logical, appended.before, appended.slot, out);
            if let Some(volatile) = &mut self.volatile {
                let lost = lost || self.lost.contains(logical);
                let (before, after) = (Version { slot: appended.before, lost }, Version { slot: appended.slot, lost });
                volatile.written(logical, before, after);
            }
            if self.movements.is_on() {
                let Appended { slot, before, .. } = appended;
                self.movements.note_appended(
                    &self.ftl,
                    stream,
                    Movement::Moved { logical, from: before, to: slot },
                    slot,
                );
            }
            if lost {
                self.lost.add_slot(logical);
                self.movements.push(Movement::Lost { logical, slot: appended.slot });
            }
            if let Some(row) = appended.row {
                self.program(now, row, if shares_rows { Stream::Host } else { stream }, out);
            }
        }
        self.collection.moved = moved;
        self.pump_reclaim(now, out);
        if self.pacer.is_on() {
            self.admit_waiting(now, out);
        }
        self.end_hopeless(now, out);
    }

    /// One die has erased its share of a superblock.
    pub(crate) fn erase_done(&mut self, now: SimTime, superblock: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.collection.erased(superblock) {
            self.ftl.reclaim_erased(superblock);
            self.movements.push(Movement::Erased { superblock });
            self.admit_waiting(now, out);
            self.pump_reclaim(now, out);
            self.end_hopeless(now, out);
        }
    }
}
