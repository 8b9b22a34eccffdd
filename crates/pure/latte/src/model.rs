//! The learned dispatcher: a linear model over the last five requests, and its training. Source: sheet §3.2.
//!
//! Arithmetic is addition, multiplication, division and square root of `f32`, which IEEE 754 rounds alike everywhere.

use crate::dispatch::{BACK, FRONT};
use flashyard_kernel::Rng;
use flashyard_service::Leg;

/// Figures of a request. \[A\] sheet §3.2: blocks, depths of both ends, last latencies of both ends, time since the last request.
pub const FIGURES: usize = 6;
/// Requests that the model looks at. \[P\] sheet §3.2.
pub const REQUESTS: usize = 5;
/// Inputs of the model.
pub const FEATURES: usize = FIGURES * REQUESTS;

/// The figures of the last requests, standardised by the mean and deviation of those before.
#[derive(Clone, Debug)]
pub struct Window {
    /// The newest request first.
    features: [f32; FEATURES],
    means: [f32; FIGURES],
    variances: [f32; FIGURES],
    seen: u32,
}

/// Requests over which mean and deviation are smoothed. \[A\].
const SMOOTHED: f32 = 4096.0;
/// A deviation below which a figure counts as constant.
const LEAST_VARIANCE: f32 = 1e-6;

impl Default for Window {
    fn default() -> Self {
        Self { features: [0.0; FEATURES], means: [0.0; FIGURES], variances: [1.0; FIGURES], seen: 0 }
    }
}

impl Window {
    /// Takes the figures of a request in.
    pub fn push(&mut self, figures: &[f32; FIGURES]) {
        self.features.copy_within(0..FEATURES - FIGURES, FIGURES);
        self.seen = self.seen.saturating_add(1);
        let weight = 1.0 / (self.seen as f32).min(SMOOTHED);
        for (index, &figure) in figures.iter().enumerate() {
            let off = figure - self.means[index];
            self.means[index] += weight * off;
            let variance = &mut self.variances[index];
            *variance += weight * (off * off - *variance);
            self.features[index] = if *variance < LEAST_VARIANCE { 0.0 } else { off / variance.sqrt() };
        }
    }

    /// Inputs of the model.
    pub fn features(&self) -> &[f32; FEATURES] {
        &self.features
    }
}

/// A linear model: the back end where the sum of weighted features is above zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    weights: [f32; FEATURES],
    bias: f32,
}

/// A window with the end that was the better one.
pub type Labelled = ([f32; FEATURES], Leg);

/// Passes over the windows in one training. \[A\].
const PASSES: usize = 5;
/// Weight of the square of the weights: C = 1 of the sheet, for 100 K windows. \[D\] 1 / 100,000.
const REGULARISATION: f32 = 1e-5;

impl Model {
    /// One of random weights, from -1 to 1: nothing is known before the first training. \[P\] sheet §3.2.
    pub fn random(rng: &mut Rng) -> Self {
        let mut draw = || (2.0 * rng.unit() - 1.0) as f32;
        Self { weights: std::array::from_fn(|_| draw()), bias: 0.0 }
    }

    /// The distance to the border between the ends; above zero is the back end's side.
    #[inline]
    pub fn score(&self, features: &[f32; FEATURES]) -> f32 {
        // Six sums run beside each other: a single one waits for each addition.
        let mut sums = [0.0_f32; FIGURES];
        for (features, weights) in features.as_chunks::<FIGURES>().0.iter().zip(self.weights.as_chunks::<FIGURES>().0) {
            for index in 0..FIGURES {
                sums[index] += features[index] * weights[index];
            }
        }
        sums.iter().sum::<f32>() + self.bias
    }

    /// The end for a request.
    #[inline]
    pub fn infer(&self, features: &[f32; FEATURES]) -> Leg {
        if self.score(features) > 0.0 { BACK } else { FRONT }
    }

