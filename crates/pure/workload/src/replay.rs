//! Replay of trace records, scaled to a drive. The scaling applied is part of the result.

use crate::scaling::ScalingNote;
use crate::source::{RequestSource, SourceError};
use flashyard_blk::{BlockRequest, TraceRecord};
use flashyard_units::SimTime;
use std::error::Error;

/// Opens the trace from its beginning.
pub type Open = Box<dyn FnMut() -> Result<Records, SourceError> + Send>;
/// Records one after the other, with how they are read.
pub type Records = Box<dyn RecordStream>;

/// Records of a trace.
pub trait RecordStream: Iterator<Item = Result<TraceRecord, SourceError>> + Send {
    /// How the trace was read so far, for the report: its format, the format's assumptions, irregular rows. Empty when
    /// there is nothing to say.
    fn note(&self) -> String {
        String::new()
    }

    /// Share of the records that was read, from 0 to 1; `None` where it is not known.
    fn progress(&self) -> Option<f64> {
        None
    }
}

/// A sector, the unit of scaled sizes.
const SECTOR_BYTES: u32 = 512;
/// Drives map units of this length. A request that crosses the span's end is moved back by multiples of it, so that its alignment stays. \[A\]
/// the mapping unit of common drives, and a multiple of every sector.
const UNIT_BYTES: u64 = 4096;

/// The records of any reader, its errors in one line with their causes.
pub fn records<E: Error>(reader: impl Iterator<Item = Result<TraceRecord, E>> + Send + 'static) -> Records {
    Box::new(Plain(reader.map(|record| record.map_err(|error| SourceError::from_error(&error)))))
}

/// Records without a note.
struct Plain<I>(I);

impl<I: Iterator> Iterator for Plain<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
}

impl<I: Iterator<Item = Result<TraceRecord, SourceError>> + Send> RecordStream for Plain<I> {}

/// How a trace is fitted to a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Bytes of the drive: addresses are taken modulo this. A request that would cross the end is not split, for
    /// that would change its latency: it is moved back by the fewest 4 KiB that make it fit (to the very end, or
    /// the very beginning, where that is impossible). One longer than the drive is cut to it.
    pub span_bytes: u64,
    /// Added to every address before folding, so that drives that replay one trace differ.
    pub shift_bytes: u64,
    /// Lengths are multiplied by this, to the nearest whole sector of 512 bytes and at least one; 1 keeps them to
    /// the byte.
    pub size_factor: f64,
    /// Arrival times are divided by this.
    pub speed: f64,
    /// How often the trace is replayed; `None` for without end.
    pub repetitions: Option<u64>,
    /// Requests are issued when they arrive, so that a trace without end has to take time.
    pub keeps_arrivals: bool,
    /// Only records whose volume modulo `.1` is `.0`, to spread volumes over drives.
    pub volumes: Option<(u32, u32)>,
}

impl ReplayOptions {
    /// The scaling applied, in words, for the report.
    pub fn note(&self) -> String {
        let repeated =
            self.repetitions.map_or("repeated as needed".to_owned(), |count| format!("replayed {count} times"));
        let volumes = self.volumes.map_or(String::new(), |(drive, of)| format!(", volumes {drive} modulo {of}"));
        let sizes = if self.size_factor == 1.0 { String::new() } else { format!(", sizes x{}", self.size_factor) };
        format!("addresses modulo {} bytes{sizes}, speed x{}, {repeated}{volumes}", self.span_bytes, self.speed)
    }
}

/// A trace as a source of requests.
///
/// Invariants: requests lie inside the span; arrivals never go backwards, over repetitions too. Alignment to
/// 4 KiB or less is that of the trace where span and shift have it.
pub struct Replay {
    open: Open,
    records: Option<Records>,
    options: ReplayOptions,
    /// Sorted; empty for all volumes.
    only: Vec<u32>,
    /// Requests still to be handed out; `u64::MAX` without a limit.
    left: u64,
    /// Added to arrivals of the present round, so that time goes on over repetitions.
    base: SimTime,
    last: SimTime,
    yielded_this_round: bool,
    done: ScalingNote,
}

