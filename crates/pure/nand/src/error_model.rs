//! Read retry: how often a page must be sensed before its code corrects it.
//!
//! A page's raw bit error rate is the device's rate times an exponentially distributed page factor of
//! mean one [A]; every retry shifts the read voltages and halves the rate [P, sheet ff-ssd]. A page is
//! correctable when its rate is at most what the code corrects. A fresh device never retries.

use crate::NandConfig;
use flashyard_kernel::Rng;

/// Retries after which a read counts as done all the same where none is ever given up. Source: [A], deeper tables exist.
const RETRIES_MAX: u32 = 8;

/// Steps of the table of thresholds: one for each number of retries that reads may be given up after, and one more.
const STEPS: usize = NandConfig::READ_RETRIES_MOST as usize + 1;

/// Draws the retries of each read.
#[derive(Clone, Debug)]
pub struct ErrorModel {
    /// Thresholds on a uniform 64-bit draw: below `thresholds[k]` more than `k` retries are needed.
    thresholds: [u64; STEPS],
    /// No more retries are counted.
    most: usize,
    rng: Rng,
}

impl ErrorModel {
    /// The model of a medium, drawing from its own stream.
    pub fn new(config: &NandConfig, rng: Rng) -> Self {
        // One more than the limit shows that the limit is not enough.
        let most = config.read_retries_max.map_or(RETRIES_MAX, |most| most + 1) as usize;
        let mut model = Self { thresholds: [0; STEPS], most, rng };
        model.set_raw_bit_error_rate(config.raw_bit_error_rate, config.correctable_bit_error_rate);
        model
    }

    /// Sets the present error rate; ageing calls this.
    pub fn set_raw_bit_error_rate(&mut self, raw: f64, correctable: f64) {
        let mut factor = if raw > 0.0 { correctable / raw } else { f64::INFINITY };
        for threshold in &mut self.thresholds {
            // P(page factor > f) = exp(-f), taken by repeated squaring: no platform exponential.
            let probability = exponential_of_negative(factor);
            *threshold = (probability * 1.844_674_407_370_955e19) as u64;
            factor *= 2.0;
        }
    }

    /// How many extra senses the next read needs; one more than the limit on retries for any number beyond it.
    #[inline]
    pub fn retries(&mut self) -> u32 {
        if self.thresholds[0] == 0 {
            return 0;
        }
        let draw = self.rng.next_u64();
        self.thresholds[..self.most].iter().take_while(|&&threshold| draw < threshold).count() as u32
    }
}

/// exp(-x) from (1 - x/2^20)^(2^20) by twenty squarings; relative error below x^2 / 2^20.
fn exponential_of_negative(x: f64) -> f64 {
    if x > 44.0 {
        return 0.0;
    }
    let mut power = 1.0 - x / f64::from(1 << 20);
    for _ in 0..20 {
        power *= power;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_retried_as_often_as_its_distribution_says() {
        let mut model = ErrorModel { thresholds: [0; STEPS], most: 8, rng: Rng::named(3, "nand.errors") };
        model.set_raw_bit_error_rate(4e-3, 4e-3);
        let draws = 200_000;
        let (mut once, mut twice) = (0, 0);
        for _ in 0..draws {
            let retries = model.retries();
            once += u32::from(retries >= 1);
            twice += u32::from(retries >= 2);
        }
        let share = |count| f64::from(count) / f64::from(draws);
        assert!((share(once) - libm::exp(-1.0)).abs() < 0.005, "{once}");
        assert!((share(twice) - libm::exp(-2.0)).abs() < 0.005, "{twice}");
    }

    #[test]
    fn the_exponential_is_near_that_of_the_library() {
        for x in [0.0, 1e-3, 0.5, 1.0, 5.0, 20.0, 44.0] {
            let exact = libm::exp(-x);
            assert!((exponential_of_negative(x) / exact - 1.0).abs() < 1e-3, "{x}");
        }
        assert_eq!((exponential_of_negative(44.01), exponential_of_negative(f64::INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn a_read_without_hope_needs_one_retry_more_than_it_may_have() {
        for (read_retries_max, expected) in [(Some(0), 1), (Some(2), 3), (Some(14), 15), (None, 8)] {
            let noise = NandConfig {
                raw_bit_error_rate: 0.5,
                correctable_bit_error_rate: 1e-9,
                read_retries_max,
                ..crate::legal::config(crate::Capabilities::default(), 4)
            };
            let mut model = ErrorModel::new(&noise, Rng::named(3, "nand.errors"));
            assert!((0..20).all(|_| model.retries() == expected), "{expected}");
        }
    }

    #[test]
    fn a_fresh_device_never_retries() {
        let mut model = ErrorModel { thresholds: [1; STEPS], most: 8, rng: Rng::named(3, "nand.errors") };
        model.set_raw_bit_error_rate(0.0, 4e-3);
        assert!((0..1000).all(|_| model.retries() == 0));
    }
}
