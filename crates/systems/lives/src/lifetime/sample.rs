//! Figures of a lifetime.

use flashyard_ftl::{FtlCounters, Reentries};

/// How a lifetime ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOfLife {
    /// As many superblocks are retired as the drive had spare.
    SpareExhausted,
    /// No superblock can be opened, and nothing can be reclaimed.
    NoRoom,
}

impl EndOfLife {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpareExhausted => "spare exhausted",
            Self::NoRoom => "no room",
        }
    }
}

/// The drive at one moment of its lifetime. Slots are of 4 KiB, counted since preconditioning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Slots the host wrote, those of jumps included.
    pub host_slots: u64,
    /// Those of jumps: nothing else is counted of them.
    pub skipped_slots: u64,
    /// Slots that garbage collection moved.
    pub moved_slots: u64,
    /// Slots that wear leveling moved.
    pub leveled_slots: u64,
    /// Superblocks erased.
    pub erased: u64,
    /// Superblocks retired.
    pub retired: u32,
    /// Slots exported.
    pub logical_slots: u32,
    /// Slots that the file system relocated.
    pub relocated_slots: u64,
    /// Mean erase count, since the drive was new.
    pub erases_mean: f64,
    /// Standard deviation of the erase counts.
    pub erases_deviation: f64,
    /// Least erase count.
    pub erases_min: u32,
    /// Greatest erase count.
    pub erases_max: u32,
}

impl Sample {
    /// Puts counters and erase counts together.
    pub(super) fn new(counters: &FtlCounters, counts: impl Iterator<Item = u32> + Clone) -> Self {
        let count = counts.clone().count().max(1) as f64;
        let mean = counts.clone().map(f64::from).sum::<f64>() / count;
        let squares: f64 = counts.clone().map(|erases| (f64::from(erases) - mean) * (f64::from(erases) - mean)).sum();
        Self {
            host_slots: counters.host_slots,
            moved_slots: counters.moved_slots,
            leveled_slots: counters.leveled_slots,
            erased: counters.erased_superblocks,
            erases_mean: mean,
            erases_deviation: (squares / count).sqrt(),
            erases_min: counts.clone().min().unwrap_or(0),
            erases_max: counts.max().unwrap_or(0),
            ..Self::default()
        }
    }
}

/// A lifetime, or the part of it that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeFigures {
    /// Slots exported when new: one drive write.
    pub logical_slots: u32,
    /// Why it ended; `None` while it goes on.
    pub death: Option<EndOfLife>,
    /// The drive from time to time.
    pub samples: Vec<Sample>,
    /// The drive at the end.
    pub last: Sample,
    /// Erase count of every superblock at the end.
    pub erase_counts: Vec<u32>,
    /// How often the most erased superblock was leveled again, under old block protection.
    pub oldest_reentries: Option<Reentries>,
}

impl LifeFigures {
    /// Host writes in whole drives.
    pub fn drive_writes(&self) -> f64 {
        self.last.host_slots as f64 / f64::from(self.logical_slots)
    }

    /// Slots moved by wear leveling for each slot of the host that was simulated.
    pub fn leveling_share(&self) -> f64 {
        self.last.leveled_slots as f64 / (self.last.host_slots - self.last.skipped_slots).max(1) as f64
    }
}
