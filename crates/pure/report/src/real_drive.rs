//! Records of the study of real drives.

use crate::fitted::right;
use crate::table::table;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};

/// One run of a drive under a load of its data sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveRecord {
    /// Name of the run.
    pub name: String,
    /// Thousands of requests a second.
    pub thousand_per_second: f64,
    /// 10^9 bytes a second.
    pub gigabytes_per_second: f64,
    /// Mean latency in microseconds: of reads, where there are any.
    pub mean_us: f64,
    /// 50, 99, 99.9, 99.99 and 99.999 of 100, likewise.
    pub percentiles_us: [f64; 5],
    /// The longest, likewise.
    pub longest_us: f64,
    /// Slots programmed for each that the host wrote.
    pub amplification: f64,
    /// Busy share of the dies.
    pub dies: f64,
}

/// Latencies of reads, or of writes, of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplaySide {
    /// Ours at 50, 90, 99 and 99.9 of 100, in microseconds.
    pub ours_us: [f64; 4],
    /// Those measured on a real drive, likewise.
    pub measured_us: [f64; 4],
    /// Kolmogorov-Smirnov distance of both.
    pub distance: f64,
}

/// A trace whose latencies were measured on a real drive, replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    /// Name of the run.
    pub name: String,
    /// Its reads.
    pub replayed_reads: ReplaySide,
    /// Its writes.
    pub replayed_writes: ReplaySide,
}

/// A run of the study of real drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RealDriveRecord {
    /// Under a load of a data sheet.
    Load(DriveRecord),
    /// Under a trace.
    Replay(ReplayRecord),
}

/// One row a run under a load, and both distributions of each replay.
pub fn real_drive_table(records: &[RealDriveRecord]) -> String {
    let (mut loads, mut replays) = (Vec::new(), String::new());
    for record in records {
        match record {
            RealDriveRecord::Load(record) => loads.push(record.clone()),
            RealDriveRecord::Replay(record) => replays.push_str(&distributions(record)),
        }
    }
    drive_table(&loads) + &replays
}

fn distributions(record: &ReplayRecord) -> String {
    let side = |word: &str, side: &ReplaySide| {
        let us = |list: &[f64; 4]| list.map(|us| format!("{us:.0}")).join(", ");
        let (ours, measured) = (us(&side.ours_us), us(&side.measured_us));
        format!("  {word}: ours {ours}; measured {measured}; distance {:.3}\n", side.distance)
    };
    let (reads, writes) = (side("reads", &record.replayed_reads), side("writes", &record.replayed_writes));
    format!("\n{}: latency in us at 50, 90, 99 and 99.9 %\n{reads}{writes}", record.name)
}

/// One row a run.
fn drive_table(records: &[DriveRecord]) -> String {
    let mut table = table(&[
        "run",
        "requests\nk/s",
        "rate\nGB/s",
        "latency us\nmean",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "p99.999",
        "longest",
        "write\nampl.",
        "dies\nbusy %",
    ]);
    for record in records {
        let mut row = vec![
            Cell::new(&record.name),
            right(format!("{:.1}", record.thousand_per_second)),
            right(format!("{:.2}", record.gigabytes_per_second)),
            right(format!("{:.1}", record.mean_us)),
        ];
        row.extend(record.percentiles_us.iter().map(|us| right(format!("{us:.1}"))));
        row.push(right(format!("{:.0}", record.longest_us)));
        row.push(right(format!("{:.2}", record.amplification)));
        row.push(right(format!("{:.1}", 100.0 * record.dies)));
        table.add_row(row);
    }
    table.to_string()
}
