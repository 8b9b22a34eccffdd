//! The shape of figures over several seeds.

use serde::Serialize;

/// A run that broke a law.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeededLaws {
    /// Name of the run.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// The broken laws, with both sides.
    pub laws: Vec<String>,
}

/// Figures over several seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Seeds {
    /// The seeds, in their order.
    pub seeds: Vec<u64>,
    /// Designs in the order of the report.
    pub designs: Vec<SeededDesign>,
    /// Every design against the best one by the means, for each figure that ranks.
    pub differences: Vec<Difference>,
    /// Runs that broke a law: their figures are in no mean and no difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<SeededLaws>,
}

/// Figures of a design over several seeds.
#[derive(Clone, Debug, Serialize)]
pub struct SeededDesign {
    /// Name of the run.
    pub name: String,
    /// Those that the terminal shows.
    pub figures: Vec<SeededFigure>,
}

/// A figure over several seeds.
#[derive(Clone, Debug, Serialize)]
pub struct SeededFigure {
    /// Key of its metric.
    pub key: &'static str,
    /// Mean; absent where no seed has a value.
    pub mean: Option<f64>,
    /// Half the width of the 95 % confidence interval around it; absent for fewer than two values.
    pub half_width: Option<f64>,
    /// The value under each seed; absent where the run failed, broke a law or has none.
    pub values: Vec<Option<f64>>,
}

/// A design against the best one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Key of the metric.
    pub key: &'static str,
    /// Design that is best by its mean over the seeds that all compared designs finished.
    pub best: String,
    /// The other one.
    pub design: String,
    /// Mean of the differences seed by seed, in percent of the best one's mean; positive where the figure is greater.
    pub percent: f64,
    /// Half the width of its 95 % confidence interval.
    pub half_width_percent: f64,
    /// Whether the interval leaves out zero.
    pub is_there: bool,
    /// Number of these seeds.
    pub seeds: usize,
}
