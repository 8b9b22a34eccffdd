//! Numbers that are arithmetic.

use super::super::groups::drive_price;
use super::number::Number;
use crate::jbof::Design;
use flashyard_describe::reproduce::percent_above;
use flashyard_report::{Prices, Shares};

/// Drives of the published JBOF, and how many of them may be busy at once for twenty to be below 75 %.
///
/// Source: \[P\] sheet xbof §7, row 5.
const DRIVES: u32 = 25;
/// Source: \[D\] 25 less 20.
const BUSY_MOST: u32 = 5;

/// Share of the time that a drive is busy. Source: \[D\] sheet §8.12, solved from the published probability.
const BUSY_SHARE: f64 = 0.112;

/// Price of a PCIe 4.0 controller in dollars. Source: \[D\] sheet §8.9, solved from the published share.
const PCIE4_CONTROLLER: f64 = 20.9;

/// Extra drive writes a day that copying back costs a drive rated for one. Source: [P] sheet xbof §7, row 11.
const COPIED_BACK_DWPD: f64 = 0.29;

pub(super) fn numbers(prices: Prices, kept: Shares) -> Vec<Number> {
    let price = |design| drive_price(&prices, 2.0, design, kept);
    vec![
        Number::closed("bom-saving", -percent_above(price(Design::Xbof), price(Design::Conv))),
        Number::closed("bom-compute-share-pcie5", compute_share(&prices)),
        Number::closed("bom-compute-share-pcie4", compute_share(&Prices { controller: PCIE4_CONTROLLER, ..prices })),
        Number::closed("busy-drives", 100.0 * at_most(BUSY_MOST, DRIVES, BUSY_SHARE)),
        Number::closed("copy-back-lifetime", percent_above(1.0 / (1.0 + COPIED_BACK_DWPD), 1.0)),
    ]
}

/// Controller and DRAM as a share of a full 4 TB drive, in percent.
fn compute_share(prices: &Prices) -> f64 {
    let whole = drive_price(prices, 4.0, Design::Conv, Shares { cores: 1.0, memory: 1.0 });
    let compute = prices.controller + 4.0 * prices.dram_per_gb;
    100.0 * compute / whole
}

/// The probability that at most `most` of `count` independent drives are busy, each with `busy`.
fn at_most(most: u32, count: u32, busy: f64) -> f64 {
    let mut term = (0..count).fold(1.0, |product, _| product * (1.0 - busy));
    let mut sum = term;
    for drive in 0..most {
        term *= f64::from(count - drive) / f64::from(drive + 1) * busy / (1.0 - busy);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_sum_counts_coins() {
        // At most one head of three fair coins: 4 of 8 outcomes.
        assert!((at_most(1, 3, 0.5) - 0.5).abs() < 1e-12);
        assert!((at_most(DRIVES, DRIVES, 0.278) - 1.0).abs() < 1e-12);
    }
}
