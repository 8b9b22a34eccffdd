//! One published number: the runs it needs, and what it is made of.

use super::Run;
use flashyard_systems::jbof::JbofFigures;

/// Makes the number of the figures of its runs, in their order.
type Value<F> = Box<dyn Fn(&[&F]) -> f64 + Send + Sync>;

/// A number that can be measured from figures `F` of runs `R`.
pub(super) struct Number<R = Run, F = JbofFigures> {
    /// Its name among the expectations.
    pub(super) id: String,
    /// Runs that it is made of; none for closed forms.
    pub(super) runs: Vec<R>,
    value: Value<F>,
}

impl Number {
    /// The number `id` of the XBOF study, made by `value` of the figures of `runs`.
    pub(super) fn new(
        id: impl Into<String>,
        runs: impl Into<Vec<Run>>,
        value: impl Fn(&[&JbofFigures]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::of(id, runs, value)
    }

    /// A number that is arithmetic.
    pub(super) fn closed(id: &str, value: f64) -> Self {
        Self::of(id, [], move |_| value)
    }
}

impl<R: PartialEq, F> Number<R, F> {
    /// The number `id`, made by `value` of the figures of `runs`, in any study.
    pub(super) fn of(
        id: impl Into<String>,
        runs: impl Into<Vec<R>>,
        value: impl Fn(&[&F]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self { id: id.into(), runs: runs.into(), value: Box::new(value) }
    }

    /// The number; `None` while a run is missing.
    pub(super) fn value_of(&self, finished: &[(R, F)]) -> Option<f64> {
        let find = |run: &R| finished.iter().find(|entry| entry.0 == *run).map(|entry| &entry.1);
        let figures: Option<Vec<&F>> = self.runs.iter().map(find).collect();
        figures.map(|figures| (self.value)(&figures))
    }
}

/// By how many percent `value` is above `against`.
pub(super) fn percent_above(value: f64, against: f64) -> f64 {
    100.0 * (value / against - 1.0)
}

/// The mean of the ratios of a figure between the first half of the runs and the second, in percent above one.
pub(super) fn mean_gain(figures: &[&JbofFigures], figure: impl Fn(&JbofFigures) -> f64) -> f64 {
    let (ours, theirs) = figures.split_at(figures.len() / 2);
    let sum: f64 = ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)).sum();
    percent_above(sum / ours.len() as f64, 1.0)
}

/// The mean throughput of `count` drives from `first` on, in bytes a second each.
pub(super) fn throughput_of(figures: &JbofFigures, first: usize, count: usize) -> f64 {
    let drives = figures.drives.iter().skip(first).take(count);
    let bytes: u64 = drives.map(|drive| drive.read_bytes + drive.write_bytes).sum();
    bytes as f64 / figures.window.as_secs_f64() / count as f64
}
