//! Zipf-distributed ranks in constant time, by rejection-inversion.
//! Source: \[X\] W. Hörmann and G. Derflinger, ACM TOMACS 6 (1996).

use flashyard_kernel::Rng;

/// Ranks 0 to `items - 1`, rank k with weight 1 / (k + 1)^theta.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: f64,
    theta: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    /// A distribution over `items` (at least 1) with exponent `theta` above zero. Panics otherwise.
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0 && theta > 0.0, "a Zipf distribution needs items and an exponent above zero");
        let mut zipf = Self { items: items as f64, theta, low: 0.0, high: 0.0, shortcut: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.items + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws a rank, in constant time whatever the number of items.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit() * (self.low - self.high);
            let x = self.integral_inverse(u);
            let k = libm::floor(x + 0.5).clamp(1.0, self.items);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Antiderivative of the weight, continuous in theta at 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.theta) * log;
        if t.abs() > 1e-8 { libm::expm1(t) / t * log } else { log * (1.0 + t / 2.0) }
    }

    fn integral_inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.theta) * y).max(-1.0);
        let ratio = if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t / 2.0 };
        libm::exp(ratio * y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    /// Counts of each of the first `counted` ranks in `draws` draws; all later ones in the last place.
    fn counts(zipf: &Zipf, seed: u64, draws: u32, counted: usize) -> Vec<u32> {
        let mut rng = Rng::named(seed, "test");
        let mut counts = vec![0; counted + 1];
        for _ in 0..draws {
            let rank = usize::try_from(zipf.draw(&mut rng)).expect("ranks fit");
            counts[rank.min(counted)] += 1;
        }
        counts
    }

    /// Sum of the weights of ranks 0 to `items - 1`: exact up to 10,000, from there by Euler and Maclaurin.
    fn total(items: u64, theta: f64) -> f64 {
        let exact = items.min(10_000);
        let head: f64 = (1..=exact).map(|k| libm::pow(k as f64, -theta)).sum();
        let (low, high) = (exact as f64, items as f64);
        let power = |x: f64| libm::pow(x, -theta);
        let between = if theta == 1.0 {
            libm::log(high / low)
        } else {
            (libm::pow(high, 1.0 - theta) - libm::pow(low, 1.0 - theta)) / (1.0 - theta)
        };
        head + between + (power(high) - power(low)) / 2.0
    }

    #[test]
    fn ranks_come_as_often_as_their_weights_say_in_small_and_huge_spaces() {
        let draws = 200_000;
        for (items, theta) in
            [(1000, 0.5), (1000, 1.0), (1 << 30, 0.99), (1 << 40, 1.0), (1 << 50, 1.2), (1 << 40, 0.8)]
        {
            let found = counts(&Zipf::new(items, theta), 4, draws, 50);
            let total = total(items, theta);
            for rank in [0, 1, 4, 20] {
                let expected = libm::pow((rank + 1) as f64, -theta) / total * f64::from(draws);
                let found = f64::from(found[rank]);
                let bound = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (found - expected).abs() < bound,
                    "{items} items, theta {theta}, rank {rank}: {found} against {expected} (seed 4)"
                );
            }
        }
    }

    #[test]
    fn one_item_is_always_drawn() {
        assert_eq!(counts(&Zipf::new(1, 0.99), 4, 100, 1), [100, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_frequencies_of_all_ranks_fit_their_weights(
            items in 2_u64..60, theta in 0.05_f64..3.0, seed in any::<u64>(),
        ) {
            let draws = 20_000;
            let found = counts(&Zipf::new(items, theta), seed, draws, items as usize);
            prop_assert_eq!(found[items as usize], 0);
            let total = total(items, theta);
            // Pearson's statistic over ranks that are expected at least five times, the others taken together.
            let (mut statistic, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
            for rank in 0..items {
                let expected = libm::pow((rank + 1) as f64, -theta) / total * f64::from(draws);
                let found = f64::from(found[rank as usize]);
                if expected >= 5.0 {
                    statistic += (found - expected) * (found - expected) / expected;
                    cells += 1.0;
                } else {
                    rest = (rest.0 + found, rest.1 + expected);
                }
            }
            if rest.1 >= 5.0 {
                statistic += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
                cells += 1.0;
            }
            // Mean cells - 1, variance 2 (cells - 1); eight deviations and a margin for the skew of small ones.
            let freedom: f64 = cells - 1.0;
            prop_assert!(statistic <= freedom + 8.0 * (2.0 * freedom).sqrt() + 12.0, "{} of {}", statistic, freedom);
        }
    }
}
