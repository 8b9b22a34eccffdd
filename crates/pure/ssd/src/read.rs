//! Reads: which flash pages serve a command, their reading, and the DMA to the host.

use crate::command::{Active, CommandSpec, Tag};
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use crate::read_plan::{ReadGroup, Supply};
use flashyard_blk::Operation;
use flashyard_flash::{Priority, SLOT_BYTES};
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

impl DataEnd {
    /// Reads what the map says at this moment.
    #[inline]
    pub(crate) fn start_read(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let spec = self.commands[index].spec;
        if self.reads_plainly && spec.count == 1 && self.lost.is_empty() && !self.movements.is_on() {
            let slot = self.ftl.lookup(spec.first);
            if slot.is_some() && self.ftl.is_programmed(slot) {
                // As `carry_out` with a plan of one slot.
                self.commands[index].remaining = 1;
                let tag = Tag::Read(index, 1).pack();
                let command = self.ftl.read_command(slot, 1, 1, Priority::Foreground, tag);
                return self.flash.issue(now, command, out);
            }
        }
        if self.read_cache.is_none() {
            self.plan_read(&spec);
            return self.carry_out(now, index, out);
        }
        self.plan_cached(index, &spec);
        self.carry_out(now, index, out);
        if let Some(cache) = &mut self.read_cache {
            let parts = (&self.config, &mut self.ftl, &mut self.flash);
            self.counters.read_ahead_slots += cache.read_ahead(now, &spec, parts, self.counts_reads, out);
        }
    }

    /// Walks the map into the drive's plan.
    #[inline]
    pub(crate) fn plan_read(&mut self, spec: &CommandSpec) {
        let keeps_places = self.config.ftl.stamps || self.movements.is_on();
        let together = self.config.reads_together();
        self.counters.buffer_hits += self.plan.walk(&self.ftl, spec, together, keeps_places, |_| Supply::Elsewhere);
    }

    /// Walks the map into the drive's plan, without what is in the read cache or on its way there.
    fn plan_cached(&mut self, index: u32, spec: &CommandSpec) {
        let Some(cache) = &mut self.read_cache else { return };
        let keeps_places = self.config.ftl.stamps || self.movements.is_on();
        let together = self.config.reads_together();
        let (mut hits, mut awaited) = (0, 0);
        self.counters.buffer_hits += self.plan.walk(&self.ftl, spec, together, keeps_places, |logical| {
            let supply = cache.supply(logical);
            match supply {
                Supply::Elsewhere => {}
                Supply::Cached => hits += 1,
                Supply::Fetched(fetch) => awaited += u32::from(cache.wait(fetch, index)),
            }
            supply
        });
        self.plan.awaited = awaited;
        self.counters.read_cache_hits += hits;
    }

    /// Issues the flash reads of the drive's plan and the DMA of the slots at hand.
    // Not in each caller: see `ReadPlan::walk`.
    #[inline(never)]
    pub(crate) fn carry_out(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let CommandSpec { tag, first, .. } = self.commands[index].spec;
        if !self.plan.places().is_empty() {
            self.tell_places(tag, first);
        }
        self.meet_lost(index);
        let groups = self.plan.groups.len();
        self.commands[index].remaining = groups as u32 + self.plan.awaited;
        for group in 0..groups {
            let ReadGroup { first, last, slots } = self.plan.groups[group];
            let span = last.get() - first.get() + 1;
            if self.flash.stripes().is_some() && self.rebuilt(now, (index, slots), (first, span), out) {
                continue;
            }
            let tag = Tag::Read(index, slots).pack();
            let mut command = self.ftl.read_command(first, span, slots, Priority::Foreground, tag);
            // The division is not for drives without stripes.
            if self.flash.stripes().is_some() {
                command = self.flash.placed(command, self.ftl.layout().die_row(first));
            }
            if self.counts_reads {
                self.ftl.count_reads(first, command.planes.count());
            }
            self.flash.issue(now, command, out);
        }
        if self.plan.at_hand > 0 {
            self.reserve_read_dma(now, index, self.plan.at_hand);
        }
        if self.commands[index].remaining == 0 {
            self.finish_read(index, out);
        }
        if self.counts_reads && self.ftl.reclaiming() {
            self.pump_reclaim(now, out);
        }
    }

    /// Records the slots that a read finds, and their places.
    #[cold]
    fn tell_places(&mut self, tag: u32, first: u32) {
        for (place, &slot) in (0..).zip(self.plan.places()) {
            if self.config.ftl.stamps {
                let stamp = if slot.is_some() { self.ftl.stamp(slot) } else { 0 };
                self.stamps_read.push((tag, first + place, stamp));
            }
            self.movements.push(Movement::Read { tag, place, slot });
        }
    }

    /// One flash read of a command has completed, which gives the host `slots` of it: none where a write has read what it leaves of
    /// a mapping unit.
    #[inline]
    pub(crate) fn read_done(
        &mut self,
        now: SimTime,
        index: u32,
        slots: u32,
        time: &FlashTime,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if slots > 0 {
            self.reserve_read_dma(now, index, slots);
        }
        let active = &mut self.commands[index];
        active.remaining -= 1;
        if active.remaining == 0 {
            // All reads of a command were submitted at once: the last one is the path that counts.
            active.time.add(Cause::Die, time.die);
            active.time.add(Cause::Bus, time.bus);
            active.time.add(Cause::Retry, time.retry);
            active.time.add(Cause::ReclaimWait, time.background);
            active.accounted = now;
            if active.spec.operation == Operation::Write {
                self.merging.ended(index);
                return self.enter_buffer(now, index, out);
            }
            self.finish_read(index, out);
        }
    }

    #[inline]
    pub(crate) fn reserve_read_dma(&mut self, now: SimTime, index: u32, slots: u32) {
        let ends = self.read_dma.reserve(now, slots).max(self.link.pass(now, slots));
        self.counters.read_bytes += u64::from(slots) * u64::from(SLOT_BYTES);
        let active = &mut self.commands[index];
        active.dma_end = active.dma_end.max(ends);
    }

    /// All data of a read is on its way to the host: it completes when the last DMA ends.
    #[inline]
    fn finish_read(&mut self, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active: &mut Active = &mut self.commands[index];
        let at = active.dma_end;
        active.account(at, Cause::Link);
        if let Some(slot) = active.unread {
            out.emit(DriveEffect::ReadFailed { tag: active.spec.tag, slot });
        } else if let Some(cache) = &mut self.read_cache {
            let CommandSpec { first, count, .. } = active.spec;
            (first..first + count).for_each(|slot| cache.keep(slot));
        }
        self.complete(at, index, out);
    }

    /// Data that was read ahead has come: commands that wait for it go on. Where it could not be read, they read it themselves.
    pub(crate) fn fetched(&mut self, now: SimTime, number: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Some(cache) = &mut self.read_cache else { return };
        let (group, waiters, failed) = cache.end(number as usize);
        for &(index, slots) in &waiters {
            if failed {
                let command =
                    self.flash.group_command(&self.ftl, ReadGroup { slots, ..group }, Tag::Read(index, slots));
                self.flash.issue(now, command, out);
            } else {
                let Active { accounted, .. } = self.commands[index];
                let time = FlashTime { die: now.since(accounted), ..FlashTime::default() };
                self.read_done(now, index, slots, &time, out);
            }
        }
        if let Some(cache) = &mut self.read_cache {
            cache.keep_list(number as usize, waiters);
        }
    }
}
