//! Reads: which flash pages serve a command, their reading, and the DMA to the host.

use crate::command::{Active, CommandSpec, Tag};
use crate::data::DataEnd;
use crate::drive::{DriveEffect, DriveEvent};
use crate::movement::Movement;
use flashyard_flash::{Layout, Priority, SLOT_BYTES, Slot};
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_stats::Cause;
use flashyard_units::SimTime;

/// One multi-plane read: slots of one die row, in the same or in following pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadGroup {
    /// The first slot.
    pub first: Slot,
    /// The last slot.
    pub last: Slot,
    /// Slots of the command among `first..=last`.
    pub slots: u32,
}

/// Parts of a read: slots that come from flash, and slots that need none.
#[derive(Default)]
pub(crate) struct ReadPlan {
    pub(crate) groups: Vec<ReadGroup>,
    /// Slots in the write buffer, and slots that hold nothing.
    pub(crate) at_hand: u32,
    /// Where each slot of the command is; kept only for payload stamps and movements.
    slots: Vec<Slot>,
}

impl ReadPlan {
    fn clear(&mut self) {
        self.groups.clear();
        self.at_hand = 0;
        self.slots.clear();
    }
}

impl DataEnd {
    /// Reads what the map says at this moment.
    #[inline]
    pub(crate) fn start_read(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let spec = self.active[index as usize].spec;
        self.plan_read(&spec);
        self.carry_out(now, index, out);
    }

    /// Walks the map into the drive's plan: runs of slots in one die row become one multi-plane read.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub(crate) fn plan_read(&mut self, spec: &CommandSpec) {
        self.plan.clear();
        let together = !self.config.nand.capabilities.independent_planes;
        let keeps_places = self.config.ftl.stamps || self.movements.is_on();
        for logical in spec.first..spec.first + spec.count {
            let slot = self.ftl.lookup(logical);
            if keeps_places {
                self.plan.slots.push(slot);
            }
            if !slot.is_some() {
                self.plan.at_hand += 1;
                continue;
            }
            if let Some(run) = self.plan.groups.last_mut()
                && joins(self.ftl.layout(), run.last, slot, together)
            {
                // A die row is programmed as a whole: this slot is on flash because the last one is.
                run.last = slot;
                run.slots += 1;
            } else if self.ftl.is_programmed(slot) {
                self.plan.groups.push(ReadGroup { first: slot, last: slot, slots: 1 });
            } else {
                self.counters.buffer_hits += 1;
                self.plan.at_hand += 1;
            }
        }
    }

    /// Issues the flash reads of the drive's plan and the DMA of the slots at hand.
    // Not in each caller: see `plan_read`.
    #[inline(never)]
    pub(crate) fn carry_out(&mut self, now: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let CommandSpec { tag, first, .. } = self.active[index as usize].spec;
        if !self.plan.slots.is_empty() {
            self.tell_places(tag, first);
        }
        self.meet_lost(index);
        let groups = self.plan.groups.len();
        self.active[index as usize].remaining = groups as u32;
        for group in 0..groups {
            let ReadGroup { first, last, slots } = self.plan.groups[group];
            let span = last.get() - first.get() + 1;
            if self.stripes.is_some() && self.rebuilt(now, (index, slots), (first, span), out) {
                continue;
            }
            let tag = Tag::Read(index, slots).pack();
            let mut command = self.ftl.read_command(first, span, slots, Priority::Foreground, tag);
            // The division is not for drives without stripes.
            if self.stripes.is_some() {
                command = self.placed(command, self.ftl.layout().die_row(first));
            }
            if self.counts_reads {
                self.ftl.count_reads(first, command.planes.count());
            }
            self.issue(now, command, out);
        }
        if self.plan.at_hand > 0 {
            self.reserve_read_dma(now, index, self.plan.at_hand);
        }
        if self.active[index as usize].remaining == 0 {
            self.finish_read(index, out);
        }
    }

    /// Records the slots that a read finds, and their places.
    #[cold]
    fn tell_places(&mut self, tag: u32, first: u32) {
        for (place, &slot) in (0..).zip(&self.plan.slots) {
            if self.config.ftl.stamps {
                let stamp = if slot.is_some() { self.ftl.stamp(slot) } else { 0 };
                self.stamps_read.push((tag, first + place, stamp));
            }
            self.movements.push(Movement::Read { tag, place, slot });
        }
    }

    /// One flash read of a command has completed.
    #[inline]
    pub(crate) fn read_done(
        &mut self,
        now: SimTime,
        index: u32,
        slots: u32,
        time: &FlashTime,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        self.reserve_read_dma(now, index, slots);
        let active = &mut self.active[index as usize];
        active.remaining -= 1;
        if active.remaining == 0 {
            // All reads of a command were submitted at once: the last one is the path that counts.
            active.time.add(Cause::Die, time.die);
            active.time.add(Cause::Bus, time.bus);
            active.time.add(Cause::Retry, time.retry);
            active.time.add(Cause::ReclaimWait, time.background);
            active.accounted = now;
            self.finish_read(index, out);
        }
    }

    #[inline]
    pub(crate) fn reserve_read_dma(&mut self, now: SimTime, index: u32, slots: u32) {
        let bytes = u64::from(slots) * u64::from(SLOT_BYTES);
        let starts = now.max(self.read_dma_free);
        let ends = starts + self.config.read_rate.span_of(bytes);
        self.read_dma_free = ends;
        self.counters.read_bytes += bytes;
        let active = &mut self.active[index as usize];
        active.dma_end = active.dma_end.max(ends);
    }

    /// All data of a read is on its way to the host: it completes when the last DMA ends.
    #[inline]
    fn finish_read(&mut self, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let active: &mut Active = &mut self.active[index as usize];
        let at = active.dma_end;
        active.account(at, Cause::Link);
        if let Some(slot) = active.unread {
            out.emit(DriveEffect::ReadFailed { tag: active.spec.tag, slot });
        }
        self.complete(at, index, out);
    }
}

/// Whether `slot` can join a read that ends at `last`: in the same page, or in the next one where pages of several planes are
/// sensed `together`.
#[inline]
fn joins(layout: &Layout, last: Slot, slot: Slot, together: bool) -> bool {
    slot > last
        && layout.plane_row(slot) == layout.plane_row(last)
        && layout.page(slot) <= layout.page(last) + u32::from(together)
}
