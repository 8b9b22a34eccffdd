//! Analysis of a trace beyond its totals: rates over time, sizes, gaps, sequentiality and reuse, in one pass.

mod gaps;
mod pages;
mod rate;
mod reuse;
mod sizes;

pub use gaps::GapSummary;
pub use rate::RateOverTime;
pub use reuse::{CurvePoint, ReuseMethod, ReuseSummary};
pub use sizes::{FrequentSize, SizeSummary};

use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::summary::{Totals, TraceSummary};
use flashyard_blk::{Operation, TraceRecord};
use gaps::Gaps;
use rate::Rate;
use reuse::Reuse;
use sizes::Sizes;
use std::collections::HashMap;

/// Rows between two calls of an observer.
pub(crate) const OBSERVED_ROWS: u64 = 1024;

/// Analysis of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceAnalysis {
    /// Totals.
    pub summary: TraceSummary,
    /// Requests and bytes over time, trims among the requests only.
    pub rate: RateOverTime,
    /// Sizes of reads.
    pub read_sizes: SizeSummary,
    /// Sizes of writes.
    pub write_sizes: SizeSummary,
    /// Reads and writes that begin where the read or write before of the same volume ended, in percent.
    pub sequential_percent: f64,
    /// Time between arrivals.
    pub gaps: GapSummary,
    /// Reuse of pages, and miss ratios of caches.
    pub reuse: ReuseSummary,
}

/// How to analyze.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisOptions {
    /// Memory for exact reuse distances, in bytes; a trace that needs more is sampled. Some 30 bytes for each 4 KiB
    /// page that is used where neighbours are used too, up to 300 where they are not.
    pub exact_bytes_max: usize,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        // 512 MiB: exact up to some 70 GiB of dense address space.
        Self { exact_bytes_max: 512 << 20 }
    }
}

