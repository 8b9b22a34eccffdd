//! The skew-normal distribution: fit by moments, density, and the Kolmogorov-Smirnov test.
//!
//! Location xi, scale omega, shape alpha: density 2 phi(z) Phi(alpha z) / omega with z = (x - xi) / omega. The first
//! three moments of the data give the three parameters. Source: \[X\] Azzalini 1985; that wear follows it: \[P\] sheet
//! ff-ssd §3.

/// Largest skewness that the distribution has, and a little less for a finite shape.
const SKEWNESS_MAX: f64 = 0.995_27;
const SKEWNESS_FIT: f64 = 0.99;

/// Parameters of a skew-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkewNormal {
    /// Location xi, in the unit of the data.
    pub location: f64,
    /// Scale omega, above 0, in the unit of the data.
    pub scale: f64,
    /// Shape alpha: 0 for a normal distribution.
    pub shape: f64,
}

/// A distribution fitted to data, and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub distribution: SkewNormal,
    /// Mean of the data.
    pub mean: f64,
    /// Standard deviation of the data.
    pub deviation: f64,
    /// Greatest distance between the two cumulative distributions.
    pub distance: f64,
    /// Probability of a distance as great or greater if the data came from the distribution (Kolmogorov's limit).
    pub p_value: f64,
}

impl SkewNormal {
    /// The distribution with these moments; the skewness is cut to the range of the distribution.
    pub fn from_moments(mean: f64, deviation: f64, skewness: f64) -> Self {
        let skewness = if skewness.abs() >= SKEWNESS_MAX { SKEWNESS_FIT.copysign(skewness) } else { skewness };
        let power = libm::pow(skewness.abs(), 2.0 / 3.0);
        let half_pi = std::f64::consts::FRAC_PI_2;
        let delta = (half_pi * power / (power + libm::pow((4.0 - std::f64::consts::PI) / 2.0, 2.0 / 3.0))).sqrt();
        let delta = delta.copysign(skewness);
        let scale = deviation / (1.0 - 2.0 * delta * delta / std::f64::consts::PI).sqrt();
        let location = mean - scale * delta * (2.0 / std::f64::consts::PI).sqrt();
        Self { location, scale, shape: delta / (1.0 - delta * delta).sqrt() }
    }

    /// The share of the distribution below `x`: Phi(z) - 2 T(z, alpha) with Owen's function.
    pub fn cumulative(&self, x: f64) -> f64 {
        let z = (x - self.location) / self.scale;
        (normal(z) - 2.0 * owen(z, self.shape)).clamp(0.0, 1.0)
    }

    /// Fits `counts` by their moments. `None` when they are fewer than three or all alike.
    ///
    /// Counts are whole numbers: the distance is taken in the middle between neighbours, where a continuous
    /// distribution is to be compared with them.
    pub fn fit(counts: &[u32]) -> Option<Fit> {
        let count = counts.len() as f64;
        let mean = counts.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let moment = |power: u32| {
            let raised = |value: &u32| (0..power).fold(1.0, |product, _| product * (f64::from(*value) - mean));
            counts.iter().map(raised).sum::<f64>() / count
        };
        let deviation = moment(2).sqrt();
        if counts.len() < 3 || deviation == 0.0 {
            return None;
        }
        let distribution = Self::from_moments(mean, deviation, moment(3) / (deviation * deviation * deviation));
        let mut sorted = counts.to_vec();
        sorted.sort_unstable();
        let (mut distance, mut below) = (0.0_f64, 0.0);
        for alike in sorted.chunk_by(|one, other| one == other) {
            // The share below steps at a count: it is farthest off on one side of the step or on the other.
            let value = f64::from(alike[0]);
            distance = distance.max((below - distribution.cumulative(value - 0.5)).abs());
            below += alike.len() as f64 / count;
            distance = distance.max((below - distribution.cumulative(value + 0.5)).abs());
        }
        Some(Fit { distribution, mean, deviation, distance, p_value: kolmogorov(distance * count.sqrt()) })
    }
}

