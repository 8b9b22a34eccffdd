//! Latencies: an HDR histogram in nanoseconds with an exact sum beside it.

use flashyard_units::SimSpan;
use hdrhistogram::Histogram;

/// Longest latency resolved, in nanoseconds: 1000 s. Longer ones count as this, and are counted.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// Latencies with three significant digits, from 1 ns to 1000 s; the mean is exact.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
    sum_ps: u128,
    clipped: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid constants");
        Self { histogram, sum_ps: 0, clipped: 0 }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: SimSpan) {
        let ns = latency.as_ns();
        self.sum_ps += u128::from(latency.as_ps());
        self.clipped += u64::from(ns > LONGEST_NS);
        self.histogram.saturating_record(ns.clamp(1, LONGEST_NS));
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all latency histograms have the same bounds");
        self.sum_ps += other.sum_ps;
        self.clipped += other.clipped;
    }

    /// Latencies counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Latencies beyond the longest resolved.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Exact sum in picoseconds.
    pub fn sum_ps(&self) -> u128 {
        self.sum_ps
    }

    /// Exact mean in microseconds; zero when empty.
    pub fn mean_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum_ps as f64 / self.count() as f64 / 1e6 }
    }

    /// The latency in microseconds that a share `quantile` (0 to 1) of all does not exceed; zero when empty.
    pub fn percentile_us(&self, quantile: f64) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.value_at_quantile(quantile) as f64 / 1e3 }
    }

    /// The longest latency in microseconds, rounded up in its third digit; zero when empty.
    pub fn max_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.max() as f64 / 1e3 }
    }

    /// The shortest latency in microseconds, rounded down in its third digit; zero when empty.
    pub fn min_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.min() as f64 / 1e3 }
    }

    /// Standard deviation in microseconds, of the values rounded to three digits; zero when empty.
    pub fn deviation_us(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.stdev() / 1e3 }
    }

    /// Upper edge in microseconds and count of every bucket in use, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to() as f64 / 1e3, step.count_at_value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = LatencyHistogram::new();
        assert_eq!((empty.count(), empty.mean_us(), empty.percentile_us(0.99), empty.max_us()), (0, 0.0, 0.0, 0.0));
        assert_eq!(empty.buckets().count(), 0);
    }

    #[test]
    fn the_shortest_latency_and_the_deviation_are_those_of_the_values() {
        let mut latency = LatencyHistogram::new();
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|us| latency.record(SimSpan::from_us(us)));
        assert!((latency.min_us() / 2.0 - 1.0).abs() < 0.001, "{}", latency.min_us());
        assert!((latency.deviation_us() / 2.0 - 1.0).abs() < 0.001, "{}", latency.deviation_us());
        let empty = LatencyHistogram::new();
        assert_eq!((empty.min_us(), empty.deviation_us()), (0.0, 0.0));
    }

    #[test]
    fn the_mean_is_exact_below_a_nanosecond_and_beyond_the_longest() {
        let mut latency = LatencyHistogram::new();
        latency.record(SimSpan::from_ps(1));
        latency.record(SimSpan::from_secs(2_000));
        latency.record(SimSpan::from_secs(1_000));
        assert_eq!(latency.mean_us(), 3_000_000_000_000_001_f64 / 3.0 / 1e6);
        assert_eq!((latency.count(), latency.clipped()), (3, 1));
        assert!((latency.max_us() / 1e9 - 1.0).abs() < 0.001, "{}", latency.max_us());
        assert_eq!(latency.percentile_us(0.0), 0.001);
    }

    #[test]
    fn merging_does_not_depend_on_the_order() {
        let one = |us| {
            let mut latency = LatencyHistogram::new();
            latency.record(SimSpan::from_us(us));
            latency
        };
        let (mut left, mut right) = (one(70), one(900));
        left.merge(&one(900));
        right.merge(&one(70));
        assert!(left.buckets().eq(right.buckets()));
        assert_eq!((left.mean_us(), left.max_us()), (right.mean_us(), right.max_us()));
    }

    #[test]
    fn merging_adds_sums_and_what_was_clipped() {
        let of = |spans: &[SimSpan]| {
            let mut latency = LatencyHistogram::new();
            spans.iter().for_each(|&span| latency.record(span));
            latency
        };
        let mut all = of(&[SimSpan::from_ps(1), SimSpan::from_secs(3_000)]);
        all.merge(&of(&[SimSpan::from_ps(5), SimSpan::from_secs(2_000), SimSpan::from_secs(4_000)]));
        assert_eq!((all.count(), all.clipped(), all.sum_ps()), (5, 3, 9_000 * 1_000_000_000_000 + 6));
    }

    #[test]
    fn buckets_are_told_by_their_upper_edges_in_microseconds() {
        let mut latency = LatencyHistogram::new();
        [1, 70, 70, 5_000].into_iter().for_each(|us| latency.record(SimSpan::from_us(us)));
        let (edges, counts): (Vec<f64>, Vec<u64>) = latency.buckets().unzip();
        assert_eq!(counts, [1, 2, 1]);
        for (edge, us) in edges.into_iter().zip([1.0, 70.0, 5_000.0]) {
            assert!((us..us * 1.001).contains(&edge), "{edge} for {us}");
        }
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_a_sorted_list_to_three_digits(
            mut values in prop::collection::vec(1_u64..10_000_000, 1..300), quantile in 0.01_f64..1.0,
        ) {
            let (mut all, mut half) = (LatencyHistogram::new(), LatencyHistogram::new());
            for (index, &ns) in values.iter().enumerate() {
                if index % 2 == 0 { all.record(SimSpan::from_ns(ns)) } else { half.record(SimSpan::from_ns(ns)) }
            }
            all.merge(&half);
            values.sort_unstable();
            let rank = ((values.len() as f64 * quantile).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64 / 1e3;
            let found = all.percentile_us(quantile);
            prop_assert!((found - exact).abs() <= exact * 0.0011 + 0.001, "{} against {}", found, exact);
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64 / 1e3;
            prop_assert!((all.mean_us() - mean).abs() < mean * 1e-9);
            prop_assert_eq!(all.buckets().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }
}
