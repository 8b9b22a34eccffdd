//! Lives of drives, as they are kept.

use super::drive::{Cause, Reading};

/// A drive from its first month to its last one.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveLife {
    /// Its array.
    pub array: u32,
    /// Its place in the array.
    pub place: u32,
    /// Its first month.
    pub born: u32,
    /// Months that it had lived before the first one of the fleet.
    pub age: u32,
    /// Its months, but for the one in which it ended.
    pub readings: Vec<Reading>,
    /// Why it ended; nothing where it goes on.
    pub end: Option<Cause>,
}

/// All drives that a fleet had.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetLife {
    /// By array, then by place, then in their order.
    pub drives: Vec<DriveLife>,
    /// Mean latency of reads of each month of each array that is judged, and of its slowest drive, in microseconds, weighted by reads.
    pub arrays: Vec<[f64; 2]>,
    /// Months in which two or more drives of a judged array ended.
    pub coincidences: u64,
}

/// Whether an array is judged, and not learned from.
pub(super) fn is_judged(array: u32) -> bool {
    array % 2 == 1
}
