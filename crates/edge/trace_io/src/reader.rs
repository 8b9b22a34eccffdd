//! Rows of one file as records.

use crate::clock::{Clock, Stamp};
use crate::error::TraceError;
use crate::formats::{Format, Line, Row, RowError, Skip};
use crate::lines::Lines;
use flashyard_blk::TraceRecord;
use std::collections::VecDeque;
use std::path::Path;

/// Characters of a bad row that a message shows.
pub(crate) const SHOWN_MAX: usize = 120;

/// What was seen while reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that became records.
    pub rows: u64,
    /// Lines passed over, for any of the four reasons below.
    pub skipped: u64,
    /// Of the skipped: blank lines.
    pub skipped_blank: u64,
    /// Of the skipped: events other than the one that is counted.
    pub skipped_other_event: u64,
    /// Of the skipped: flushes, notifications and requests for no bytes.
    pub skipped_no_range: u64,
    /// Of the skipped: totals that a tool printed after the rows.
    pub skipped_totals: u64,
    /// Rows earlier than one before them.
    pub reordered: u64,
    /// Rows whose clock jumped more than 30 days.
    pub jumped: u64,
    /// Rows with a number that was printed rounded.
    pub rounded: u64,
}

/// The records of one trace file, as they are read. Nothing follows an error.
pub struct TraceReader {
    format: Format,
    lines: Lines,
    head: VecDeque<String>,
    line: u64,
    clock: Clock,
    counts: RowCounts,
    ended: bool,
}

impl TraceReader {
    /// A reader of `head`, the lines that detection took, and the `lines` after them.
    pub(crate) fn new(format: Format, lines: Lines, head: Vec<String>) -> Self {
        let (clock, counts) = (Clock::default(), RowCounts::default());
        Self { format, lines, head: head.into(), line: 0, clock, counts, ended: false }
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was seen so far.
    pub fn counts(&self) -> &RowCounts {
        &self.counts
    }

    /// Latest time less earliest time seen so far, in seconds, without rows whose clock jumped.
    pub fn duration_seconds(&self) -> f64 {
        self.clock.span_ps() as f64 / 1e12
    }

    fn next_record(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        loop {
            let head = self.head.pop_front();
            let line = match &head {
                Some(line) => line,
                None => match self.lines.next_line()? {
                    Some(line) => line,
                    None => break,
                },
            };
            self.line += 1;
            if line.trim().is_empty() {
                self.counts.skipped += 1;
                self.counts.skipped_blank += 1;
                continue;
            }
            let parsed = self.format.parse(line).and_then(|parsed| stamp(&mut self.clock, parsed));
            match parsed {
                Ok(Stamped::Record(record, stamp, row)) => {
                    self.counts.admit(stamp, &row);
                    return Ok(Some(record));
                }
                Ok(Stamped::Skip(skip)) => self.counts.pass_over(skip),
                Err(RowError(why)) => {
                    let found = line.chars().take(SHOWN_MAX).collect();
                    return Err(self.row_error(found, why));
                }
            }
        }
        if self.counts.rows > 0 {
            return Ok(None);
        }
        Err(TraceError::NoRows { path: self.path().to_owned(), format: self.format.name(), lines: self.line })
    }

    fn path(&self) -> &Path {
        self.lines.path()
    }

    fn row_error(&self, found: String, why: String) -> TraceError {
        TraceError::Row {
            path: self.path().to_owned(),
            line: self.line,
            found,
            format: self.format.name(),
            why,
            accepted: self.format.accepted(),
        }
    }
}

/// A line with its arrival.
enum Stamped {
    Record(TraceRecord, Stamp, Row),
    Skip(Skip),
}

fn stamp(clock: &mut Clock, line: Line) -> Result<Stamped, RowError> {
    match line {
        Line::Skip(skip) => Ok(Stamped::Skip(skip)),
        Line::Row(row) => {
            let late = "it arrives more than 213 days after the first row, the range of simulated time";
            let (arrival, stamp) = clock.stamp(row.time_ps).ok_or(late)?;
            Ok(Stamped::Record(TraceRecord { arrival, volume: row.volume, request: row.request }, stamp, row))
        }
    }
}

impl RowCounts {
    fn admit(&mut self, stamp: Stamp, row: &Row) {
        self.rows += 1;
        self.rounded += u64::from(row.rounded);
        self.reordered += u64::from(stamp == Stamp::Reordered);
        self.jumped += u64::from(stamp == Stamp::Jumped);
    }

    fn pass_over(&mut self, skip: Skip) {
        self.skipped += 1;
        match skip {
            Skip::OtherEvent => self.skipped_other_event += 1,
            Skip::NoRange => self.skipped_no_range += 1,
            Skip::Totals => self.skipped_totals += 1,
        }
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
