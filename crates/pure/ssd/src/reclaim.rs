//! Keeps garbage collection going in time: as many reads in flight as allowed, never more than its frontier can take.

use crate::command::Tag;
use crate::data::{DataCounters, DataEnd};
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use flashyard_flash::Priority;
use flashyard_ftl::{Appended, Stream, Want};
use flashyard_kernel::Outbox;
use flashyard_units::{SimSpan, SimTime};

/// Work of garbage collection in flight.
#[derive(Default)]
pub(crate) struct ReclaimPump {
    reads: u32,
    /// Superblocks being erased and the dies that have yet to report.
    erasing: Vec<(u32, u32)>,
    /// Since when it is under way.
    since: Option<SimTime>,
    /// How long it was under way before that.
    busy: SimSpan,
    /// Die rows that were read and have no core yet.
    for_cores: Vec<u32>,
}

impl ReclaimPump {
    /// Reads in flight.
    pub(crate) fn reads(&self) -> u32 {
        self.reads
    }

    /// Whether it has no command at the flash.
    pub(crate) fn is_idle(&self) -> bool {
        self.reads == 0 && self.erasing.is_empty()
    }

    /// Time for which garbage collection was under way.
    #[inline]
    pub(crate) fn clock(&self, now: SimTime) -> SimSpan {
        self.busy + self.since.map_or(SimSpan::ZERO, |since| now.since(since))
    }

    #[inline]
    fn set_under_way(&mut self, now: SimTime, under_way: bool) {
        if under_way != self.since.is_some() {
            self.busy = self.clock(now);
            self.since = under_way.then_some(now);
        }
    }
}

impl DataEnd {
    /// Issues garbage collection reads and erases as far as limits allow.
    #[inline]
    pub(crate) fn pump_reclaim(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if self.ftl.reclaim_needed() || self.ftl.reclaiming() {
            let want = if self.ftl.reclaim_needed() { Want::Space } else { Want::Nothing };
            self.pump_reclaim_slow(now, want, out);
        }
        self.note_reclaim(now);
    }

    #[inline]
    fn note_reclaim(&mut self, now: SimTime) {
        let under_way = self.collects();
        self.pump.set_under_way(now, under_way);
    }

    /// Whether garbage collection is under way: it empties a victim, or superblocks that it has emptied are not erased yet.
    #[inline]
    pub(crate) fn collects(&self) -> bool {
        let emptied = !self.pump.erasing.is_empty() || self.grace.is_holding();
        self.ftl.reclaiming() || self.pump.reads > 0 || emptied
    }

    /// Garbage collection stands still from now on.
    pub(crate) fn stop_reclaim_clock(&mut self, now: SimTime) {
        self.pump.set_under_way(now, false);
    }

    /// Folds single-level data while no command is under way: the next command finds the cache empty.
    #[inline]
    pub(crate) fn fold_when_idle(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let DataCounters { executed, completed, vanished, .. } = self.counters;
        let idle = executed == completed + vanished;
        if idle && self.ftl.single_level_in_use() > 0 && !self.ftl.reclaiming() && self.ftl.foldable().is_some() {
            self.pump_reclaim_slow(now, Want::Folding, out);
            self.note_reclaim(now);
        }
    }

    pub(crate) fn pump_reclaim_slow(
        &mut self,
        now: SimTime,
        want: Want,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        // Rows that garbage collection has read must not pile up before programs that wait for their turn.
        while self.pump.reads + self.flash.programs_held() < self.config.reclaim_reads {
            let Some(read) = self.ftl.reclaim_next_read(want) else { break };
            self.pump.reads += 1;
            let tag = Tag::Reclaim(read.number).pack();
            let command = self.ftl.read_command(read.first, read.span, read.valid, Priority::Background, tag);
            self.flash.issue(now, self.flash.placed(command, read.number), out);
        }
        let stream = self.ftl.reclaim_stream();
        if let Some(emptied) = self.ftl.reclaim_take_emptied() {
            if let Some(row) = emptied.row {
                self.program(now, row, stream, out);
            }
            self.grace.hold(emptied.superblock);
            self.erase_released(now, out);
        }
    }

    /// Erases the emptied superblocks that no translation under way can lead to.
    pub(crate) fn erase_released(&mut self, now: SimTime, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let mut released = std::mem::take(&mut self.released);
        self.grace.release(&mut released);
        let dies = self.config.nand.geometry.dies();
        for superblock in released.drain(..) {
            self.pump.erasing.push((superblock, dies));
            for die in 0..dies {
                let command = self.ftl.erase_command(die as u16, Tag::Erase(superblock).pack());
                self.flash.issue(now, command, out);
            }
        }
        self.released = released;
    }

    /// A die row has been read for garbage collection: a core moves it where that takes firmware.
    pub(crate) fn reclaim_read_done(
        &mut self,
        now: SimTime,
        number: u32,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if self.config.firmware.cycles_per_moved_slice > 0 {
            self.pump.for_cores.push(number);
        } else {
            self.collect(now, number, out);
        }
    }

    /// Takes a die row whose move is to be the work of a core.
    pub(crate) fn take_for_cores(&mut self) -> Option<u32> {
        self.pump.for_cores.pop()
    }

    /// Moves what is still valid of a die row that was read.
    pub(crate) fn collect(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        if !self.offsite.may_move(&self.cache, &self.ftl, number) {
            return;
        }
        self.pump.reads -= 1;
        let stream = self.ftl.reclaim_stream();
        let shares_rows = self.ftl.reclaim_shares_rows();
        let lost = self.lost.take_row(number);
        let mut moved = std::mem::take(&mut self.moved);
        self.ftl.reclaim_row_read(number, |_, logical, appended| moved.push((logical, appended)));
        if shares_rows {
            // A row gives back a buffer slot for each of its slots, of whatever stream.
            self.buffer.take(moved.len() as u32);
        }
        for (logical, appended) in moved.drain(..) {
            self.offsite.changed(&mut self.cache, now, logical, appended.before, appended.slot, out);
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
        self.moved = moved;
        self.pump_reclaim(now, out);
        if self.pacer.is_on() {
            self.admit_waiting(now, out);
        }
        self.end_hopeless(now, out);
    }

    /// One die has erased its share of a superblock.
    pub(crate) fn erase_done(&mut self, now: SimTime, superblock: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let erasing = &mut self.pump.erasing;
        let position = erasing.iter().position(|entry| entry.0 == superblock).expect("it was being erased");
        erasing[position].1 -= 1;
        if erasing[position].1 == 0 {
            erasing.swap_remove(position);
            self.ftl.reclaim_erased(superblock);
            self.movements.push(Movement::Erased { superblock });
            self.admit_waiting(now, out);
            self.pump_reclaim(now, out);
            self.end_hopeless(now, out);
        }
    }
}
