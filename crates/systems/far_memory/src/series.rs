//! Requests to the memory over the time of a run, in intervals that grow with it.

use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_units::{SimSpan, SimTime};

/// Intervals at most. When more are needed, two become one.
const INTERVALS: usize = 256;

/// Length of an interval at first.
const FIRST: SimSpan = SimSpan::from_us(1);

/// Requests that were answered in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// How many.
    pub requests: u64,
    /// Their time together.
    pub latency: SimSpan,
    /// The longest of them.
    pub longest: SimSpan,
}

/// A series of intervals, from the first access of a run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    interval: SimSpan,
    intervals: Vec<Interval>,
}

impl Default for Series {
    fn default() -> Self {
        Self { interval: FIRST, intervals: Vec::with_capacity(INTERVALS) }
    }
}

impl Series {
    /// Notes a request of `at`.
    #[inline]
    pub fn note(&mut self, at: SimTime, latency: SimSpan) {
        let place = || (at.as_ps() / self.interval.as_ps()) as usize;
        if place() >= INTERVALS {
            self.widen(at);
        }
        let place = (at.as_ps() / self.interval.as_ps()) as usize;
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, Interval::default());
        }
        let interval = &mut self.intervals[place];
        interval.requests += 1;
        interval.latency += latency;
        interval.longest = interval.longest.max(latency);
    }

    #[cold]
    fn widen(&mut self, at: SimTime) {
        while at.as_ps() / self.interval.as_ps() >= INTERVALS as u64 {
            self.interval = self.interval * 2;
            let both = |pair: &[Interval]| {
                pair.iter().fold(Interval::default(), |sum, one| Interval {
                    requests: sum.requests + one.requests,
                    latency: sum.latency + one.latency,
                    longest: sum.longest.max(one.longest),
                })
            };
            self.intervals = self.intervals.chunks(2).map(both).collect();
        }
    }

    /// Length of an interval.
    pub fn interval(&self) -> SimSpan {
        self.interval
    }

    /// The intervals, the first from the begin of the run on.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

impl Interval {
    /// Mean latency in microseconds; `None` without a request.
    pub fn mean_us(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.latency.as_ps() as f64 / 1e6 / self.requests as f64)
    }

    /// The longest latency in microseconds; `None` without a request.
    pub fn longest_us(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.longest.as_ps() as f64 / 1e6)
    }

    /// Bytes of the lines that were asked for.
    pub fn bytes(&self) -> u64 {
        self.requests * CACHE_LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_grow_and_lose_no_request(steps in prop::collection::vec((0_u64..1 << 34, 0_u64..1 << 20), 0..300)) {
            let (mut series, mut at) = (Series::default(), SimTime::ZERO);
            let mut noted = Vec::new();
            for (gap, latency) in steps {
                at += SimSpan::from_ps(gap);
                noted.push((at, SimSpan::from_ps(latency)));
                series.note(at, SimSpan::from_ps(latency));
            }
            prop_assert!(series.intervals().len() <= INTERVALS);
            for (place, found) in series.intervals().iter().enumerate() {
                let here = noted.iter().filter(|(at, _)| at.as_ps() / series.interval().as_ps() == place as u64);
                let latencies: Vec<SimSpan> = here.map(|(_, latency)| *latency).collect();
                prop_assert_eq!(found.requests, latencies.len() as u64);
                prop_assert_eq!(found.longest, latencies.iter().copied().max().unwrap_or_default());
                let sum = latencies.into_iter().fold(SimSpan::ZERO, |sum, latency| sum + latency);
                prop_assert_eq!(found.latency, sum);
            }
            let all: u64 = series.intervals().iter().map(|interval| interval.requests).sum();
            prop_assert_eq!(all, noted.len() as u64);
        }
    }
}