/// Reads a trace to its end. `observer` gets the rows so far now and then, and ends the analysis with `false`; the
/// result is `None` then.
///
/// Errors: the first row that cannot be read.
pub fn analyze(
    mut reader: TraceReader,
    options: AnalysisOptions,
    observer: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<TraceAnalysis>, TraceError> {
    let mut analysis = Analysis::new(options);
    let mut rows: u64 = 0;
    for record in &mut reader {
        analysis.add(&record?);
        rows += 1;
        if rows.is_multiple_of(OBSERVED_ROWS) && !observer(rows) {
            return Ok(None);
        }
    }
    Ok(Some(analysis.finish(&reader)))
}

/// An analysis in the making.
struct Analysis {
    totals: Totals,
    rate: Rate,
    read_sizes: Sizes,
    write_sizes: Sizes,
    /// Where the last read or write of each volume ended.
    ends: HashMap<u32, u64>,
    sequential: u64,
    gaps: Gaps,
    reuse: Reuse,
}

impl Analysis {
    fn new(options: AnalysisOptions) -> Self {
        Self {
            totals: Totals::default(),
            rate: Rate::new(),
            read_sizes: Sizes::default(),
            write_sizes: Sizes::default(),
            ends: HashMap::new(),
            sequential: 0,
            gaps: Gaps::default(),
            reuse: Reuse::new(options.exact_bytes_max),
        }
    }

    fn add(&mut self, record: &TraceRecord) {
        let request = &record.request;
        self.totals.add(record);
        self.gaps.add(record.arrival);
        let sizes = match request.operation {
            Operation::Read => &mut self.read_sizes,
            Operation::Write => &mut self.write_sizes,
            _ => return self.rate.add(record.arrival, 0),
        };
        sizes.add(request.offset_bytes, request.len_bytes);
        self.rate.add(record.arrival, request.len_bytes);
        // Readers refuse ranges that end beyond 2^64.
        let end = request.offset_bytes.saturating_add(u64::from(request.len_bytes));
        self.sequential += u64::from(self.ends.insert(record.volume, end) == Some(request.offset_bytes));
        self.reuse.add(record.volume, request.offset_bytes, request.len_bytes);
    }

    fn finish(self, reader: &TraceReader) -> TraceAnalysis {
        let summary = self.totals.finish(reader);
        let moved = (summary.reads + summary.writes).max(1);
        TraceAnalysis {
            rate: self.rate.finish(),
            read_sizes: self.read_sizes.finish(),
            write_sizes: self.write_sizes.finish(),
            sequential_percent: 100.0 * self.sequential as f64 / moved as f64,
            gaps: self.gaps.finish(),
            reuse: self.reuse.finish(summary.footprint_bytes),
            summary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, open};
    use std::io::Write;

    fn analysis(rows: &str) -> TraceAnalysis {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        file.write_all(rows.as_bytes()).expect("it can be written");
        let reader = open(file.path(), OpenOptions::default()).expect("the rows have a format");
        analyze(reader, AnalysisOptions::default(), &mut |_| true).expect("the rows are good").expect("it goes on")
    }

    /// Milliseconds, device, offset, size, read or not.
    const ROWS: &str = "0.0 0 0 8192 1\n1.0 0 8192 4096 1\n2.0 0 512 512 0\n4.0 0 1024 4096 0\n4.0 0 0 8192 1\n";

    #[test]
    fn every_part_agrees_with_what_was_counted_by_hand() {
        let found = analysis(ROWS);
        assert_eq!((found.summary.reads, found.summary.writes, found.summary.footprint_bytes), (3, 2, 12_288));
        // Rows two and four begin where the one before ended.
        assert_eq!(found.sequential_percent, 40.0);
        assert_eq!(
            (found.read_sizes.requests, found.read_sizes.p50_bytes, found.read_sizes.max_bytes),
            (3, 8192, 8192)
        );
        assert_eq!((found.read_sizes.aligned_percent, found.write_sizes.aligned_percent), (100.0, 0.0));
        assert_eq!(found.read_sizes.frequent[0], FrequentSize { bytes: 8192, requests: 2 });
        assert_eq!((found.gaps.mean_us, found.gaps.max_us, found.gaps.simultaneous_percent), (1000.0, 2000.0, 25.0));
        // Pages 0 1, 2, 0, 0 1, 0 1: distances of 0: 3, then 1, 2, 2 (after 1); of 1: 3, 2.
        assert_eq!((found.reuse.references, found.reuse.method), (8, ReuseMethod::Exact));
        assert_eq!(found.reuse.first_percent, 37.5);
        let curve: Vec<(u64, f64)> = found.reuse.curve.iter().map(|point| (point.bytes, point.miss_ratio)).collect();
        assert_eq!(curve, [(4096, 0.875), (8192, 0.625), (12_288, 0.375)]);
        let rate = &found.rate;
        assert!((rate.requests_per_s.iter().sum::<f64>() * rate.bin_seconds - 5.0).abs() < 1e-9);
        assert!((rate.bytes_per_s.iter().sum::<f64>() * rate.bin_seconds - 25_088.0).abs() < 1e-6);
    }

    #[test]
    fn an_observer_ends_the_analysis() {
        let rows: String = (0..3_000).map(|ms| format!("{ms}.0 0 0 4096 1\n")).collect();
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        file.write_all(rows.as_bytes()).expect("it can be written");
        let reader = open(file.path(), OpenOptions::default()).expect("the rows have a format");
        let mut seen = Vec::new();
        let ended = analyze(reader, AnalysisOptions::default(), &mut |rows| {
            seen.push(rows);
            rows < 2_000
        });
        assert_eq!((ended.expect("the rows are good"), seen), (None, vec![1024, 2048]));
    }

    #[test]
    fn rows_of_one_time_have_no_rates() {
        let found = analysis("5.0 0 0 8192 1\n5.0 0 8192 4096 1\n");
        assert_eq!((found.rate, found.gaps.max_us), (RateOverTime::default(), 0.0));
    }
}
