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

/// One row a run.
pub fn drive_table(records: &[DriveRecord]) -> String {
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
