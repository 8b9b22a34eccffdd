//! Statistics of a trace.

use crate::error::TraceError;
use crate::footprint::{Footprint, PAGE};
use crate::reader::{RowCounts, TraceReader};
use flashyard_blk::{Operation, TraceRecord};
use std::collections::HashSet;
use std::fmt;

/// Statistics of a trace. KiB is 1024 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    /// Name of the format.
    pub format: &'static str,
    /// How the trace was read: what the format assumes, files that are missing.
    pub note: String,
    /// Rows by their fate.
    pub counts: RowCounts,
    /// Rows that read.
    pub reads: u64,
    /// Rows that write.
    pub writes: u64,
    /// Rows that give back a range; in the rows and volumes, in none of the byte counts and not in the footprint.
    pub trims: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Different pages of 4 KiB touched, over all volumes, in bytes.
    pub footprint_bytes: u64,
    /// Last time less first time, in seconds.
    pub duration_seconds: f64,
    /// Volumes.
    pub volumes: u64,
}

impl TraceSummary {
    /// Reads for each read or write, in percent.
    pub fn read_percent(&self) -> f64 {
        100.0 * self.reads as f64 / (self.reads + self.writes).max(1) as f64
    }

    /// Mean size of a read in KiB; zero without reads.
    pub fn mean_read_kib(&self) -> f64 {
        self.read_bytes as f64 / self.reads.max(1) as f64 / 1024.0
    }

    /// Mean size of a write in KiB; zero without writes.
    pub fn mean_write_kib(&self) -> f64 {
        self.write_bytes as f64 / self.writes.max(1) as f64 / 1024.0
    }
}

/// Reads a trace to its end.
///
/// Errors: the first row that cannot be read.
pub fn summarize(mut reader: TraceReader) -> Result<TraceSummary, TraceError> {
    let mut totals = Totals::default();
    for record in &mut reader {
        totals.add(&record?);
    }
    Ok(totals.finish(&reader))
}

/// A summary in the making.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    footprint: Footprint,
    volumes: HashSet<u32>,
    reads: u64,
    writes: u64,
    trims: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Totals {
    /// Counts one row.
    pub(crate) fn add(&mut self, record: &TraceRecord) {
        let request = &record.request;
        self.volumes.insert(record.volume);
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += u64::from(request.len_bytes);
            }
            Operation::Write => {
                self.writes += 1;
                self.write_bytes += u64::from(request.len_bytes);
            }
            Operation::Trim => self.trims += 1,
            _ => {}
        }
        if matches!(request.operation, Operation::Read | Operation::Write) {
            self.footprint.add(record.volume, request.offset_bytes, request.len_bytes);
        }
    }

    /// The summary of what `reader` has read.
    pub(crate) fn finish(self, reader: &TraceReader) -> TraceSummary {
        TraceSummary {
            format: reader.format().name(),
            note: reader.note(),
            counts: *reader.counts(),
            reads: self.reads,
            writes: self.writes,
            trims: self.trims,
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            footprint_bytes: self.footprint.pages() * PAGE,
            duration_seconds: reader.duration_seconds(),
            volumes: self.volumes.len() as u64,
        }
    }
}

impl fmt::Display for TraceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        writeln!(f, "format          {}", self.format)?;
        writeln!(f, "rows            {}", self.counts.rows)?;
        writeln!(f, "reads           {:.1} %", self.read_percent())?;
        writeln!(f, "mean read       {:.1} KiB", self.mean_read_kib())?;
        writeln!(f, "mean write      {:.1} KiB", self.mean_write_kib())?;
        writeln!(f, "total           {:.1} MiB", mib(self.read_bytes + self.write_bytes))?;
        writeln!(f, "footprint       {:.1} MiB", mib(self.footprint_bytes))?;
        writeln!(f, "duration        {:.3} s", self.duration_seconds)?;
        writeln!(f, "volumes         {}", self.volumes)?;
        let counts = &self.counts;
        write!(
            f,
            "irregular rows  {} reordered, {} with a clock jump, {} with a rounded offset; {} lines passed over",
            counts.reordered, counts.jumped, counts.rounded, counts.skipped
        )?;
        let reasons: Vec<String> = counts
            .reasons()
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        if !reasons.is_empty() {
            write!(f, " ({})", reasons.join(", "))?;
        }
        write!(f, "\nhow             {}", self.note)
    }
}
