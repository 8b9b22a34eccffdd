//! Rows of one file as records.

use crate::error::TraceError;
use crate::formats::{Format, Row};
use flashyard_blk::TraceRecord;
use flashyard_units::SimTime;
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// A line longer than this is no line of text.
const LINE_MAX: u64 = 1 << 16;
/// A row this far ahead of the latest one is a clock that jumped: 30 days.
const JUMP_PS: i128 = 30 * 86_400 * 1_000_000_000_000;

/// Numbered lines of a stream.
pub(crate) struct Lines {
    path: PathBuf,
    stream: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(crate) fn new(path: &Path, stream: Box<dyn BufRead + Send>) -> Self {
        Self { path: path.to_owned(), stream, buffer: Vec::with_capacity(256), number: 0 }
    }

    /// The next line without its end; `None` after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, TraceError> {
        self.buffer.clear();
        let mut limited = std::io::Read::take(&mut self.stream, LINE_MAX);
        let read = limited.read_until(b'\n', &mut self.buffer);
        let count =
            read.map_err(|source| TraceError::Damaged { path: self.path.clone(), line: self.number, source })?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        let not_text = || TraceError::NotText { path: self.path.clone(), line: self.number };
        if count as u64 == LINE_MAX || self.buffer.contains(&0) {
            return Err(not_text());
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| not_text())?;
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }
}

/// What was seen while reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that became records.
    pub rows: u64,
    /// Lines that hold no row of interest.
    pub skipped: u64,
    /// Rows earlier than one before them.
    pub reordered: u64,
    /// Rows whose clock jumped more than 30 days ahead.
    pub jumped: u64,
    /// Rows with a number that was printed rounded.
    pub rounded: u64,
}

/// The records of one trace file.
pub struct TraceReader {
    format: Format,
    lines: Lines,
    probe: VecDeque<String>,
    line: u64,
    first_ps: Option<i128>,
    lowest_ps: i128,
    latest_ps: i128,
    counts: RowCounts,
    ended: bool,
}

impl TraceReader {
    pub(crate) fn new(format: Format, lines: Lines, probe: Vec<String>) -> Self {
        Self {
            format,
            lines,
            probe: probe.into(),
            line: 0,
            first_ps: None,
            lowest_ps: 0,
            latest_ps: 0,
            counts: RowCounts::default(),
            ended: false,
        }
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
        (self.latest_ps - self.lowest_ps) as f64 / 1e12
    }

    fn next_row(&mut self) -> Result<Option<Row>, TraceError> {
        loop {
            let line = match self.probe.pop_front() {
                Some(line) => line,
                None => match self.lines.next_line()? {
                    Some(line) => line,
                    None => return Ok(None),
                },
            };
            self.line += 1;
            if line.trim().is_empty() {
                self.counts.skipped += 1;
                continue;
            }
            match self.format.parse(&line) {
                Ok(Some(row)) => return Ok(Some(row)),
                Ok(None) => self.counts.skipped += 1,
                Err(why) => {
                    return Err(TraceError::Row {
                        path: self.lines.path.clone(),
                        line: self.line,
                        found: line.chars().take(120).collect(),
                        format: self.format.name(),
                        why,
                        accepted: self.format.accepted(),
                    });
                }
            }
        }
    }

    /// Applies the clock rule of the crate page.
    fn stamp(&mut self, row: &Row) -> SimTime {
        let first = *self.first_ps.get_or_insert(row.time_ps);
        if self.counts.rows == 0 {
            self.lowest_ps = row.time_ps;
            self.latest_ps = row.time_ps;
        }
        if row.time_ps - self.latest_ps > JUMP_PS {
            self.counts.jumped += 1;
        } else if row.time_ps < self.latest_ps {
            self.counts.reordered += 1;
            self.lowest_ps = self.lowest_ps.min(row.time_ps);
        } else {
            self.latest_ps = row.time_ps;
        }
        // The range of simulated time is 213 days; a longer trace stays at its end.
        SimTime::from_ps(u64::try_from(self.latest_ps - first).unwrap_or(u64::MAX / 2))
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.next_row() {
            Ok(Some(row)) => {
                let arrival = self.stamp(&row);
                self.counts.rows += 1;
                self.counts.rounded += u64::from(row.rounded);
                Some(Ok(TraceRecord { arrival, volume: row.volume, request: row.request }))
            }
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error))
            }
        }
    }
}
