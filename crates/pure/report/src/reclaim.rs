//! Reads of a drive during garbage collection.

use crate::fitted::right;
use crate::table::table;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};

/// One run: the waits of reads, and their cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReclaimRecord {
    /// Name of the run.
    pub name: String,
    /// Reads in the measured window.
    pub reads: u64,
    /// Latency of a read in microseconds: mean, then 50, 99, 99.9 and 99.99 of 100.
    pub read_us: [f64; 5],
    /// Latency of a write, likewise.
    pub write_us: [f64; 5],
    /// Pages programmed, parity among them, for each that the host wrote.
    pub amplification: f64,
    /// Busy share of the dies.
    pub dies: f64,
    /// Flash reads that were rebuilt, for each read of the host.
    pub rebuilt: f64,
    /// Flash reads for each rebuilt one.
    pub rebuilding: f64,
}

/// One row a run.
pub fn reclaim_table(records: &[ReclaimRecord]) -> String {
    let mut table = table(&[
        "run",
        "pages for one\nof the host",
        "dies\nbusy %",
        "read us\nmean",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "write us\nmean",
        "p99",
        "rebuilt\na read",
        "flash reads\neach",
    ]);
    for record in records {
        let mut row = vec![
            Cell::new(&record.name),
            right(format!("{:.2}", record.amplification)),
            right(format!("{:.1}", 100.0 * record.dies)),
        ];
        row.extend(record.read_us.iter().map(|us| right(format!("{us:.0}"))));
        row.extend([record.write_us[0], record.write_us[2]].map(|us| right(format!("{us:.0}"))));
        row.extend([record.rebuilt, record.rebuilding].map(|value| right(format!("{value:.2}"))));
        table.add_row(row);
    }
    table.to_string()
}
