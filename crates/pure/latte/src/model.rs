//! The learned dispatcher: a linear model over the last five requests, and its training. Source: sheet §3.2.
//!
//! Arithmetic is addition, multiplication, division and square root of `f32`, which IEEE 754 rounds alike everywhere.

use crate::dispatch::{BACK, FRONT};
use flashyard_kernel::Rng;
use flashyard_service::Leg;

/// Figures of a request. \[A\] sheet §3.2: blocks, depths of both ends, smoothed latencies of both ends, time since the last
/// request.
pub const FIGURES: usize = 6;
/// Requests that the model looks at. \[P\] sheet §3.2.
pub const REQUESTS: usize = 5;
/// Inputs of the model.
pub const FEATURES: usize = FIGURES * REQUESTS;

/// The figures of the last requests, the newest first.
#[derive(Clone, Debug, Default)]
pub struct Window([f32; FEATURES]);

impl Window {
    /// Takes the figures of a request in.
    #[inline]
    pub fn push(&mut self, figures: &[f32; FIGURES]) {
        self.0.copy_within(0..FEATURES - FIGURES, FIGURES);
        self.0[..FIGURES].copy_from_slice(figures);
    }

    /// Inputs of the model.
    pub fn features(&self) -> &[f32; FEATURES] {
        &self.0
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
/// A variance below which a figure counts as constant.
const LEAST_VARIANCE: f32 = 1e-6;

/// Mean and deviation of each figure in a trace, by which training sees it. They are folded into the weights afterwards: a
/// model that is in use must not see its inputs shift with the load that it causes.
struct Scale {
    means: [f32; FIGURES],
    /// One over the deviation; 0 for a figure that does not change.
    factors: [f32; FIGURES],
}

impl Scale {
    fn of(windows: &[Labelled]) -> Self {
        let count = windows.len() as f64;
        let over = |value: &dyn Fn(f32) -> f64, figure: usize| -> f64 {
            windows.iter().map(|(features, _)| value(features[figure])).sum::<f64>() / count
        };
        let means: [f64; FIGURES] = std::array::from_fn(|figure| over(&|value| f64::from(value), figure));
        let factor = |figure: usize| {
            let off = |value: f32| f64::from(value) - means[figure];
            let variance = over(&|value| off(value) * off(value), figure) as f32;
            if variance < LEAST_VARIANCE { 0.0 } else { 1.0 / variance.sqrt() }
        };
        Self { means: means.map(|mean| mean as f32), factors: std::array::from_fn(factor) }
    }

    fn apply(&self, features: &[f32; FEATURES]) -> [f32; FEATURES] {
        std::array::from_fn(|index| {
            let figure = index % FIGURES;
            (features[index] - self.means[figure]) * self.factors[figure]
        })
    }
}

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

    /// Trains on `windows` by stochastic descent of the hinge loss, classes weighing alike. With windows of one class the model
    /// names that one always. \[A\] Without windows nothing changes.
    pub fn train(&mut self, windows: &[Labelled], rng: &mut Rng) {
        let back = windows.iter().filter(|(_, end)| *end == BACK).count();
        let front = windows.len() - back;
        if windows.is_empty() {
            return;
        }
        if back == 0 || front == 0 {
            *self = Self { weights: [0.0; FEATURES], bias: if back == 0 { -1.0 } else { 1.0 } };
            return;
        }
        let scale = Scale::of(windows);
        let half = windows.len() as f32 / 2.0;
        let class_weight = |end| half / if end == BACK { back as f32 } else { front as f32 };
        let mut scaled = Self { weights: [0.0; FEATURES], bias: 0.0 };
        let mut step = 0.1_f32;
        for _ in 0..PASSES {
            for _ in 0..windows.len() {
                let (features, end) = &windows[rng.below(windows.len() as u64) as usize];
                let features = scale.apply(features);
                let side = if *end == BACK { 1.0 } else { -1.0 };
                let is_inside = side * scaled.score(&features) < 1.0;
                let pull = if is_inside { step * side * class_weight(*end) } else { 0.0 };
                for (weight, feature) in scaled.weights.iter_mut().zip(&features) {
                    *weight += pull * feature - step * REGULARISATION * *weight;
                }
                scaled.bias += pull;
            }
            step *= 0.3;
        }
        *self = scaled.unscaled(&scale);
    }

    /// A model with this border for features as they are.
    fn unscaled(&self, scale: &Scale) -> Self {
        let weights: [f32; FEATURES] =
            std::array::from_fn(|index| self.weights[index] * scale.factors[index % FIGURES]);
        let shift: f32 = weights.iter().enumerate().map(|(index, weight)| weight * scale.means[index % FIGURES]).sum();
        Self { weights, bias: self.bias - shift }
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
        model.train(&trace(1, 20_000), &mut rng);
        let unseen = trace(2, 5000);
        let right = unseen.iter().skip(1000).filter(|(features, end)| model.infer(features) == *end).count();
        // The sheet has 95.6 % for real traces.
        assert!(right > 3800, "{right} of 4000");
    }

    #[test]
    fn training_depends_on_its_seed_alone() {
        let train = |seed, windows: &[Labelled]| {
            let mut rng = Rng::named(seed, "model");
            let mut model = Model::random(&mut rng);
            model.train(windows, &mut rng);
            model
        };
        let windows = trace(3, 2000);
        assert_eq!(train(1, &windows), train(1, &windows));
        assert_ne!(train(1, &windows), train(2, &windows));
    }

    #[test]
    fn windows_of_one_class_make_a_model_that_names_it_always() {
        for end in [FRONT, BACK] {
            let windows: Vec<_> = trace(3, 2000).into_iter().filter(|(_, better)| *better == end).collect();
            let mut rng = Rng::named(1, "model");
            let mut model = Model::random(&mut rng);
            model.train(&windows, &mut rng);
            assert!(trace(4, 100).iter().all(|(features, _)| model.infer(features) == end));
        }
    }

    #[test]
    fn a_scale_is_undone_in_the_weights() {
        let windows = trace(5, 1000);
        let scale = Scale::of(&windows);
        let mut rng = Rng::named(1, "model");
        let model = Model::random(&mut rng);
        for (features, _) in windows.iter().skip(REQUESTS) {
            let (scaled, plain) = (model.score(&scale.apply(features)), model.unscaled(&scale).score(features));
            assert!((scaled - plain).abs() < 1e-3, "{scaled} and {plain}");
        }
        // Blocks and times between requests are constant in this trace.
        assert_eq!((scale.factors[0], scale.factors[5]), (0.0, 0.0));
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
