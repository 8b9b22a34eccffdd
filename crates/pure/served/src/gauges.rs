//! A world that serves as seen from outside: figures of an interval, and the health log of each drive.

use flashyard_ssd::WearStates;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Whether a drive serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Ready,
    /// It has no power: pulled, or the whole enclosure has none.
    NoPower,
    /// Its link is down.
    NoLink,
    /// It is coming back, or the driver has not let it in again yet.
    Starting,
}

/// Lifetime figures of a drive, as its health log reports them. Since the world began unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Bytes to hosts.
    pub read_bytes: u64,
    /// Bytes from hosts.
    pub write_bytes: u64,
    /// Time with at least one command under way.
    pub busy: SimSpan,
    /// Starts and link failures.
    pub breaks: u32,
    /// Erases of a superblock, on average, in its whole life.
    pub erases_mean: f64,
    /// Erases of the most erased superblock.
    pub erases_max: u32,
    /// Slots written by hosts.
    pub host_slots: u64,
    /// Slots programmed.
    pub programmed_slots: u64,
    /// Slots that hold something current, now.
    pub mapped_slots: u64,
    /// Raw bit error rate of its flash.
    pub raw_bit_error_rate: f64,
    /// Pages read, without retries.
    pub page_reads: u64,
    /// Pages sensed again.
    pub read_retries: u64,
    /// Times that data could not be corrected, for hosts or for garbage collection.
    pub media_errors: u64,
    /// Erases that a superblock is made for, where the drive's flash wears.
    pub endurance: Option<u32>,
    /// Superblocks beyond those that its capacity needs: as many may be retired.
    pub spare_superblocks: u32,
    /// Superblocks that are retired.
    pub retired_superblocks: u32,
    /// Whether writes fail for want of room that will not come back.
    pub worn_out: bool,
    /// Whether it is in the degraded mode.
    pub degraded: bool,
}

/// Capacity that a drive has left, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Slots of its flash when new.
    pub raw_slots: u64,
    /// Slots of superblocks that are not retired.
    pub physical_slots: u64,
    /// Slots that hold something current.
    pub mapped_slots: u64,
    /// Its superblocks by what reading them takes.
    pub states: WearStates,
    /// Erases at which a superblock is retired.
    pub retires_at: Option<u32>,
    /// Whether it is in the degraded mode.
    pub degraded: bool,
    /// Pages read, without retries.
    pub page_reads: u64,
    /// Pages sensed again.
    pub read_retries: u64,
}

impl Health {
    /// Share of its life that a drive has used, by the erases of its superblocks; `nominal` ones where its flash is not
    /// modelled to wear.
    pub fn used(&self, nominal: u32) -> f64 {
        self.erases_mean / f64::from(self.endurance.unwrap_or(nominal).max(1))
    }

    /// Share of its spare superblocks that is left.
    pub fn spare(&self) -> f64 {
        match self.spare_superblocks {
            // There never was any.
            0 => f64::from(u8::from(self.retired_superblocks == 0)),
            spare => f64::from(spare.saturating_sub(self.retired_superblocks)) / f64::from(spare),
        }
    }
}

/// One drive over an interval. Shares go from 0 to 1.
#[derive(Clone, Debug)]
pub struct DriveGauges {
    /// Whether it serves, now.
    pub presence: Presence,
    /// Whether it is out of its slot: pulled, and not put back.
    pub pulled: bool,
    /// Requests under way, now.
    pub depth: u32,
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Latency of the requests completed.
    pub latency: LatencyHistogram,
    /// Busy share of the cores.
    pub processor: f64,
    /// The part of it that served other drives.
    pub lent: f64,
    /// Busy share of the channels.
    pub bus: f64,
    /// Busy share of the dies.
    pub die: f64,
    /// Mapping memory in the drive's own DRAM that it does not lend, of all it has, now.
    pub memory: f64,
    /// Mapping misses for each access; `None` without any.
    pub misses: Option<f64>,
    /// Share of its commands that went to lenders.
    pub redirected: f64,
    /// Its life.
    pub health: Health,
}

/// Cores that one drive works with for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreLoan {
    /// Whose cores.
    pub lender: DriveId,
    /// For which drive they work.
    pub borrower: DriveId,
    /// Cores, on average over the interval.
    pub cores: f64,
}

/// Mapping memory of one drive that another one uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLoan {
    /// Whose memory.
    pub lender: DriveId,
    /// Which drive uses it.
    pub borrower: DriveId,
    /// Segments, of [`Gauges::segment_bytes`] each.
    pub segments: u32,
}

/// A world over an interval.
#[derive(Clone, Debug)]
pub struct Gauges {
    /// The end of the interval.
    pub at: SimTime,
    /// Its length.
    pub span: SimSpan,
    /// One entry a drive.
    pub drives: Vec<DriveGauges>,
    /// Core time lent.
    pub processor_lent: Vec<CoreLoan>,
    /// Mapping memory lent now.
    pub memory_lent: Vec<MemoryLoan>,
    /// Mapping memory of a segment, in bytes.
    pub segment_bytes: u64,
    /// Whether drives may lend.
    pub harvests: bool,
}
