//! Rows of one trace as records.

use crate::clock::{Clock, Stamp};
use crate::error::TraceError;
use crate::formats::{Format, Line, Row, Skip};
use crate::rows::Rows;
use crate::stream::Meter;
use flashyard_blk::TraceRecord;

/// Rows counted while reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that became records.
    pub rows: u64,
    /// Lines or binary records passed over, for any of the five reasons below.
    pub skipped: u64,
    /// Of the skipped: blank lines.
    pub skipped_blank: u64,
    /// Of the skipped: events, commands and file actions other than those that are counted.
    pub skipped_other_event: u64,
    /// Of the skipped: flushes, notifications and requests for no bytes.
    pub skipped_no_range: u64,
    /// Of the skipped: totals that a tool printed after the rows.
    pub skipped_totals: u64,
    /// Of the skipped: headers that name the columns or the version.
    pub skipped_header: u64,
    /// Rows earlier than one before them.
    pub reordered: u64,
    /// Rows whose clock jumped more than 30 days.
    pub jumped: u64,
    /// Rows with a number that was printed rounded.
    pub rounded: u64,
    /// Rows with a time, an address or a direction that the file does not hold: [`Format::assumes`] says which.
    pub assumed: u64,
}

/// The records of one trace, as they are read. Nothing follows an error.
pub struct TraceReader {
    format: Format,
    source: Box<dyn Rows>,
    clock: Clock,
    counts: RowCounts,
    ended: bool,
    meter: Option<Meter>,
}

impl TraceReader {
    pub(crate) fn new(format: Format, source: Box<dyn Rows>) -> Self {
        Self { format, source, clock: Clock::default(), counts: RowCounts::default(), ended: false, meter: None }
    }

    pub(crate) fn with_meter(self, meter: Option<Meter>) -> Self {
        Self { meter, ..self }
    }

    /// How much of the file was read, by bytes as they lie on the disk; `None` for streams and for several files.
    pub fn meter(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Rows counted so far.
    pub fn counts(&self) -> &RowCounts {
        &self.counts
    }

    /// Latest time less earliest time seen so far, in seconds, without rows whose clock jumped.
    pub fn duration_seconds(&self) -> f64 {
        self.clock.span_ps() as f64 / 1e12
    }

    /// How the trace was read, for results that come from it: the format, what it assumes, files that are missing,
    /// irregular rows so far.
    pub fn note(&self) -> String {
        let mut note = format!("read as {}", self.format.name());
        if let Some(assumed) = self.format.assumes() {
            note = format!("{note} ({assumed})");
        }
        if let Some(files) = self.source.note() {
            note = format!("{note}, {files}");
        }
        let counts = &self.counts;
        let irregular = [
            (counts.reordered, "rows out of order"),
            (counts.jumped, "rows with a clock jump"),
            (counts.rounded, "rows with a rounded offset"),
        ];
        for (count, what) in irregular.into_iter().filter(|(count, _)| *count > 0) {
            note = format!("{note}, {count} {what}");
        }
        note
    }

    fn next_record(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        while let Some(line) = self.source.next_line()? {
            match line {
                Line::Skip(skip) => self.counts.pass_over(skip),
                Line::Row(row) => {
                    let Some((arrival, stamp)) = self.clock.stamp(row.time_ps) else {
                        let late = "it arrives more than 213 days after the first row, the range of simulated time";
                        return Err(self.source.refuse(late.to_owned()));
                    };
                    self.counts.admit(stamp, &row, self.format.assumes().is_some());
                    return Ok(Some(TraceRecord { arrival, volume: row.volume, request: row.request }));
                }
            }
        }
        if self.counts.rows > 0 {
            return Ok(None);
        }
        let (path, lines) = (self.source.path().to_owned(), self.source.given());
        Err(TraceError::NoRows { path, format: self.format.name(), lines })
    }
}

impl RowCounts {
    /// The skipped by reason, in words.
    pub fn reasons(&self) -> [(u64, &'static str); 5] {
        [
            (self.skipped_blank, "blank"),
            (self.skipped_other_event, "other events"),
            (self.skipped_no_range, "without a range"),
            (self.skipped_totals, "totals"),
            (self.skipped_header, "headers"),
        ]
    }

    fn admit(&mut self, stamp: Stamp, row: &Row, assumed: bool) {
        self.rows += 1;
        self.assumed += u64::from(assumed);
        self.rounded += u64::from(row.rounded);
        self.reordered += u64::from(stamp == Stamp::Reordered);
        self.jumped += u64::from(stamp == Stamp::Jumped);
    }

    fn pass_over(&mut self, skip: Skip) {
        self.skipped += 1;
        match skip {
            Skip::Blank => self.skipped_blank += 1,
            Skip::Header => self.skipped_header += 1,
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
