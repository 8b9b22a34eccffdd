//! Predictors of the next month of a drive, and of its end.

use super::config::{FleetConfig, Predictor};
use super::drive::{Cause, Reading};
use super::least_squares::Linear;
use super::record::{FleetLife, is_judged};

/// Weight of the last month in smoothing. \[A\] as the decay of sheet paraid §3.4
const SMOOTHING: f64 = 0.5;
/// Part of a lifetime that a drive counts as having at least, where load is placed by it. \[A\]
const REMAINING_MIN: f64 = 0.05;

/// A predictor, trained where it learns.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// As the last month.
    Last,
    /// By exponential smoothing.
    Smoothed,
    /// By regressions.
    Learned(Box<Learned>),
}

/// Regressions over telemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Change of the logarithm of mean latency and of p99.
    latency: [Linear; 2],
    /// Odds of a failure within the horizon.
    failure: Linear,
    /// Logarithm of the erases that a drive has before it, by its last erases, of those that ended by wear.
    remaining: Option<Linear>,
}

/// Figures that regressions see of a drive: the last month, and its difference to the one before.
fn features(readings: &[Reading]) -> Vec<f64> {
    let (last, before) = last_two(readings);
    let ln = |x: f64| libm::log(x.max(1e-9));
    vec![
        last.erases,
        last.retries,
        last.retries - before.retries,
        last.spare_used,
        last.spare_used - before.spare_used,
        ln(last.amplification),
        ln(last.amplification) - ln(before.amplification),
        ln(last.written),
        ln(last.written) - ln(before.written),
        ln(last.read) - ln(before.read),
        ln(last.mean_us),
        ln(last.mean_us) - ln(before.mean_us),
        ln(last.p99_us),
        ln(last.p99_us) - ln(before.p99_us),
        last.busy,
    ]
}

fn last_two(readings: &[Reading]) -> (Reading, Reading) {
    let last = readings.last().copied().unwrap_or_default();
    let before = readings.len().checked_sub(2).map_or(last, |at| readings[at]);
    (last, before)
}

fn smoothed(readings: &[Reading], of: fn(&Reading) -> f64) -> f64 {
    let first = readings.first().map_or(0.0, of);
    readings.iter().fold(first, |mean, reading| SMOOTHING * of(reading) + (1.0 - SMOOTHING) * mean)
}

fn mean_of(reading: &Reading) -> f64 {
    reading.mean_us
}

fn p99_of(reading: &Reading) -> f64 {
    reading.p99_us
}

impl Model {
    /// Mean latency of reads in the month after these, in microseconds.
    pub fn mean_us(&self, readings: &[Reading]) -> f64 {
        self.latency_us(readings, 0, mean_of)
    }

    /// 99th percentile of latency in the month after these, in microseconds.
    pub fn p99_us(&self, readings: &[Reading]) -> f64 {
        self.latency_us(readings, 1, p99_of)
    }

    fn latency_us(&self, readings: &[Reading], which: usize, of: fn(&Reading) -> f64) -> f64 {
        let last = readings.last().map_or(0.0, of);
        match self {
            Self::Last => last,
            Self::Smoothed => smoothed(readings, of),
            // No more than a factor of e in a month: a line does not know where it ends.
            Self::Learned(learned) => last * libm::exp(learned.latency[which].of(&features(readings)).clamp(-1.0, 1.0)),
        }
    }

    /// How likely the drive ends soon, on a scale of its own.
    pub fn risk(&self, readings: &[Reading]) -> f64 {
        let last = readings.last().copied().unwrap_or_default();
        match self {
            Self::Last => last.erases,
            Self::Smoothed => last.spare_used,
            Self::Learned(learned) => learned.failure.of(&features(readings)),
        }
    }

    /// Part of its lifetime that the drive still has, on a scale of its own.
    pub fn remaining(&self, config: &FleetConfig, readings: &[Reading]) -> f64 {
        let last = readings.last().copied().unwrap_or_default();
        let by_erases = 1.0 - last.erases / f64::from(config.endurance.max(1));
        let remaining = match self {
            Self::Last => by_erases,
            Self::Smoothed => by_erases.min(1.0 - last.spare_used),
            Self::Learned(learned) => learned.remaining.as_ref().map_or(by_erases, |line| {
                let erases = libm::exp(line.of(&features(readings)).min(20.0));
                erases / f64::from(config.endurance.max(1))
            }),
        };
        remaining.max(REMAINING_MIN)
    }
}

/// Whether a drive ends within the horizon after a month that has `after` months behind it; nothing where the run ends before that is known.
pub(super) fn fails_within(config: &FleetConfig, after: usize, end: Option<Cause>) -> Option<bool> {
    match end {
        Some(_) => Some(after < config.horizon as usize),
        None => (after >= config.horizon as usize).then_some(false),
    }
}

/// A predictor, trained on the arrays that are not judged.
pub fn train(predictor: Predictor, config: &FleetConfig, fleet: &FleetLife) -> Model {
    match predictor {
        Predictor::Last => Model::Last,
        Predictor::Smoothed => Model::Smoothed,
        Predictor::Learned => Model::Learned(Box::new(learn(config, fleet))),
    }
}

fn learn(config: &FleetConfig, fleet: &FleetLife) -> Learned {
    let (mut rows, mut changes) = (Vec::new(), [Vec::new(), Vec::new()]);
    let (mut exposed, mut labels) = (Vec::new(), Vec::new());
    let (mut worn, mut left) = (Vec::new(), Vec::new());
    for life in fleet.drives.iter().filter(|life| !is_judged(life.array)) {
        let last_erases = life.readings.last().map_or(0.0, |last| last.erases);
        for at in 0..life.readings.len() {
            let (known, after) = life.readings.split_at(at + 1);
            let features = features(known);
            // A month in which no read was drawn has no time to tell of.
            let has_reads = |reading: &&Reading| reading.mean_us > 0.0;
            if let (Some(next), Some(now)) = (after.first().filter(has_reads), known.last().filter(has_reads)) {
                rows.push(features.clone());
                changes[0].push(libm::log(next.mean_us / now.mean_us));
                changes[1].push(libm::log(next.p99_us / now.p99_us));
            }
            if let Some(fails) = fails_within(config, after.len(), life.end) {
                exposed.push(features.clone());
                labels.push(fails);
            }
            if life.end == Some(Cause::Wear) {
                let step = last_erases / life.readings.len() as f64;
                left.push(libm::log((last_erases - known[at].erases + step).max(1.0)));
                worn.push(features);
            }
        }
    }
    Learned {
        latency: [0, 1].map(|which| Linear::ridge(&rows, &changes[which])),
        failure: Linear::logistic(&exposed, &labels),
        remaining: (!worn.is_empty()).then(|| Linear::ridge(&worn, &left)),
    }
}
