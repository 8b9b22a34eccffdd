//! A predictor that knows the requests of its program, and errs as often as it is told to.
//!
//! Of future requests it predicts a share, the coverage; for each right line it predicts so many wrong ones that the right ones are another
//! share of all, the accuracy.
//!
//! Source: [A] sheet micro-expand §3.8.

use crate::predictor::{Cost, Predicted, Predictor, Seen};
use flashyard_kernel::Rng;

/// Shares of an oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OracleConfig {
    /// Share of requests that are predicted, 0 to 1.
    pub coverage: f64,
    /// Share of predictions that are right, above 0 to 1.
    pub accuracy: f64,
}

/// The predictor.
#[derive(Clone, Debug)]
pub struct Oracle {
    config: OracleConfig,
    /// Lines in the order of their requests.
    lines: Vec<u64>,
    /// The next request.
    at: usize,
    /// The first request that was not looked at yet.
    frontier: usize,
    /// Wrong lines that are owed to those that were right.
    wrong: f64,
    rng: Rng,
    /// Lines below this.
    bound: u64,
    inferences: u64,
}

impl Oracle {
    /// An oracle for a program that asks for `lines` in this order. Accuracies below a hundredth are taken as that.
    pub fn new(config: OracleConfig, lines: Vec<u64>, rng: Rng) -> Self {
        let bound = lines.iter().copied().max().map_or(1, |line| line + 1);
        let accuracy = config.accuracy.clamp(0.01, 1.0);
        let config = OracleConfig { accuracy, ..config };
        Self { config, lines, at: 0, frontier: 0, wrong: 0.0, rng, bound, inferences: 0 }
    }
}

impl Predictor for Oracle {
    fn observe(&mut self, seen: Seen, ahead: u32, predicted: &mut Vec<Predicted>) {
        self.inferences += 1;
        // Requests of several cores come in another order than that in which they were written down: the place is searched nearby.
        let nearby = self.lines[self.at.min(self.lines.len())..].iter().take(64);
        self.at += nearby.enumerate().find(|(_, line)| **line == seen.line).map_or(1, |(place, _)| place + 1);
        self.frontier = self.frontier.max(self.at);
        let end = (self.at + ahead as usize).min(self.lines.len());
        while self.frontier < end {
            let (line, after) = (self.lines[self.frontier], (self.frontier - self.at + 1) as u32);
            self.frontier += 1;
            if self.rng.unit() >= self.config.coverage {
                continue;
            }
            predicted.push(Predicted { line, after });
            self.wrong += (1.0 - self.config.accuracy) / self.config.accuracy;
            while self.wrong >= 1.0 {
                self.wrong -= 1.0;
                // Lines beyond the program's are asked for by nothing.
                predicted.push(Predicted { line: self.bound + self.rng.below(self.bound), after });
            }
        }
    }

    fn cost(&self) -> Cost {
        Cost { bytes: 0, operations: 0, inferences: self.inferences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_reached(coverage in 0.1_f64..1.0, accuracy in 0.3_f64..1.0, ahead in 1_u32..100, seed: u64) {
            let lines: Vec<u64> = (0..20_000_u32).map(|request| (request.wrapping_mul(2_654_435_761) >> 8).into()).collect();
            let config = OracleConfig { coverage, accuracy };
            let mut oracle = Oracle::new(config, lines.clone(), Rng::named(seed, "oracle"));
            let mut predicted = Vec::new();
            for (place, line) in lines.iter().enumerate() {
                let before = predicted.len();
                oracle.observe(Seen { line: *line, counter: 0 }, ahead, &mut predicted);
                for new in &predicted[before..] {
                    prop_assert!(new.after >= 1 && new.after <= ahead);
                    let right = lines.get(place + new.after as usize).is_some_and(|line| *line == new.line);
                    prop_assert!(right || new.line >= 1 << 23);
                }
            }
            let known: std::collections::BTreeSet<u64> = lines.iter().copied().collect();
            let right = predicted.iter().filter(|new| known.contains(&new.line)).count() as f64;
            prop_assert!((right / 20_000.0 - coverage).abs() < 0.03, "{} {}", right / 20_000.0, coverage);
            prop_assert!((right / predicted.len() as f64 - accuracy).abs() < 0.02);
        }
    }
}
