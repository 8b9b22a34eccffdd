//! The monitors of a drive, as its resource manager reads them once a period.

use flashyard_units::SimSpan;

/// Readings of one drive's monitors over the last period.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveReading {
    /// Busy share of the cores.
    pub processor: f64,
    /// The part of it that served the drive's own commands.
    pub processor_own: f64,
    /// The busier of buses and arrays.
    pub data_end: f64,
    /// Jobs that waited for a core, on average over the period.
    pub waiting: f64,
    /// How long a job keeps a core.
    pub service: SimSpan,
    /// Cores.
    pub cores: u32,
    /// Commands of the drive that its data-end has carried out.
    pub commands: u64,
    /// Share of the drive's commands whose firmware ran on lenders.
    pub redirected: f64,
    /// Mapping accesses.
    pub accesses: u64,
    /// Mapping misses among them.
    pub misses: u64,
    /// Translation pages that the drive's own memory can hold when nothing is lent.
    pub local_pages: u32,
    /// Translation pages of its whole map.
    pub map_pages: u32,
    /// Places for translation pages in borrowed memory that are still empty.
    pub borrowed_empty: u32,
}
