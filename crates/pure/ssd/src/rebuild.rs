//! Reads whose data is rebuilt from the other members of the stripe: they would have to wait for garbage collection, or
//! flash has not given it back.
//!
//! A rebuilt read costs a flash read of every other member that is on flash, and takes as long as the slowest of them.
//! Slots still in the write buffer, and the parity of a stripe that is not full yet, are at hand. The exclusive or
//! takes no time. Source: [A] sheet cvss §5.

use crate::command::Tag;
use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use crate::rebuilds::{Rebuild, Rebuilt, Recovery};
use crate::stripe::BlockedReads;
use flashyard_flash::{FlashCommand, Slot};
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_units::SimTime;

impl DataEnd {
    /// Rebuilds `slots` slots of command `index`, which are among the `span` ones from `first`, if their die is at work for
    /// garbage collection and the drive does not let them wait. Returns whether it rebuilds; nothing is done otherwise.
    pub(crate) fn rebuilt(
        &mut self,
        now: SimTime,
        (index, slots): (u32, u32),
        (first, span): (Slot, u32),
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> bool {
        let Some(stripes) = self.flash.stripes() else { return false };
        let die = stripes.die(self.ftl.layout().die_row(first));
        if stripes.config.blocked_reads == BlockedReads::Wait || !self.flash.nand.is_held_by_reclaim(die) {
            return false;
        }
        let mut reads = std::mem::take(&mut self.rebuilds.reads);
        stripes.plan_rebuild(&self.ftl, first, span, &mut reads);
        let sooner =
            || reads.iter().all(|read| self.flash.nand.frees_at(now, read.die) < self.flash.nand.frees_at(now, die));
        let rebuilds = stripes.config.blocked_reads == BlockedReads::Rebuild || sooner();
        if rebuilds {
            self.counters.rebuilt_reads += 1;
            self.counters.rebuilding_reads += reads.len() as u64;
            if reads.is_empty() {
                self.reserve_read_dma(now, index, slots);
                self.commands[index].remaining -= 1;
            } else {
                let (target, remaining) = (Rebuilt::Command(index, slots), reads.len() as u32);
                let number = self.rebuilds.add(Rebuild { target, remaining, recovers: false, failed: false });
                self.issue_reads(now, number, first, &mut reads, out);
            }
        }
        reads.clear();
        self.rebuilds.reads = reads;
        rebuilds
    }

    /// Reads what flash has not given back from the other members of its stripe: `span` slots from `first`.
    #[cold]
    pub(crate) fn recover(
        &mut self,
        now: SimTime,
        target: Rebuilt,
        (first, span): (Slot, u32),
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) -> Recovery {
        let Some(stripes) = self.flash.stripes() else { return Recovery::Lost };
        let mut reads = std::mem::take(&mut self.rebuilds.reads);
        stripes.plan_rebuild(&self.ftl, first, span, &mut reads);
        let recovery = if reads.is_empty() {
            self.counters.recovered_reads += 1;
            Recovery::AtHand
        } else {
            let remaining = reads.len() as u32;
            let number = self.rebuilds.add(Rebuild { target, remaining, recovers: true, failed: false });
            self.issue_reads(now, number, first, &mut reads, out);
            Recovery::UnderWay
        };
        self.rebuilds.reads = reads;
        recovery
    }

    fn issue_reads(
        &mut self,
        now: SimTime,
        number: u32,
        first: Slot,
        reads: &mut Vec<FlashCommand>,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        for read in reads.drain(..) {
            if self.counts_reads {
                self.ftl.count_reads(first, read.planes.count());
            }
            self.flash.issue(now, FlashCommand { tag: Tag::Rebuild(number).pack(), ..read }, out);
        }
    }

    /// A flash read of a rebuild has completed.
    pub(crate) fn rebuild_done(
        &mut self,
        now: SimTime,
        number: u32,
        time: &FlashTime,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        let Some(Rebuild { target, recovers, failed, .. }) = self.rebuilds.read_done(number) else { return };
        if recovers && !failed {
            self.counters.recovered_reads += 1;
        }
        match target {
            Rebuilt::Command(index, slots) => {
                if failed {
                    self.host_read_lost(index);
                }
                // The slowest is the path that counts.
                self.read_done(now, index, slots, time, out);
            }
            Rebuilt::Row(row) => {
                if failed {
                    self.counters.media_errors += 1;
                    self.lost.add_row(row);
                }
                self.reclaim_read_done(now, row, out);
            }
        }
    }
}
