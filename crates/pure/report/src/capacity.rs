//! Lives of the capacity-variant study: a record of each, and a table of them.

use crate::fitted::right;
use crate::table::table;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};

/// A terabyte, the unit of host writes here.
const TB: f64 = 1e12;

/// One life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityRecord {
    /// Name of the life.
    pub name: String,
    /// Cause of its end.
    pub death: Option<String>,
    /// Bytes of the published drive that the load wrote.
    pub written_bytes: f64,
    /// Bytes written while performance was at least 0.8 of the first.
    pub written_bytes_at_80: f64,
    /// Pages programmed for each that the drive was asked to write.
    pub amplification: f64,
    /// Pages that the drive was asked to write for each of the load.
    pub file_system_amplification: f64,
    /// Retries of a mean read of the whole life.
    pub retries_mean: f64,
    /// Retries for each page that the host reads, those of reads that the drive makes for itself among them.
    pub retries_per_read: f64,
    /// Mean erases at the end.
    pub erases_mean: f64,
    /// Reductions of capacity made and refused.
    pub reductions: (u32, u32),
    /// Pages remapped, and pages copied because the protected log was full.
    pub remapped_pages: (u64, u64),
    /// The drive from time to time.
    pub samples: Vec<CapacitySample>,
}

/// The drive between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacitySample {
    /// Bytes that the load wrote up to now.
    pub written_bytes: f64,
    /// Requests a second by those of the first sample.
    pub performance: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes written by requests a second.
    pub written_bytes_per_second: f64,
    /// The 99th percentile of reads at the drive, in microseconds.
    pub read_p99_us: f64,
    /// Mean time of a read at the drive, in microseconds.
    pub read_mean_us: f64,
    /// Share of the reads at the drive that found a die busy.
    pub waited: f64,
    /// Mean time of an operation of the load's program, in microseconds.
    pub operation_mean_us: f64,
    /// The 99th percentile of such operations, in microseconds.
    pub operation_p99_us: f64,
    /// Share of the requests at the drive that a retry delayed, their own or that of a read before them.
    pub delayed: f64,
    /// Share of the host's commands that found their die busy with a retried read.
    pub blocked: f64,
    /// Mean retries of a read.
    pub retries_mean: f64,
    /// Share of the reads that were retried.
    pub retried: f64,
    /// Retries that 99 of 100 reads did not exceed.
    pub retries_p99: u32,
    /// Pages programmed for each of the host.
    pub amplification: f64,
    /// Superblocks retired.
    pub retired: u32,
    /// Pages that the file system may use.
    pub logical_pages: u32,
    /// Whether the drive is degraded.
    pub degraded: bool,
    /// Share of the superblocks in the state of wear that most are in.
    pub in_one_state: f64,
    /// Share of the file system's space that is dead and kept.
    pub misjudged: f64,
}

impl CapacityRecord {
    /// The mean of a figure over the samples; zero without one.
    pub fn mean(&self, figure: impl Fn(&CapacitySample) -> f64) -> f64 {
        self.samples.iter().map(figure).sum::<f64>() / self.samples.len().max(1) as f64
    }

    /// Ratios of a figure of ours to theirs, sample by sample as long as both live: at equal writes.
    pub fn ratios(&self, theirs: &Self, figure: impl Fn(&CapacitySample) -> f64) -> Vec<f64> {
        self.samples.iter().zip(&theirs.samples).map(|(ours, theirs)| figure(ours) / figure(theirs)).collect()
    }
}

/// One row a life.
pub fn capacity_table(lives: &[CapacityRecord]) -> String {
    let mut table = table(&[
        "life",
        "TB at\n80 %",
        "TB",
        "drive\nWAF",
        "file system\nWAF",
        "retries\nmean",
        "performance\nmean",
        "dead but\nkept %",
        "erases\nmean",
        "shrunk",
        "refused",
        "end",
    ]);
    for life in lives {
        table.add_row(vec![
            Cell::new(&life.name),
            right(format!("{:.1}", life.written_bytes_at_80 / TB)),
            right(format!("{:.1}", life.written_bytes / TB)),
            right(format!("{:.2}", life.amplification)),
            right(format!("{:.2}", life.file_system_amplification)),
            right(format!("{:.2}", life.retries_mean)),
            right(format!("{:.3}", life.mean(|sample| sample.performance))),
            right(format!("{:.1}", 100.0 * life.mean(|sample| sample.misjudged))),
            right(format!("{:.0}", life.erases_mean)),
            right(life.reductions.0.to_string()),
            right(life.reductions.1.to_string()),
            Cell::new(life.death.as_deref().unwrap_or("alive")),
        ]);
    }
    table.to_string()
}
