//! Fast-forward ageing beside full simulation.

use crate::fitted::right;
use crate::table::table;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};

/// One life in full, and in fast-forward in several ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardRecord {
    /// Name of the life.
    pub name: String,
    /// Periods of the full simulation.
    pub periods: u32,
    /// The ways.
    pub tries: Vec<ForwardTry>,
    /// Skew-normal fits to the erase counts of the full simulation, from time to time.
    pub fits: Vec<WearFit>,
}

/// One way to age fast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardTry {
    /// Model.
    pub prediction: String,
    /// Acceleration factor.
    pub factor: f64,
    /// Periods that passed.
    pub periods: u32,
    /// Periods that were simulated.
    pub simulated: u32,
    /// One minus the mean relative error of the blocks' erase counts, a share.
    pub accuracy: f64,
    /// Accuracy of the erase counts in order: of their distribution, whichever block has them.
    pub distribution: f64,
    /// Mean erase count by that of the full simulation.
    pub mean_ratio: f64,
}

/// A skew-normal distribution fitted to erase counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WearFit {
    /// Mean erase count.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Shape.
    pub shape: f64,
    /// Probability of a distance as great as found (Kolmogorov-Smirnov).
    pub p_value: f64,
}

impl WearFit {
    /// Scale of the distribution, from its moments.
    pub fn scale(&self) -> f64 {
        let lean = self.lean();
        self.deviation / (1.0 - std::f64::consts::FRAC_2_PI * lean * lean).sqrt()
    }

    /// Location of the distribution, from its moments.
    pub fn location(&self) -> f64 {
        self.mean - self.scale() * self.lean() * std::f64::consts::FRAC_2_PI.sqrt()
    }

    /// The shape as a number from -1 to 1.
    fn lean(&self) -> f64 {
        self.shape / (1.0 + self.shape * self.shape).sqrt()
    }
}

impl ForwardRecord {
    /// Result of a model at a factor.
    pub fn of(&self, prediction: &str, factor: f64) -> Option<&ForwardTry> {
        self.tries.iter().find(|one| one.prediction == prediction && one.factor == factor)
    }
}

/// One row a way of ageing.
pub fn forward_table(records: &[ForwardRecord]) -> String {
    let mut table = table(&[
        "life",
        "model",
        "factor",
        "periods",
        "simulated",
        "accuracy\n%",
        "of the\ndistribution %",
        "mean by\nthat of full",
    ]);
    for record in records {
        for one in &record.tries {
            table.add_row(vec![
                Cell::new(&record.name),
                Cell::new(&one.prediction),
                right(format!("{}", one.factor)),
                right(format!("{} of {}", one.periods, record.periods)),
                right(one.simulated.to_string()),
                right(format!("{:.1}", 100.0 * one.accuracy)),
                right(format!("{:.1}", 100.0 * one.distribution)),
                right(format!("{:.3}", one.mean_ratio)),
            ]);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_and_scale_come_back_from_the_moments() {
        let (location, scale, shape) = (310.0_f64, 15.1_f64, 0.75_f64);
        let lean = 0.6; // 0.75 by the hypotenuse of 1 and 0.75
        let mean = location + scale * lean * (2.0 / std::f64::consts::PI).sqrt();
        let deviation = scale * (1.0 - 2.0 * lean * lean / std::f64::consts::PI).sqrt();
        let fit = WearFit { mean, deviation, shape, p_value: 0.5 };
        assert!((fit.location() - location).abs() < 1e-9 && (fit.scale() - scale).abs() < 1e-9, "{fit:?}");
    }
}
