//! Draws from distributions.

use flashyard_kernel::Rng;

/// A number of the standard normal distribution, by Box and Muller.
pub(super) fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit()));
    radius * libm::cos(2.0 * core::f64::consts::PI * rng.unit())
}

/// A number of the exponential distribution of mean 1.
pub(super) fn exponential(rng: &mut Rng) -> f64 {
    -libm::log(1.0 - rng.unit())
}
