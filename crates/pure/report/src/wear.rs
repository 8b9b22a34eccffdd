//! Wear of the drives of a run.

use crate::fitted::{fitted, right};
use crate::schema::RunReport;
use comfy_table::Cell;
use serde::Serialize;

/// Wear of one drive and its cost, where wear decides how flash is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WearResult {
    /// Erases of a superblock, mean over all, since the drive was new.
    pub erases_mean: f64,
    /// Erases of the most erased superblock.
    pub erases_max: u32,
    /// Superblocks that are read without a retry, at the end.
    pub young: u32,
    /// Superblocks that need retries.
    pub middle_aged: u32,
    /// Superblocks that are used no more.
    pub retired: u32,
    /// Retries for each page sensed, over the measured window.
    pub retries_per_read: f64,
    /// Retries for each GiB that the flash was read, over the measured window.
    pub retries_per_gib: f64,
}

/// Wear of the drives that served requests, one line for each run, if any drive wears; at most `width` characters wide.
pub fn wear_table(report: &RunReport, width: usize) -> Option<String> {
    let header = ["run", "erases", "young", "middle-aged", "retired", "retries/page", "mean us", "p99 us"];
    let mut rows = Vec::new();
    for design in &report.designs {
        let worn: Vec<_> = design.drives.iter().filter(|drive| drive.ios > 0).filter_map(|drive| drive.wear).collect();
        if worn.is_empty() {
            continue;
        }
        let mean = |figure: fn(&WearResult) -> f64| worn.iter().map(figure).sum::<f64>() / worn.len() as f64;
        let sum = |figure: fn(&WearResult) -> u32| worn.iter().map(figure).sum::<u32>().to_string();
        rows.push(vec![
            Cell::new(&design.name),
            right(format!("{:.1}", mean(|wear| wear.erases_mean))),
            right(sum(|wear| wear.young)),
            right(sum(|wear| wear.middle_aged)),
            right(sum(|wear| wear.retired)),
            right(format!("{:.2}", mean(|wear| wear.retries_per_read))),
            right(format!("{:.1}", design.latency_us.mean)),
            right(format!("{:.1}", design.latency_us.p99)),
        ]);
    }
    (!rows.is_empty()).then(|| fitted(1, &header, &rows, width))
}
