//! Numbers that are arithmetic.

use super::runs::CapacityNumber;
use crate::cvss::ShrinkCosts;
use flashyard_describe::reproduce::Number;

/// Loss of a real drive's throughput for each petabyte, in percent, and petabytes. Source: [P] sheet cvss §7, row 3.
const LOSS_PER_PB: [(&str, f64); 2] = [("real-loss-random", 4.2), ("real-loss-sequential", 4.3)];
/// Source: [P] the same.
const PETABYTES: f64 = 9.0;

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let costs = ShrinkCosts::default();
    let mut numbers = vec![
        closed("shrink-remap", costs.remap_s()),
        closed("shrink-relocation", costs.relocate_s()),
        closed("shrink-ratio", costs.relocate_s() / costs.remap_s()),
    ];
    numbers.extend(LOSS_PER_PB.map(|(id, loss)| closed(id, loss * PETABYTES)));
    numbers
}

fn closed(id: &str, value: f64) -> CapacityNumber {
    Number::of(id, [], move |_| value)
}
