//! Numbers without lives: arithmetic, and the time of giving capacity back.

use super::runs::{CapacityNumber, run};
use super::section::CvssScenario;
use crate::cvss::{Design, shrink_seconds};
use flashyard_cvfs::Method;
use flashyard_describe::reproduce::Number;

/// Loss of a real drive's throughput for each petabyte, in percent, and petabytes. Source: [P] sheet cvss §7, row 3.
const LOSS_PER_PB: [(&str, f64); 2] = [("real-loss-random", 4.2), ("real-loss-sequential", 4.3)];
/// Source: [P] the same.
const PETABYTES: f64 = 9.0;

pub(super) fn numbers(base: &CvssScenario) -> Vec<CapacityNumber> {
    let (device, seed) = (run(Design::Artifact, "").device(base), base.seed);
    let seconds = move |method| shrink_seconds(device, method, seed).unwrap_or(f64::NAN);
    let mut numbers = vec![
        Number::of("shrink-remap", [], move |_| seconds(Method::Remap)),
        Number::of("shrink-relocation", [], move |_| seconds(Method::Relocate)),
        Number::of("shrink-ratio", [], move |_| seconds(Method::Relocate) / seconds(Method::Remap)),
        Number::of("shrink-holes", [], move |_| seconds(Method::Holes)),
    ];
    numbers.extend(LOSS_PER_PB.map(|(id, loss)| Number::of(id, [], move |_| loss * PETABYTES)));
    numbers
}
