//! Counters of a mirror: at the ends of the measured window, and over time.

use crate::side::Side;
use flashyard_flash::MediumCounters;
use flashyard_ftl::{CacheCounters, FtlCounters};
use flashyard_measure::{Dated, Totals};
use flashyard_ssd::Drive;
use flashyard_units::{SimSpan, SimTime};

/// Counters of all components at an end of the measured window.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    pub(crate) drives: [DriveMarks; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveMarks {
    pub(crate) busy: SimSpan,
    pub(crate) bus: SimSpan,
    pub(crate) die: SimSpan,
    pub(crate) array: SimSpan,
    pub(crate) medium: MediumCounters,
    pub(crate) ftl: FtlCounters,
    pub(crate) cache: CacheCounters,
    pub(crate) commands: [u64; 3],
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// Integral of commands under way, in command-picoseconds.
    pub(crate) depth: u128,
}

impl Marks {
    pub(crate) fn of(drives: &[Drive; 2], sides: &[Side; 2], now: SimTime) -> Self {
        let of = |number: usize| {
            let (drive, side) = (&drives[number], &sides[number]);
            let (nand, data) = (&drive.data.flash.nand, drive.data.counters());
            DriveMarks {
                busy: drive.compute.busy(),
                bus: nand.bus_busy(),
                die: nand.die_busy(),
                array: nand.array_busy(),
                medium: *nand.counters(),
                ftl: *drive.data.ftl.counters(),
                cache: *drive.data.cache.counters(),
                commands: side.commands,
                read_bytes: data.read_bytes,
                write_bytes: data.write_bytes,
                depth: side.depth.integral_ps(now),
            }
        };
        Self { drives: [of(0), of(1)] }
    }
}

/// Counters of one drive since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounters {
    /// Commands completed.
    pub commands: u64,
    /// Bytes to the host.
    pub read_bytes: u64,
    /// Bytes from the host.
    pub write_bytes: u64,
    /// Busy time of its cores.
    pub busy: SimSpan,
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
    /// Integral of commands under way, in command-picoseconds.
    pub depth: u128,
    /// Blocks whose copy there is not current, now.
    pub stale: u64,
}

/// All counters at one instant.
#[derive(Clone, Copy, Debug)]
pub struct MirrorReading {
    /// When.
    pub at: SimTime,
    /// Requests of the volume.
    pub totals: Totals,
    /// The drives, in order.
    pub drives: [DriveCounters; 2],
}

impl Dated for MirrorReading {
    fn at(&self) -> SimTime {
        self.at
    }
}

impl MirrorReading {
    pub(crate) fn of(totals: Totals, drives: &[Drive; 2], sides: &[Side; 2], at: SimTime) -> Self {
        let drive = |number: usize| {
            let side = &sides[number];
            DriveCounters {
                commands: side.commands.iter().sum(),
                depth: side.depth.integral_ps(at),
                stale: side.stale.len(),
                ..DriveCounters::of(&drives[number])
            }
        };
        Self { at, totals, drives: [drive(0), drive(1)] }
    }
}

impl DriveCounters {
    /// The drive's own counts.
    fn of(drive: &Drive) -> Self {
        let (cache, ftl, data) = (drive.data.cache.counters(), drive.data.ftl.counters(), drive.data.counters());
        Self {
            read_bytes: data.read_bytes,
            write_bytes: data.write_bytes,
            busy: drive.compute.busy(),
            bus: drive.data.flash.nand.bus_busy(),
            die: drive.data.flash.nand.die_busy(),
            accesses: cache.local_hits + cache.offsite_hits + cache.misses,
            misses: cache.misses,
            host_slots: ftl.host_slots,
            programmed_slots: ftl.programmed_slots(),
            ..Self::default()
        }
    }
}
