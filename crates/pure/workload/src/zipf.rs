//! Zipf-distributed ranks in constant time, by rejection-inversion.
//! Source: [X] W. Hörmann and G. Derflinger, ACM TOMACS 6 (1996).

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
    /// A distribution over `items` (at least 1) with exponent `theta` above zero.
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0 && theta > 0.0, "a Zipf distribution needs items and an exponent above zero");
        let mut zipf = Self { items: items as f64, theta, low: 0.0, high: 0.0, shortcut: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.items + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws a rank.
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

    #[test]
    fn ranks_come_as_often_as_their_weights_say() {
        for theta in [0.5, 0.99, 1.0, 1.2] {
            let zipf = Zipf::new(1000, theta);
            let mut rng = Rng::named(4, "test");
            let mut counts = vec![0_u32; 1000];
            let draws = 400_000;
            for _ in 0..draws {
                counts[zipf.draw(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=1000).map(|k| libm::pow(f64::from(k), -theta)).sum();
            for rank in [0, 1, 4, 20] {
                let expected = libm::pow((rank + 1) as f64, -theta) / total * f64::from(draws);
                let found = f64::from(counts[rank]);
                let bound = 5.0 * libm::sqrt(expected) + 1.0;
                assert!((found - expected).abs() < bound, "theta {theta} rank {rank}: {found} against {expected}");
            }
        }
    }
}
