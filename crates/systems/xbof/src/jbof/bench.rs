//! The surroundings of the enclosure: the streams that ask, and the counters that figures are measured with.

use super::enclosure::Enclosure;
use super::policy::Policy;
use super::timeline::Reading;
use flashyard_fabric::Direction;
use flashyard_flash::MediumCounters;
use flashyard_ftl::{CacheCounters, FtlCounters};
use flashyard_measure::SanityCheck;
use flashyard_ssd::Drive;
use flashyard_units::{SimSpan, SimTime};

/// Streams, and everything that is counted of a run.
pub(super) type Bench = flashyard_measure::Bench<Marks, Reading>;

/// Counter readings of all components at one instant.
pub struct Marks {
    pub(super) host_busy: SimSpan,
    pub(super) drives: Vec<DriveMarks>,
    pub(super) cores: CoreMarks,
}

/// Counter readings of a drive and its link.
#[derive(Clone, Copy)]
pub(super) struct DriveMarks {
    pub(super) busy: SimSpan,
    pub(super) bus: SimSpan,
    pub(super) die: SimSpan,
    pub(super) array: SimSpan,
    pub(super) lent: SimSpan,
    pub(super) medium: MediumCounters,
    pub(super) ftl: FtlCounters,
    pub(super) cache: CacheCounters,
    pub(super) redo_records: u64,
    pub(super) agent_operations: u64,
    pub(super) rebuilt: RebuildCounters,
    pub(super) moved_bytes: u64,
    /// Payload over the drive's link, both ways.
    pub(super) link_bytes: u64,
    pub(super) link_busy: SimSpan,
}

impl Marks {
    /// The counters of all components.
    pub(super) fn of(enclosure: &Enclosure, policy: &Policy, now: SimTime) -> Self {
        let drives = enclosure.drives.iter().enumerate().map(|(number, drive)| {
            let link = enclosure.fabric.link(number as u16);
            let nand = &drive.data.flash.nand;
            let data = drive.data.counters();
            DriveMarks {
                busy: drive.compute.busy(),
                bus: nand.bus_busy(),
                die: nand.die_busy(),
                array: nand.array_busy(),
                lent: policy.lent(drive),
                medium: *nand.counters(),
                ftl: *drive.data.ftl.counters(),
                cache: *drive.data.cache.counters(),
                redo_records: drive.data.offsite_counters().records,
                agent_operations: policy.agent_operations(number),
                rebuilt: RebuildCounters { reads: data.rebuilt_reads, flash_reads: data.rebuilding_reads },
                moved_bytes: data.read_bytes + data.write_bytes,
                link_bytes: link.payload(Direction::Out) + link.payload(Direction::In),
                link_busy: enclosure.fabric.busy(number as u16),
            }
        });
        Self {
            host_busy: enclosure.hosts.iter().map(|host| host.busy_until(now)).sum(),
            drives: drives.collect(),
            cores: CoreMarks::of(enclosure),
        }
    }
}

/// Core time that the utilization law needs, at the end of a run or at one end of the measured window.
#[derive(Clone, Copy)]
pub(super) struct CoreMarks {
    /// Of all firmware jobs so far: those of commands, and those of drives for their own collection.
    demand: SimSpan,
    busy: SimSpan,
    /// Demand of jobs that wait for a core.
    waiting: SimSpan,
}

impl CoreMarks {
    pub(super) fn of(enclosure: &Enclosure) -> Self {
        let sum = |time: fn(&Drive) -> SimSpan| enclosure.drives.iter().map(time).sum::<SimSpan>();
        Self {
            demand: enclosure.demand + sum(Drive::own_demand),
            busy: sum(|drive| drive.compute.busy()),
            waiting: sum(|drive| drive.compute.waiting_demand()),
        }
    }

    /// The utilization law of all so far. Drives may still have pages to move when the last command has ended.
    pub(super) fn law(&self) -> SanityCheck {
        SanityCheck::new(
            "utilization law: busy time of cores = sum of service demands",
            self.demand.as_ps(),
            u128::from(self.busy.as_ps()) + u128::from(self.waiting.as_ps()),
        )
    }

    /// The utilization law of a window that began here and ended with `ended`.
    pub(super) fn law_until(&self, ended: &Self) -> SanityCheck {
        SanityCheck::new(
            "utilization law in the measured window: busy time of cores = service demands begun in it",
            u128::from(self.waiting.as_ps()) + u128::from((ended.demand - self.demand).as_ps()),
            u128::from(ended.waiting.as_ps()) + u128::from(ended.busy.saturating_sub(self.busy).as_ps()),
        )
    }
}

/// Flash reads of hosts that were rebuilt from the other members of their stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildCounters {
    /// How many.
    pub reads: u64,
    /// Flash reads that this took.
    pub flash_reads: u64,
}

impl RebuildCounters {
    /// The counts since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self { reads: self.reads - before.reads, flash_reads: self.flash_reads - before.flash_reads }
    }
}