/// The standard normal distribution below `z`.
fn normal(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Owen's T(h, a) = 1/2pi integral from 0 to a of exp(-h^2 (1 + x^2) / 2) / (1 + x^2), by Simpson's rule after
/// x = tan(t), which makes the range finite.
fn owen(h: f64, a: f64) -> f64 {
    const STEPS: u32 = 64;
    let end = libm::atan(a);
    let value = |t: f64| {
        let cosine = libm::cos(t);
        libm::exp(-0.5 * h * h / (cosine * cosine))
    };
    let step = end / f64::from(STEPS);
    let inner: f64 = (1..STEPS).map(|index| value(f64::from(index) * step) * f64::from(2 + 2 * (index % 2))).sum();
    (value(0.0) + inner + value(end)) * step / 3.0 / (2.0 * std::f64::consts::PI)
}

/// The probability that Kolmogorov's variable exceeds `x`: 2 sum over k of (-1)^(k-1) exp(-2 k^2 x^2).
fn kolmogorov(x: f64) -> f64 {
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: u32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * libm::exp(-2.0 * f64::from(k * k) * x * x)
    };
    (1..=50).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    /// A draw by the sum of a half-normal and a normal one.
    fn draw(distribution: &SkewNormal, rng: &mut Rng) -> f64 {
        let (first, second) = (rng.unit().max(1e-300), rng.unit());
        let radius = (-2.0 * libm::log(first)).sqrt();
        let angle = 2.0 * std::f64::consts::PI * second;
        let (a, b) = (radius * libm::cos(angle), radius * libm::sin(angle));
        let delta = distribution.shape / (1.0 + distribution.shape * distribution.shape).sqrt();
        distribution.location + distribution.scale * (delta * a.abs() + (1.0 - delta * delta).sqrt() * b)
    }

    #[test]
    fn draws_of_the_published_distribution_give_its_parameters_back_and_pass_the_test() {
        let published = SkewNormal { location: 310.0, scale: 15.1, shape: 3.0 };
        let mut rng = Rng::named(4, "test");
        let counts: Vec<u32> = (0..20_000).map(|_| draw(&published, &mut rng).round() as u32).collect();
        let fit = SkewNormal::fit(&counts).expect("draws differ");
        assert!((fit.distribution.location - 310.0).abs() < 1.0, "{fit:?} (seed 4)");
        assert!((fit.distribution.scale - 15.1).abs() < 0.5, "{fit:?} (seed 4)");
        assert!((fit.distribution.shape - 3.0).abs() < 0.5, "{fit:?} (seed 4)");
        assert!(fit.p_value > 0.1, "{fit:?} (seed 4)");
    }

    #[test]
    fn two_humps_are_not_skew_normal() {
        let counts: Vec<u32> = (0..1000).map(|block| if block % 2 == 0 { 100 + block % 7 } else { 400 }).collect();
        assert!(SkewNormal::fit(&counts).expect("they differ").p_value < 1e-6);
        assert_eq!(SkewNormal::fit(&[5; 100]), None);
        assert_eq!(SkewNormal::fit(&[1, 2]), None);
    }

    #[test]
    fn closed_forms_hold() {
        let normal_one = SkewNormal::from_moments(0.0, 1.0, 0.0);
        assert!((normal_one.cumulative(1.959_964) - 0.975).abs() < 1e-6);
        // T(h, 1) = Phi(h) (1 - Phi(h)) / 2.
        for h in [0.0, 0.5, 1.0, 2.5] {
            assert!((owen(h, 1.0) - normal(h) * (1.0 - normal(h)) / 2.0).abs() < 1e-9, "{h}");
        }
        assert!((kolmogorov(1.358_1) - 0.05).abs() < 1e-4);
    }
}
