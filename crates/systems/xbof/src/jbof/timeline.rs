//! Counters of a JBOF over simulated time.

use super::enclosure::Enclosure;
use super::policy::Policy;
use flashyard_measure::{Dated, Totals};
use flashyard_ssd::Drive;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Counters of one drive since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounters {
    /// Requests of its workload.
    pub totals: Totals,
    /// Busy time of its cores.
    pub busy: SimSpan,
    /// The part of it that served other drives.
    pub lent: SimSpan,
    /// Busy time of its channels.
    pub bus: SimSpan,
    /// Busy time of its dies.
    pub die: SimSpan,
    /// Mapping accesses.
    pub accesses: u64,
    /// Mapping misses.
    pub misses: u64,
    /// Slots written by the host.
    pub host_slots: u64,
    /// Slots programmed.
    pub programmed_slots: u64,
    /// Erased superblocks at this instant.
    pub erased: u32,
    /// Share of its commands that the driver sends to lenders, in millionths, times picoseconds.
    pub redirected: u128,
}

/// All counters at one instant.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: SimTime,
    /// One entry a drive.
    pub drives: Vec<DriveCounters>,
    /// Core time lent since the run began: (lender, borrower), time.
    pub processor_lent: Vec<((DriveId, DriveId), SimSpan)>,
    /// Mapping memory lent since the run began: (lender, borrower), segments times picoseconds.
    pub memory_lent: Vec<((DriveId, DriveId), u128)>,
}

/// Readings over a run.
pub type Timeline = flashyard_measure::Timeline<Reading>;

impl Dated for Reading {
    fn at(&self) -> SimTime {
        self.at
    }
}

impl Reading {
    /// All counters at `at`.
    pub(super) fn of(enclosure: &Enclosure, policy: &mut Policy, totals: &[Totals], at: SimTime) -> Self {
        let (mut processor_lent, mut memory_lent) = (Vec::new(), Vec::new());
        if let Some(lending) = policy.lending_mut() {
            lending.account_loans(at);
            lending.account_shares(at);
            (processor_lent, memory_lent) = (lending.ledger.processor_lent(), lending.ledger.memory_lent());
        }
        let drives = enclosure.drives.iter().enumerate();
        let drives = drives.map(|(number, drive)| DriveCounters {
            totals: totals[number],
            lent: policy.lent(drive),
            redirected: policy.lending().map_or(0, |lending| lending.ledger.redirected(number)),
            ..DriveCounters::of(drive)
        });
        Self { at, drives: drives.collect(), processor_lent, memory_lent }
    }
}

impl DriveCounters {
    /// The drive's own counts.
    fn of(drive: &Drive) -> Self {
        let (cache, ftl) = (drive.data.cache.counters(), drive.data.ftl.counters());
        Self {
            busy: drive.compute.busy(),
            bus: drive.data.flash.nand.bus_busy(),
            die: drive.data.flash.nand.die_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
            host_slots: ftl.host_slots,
            programmed_slots: ftl.programmed_slots(),
            erased: drive.data.ftl.erased_superblocks(),
            ..Self::default()
        }
    }
}
