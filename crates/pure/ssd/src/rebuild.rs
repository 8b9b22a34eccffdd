//! Reads that do not wait for garbage collection: their data is rebuilt from the other members of the stripe.
//!
//! A rebuilt read costs a flash read of every other member that is on flash, and takes as long as the slowest of them.
//! Slots still in the write buffer, and the parity of a stripe that is not full yet, are at hand. The exclusive or
//! takes no time. Source: [A] sheet cvss §5.

use crate::command::Tag;
use crate::data::DataEnd;
use crate::drive::{DriveEffect, DriveEvent};
use crate::stripe::{BlockedReads, Stripes};
use flashyard_flash::{FlashCommand, Priority, Slot};
use flashyard_kernel::Outbox;
use flashyard_nand::FlashTime;
use flashyard_units::SimTime;

/// A multi-plane read that is being rebuilt.
#[derive(Clone, Copy)]
struct Rebuild {
    command: u32,
    slots: u32,
    /// Flash reads that have not completed.
    remaining: u32,
}

/// Reads being rebuilt.
#[derive(Default)]
pub(crate) struct Rebuilds {
    all: Vec<Rebuild>,
    free: Vec<u32>,
    /// The flash reads of the one at hand: their memory is used again.
    reads: Vec<FlashCommand>,
}

impl Rebuilds {
    fn add(&mut self, rebuild: Rebuild) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = rebuild;
                number
            }
            None => {
                self.all.push(rebuild);
                (self.all.len() - 1) as u32
            }
        }
    }

    /// The command that a rebuild is for.
    pub(crate) fn command(&self, number: u32) -> u32 {
        self.all[number as usize].command
    }

    /// All commands have vanished.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.free.clear();
    }
}

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
        let Some(stripes) = &self.stripes else { return false };
        let die = stripes.die(self.ftl.layout().die_row(first));
        if stripes.config.blocked_reads == BlockedReads::Wait || !self.nand.is_held_by_reclaim(die) {
            return false;
        }
        let mut reads = std::mem::take(&mut self.rebuilds.reads);
        self.plan_rebuild(stripes, first, span, &mut reads);
        let sooner = || reads.iter().all(|read| self.nand.frees_at(now, read.die) < self.nand.frees_at(now, die));
        let rebuilds = stripes.config.blocked_reads == BlockedReads::Rebuild || sooner();
        if rebuilds {
            self.issue_rebuild(now, (index, slots), first, &mut reads, out);
        }
        reads.clear();
        self.rebuilds.reads = reads;
        rebuilds
    }

    /// The flash reads that give back `span` slots from `first`.
    fn plan_rebuild(&self, stripes: &Stripes, first: Slot, span: u32, reads: &mut Vec<FlashCommand>) {
        let per_row = self.ftl.layout().slots_per_die_row;
        let row = self.ftl.layout().die_row(first);
        let offset = first.get() - row * per_row;
        let (stripe, own) = stripes.split(row);
        let mut full = true;
        for place in 0..stripes.config.members - 1 {
            let other = stripes.row(stripe, place);
            let slot = Slot::new(other * per_row + offset);
            let programmed = self.ftl.is_programmed(slot);
            full &= programmed;
            if place != own && programmed {
                let command = self.ftl.read_command(slot, span, span, Priority::Foreground, 0);
                reads.push(FlashCommand { die: stripes.die(other), ..command });
            }
        }
        if full && stripes.parity_is_programmed(stripe) {
            let command = self.ftl.read_command(first, span, span, Priority::Foreground, 0);
            reads.push(FlashCommand { die: stripes.parity_die(stripe), ..command });
        }
    }

    fn issue_rebuild(
        &mut self,
        now: SimTime,
        (index, slots): (u32, u32),
        first: Slot,
        reads: &mut Vec<FlashCommand>,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        self.counters.rebuilt_reads += 1;
        self.counters.rebuilding_reads += reads.len() as u64;
        if reads.is_empty() {
            self.reserve_read_dma(now, index, slots);
            self.active[index as usize].remaining -= 1;
            return;
        }
        let number = self.rebuilds.add(Rebuild { command: index, slots, remaining: reads.len() as u32 });
        for read in reads.drain(..) {
            if self.counts_reads {
                self.ftl.count_reads(first, read.planes.count());
            }
            self.issue(now, FlashCommand { tag: Tag::Rebuild(number).pack(), ..read }, out);
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
        let rebuild = &mut self.rebuilds.all[number as usize];
        rebuild.remaining -= 1;
        if rebuild.remaining == 0 {
            let Rebuild { command, slots, .. } = *rebuild;
            self.rebuilds.free.push(number);
            // The slowest is the path that counts.
            self.read_done(now, command, slots, time, out);
        }
    }
}
