//! Requests and bytes over time.

use flashyard_stats::{Series, SeriesKind};
use flashyard_units::{SimSpan, SimTime};

/// Bins at most: as many as fit a line of a terminal. There are at least half as many, once they were joined.
const BINS_MAX: usize = 80;

/// Requests and bytes a second over time, in equal bins from the first row. Empty when all rows arrive at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateOverTime {
    /// Length of a bin: a power of two of microseconds. The trace ends within the last one, which shows less.
    pub bin_seconds: f64,
    /// Requests a second in each bin.
    pub requests_per_s: Vec<f64>,
    /// Bytes a second in each bin.
    pub bytes_per_s: Vec<f64>,
    /// Requests a second over the whole trace.
    pub requests_per_s_mean: f64,
    /// Bytes a second over the whole trace.
    pub bytes_per_s_mean: f64,
}

impl RateOverTime {
    /// The bins whose rates can be compared: all but the last, which the end of the trace cut short; that one when
    /// it is alone.
    pub fn whole_bins(&self) -> usize {
        self.requests_per_s.len().saturating_sub(1).max(self.requests_per_s.len().min(1))
    }
}

/// Rates in the making.
pub(super) struct Rate {
    requests: Series,
    bytes: Series,
    last: SimTime,
}

impl Rate {
    pub(super) fn new() -> Self {
        let series = |unit| Series::new(SeriesKind::Accumulate, unit, SimSpan::from_us(1), BINS_MAX);
        Self { requests: series("requests"), bytes: series("bytes"), last: SimTime::ZERO }
    }

    pub(super) fn add(&mut self, arrival: SimTime, len_bytes: u32) {
        self.requests.record(arrival, 1.0);
        self.bytes.record(arrival, f64::from(len_bytes));
        self.last = self.last.max(arrival);
    }

    pub(super) fn finish(self) -> RateOverTime {
        let duration = self.last.as_secs_f64();
        if duration == 0.0 {
            return RateOverTime::default();
        }
        let rates = |series: &Series| series.points().map(|point| point.per_second().unwrap_or(0.0)).collect();
        RateOverTime {
            bin_seconds: self.requests.width().as_secs_f64(),
            requests_per_s: rates(&self.requests),
            bytes_per_s: rates(&self.bytes),
            requests_per_s_mean: self.requests.total() / duration,
            bytes_per_s_mean: self.bytes.total() / duration,
        }
    }
}
