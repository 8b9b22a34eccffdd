//! Distributions of ranks that fio knows besides Zipf's. Each draws a rank below a count.
//! Source: \[C\] fio 3.33, `lib/zipf.c`, `lib/gauss.c` and the manual page: the draws, not the code.

use flashyard_kernel::Rng;

/// Ranks by Pareto's rule: a rank is (count - 1) times u^(log h / log(1 - h)) for a uniform u, so that a share h of
/// the ranks gets a share 1 - h of the draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pareto {
    top: f64,
    power: f64,
}

impl Pareto {
    /// The rule with `input` h, above 0 and below 1.
    pub(crate) fn new(count: u64, input: f64) -> Self {
        Self { top: (count - 1) as f64, power: libm::log(input) / libm::log(1.0 - input) }
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        (self.top * libm::pow(rng.unit(), self.power)) as u64
    }
}

/// Ranks around the middle: the mean of twelve uniform ones, moved by a uniform step of at most half the deviation
/// to either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normal {
    count: u64,
    deviation: u64,
}

/// Uniform numbers that make one normal one; their sum has the variance of one of them, times this.
const UNIFORM: u64 = 12;

impl Normal {
    /// The rule with a deviation of `percent` of the count, 0 to below 100; above half the count it is that half.
    pub(crate) fn new(count: u64, percent: f64) -> Self {
        let deviation = libm::ceil(count as f64 * percent / 100.0) as u64;
        Self { count, deviation: deviation.min(count / 2) }
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let sum: u128 = (0..UNIFORM).map(|_| u128::from(rng.below(self.count))).sum();
        let mean = (sum / u128::from(UNIFORM)) as u64;
        let step = if self.deviation > 0 { rng.below(self.deviation) } else { 0 };
        mean.saturating_add(step).saturating_sub(self.deviation / 2).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    #[test]
    fn a_share_of_the_ranks_gets_the_rest_of_the_draws() {
        for (input, count) in [(0.2, 1_u64 << 40), (0.1, 1000), (0.35, 1 << 20)] {
            let pareto = Pareto::new(count, input);
            let mut rng = Rng::named(6, "test");
            let low = (0..100_000).filter(|_| (pareto.draw(&mut rng) as f64) < input * count as f64).count();
            assert!((low as f64 / 1e5 - (1.0 - input)).abs() < 0.01, "{low} below {input} of {count} (seed 6)");
        }
    }

    #[test]
    fn normal_ranks_have_the_deviation_of_their_parts() {
        for (percent, count) in [(0.0, 1_u64 << 40), (40.0, 1 << 20)] {
            let normal = Normal::new(count, percent);
            let mut rng = Rng::named(6, "test");
            let draws: Vec<f64> = (0..100_000).map(|_| normal.draw(&mut rng) as f64 / count as f64).collect();
            let mean = draws.iter().sum::<f64>() / 1e5;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
            // Twelve uniform numbers: 1/12 of 1/12; the step of width d: d^2/12.
            let expected = 1.0 / 144.0 + (percent / 100.0) * (percent / 100.0) / 12.0;
            assert!((mean - 0.5).abs() < 0.003, "{mean} at {percent} % (seed 6)");
            assert!((variance / expected - 1.0).abs() < 0.02, "{variance} against {expected} (seed 6)");
        }
    }

    proptest! {
        #[test]
        fn ranks_are_below_their_count(count in 1_u64.., percent in 0.0_f64..100.0, seed in any::<u64>()) {
            let mut rng = Rng::named(seed, "test");
            let normal = Normal::new(count, percent);
            // Ranks above 2^53 are rounded; no drive has as many.
            let pareto = Pareto::new(count.min(1 << 53), (percent / 100.0).clamp(0.001, 0.999));
            for _ in 0..50 {
                prop_assert!(normal.draw(&mut rng) < count);
                prop_assert!(pareto.draw(&mut rng) < count.min(1 << 53));
            }
        }
    }
}
