//! Time between arrivals.

use flashyard_stats::{LatencyHistogram, MeanEstimate};
use flashyard_units::{SimSpan, SimTime};

/// Time between neighbouring rows, by the clock rule; all zero with fewer than two rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GapSummary {
    /// Mean in microseconds.
    pub mean_us: f64,
    /// Half of the gaps are no longer, in microseconds. Percentiles have three digits, and 1000 s stands for longer
    /// ones.
    pub p50_us: f64,
    /// 90 % of the gaps are no longer, in microseconds.
    pub p90_us: f64,
    /// 99 % of the gaps are no longer, in microseconds.
    pub p99_us: f64,
    /// The longest, in microseconds.
    pub max_us: f64,
    /// Gaps of no time, in percent.
    pub simultaneous_percent: f64,
    /// Standard deviation over mean: 0 for a metronome, 1 for random arrivals, more for bursts.
    pub variation: f64,
}

/// Gaps in the making.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    last: Option<SimTime>,
    histogram: LatencyHistogram,
    estimate: MeanEstimate,
    longest: SimSpan,
    none: u64,
}

impl Gaps {
    pub(super) fn add(&mut self, arrival: SimTime) {
        let Some(last) = self.last.replace(arrival) else { return };
        let gap = arrival.saturating_since(last);
        self.histogram.record(gap);
        self.estimate.record(gap.as_us_f64());
        self.longest = self.longest.max(gap);
        self.none += u64::from(gap == SimSpan::ZERO);
    }

    pub(super) fn finish(self) -> GapSummary {
        let none = self.none as f64 / self.histogram.count().max(1) as f64;
        let (mean_us, max_us) = (self.histogram.mean_us(), self.longest.as_us_f64());
        // The histogram's shortest time is a nanosecond, and its buckets end beyond what fell into them.
        let percentile =
            |quantile| if quantile <= none { 0.0 } else { self.histogram.percentile_us(quantile).min(max_us) };
        GapSummary {
            mean_us,
            p50_us: percentile(0.5),
            p90_us: percentile(0.9),
            p99_us: percentile(0.99),
            max_us,
            simultaneous_percent: 100.0 * none,
            variation: if mean_us > 0.0 { self.estimate.standard_deviation() / mean_us } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(us: &[u64]) -> GapSummary {
        let mut gaps = Gaps::default();
        us.iter().for_each(|&us| gaps.add(SimTime::ZERO + SimSpan::from_us(us)));
        gaps.finish()
    }

    #[test]
    fn a_metronome_does_not_vary() {
        let found = gaps(&[0, 10, 20, 30, 40]);
        assert_eq!((found.mean_us, found.p50_us, found.max_us, found.variation), (10.0, 10.0, 10.0, 0.0));
    }

    #[test]
    fn rows_of_one_instant_are_no_time_apart() {
        let found = gaps(&[5, 5, 5, 5, 1_000_005]);
        assert_eq!((found.p50_us, found.simultaneous_percent, found.max_us), (0.0, 75.0, 1_000_000.0));
        assert!(found.variation > 1.0);
        assert_eq!((gaps(&[]), gaps(&[3])), (GapSummary::default(), GapSummary::default()));
    }
}
