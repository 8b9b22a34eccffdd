//! Random sizes as filebench draws them.

use flashyard_kernel::Rng;

/// A draw of the gamma distribution, by Marsaglia and Tsang; `shape` above zero. [X]
pub(crate) fn gamma(shape: f64, mean: f64, rng: &mut Rng) -> f64 {
    if shape < 1.0 {
        // A draw of shape + 1, times a power of a uniform one.
        let power = libm::pow(rng.unit().max(f64::MIN_POSITIVE), 1.0 / shape);
        return gamma(shape + 1.0, mean * (shape + 1.0) / shape, rng) * power;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(rng);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = rng.unit().max(f64::MIN_POSITIVE);
        if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v * mean / shape;
        }
    }
}

/// A draw of the standard normal distribution, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(rng.unit().max(f64::MIN_POSITIVE)));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.unit())
}

/// Rows of percent, least and most KiB: a row by its share, then uniform within it.
pub(crate) type Table = &'static [(u32, u32, u32)];

/// A draw from a table, in bytes.
pub(crate) fn tabular(table: Table, rng: &mut Rng) -> u64 {
    let mut left = rng.below(table.iter().map(|row| u64::from(row.0)).sum());
    for &(percent, least, most) in table {
        if left < u64::from(percent) {
            return (u64::from(least) + rng.below(u64::from(most - least) + 1)) * 1024;
        }
        left -= u64::from(percent);
    }
    1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_gamma_have_their_mean_and_variance() {
        let mut rng = Rng::named(1, "gamma");
        for shape in [0.1, 1.5, 4.0] {
            let draws: Vec<f64> = (0..200_000).map(|_| gamma(shape, 10.0, &mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
            assert!((mean - 10.0).abs() < 0.3, "{shape}: {mean}");
            assert!((variance * shape / 100.0 - 1.0).abs() < 0.08, "{shape}: {variance}");
        }
    }

    #[test]
    fn a_table_gives_each_row_its_share() {
        let mut rng = Rng::named(2, "table");
        let small = (0..100_000).filter(|_| tabular(&[(30, 1, 1), (70, 5, 9)], &mut rng) == 1024).count();
        assert!((29_000..31_000).contains(&small), "{small}");
    }
}
