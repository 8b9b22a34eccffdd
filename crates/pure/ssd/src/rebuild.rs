//! Reads whose data is rebuilt from the other members of the stripe: they would have to wait for garbage collection, or
//! flash has not given it back.
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

/// What a rebuilt read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebuilt {
    /// That many slots of a host's command.
    Command(u32, u32),
    /// A die row that garbage collection moves.
    Row(u32),
}

/// What becomes of data that flash has not given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// There is no parity.
    Lost,
    /// The other members are in the write buffer.
    AtHand,
    /// The other members are being read.
    UnderWay,
}

/// A multi-plane read that is being rebuilt.
#[derive(Clone, Copy)]
struct Rebuild {
    target: Rebuilt,
    /// Flash reads that have not completed.
    remaining: u32,
    /// Whether flash did not give it back at first, so that no other member may fail.
    recovers: bool,
    failed: bool,
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

    /// A flash read of a rebuild was given up.
    pub(crate) fn fail(&mut self, number: u32) {
        self.all[number as usize].failed = true;
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
            self.counters.rebuilt_reads += 1;
            self.counters.rebuilding_reads += reads.len() as u64;
            self.issue_rebuild(now, Rebuilt::Command(index, slots), first, &mut reads, out);
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
        let Some(stripes) = &self.stripes else { return Recovery::Lost };
        let mut reads = std::mem::take(&mut self.rebuilds.reads);
        self.plan_rebuild(stripes, first, span, &mut reads);
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
        target: Rebuilt,
        first: Slot,
        reads: &mut Vec<FlashCommand>,
        out: &mut impl Outbox<DriveEvent, DriveEffect>,
    ) {
        if let (Rebuilt::Command(index, slots), true) = (target, reads.is_empty()) {
            self.reserve_read_dma(now, index, slots);
            self.active[index as usize].remaining -= 1;
            return;
        }
        let remaining = reads.len() as u32;
        let number = self.rebuilds.add(Rebuild { target, remaining, recovers: false, failed: false });
        self.issue_reads(now, number, first, reads, out);
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
        if rebuild.remaining > 0 {
            return;
        }
        let Rebuild { target, recovers, failed, .. } = *rebuild;
        self.rebuilds.free.push(number);
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
                    self.row_lost(row);
                }
                self.reclaim_read_done(now, row, out);
            }
        }
    }
}
