//! Parameters of a lifetime.

use flashyard_flash::Geometry;
use flashyard_ftl::{FtlConfig, FtlConfigError};
use flashyard_workload::SourceError;

/// Course of the capacity when superblocks wear out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// The exported capacity is fixed: the drive is dead once as many superblocks are retired as it had spare, beside those
    /// that garbage collection keeps erased, or no write finds room. \[P\] sheet wear-leveling §3.6, Fix_; \[C\] beside those
    Fixed,
    /// At that moment the file system gives everything back that the workload never wrote; the drive is dead when
    /// no write finds room. \[C\] sheet §3.6, Var_
    Variable,
    /// At that moment the capacity shrinks from the top, as far as the file system may relocate data found there, or
    /// down to its data; the drive is dead when no write finds room. \[P\] sheet §3.6, FS-overhead bound
    Bounded {
        /// Slots that may be relocated in all.
        slots: u64,
    },
}

/// Parameters of one lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeConfig {
    /// Flash.
    pub geometry: Geometry,
    /// Translation layer; its wear leveling begins after preconditioning.
    pub ftl: FtlConfig,
    /// End of life.
    pub capacity: Capacity,
    /// Whether the whole drive is written in order before the workload.
    pub filled: bool,
    /// Random writes of the whole drive before the workload, after that.
    pub random_fills: u32,
    /// The file system keeps the workload's data in extents of this many slots all over the drive; in one piece at
    /// its beginning without.
    pub extent_slots: Option<u32>,
    /// Slots that the workload can write, from 0 up.
    pub footprint_slots: u32,
    /// Host slots between two samples; zero for none.
    pub sample_slots: u64,
    /// Seed of preconditioning and placement.
    pub seed: u64,
}

/// Why a lifetime cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// The translation layer does not fit the flash.
    #[error(transparent)]
    Ftl(#[from] FtlConfigError),
    /// The workload cannot be read on.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The workload has no writes.
    #[error("the workload ended before the drive: give one that is repeated, and that writes")]
    Ended,
    /// The workload writes beyond its footprint.
    #[error("the workload wrote slot {slot}, its footprint has {footprint} slots of 4 KiB")]
    Beyond {
        /// Slot written.
        slot: u64,
        /// Slots announced.
        footprint: u32,
    },
    /// Preconditioning wore the drive out.
    #[error("the drive wore out while it was filled: give it more endurance or fewer random fills")]
    StillBorn,
    /// The footprint exceeds the drive, or is empty.
    #[error("a footprint of {footprint} slots does not fit a drive of {logical}")]
    Footprint {
        /// Slots announced.
        footprint: u32,
        /// Slots exported.
        logical: u32,
    },
}
