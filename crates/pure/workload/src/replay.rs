//! Replay of trace records, scaled to a drive. What was applied is part of the result.

use crate::source::{RequestSource, SourceError};
use flashyard_blk::TraceRecord;
use flashyard_units::{SimSpan, SimTime};

/// Opens the trace from its beginning.
pub type Open = Box<dyn FnMut() -> Result<Records, SourceError> + Send>;
/// Records one after the other.
pub type Records = Box<dyn Iterator<Item = Result<TraceRecord, SourceError>> + Send>;

/// How a trace is fitted to a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Bytes of the drive: addresses are taken modulo this; a request that would cross the end is moved
    /// back to end there, one longer than the drive is cut.
    pub span_bytes: u64,
    /// Added to every address before folding, so that drives that replay one trace differ.
    pub shift_bytes: u64,
    /// Arrival times are divided by this.
    pub speed: f64,
    /// How often the trace is replayed; `None` for without end.
    pub repetitions: Option<u64>,
    /// Only records whose volume modulo `.1` is `.0`, to spread volumes over drives.
    pub volumes: Option<(u32, u32)>,
}

impl ReplayOptions {
    /// What is applied, in words, for the report.
    pub fn note(&self) -> String {
        let repeated = self.repetitions.map_or("repeated as needed".to_owned(), |count| format!("replayed {count} times"));
        let volumes = self.volumes.map_or(String::new(), |(drive, of)| format!(", volumes {drive} modulo {of}"));
        format!("addresses modulo {} bytes, speed x{}, {repeated}{volumes}", self.span_bytes, self.speed)
    }
}

/// A trace as a source of requests.
pub struct Replay {
    open: Open,
    records: Option<Records>,
    options: ReplayOptions,
    rounds: u64,
    /// Added to arrivals of the present round, so that time goes on over repetitions.
    base: SimTime,
    last: SimTime,
    yielded_this_round: bool,
}

impl Replay {
    /// Replays what `open` opens. Panics on a speed that is not above zero.
    pub fn new(open: Open, options: ReplayOptions) -> Self {
        assert!(options.speed > 0.0 && options.span_bytes > 0, "speed and span are above zero");
        Self {
            open,
            records: None,
            options,
            rounds: 0,
            base: SimTime::ZERO,
            last: SimTime::ZERO,
            yielded_this_round: true,
        }
    }

    /// The next record of the wanted volumes, over rounds.
    fn next_record(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        loop {
            if self.records.is_none() {
                // A round without a record would repeat for ever.
                if self.options.repetitions == Some(self.rounds) || !self.yielded_this_round {
                    return Ok(None);
                }
                self.records = Some((self.open)()?);
                self.rounds += 1;
                self.base = self.last;
                self.yielded_this_round = false;
            }
            let Some(records) = &mut self.records else { return Ok(None) };
            match records.next() {
                Some(record) => {
                    let record = record?;
                    if self.options.volumes.is_none_or(|(drive, of)| record.volume % of == drive) {
                        self.yielded_this_round = true;
                        return Ok(Some(record));
                    }
                }
                None => self.records = None,
            }
        }
    }

    fn fit(&self, record: &mut TraceRecord) {
        let span = self.options.span_bytes;
        let request = &mut record.request;
        request.len_bytes = request.len_bytes.min(u32::try_from(span).unwrap_or(u32::MAX));
        let folded = request.offset_bytes.wrapping_add(self.options.shift_bytes) % span;
        request.offset_bytes = folded.min(span - u64::from(request.len_bytes));
    }
}

impl RequestSource for Replay {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let Some(mut record) = self.next_record()? else { return Ok(None) };
        self.fit(&mut record);
        let scaled = if self.options.speed == 1.0 {
            record.arrival.as_ps()
        } else {
            (record.arrival.as_ps() as f64 / self.options.speed) as u64
        };
        record.arrival = (self.base + SimSpan::from_ps(scaled)).max(self.last);
        self.last = record.arrival;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::{BlockRequest, Operation};

    fn records() -> Records {
        let record = |us, volume, offset_bytes| {
            let request = BlockRequest { operation: Operation::Read, offset_bytes, len_bytes: 8192 };
            Ok(TraceRecord { arrival: SimTime::ZERO + SimSpan::from_us(us), volume, request })
        };
        Box::new(vec![record(0, 0, 0), record(10, 1, 12_288), record(20, 2, 40_000)].into_iter())
    }

    fn replay(options: ReplayOptions) -> Vec<TraceRecord> {
        let mut replay = Replay::new(Box::new(|| Ok(records())), options);
        std::iter::from_fn(|| replay.next_request().expect("the records are good")).take(10).collect()
    }

    fn options() -> ReplayOptions {
        ReplayOptions { span_bytes: 16_384, shift_bytes: 0, speed: 2.0, repetitions: Some(2), volumes: None }
    }

    #[test]
    fn addresses_fold_into_the_drive_and_times_scale_and_go_on() {
        let found: Vec<(u64, u64)> =
            replay(options()).iter().map(|r| (r.arrival.as_ps() / 1_000_000, r.request.offset_bytes)).collect();
        assert_eq!(found, [(0, 0), (5, 8192), (10, 7232), (10, 0), (15, 8192), (20, 7232)]);
    }

    #[test]
    fn volumes_are_spread_over_drives() {
        let found = replay(ReplayOptions { volumes: Some((0, 2)), ..options() });
        assert_eq!(found.iter().map(|r| r.volume).collect::<Vec<_>>(), [0, 2, 0, 2]);
    }

    #[test]
    fn a_drive_without_records_ends_instead_of_repeating_for_ever() {
        assert!(replay(ReplayOptions { volumes: Some((7, 9)), repetitions: None, ..options() }).is_empty());
    }
}
