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
    /// Latency of the reads and writes completed.
    pub latency: LatencyHistogram,
    /// Busy share of the cores.
    pub processor: f64,
    /// The part of it that served other drives.
    pub lent: f64,
    /// Busy share of the channels.
    pub bus: f64,
    /// Busy share of the dies.
    pub die: f64,
    /// Mapping memory in the drive's own DRAM that holds translation pages or is lent, of all it has, now.
    pub memory: f64,
    /// Mapping accesses.
    pub accesses: u64,
    /// Those of them that had to be read from flash.
    pub misses: u64,
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

impl DriveGauges {
    /// Mapping misses for each access; `None` without any.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.accesses > 0).then(|| self.misses as f64 / self.accesses as f64)
    }

    /// Takes in the interval after this one, where this one is `part` of both.
    fn absorb(&mut self, later: &Self, part: f64) {
        let mean = |earlier: f64, later: f64| earlier * part + later * (1.0 - part);
        let mut latency = std::mem::take(&mut self.latency);
        latency.merge(&later.latency);
        *self = Self {
            ios: self.ios + later.ios,
            read_bytes: self.read_bytes + later.read_bytes,
            write_bytes: self.write_bytes + later.write_bytes,
            latency,
            processor: mean(self.processor, later.processor),
            lent: mean(self.lent, later.lent),
            bus: mean(self.bus, later.bus),
            die: mean(self.die, later.die),
            accesses: self.accesses + later.accesses,
            misses: self.misses + later.misses,
            redirected: mean(self.redirected, later.redirected),
            ..*later
        };
    }
}

impl Gauges {
    /// Takes in `later`, the interval that begins where this one ends, of the world that has as many drives: counts add
    /// up, shares are means over both, and figures of a moment are those at the end.
    pub fn absorb(&mut self, later: &Self) {
        let span = self.span + later.span;
        let part = if span == SimSpan::ZERO { 0.5 } else { self.span.ratio_of(span) };
        for (drive, later) in self.drives.iter_mut().zip(&later.drives) {
            drive.absorb(later, part);
        }
        self.processor_lent.iter_mut().for_each(|lent| lent.cores *= part);
        for lent in &later.processor_lent {
            let cores = lent.cores * (1.0 - part);
            let both = |loan: &&mut CoreLoan| (loan.lender, loan.borrower) == (lent.lender, lent.borrower);
            match self.processor_lent.iter_mut().find(both) {
                Some(loan) => loan.cores += cores,
                None => self.processor_lent.push(CoreLoan { cores, ..*lent }),
            }
        }
        self.memory_lent.clone_from(&later.memory_lent);
        (self.at, self.span, self.harvests) = (later.at, span, later.harvests);
        self.segment_bytes = later.segment_bytes;
    }
}
