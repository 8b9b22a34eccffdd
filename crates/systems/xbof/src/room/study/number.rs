//! Numbers of this study, and figures that they are made of.

use super::record::RunRecord;
use super::runs::Run;
use flashyard_describe::reproduce::{self, percent_above};

/// A number made of runs of the JBOF.
pub(super) type Number = reproduce::Number<Run, RunRecord>;

/// The mean of the ratios of a figure between the first half of the runs and the second, in percent above one.
pub(super) fn mean_gain(runs: &[&RunRecord], figure: impl Fn(&RunRecord) -> f64) -> f64 {
    let (ours, theirs) = runs.split_at(runs.len() / 2);
    let sum: f64 = ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)).sum();
    percent_above(sum / ours.len() as f64, 1.0)
}

/// The mean throughput of `count` drives from `first` on, in bytes a second each.
pub(super) fn throughput_of(run: &RunRecord, first: usize, count: usize) -> f64 {
    let bytes: u64 = run.drives.iter().skip(first).take(count).map(|drive| drive.bytes).sum();
    bytes as f64 / run.window().as_secs_f64() / count as f64
}
