//! How far to jump: always the same share of periods, or further while write amplification is steady.
//!
//! Adaptive, after each simulated period:
//!
//! ```text
//! m = median of the last 5 write amplifications, d = median distance from it
//! outlier: |newest - m| > max(3 * 1.4826 * d, 5 % of m)
//! outlier:            simulate on, and jump 1 period next time
//! 5 without outlier:  jump one period further than last time, at most `ahead_max`
//! ```
//!
//! Source: \[P\] sheet ff-ssd §3, planned and not evaluated there; the window, the bounds and the steps are \[A\]:
//! three standard deviations by the median distance of a normal distribution.

/// Periods whose write amplification is compared.
const WINDOW: usize = 5;

/// Smallest distance from the median that is an outlier, as a share of it: counts of one period are whole
/// superblocks and differ by that much in a drive of 1,000.
const NOISE: f64 = 0.05;

/// When to jump and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceleration {
    /// A number of periods is simulated, then a number predicted, again and again. The factor is their sum by the
    /// simulated ones; no prediction at all is full simulation.
    Fixed {
        /// Periods simulated in a row, at least 1.
        simulate: u32,
        /// Periods predicted at once.
        predict: u32,
    },
    /// One period is simulated; the jump after it grows while write amplification is steady.
    Adaptive {
        /// Longest jump in periods, at least 1.
        ahead_max: u32,
    },
}

impl Acceleration {
    /// The schedule of a factor as the source gives it: 1, 1.5 (simulate 2, predict 1), or any whole number
    /// (simulate 1, predict the rest). `None` for others.
    pub fn by_factor(factor: f64) -> Option<Self> {
        if factor == 1.5 {
            return Some(Self::Fixed { simulate: 2, predict: 1 });
        }
        let whole = (1.0..=1000.0).contains(&factor) && factor.fract() == 0.0;
        whole.then(|| Self::Fixed { simulate: 1, predict: factor as u32 - 1 })
    }
}

/// Follows write amplification.
#[derive(Clone, Debug)]
pub(super) struct Steadiness {
    acceleration: Acceleration,
    recent: Vec<f64>,
    steady: u32,
    in_a_row: u32,
    ahead: u32,
}

impl Steadiness {
    pub(super) fn new(acceleration: Acceleration) -> Self {
        Self { acceleration, recent: Vec::new(), steady: 0, in_a_row: 0, ahead: 1 }
    }

    /// Takes the write amplification of a simulated period.
    pub(super) fn observe(&mut self, amplification: f64) {
        self.in_a_row += 1;
        let outlier = self.recent.len() == WINDOW && is_outlier(&self.recent, amplification);
        if self.recent.len() == WINDOW {
            self.recent.remove(0);
        }
        self.recent.push(amplification);
        if outlier {
            (self.steady, self.ahead, self.in_a_row) = (0, 1, 0);
            // A new level is no outlier for long: earlier ones are forgotten.
            self.recent.drain(..WINDOW - 1);
        } else {
            self.steady += 1;
        }
    }

    /// Periods to jump now; zero to simulate on.
    pub(super) fn jump(&self) -> u32 {
        match self.acceleration {
            Acceleration::Fixed { simulate, predict } if self.in_a_row >= simulate => predict,
            Acceleration::Adaptive { .. } if self.in_a_row >= 1 => self.ahead,
            _ => 0,
        }
    }

    /// Takes note that the jump was made.
    pub(super) fn jumped(&mut self) {
        self.in_a_row = 0;
        if let Acceleration::Adaptive { ahead_max } = self.acceleration
            && self.steady as usize >= WINDOW
        {
            self.steady = 0;
            self.ahead = (self.ahead + 1).min(ahead_max);
        }
    }
}

fn is_outlier(recent: &[f64], newest: f64) -> bool {
    let middle = median(recent.to_vec());
    let spread = median(recent.iter().map(|value| (value - middle).abs()).collect());
    (newest - middle).abs() > (3.0 * 1.4826 * spread).max(NOISE * middle)
}

/// The middle of an odd number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_the_source() {
        assert_eq!(Acceleration::by_factor(1.5), Some(Acceleration::Fixed { simulate: 2, predict: 1 }));
        assert_eq!(Acceleration::by_factor(4.0), Some(Acceleration::Fixed { simulate: 1, predict: 3 }));
        assert_eq!(Acceleration::by_factor(1.0), Some(Acceleration::Fixed { simulate: 1, predict: 0 }));
        assert_eq!([0.5, 2.5, f64::NAN].map(Acceleration::by_factor), [None; 3]);
    }

    #[test]
    fn jumps_grow_while_amplification_is_steady_and_an_outlier_shortens_them() {
        let mut steadiness = Steadiness::new(Acceleration::Adaptive { ahead_max: 3 });
        let mut jumps = Vec::new();
        for step in 0..20 {
            steadiness.observe(4.0 + 0.01 * f64::from(step % 3));
            jumps.push(steadiness.jump());
            steadiness.jumped();
        }
        assert_eq!(jumps[..12], [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]);
        assert_eq!(jumps[19], 3);
        steadiness.observe(6.0);
        assert_eq!(steadiness.jump(), 0, "an outlier is followed by simulation");
        steadiness.observe(6.0);
        assert_eq!(steadiness.jump(), 1);
    }
}