    /// Trains on `windows` by stochastic descent of the hinge loss, classes weighing alike. Returns whether it did: with
    /// windows of one class the weights stay.
    pub fn train(&mut self, windows: &[Labelled], rng: &mut Rng) -> bool {
        let back = windows.iter().filter(|(_, end)| *end == BACK).count();
        let front = windows.len() - back;
        if back == 0 || front == 0 {
            return false;
        }
        let half = windows.len() as f32 / 2.0;
        let class_weight = |end| half / if end == BACK { back as f32 } else { front as f32 };
        let mut step = 0.1_f32;
        for _ in 0..PASSES {
            for _ in 0..windows.len() {
                let (features, end) = &windows[rng.below(windows.len() as u64) as usize];
                let side = if *end == BACK { 1.0 } else { -1.0 };
                let is_inside = side * self.score(features) < 1.0;
                let pull = if is_inside { step * side * class_weight(*end) } else { 0.0 };
                for (weight, feature) in self.weights.iter_mut().zip(features) {
                    *weight += pull * feature - step * REGULARISATION * *weight;
                }
                self.bias += pull;
            }
            step *= 0.3;
        }
        true
    }
}

/// When to train again: throughput or latency is off by more than a tenth from that of the last training. \[P\] sheet §3.2:
/// looked at every 60 s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retraining {
    accepted: Option<(f64, f64)>,
}

impl Retraining {
    /// Whether to train, by requests a second and mean latency in microseconds of the last minute; these are accepted if so.
    pub fn is_due(&mut self, throughput: f64, latency_us: f64) -> bool {
        let off = |now: f64, then: f64| (now - then).abs() > 0.1 * then;
        let is_due = self.accepted.is_none_or(|(rate, mean)| off(throughput, rate) || off(latency_us, mean));
        if is_due {
            self.accepted = Some((throughput, latency_us));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{Path, shortest};

    /// Requests at random depths with the end that the rule of shortest completion names.
    fn trace(seed: u64, requests: usize) -> Vec<Labelled> {
        let mut rng = Rng::named(seed, "trace");
        let mut window = Window::default();
        let mut windows = Vec::new();
        for _ in 0..requests {
            let depths = [rng.below(64) as u32, rng.below(64) as u32];
            let path = |latency_us, depth| Path { latency_us, depth, saturation_depth: 16 };
            let (front, back) = (path(20.0, depths[0]), path(40.0, depths[1]));
            window.push(&[4.0, depths[0] as f32, depths[1] as f32, front.predicted_us(), back.predicted_us(), 10.0]);
            windows.push((*window.features(), shortest(&front, &back)));
        }
        windows
    }

    #[test]
    fn a_model_learns_the_shorter_queue() {
        let mut rng = Rng::named(1, "model");
        let mut model = Model::random(&mut rng);
        assert!(model.train(&trace(1, 20_000), &mut rng));
        let unseen = trace(2, 5000);
        let right = unseen.iter().skip(1000).filter(|(features, end)| model.infer(features) == *end).count();
        // The sheet has 95.6 % for real traces.
        assert!(right > 3800, "{right} of 4000");
    }

    #[test]
    fn training_depends_on_its_seed_alone_and_needs_both_classes() {
        let train = |seed, windows: &[Labelled]| {
            let mut rng = Rng::named(seed, "model");
            let mut model = Model::random(&mut rng);
            let before = model.clone();
            let trained = model.train(windows, &mut rng);
            assert_eq!(trained, model != before);
            (trained, model)
        };
        let windows = trace(3, 2000);
        assert_eq!(train(1, &windows), train(1, &windows));
        assert_ne!(train(1, &windows).1, train(2, &windows).1);
        let one_class: Vec<_> = windows.into_iter().filter(|(_, end)| *end == FRONT).collect();
        assert!(!train(1, &one_class).0);
    }

    #[test]
    fn a_figure_that_does_not_change_has_no_weight() {
        let mut window = Window::default();
        (0..20_000).for_each(|_| window.push(&[8.0; FIGURES]));
        assert!(window.features().iter().all(|feature| feature.abs() < 0.01), "{window:?}");
    }

    #[test]
    fn training_is_due_after_a_change_of_a_tenth() {
        let mut rule = Retraining::default();
        assert!(rule.is_due(1000.0, 50.0));
        assert!(!rule.is_due(1090.0, 46.0));
        assert!(!rule.is_due(910.0, 54.0));
        assert!(rule.is_due(880.0, 50.0));
        assert!(rule.is_due(880.0, 56.0));
    }
}
