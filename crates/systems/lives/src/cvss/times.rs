//! Times of the published flash, and what a timed stretch measures.
//!
//! Source: [P] times and dies of sheet cvss §4.

/// Dies. Source: [P] sheet cvss §4, 8 channels of 8.
pub(super) const DIES: usize = 64;

/// A program of 4 KiB, in nanoseconds. Source: [P] sheet cvss §4.
pub(super) const PROGRAM_NS: u64 = 500_000;

/// An erase, in nanoseconds. Source: [P] sheet cvss §4.
pub(super) const ERASE_NS: u64 = 5_000_000;

/// A sense of a page, in nanoseconds. Source: [P] sheet cvss §4.
const SENSE_NS: u64 = 50_000;

/// Time of a read with its retries, each of which senses once more.
pub(super) fn sense_ns(retries: u32) -> u64 {
    SENSE_NS * u64::from(1 + retries)
}

/// Measurements of a timed stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes written by requests a second.
    pub written_bytes_per_second: f64,
    /// The 99th percentile of reads at the drive, in microseconds.
    pub read_p99_us: f64,
    /// Mean time of a read at the drive, in microseconds.
    pub read_mean_us: f64,
    /// Share of the requests at the drive that found a die busy.
    pub waited: f64,
    /// Mean time of an operation of the load's program, in microseconds.
    pub operation_mean_us: f64,
    /// The 99th percentile of such operations, in microseconds.
    pub operation_p99_us: f64,
    /// Share of the requests at the drive that a retry delayed, their own or that of a read before them.
    pub delayed: f64,
    /// Share of the host's commands that found their die busy with a retried read.
    pub blocked: f64,
}
