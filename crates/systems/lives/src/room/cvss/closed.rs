//! Numbers that are arithmetic, and times of giving capacity back.

use super::runs::{CapacityNumber, CvssRun, HOLES_READS, run};
use crate::cvss::Design;
use flashyard_describe::reproduce::{Number, percent_above};
use flashyard_report::CapacityRecord;

/// Loss of a real drive's throughput for each petabyte, in percent, and petabytes. Source: [P] sheet cvss §7, row 3.
const LOSS_PER_PB: [(&str, f64); 2] = [("real-loss-random", 4.2), ("real-loss-sequential", 4.3)];
/// Source: [P] the same.
const PETABYTES: f64 = 9.0;

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let [remap, relocate, holes] =
        ["shrink-remap", "shrink-relocate", "shrink-holes"].map(|work| run(Design::Artifact, work));
    let mut numbers = vec![
        Number::of("shrink-remap", [remap], |runs: &[&CapacityRecord]| seconds(runs[0])),
        Number::of("shrink-relocation", [relocate], |runs: &[&CapacityRecord]| seconds(runs[0])),
        Number::of("shrink-ratio", [relocate, remap], |runs: &[&CapacityRecord]| seconds(runs[0]) / seconds(runs[1])),
        Number::of("shrink-holes", [holes], |runs: &[&CapacityRecord]| seconds(runs[0])),
    ];
    numbers.extend(HOLES_READS.map(|(load, _)| {
        Number::of(format!("shrink-{load}"), [run(Design::Artifact, load)], |runs: &[&CapacityRecord]| {
            let [before, after] = [0, 1].map(|index| runs[0].samples[index].requests_per_second);
            percent_above(after, before)
        })
    }));
    numbers.extend(LOSS_PER_PB.map(|(id, loss)| Number::of(id, [] as [CvssRun; 0], move |_| loss * PETABYTES)));
    numbers
}

/// Seconds of the one operation of a run that gives capacity back.
fn seconds(run: &CapacityRecord) -> f64 {
    run.samples[0].operation_mean_us / 1e6
}