impl Replay {
    /// Replays the records that `open` opens. Panics on a span of zero, on a speed or a factor that is not above zero,
    /// and on volumes modulo zero: a reader of options from users checks them first.
    pub fn new(open: Open, options: ReplayOptions) -> Self {
        assert!(options.speed > 0.0 && options.span_bytes > 0, "speed and span are above zero");
        assert!(options.size_factor > 0.0, "a factor on sizes is above zero");
        assert!(options.volumes.is_none_or(|(_, of)| of > 0), "volumes are spread over at least one drive");
        Self {
            open,
            records: None,
            options,
            only: Vec::new(),
            left: u64::MAX,
            base: SimTime::ZERO,
            last: SimTime::ZERO,
            yielded_this_round: true,
            done: ScalingNote::default(),
        }
    }

    /// Replays `records` once; for readers that cannot be opened again. Panics as [`new`](Self::new) does.
    pub fn once(records: Records, options: ReplayOptions) -> Self {
        let mut records = Some(records);
        let again = || SourceError("these records can be read only once".to_owned());
        let open = Box::new(move || records.take().ok_or_else(again));
        Self::new(open, ReplayOptions { repetitions: Some(1), ..options })
    }

    /// This replay, ending after `requests` requests.
    pub fn limit(self, requests: u64) -> Self {
        Self { left: requests, ..self }
    }

    /// This replay with the records of `volumes` only. Panics on none.
    pub fn only_volumes(self, mut volumes: Vec<u32>) -> Self {
        assert!(!volumes.is_empty(), "a replay of no volume has no requests");
        volumes.sort_unstable();
        volumes.dedup();
        Self { only: volumes, ..self }
    }

    /// The scaling asked for and its effects so far.
    pub fn scaling_note(&self) -> ScalingNote {
        let mut applied = self.options.note();
        if self.options.shift_bytes > 0 {
            applied = format!("{applied}, shifted by {} bytes", self.options.shift_bytes);
        }
        if !self.only.is_empty() {
            let volumes: Vec<String> = self.only.iter().map(u32::to_string).collect();
            applied = format!("{applied}, volumes {} only", volumes.join(" "));
        }
        let mut note = ScalingNote { applied, ..self.done.clone() };
        if let Some(records) = &self.records {
            note.read = records.note();
        }
        note
    }

    /// The next record of the wanted volumes, over rounds.
    fn next_record(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        loop {
            if self.records.is_none() {
                // A round without a record would repeat for ever.
                if self.options.repetitions == Some(self.done.rounds) || !self.yielded_this_round {
                    return Ok(None);
                }
                self.records = Some((self.open)()?);
                self.done.rounds += 1;
                self.base = self.last;
                self.yielded_this_round = false;
            }
            let Some(records) = &mut self.records else { return Ok(None) };
            match records.next() {
                Some(record) => {
                    let record = record?;
                    if self.wants(record.volume) {
                        self.yielded_this_round = true;
                        return Ok(Some(record));
                    }
                    self.done.left_out += 1;
                }
                None => {
                    self.done.read = records.note();
                    self.records = None;
                    self.refuse_standstill()?;
                }
            }
        }
    }

    /// Refuses to begin another round where one took no time: all rounds would arrive at one instant, without end.
    fn refuse_standstill(&self) -> Result<(), SourceError> {
        let repeats = self.options.keeps_arrivals && self.options.repetitions.is_none();
        if repeats && self.yielded_this_round && self.last == self.base {
            return Err(SourceError::standstill());
        }
        Ok(())
    }

    #[inline]
    fn wants(&self, volume: u32) -> bool {
        self.options.volumes.is_none_or(|(drive, of)| volume % of == drive)
            && (self.only.is_empty() || self.only.binary_search(&volume).is_ok())
    }

