//! A mean of independent values and how far it may be from the truth.

/// Mean and variance of independent values, one at a time.
///
/// Source: \[X\] B. P. Welford, Technometrics 4 (1962); merging after Chan, Golub and LeVeque (1979).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanEstimate {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

/// A range that holds the true mean in 95 of 100 repetitions, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// The mean found.
    pub mean: f64,
    /// How far the range reaches to either side; infinite for fewer than two values.
    pub half_width: f64,
}

/// Student's t, two-sided 95 %, for 1 to 30 degrees of freedom. \[X\] any statistics textbook.
const STUDENT_T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, //
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, //
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Reciprocal of the degrees of freedom, and t, beyond the table above: 30, 40, 60, 120 and infinitely many.
const STUDENT_T_95_TAIL: [(f64, f64); 5] =
    [(1.0 / 30.0, 2.042), (1.0 / 40.0, 2.021), (1.0 / 60.0, 2.000), (1.0 / 120.0, 1.980), (0.0, 1.960)];

impl MeanEstimate {
    /// An estimate of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one value.
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Takes in the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + distance * distance * self.count as f64 * share;
        self.mean += distance * share;
        self.count = count;
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean; zero when there is no value.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The variance of the values as a sample (divided by the count less one), in squared units; zero for fewer
    /// than two values.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.squares / (self.count - 1) as f64 }
    }

    /// The standard deviation of the values as a sample; zero for fewer than two values.
    pub fn standard_deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    /// The range that holds the true mean in 95 of 100 repetitions, for values that are independent and nearly
    /// normal. Infinitely wide for fewer than two values.
    pub fn interval_95(&self) -> ConfidenceInterval {
        let half_width = match self.count {
            0 | 1 => f64::INFINITY,
            count => student_t_95(count - 1) * (self.variance() / count as f64).sqrt(),
        };
        ConfidenceInterval { mean: self.mean, half_width }
    }
}

impl ConfidenceInterval {
    /// The lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Whether `value` lies in the range, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }

    /// Half the width as a share of the mean's size; infinite around a mean of zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { self.half_width / self.mean.abs() }
    }
}

/// Student's t for a two-sided range of 95 %: from the table up to 30 degrees of freedom, beyond it along
/// straight lines over the reciprocal, which stays within 0.001 of the true value.
fn student_t_95(freedom: u64) -> f64 {
    if let Some(&t) = usize::try_from(freedom - 1).ok().and_then(|index| STUDENT_T_95.get(index)) {
        return t;
    }
    let reciprocal = 1.0 / freedom as f64;
    let after = STUDENT_T_95_TAIL.iter().position(|&(x, _)| x <= reciprocal).expect("the table ends at zero");
    // Above 30 degrees the reciprocal is below the first entry's.
    let ((x0, t0), (x1, t1)) = (STUDENT_T_95_TAIL[after - 1], STUDENT_T_95_TAIL[after]);
    t0 + (t1 - t0) * (x0 - reciprocal) / (x0 - x1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimate(values: &[f64]) -> MeanEstimate {
        let mut estimate = MeanEstimate::new();
        values.iter().for_each(|&value| estimate.record(value));
        estimate
    }

    /// Student's t by the Cornish-Fisher expansion around the normal quantile; good from about 6 degrees on.
    fn expansion(freedom: f64) -> f64 {
        let z: f64 = 1.959_963_985;
        let (z2, n) = (z * z, freedom);
        let first = z * (z2 + 1.0) / 4.0;
        let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
        let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
        z + first / n + second / (n * n) + third / (n * n * n)
    }

    #[test]
    fn the_t_table_agrees_with_its_expansion_and_never_rises() {
        let mut before = f64::INFINITY;
        for freedom in (1..200).chain([500, 1_000, 1_000_000, u64::MAX]) {
            let t = student_t_95(freedom);
            assert!(t <= before, "{freedom}: {t} after {before}");
            before = t;
            if freedom >= 6 {
                let exact = expansion(freedom as f64);
                assert!((t - exact).abs() < 0.0015, "{freedom}: {t} against {exact}");
            }
        }
    }

    #[test]
    fn the_interval_of_five_values_is_the_textbooks() {
        let interval = estimate(&[10.0, 12.0, 9.0, 11.0, 13.0]).interval_95();
        // Sample variance 2.5; 2.776 * sqrt(2.5 / 5).
        assert!((interval.half_width - 1.962_928).abs() < 1e-4, "{interval:?}");
        assert!(interval.contains(11.0) && !interval.contains(13.0), "{interval:?}");
        assert!((interval.relative_half_width() - 0.178_448).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn one_value_says_nothing_about_its_uncertainty() {
        assert_eq!(estimate(&[3.0]).interval_95(), ConfidenceInterval { mean: 3.0, half_width: f64::INFINITY });
        assert_eq!(estimate(&[]).interval_95().half_width, f64::INFINITY);
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        assert_eq!(estimate(&[7.25; 9]).interval_95(), ConfidenceInterval { mean: 7.25, half_width: 0.0 });
    }

    #[test]
    fn a_deviation_needs_two_values() {
        let (none, one, two) = (estimate(&[]), estimate(&[5.0]), estimate(&[5.0, 11.0]));
        assert_eq!([none, one, two].map(|estimate| estimate.variance()), [0.0, 0.0, 18.0]);
        assert_eq!(two.standard_deviation(), 18.0_f64.sqrt());
        // Student's t of one degree of freedom.
        assert!((two.interval_95().half_width - 12.706 * 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_range_reaches_as_far_to_either_side() {
        let range = ConfidenceInterval { mean: -8.0, half_width: 2.0 };
        assert_eq!((range.low(), range.high(), range.relative_half_width()), (-10.0, -6.0, 0.25));
        assert_eq!([-10.1, -10.0, -6.0, -5.9].map(|value| range.contains(value)), [false, true, true, false]);
    }

    proptest! {
        #[test]
        fn welford_agrees_with_two_passes_and_merging_with_one_stream(
            values in prop::collection::vec(-1e6_f64..1e6, 2..200), cut in 0_usize..200,
        ) {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
            let whole = estimate(&values);
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = estimate(left);
            merged.merge(&estimate(right));
            for found in [whole, merged] {
                prop_assert!((found.mean() - mean).abs() < 1e-4);
                prop_assert!((found.variance() - variance).abs() <= 1e-9 * (1.0 + variance));
                prop_assert_eq!(found.count(), values.len() as u64);
            }
        }
    }
}
