//! Numbers of lives.

use super::CapacityNumber;
use super::runs::{CvssRun, run};
use crate::reproduce::number::Number;
use flashyard_report::CapacityRecord;
use flashyard_systems::cvss::Design::{Artifact, Traditional};

/// A terabyte.
const TB: f64 = 1e12;

pub(super) fn numbers() -> Vec<CapacityNumber> {
    vec![
        number("zipf-30-tb-trss", [run(Traditional, "in-place", "zipf-30")], |lives| lives[0].written_bytes_at_80 / TB),
        number("zipf-30-tb-cvss", [run(Artifact, "in-place", "zipf-30")], |lives| lives[0].written_bytes_at_80 / TB),
    ]
}

fn number(
    id: &str,
    runs: impl Into<Vec<CvssRun>>,
    value: impl Fn(&[&CapacityRecord]) -> f64 + Send + Sync + 'static,
) -> CapacityNumber {
    Number::of(id, runs, value)
}