    /// The length after the factor, where there is one.
    fn resize(&mut self, request: &mut BlockRequest) {
        if self.options.size_factor == 1.0 || request.len_bytes == 0 {
            return;
        }
        let sectors = f64::from(request.len_bytes) * self.options.size_factor / f64::from(SECTOR_BYTES);
        // Casts of floating-point numbers stop at the bounds of the integer.
        let sectors = ((sectors + 0.5) as u32).clamp(1, u32::MAX / SECTOR_BYTES);
        self.done.resized += u64::from(sectors * SECTOR_BYTES != request.len_bytes);
        request.len_bytes = sectors * SECTOR_BYTES;
    }

    /// Folds a request into the span.
    fn fit(&mut self, request: &mut BlockRequest) {
        let span = self.options.span_bytes;
        let shift = self.options.shift_bytes % span;
        if u64::from(request.len_bytes) > span {
            request.len_bytes = u32::try_from(span).expect("it is below a 32-bit length");
            self.done.cut += 1;
        }
        self.done.folded += u64::from(request.offset_bytes >= span);
        // (offset + shift) modulo span, without passing 2^64.
        let offset = request.offset_bytes % span;
        let offset = if offset >= span - shift { offset - (span - shift) } else { offset + shift };
        let room = span - offset;
        let len = u64::from(request.len_bytes);
        request.offset_bytes = offset;
        if len > room {
            let back = (len - room).next_multiple_of(UNIT_BYTES);
            request.offset_bytes = offset.checked_sub(back).unwrap_or(span - len);
            self.done.moved_back += 1;
        }
        let ends = [request.offset_bytes, len].map(|at| at.is_multiple_of(UNIT_BYTES));
        self.done.partial += u64::from(ends != [true, true]);
    }

    /// The arrival after speed and repetition, never before the last one.
    fn retime(&mut self, arrival: SimTime) -> Result<SimTime, SourceError> {
        let ps = arrival.as_ps();
        let scaled = if self.options.speed == 1.0 { ps } else { slowed(ps, self.options.speed)? };
        let arrival = self.base.as_ps().checked_add(scaled).ok_or_else(SourceError::beyond_time)?;
        let arrival = SimTime::from_ps(arrival);
        self.done.delayed += u64::from(arrival < self.last);
        self.last = arrival.max(self.last);
        Ok(self.last)
    }
}

/// A time at another speed.
///
/// Errors: it is beyond the end of simulated time.
fn slowed(ps: u64, speed: f64) -> Result<u64, SourceError> {
    /// The first number beyond 64 bits.
    const END: f64 = 18_446_744_073_709_551_616.0;
    let scaled = ps as f64 / speed;
    if scaled < END { Ok(scaled as u64) } else { Err(SourceError::beyond_time()) }
}

impl RequestSource for Replay {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut record) = self.next_record()? else { return Ok(None) };
        self.resize(&mut record.request);
        self.fit(&mut record.request);
        record.arrival = self.retime(record.arrival)?;
        if self.left != u64::MAX {
            self.left -= 1;
        }
        self.done.requests += 1;
        Ok(Some(record))
    }

    fn progress(&self) -> Option<f64> {
        let handed_out = self.done.requests as f64;
        let of_limit = (self.left != u64::MAX).then(|| handed_out / (handed_out + self.left as f64).max(1.0));
        let of_rounds = self.options.repetitions.and_then(|rounds| {
            let this = self.records.as_ref().map_or(Some(0.0), |records| records.progress().map(|share| share - 1.0));
            Some((self.done.rounds as f64 + this?) / rounds.max(1) as f64)
        });
        // Whichever ends first.
        [of_limit, of_rounds].into_iter().flatten().reduce(f64::max)
    }

    fn scaling(&self) -> Option<ScalingNote> {
        Some(self.scaling_note())
    }

    fn rounds(&self) -> u64 {
        self.done.rounds
    }
}

#[cfg(test)]
mod tests;
