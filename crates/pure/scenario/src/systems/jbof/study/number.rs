//! What numbers of this study are made of.

use super::runs::Run;
use crate::reproduce::number::{self, percent_above};
use flashyard_systems::jbof::JbofFigures;

/// A number made of runs of the JBOF.
pub(super) type Number = number::Number<Run, JbofFigures>;

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
