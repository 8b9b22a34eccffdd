//! Lives whose capacity shrinks as far as the file system may relocate.

use super::lifetimes::ratios;
use super::runs::LifeNumber;
use super::runs::{End, NO, place, trace, traces};
use super::synthetic::claim;
use flashyard_describe::reproduce::Number;

/// Bounds in GiB of the published drive. Source: [P] sheet wear-leveling §7, row 24.
const BOUNDS: [u32; 3] = [1, 5, 10];

/// GiB at which the source sees a jump for DAP-PS. Source: [P] sheet §7, row 26.
const JUMP: u32 = 18;

/// Workloads "with a large footprint", by name. Source: [P] §4.5.3.
const LARGE: [&str; 3] = ["VDI", "DTRS", "LM-TBE"];

/// A life longer by this factor is noticeably longer. [A]
const NOTICEABLE: f64 = 1.05;

pub(super) fn numbers() -> Vec<LifeNumber> {
    let mut numbers: Vec<LifeNumber> = BOUNDS
        .into_iter()
        .map(|gib| {
            let runs = [traces(End::Bounded(gib), NO), traces(End::Fixed, NO)].concat();
            Number::of(format!("bound-{gib}-mean"), runs, |lives| {
                let ratios = ratios(lives);
                ratios.iter().sum::<f64>() / ratios.len() as f64
            })
        })
        .collect();
    let large: Vec<usize> = LARGE.into_iter().map(place).collect();
    let lives = |end| large.iter().map(|&place| trace(place, end, NO)).collect::<Vec<_>>();
    let bounded: Vec<_> = BOUNDS.into_iter().flat_map(|gib| lives(End::Bounded(gib))).collect();
    let fixed = BOUNDS.map(|_| lives(End::Fixed)).concat();
    numbers.push(claim("bound-large-flat", [bounded, fixed].concat(), |lives| {
        ratios(lives).iter().all(|&ratio| ratio <= NOTICEABLE)
    }));
    let rad = place("RAD-AS");
    let runs = [trace(rad, End::Bounded(1), NO), trace(rad, End::Fixed, NO)];
    numbers.push(Number::of("bound-1-rad-as", runs, |lives| ratios(lives)[0]));
    let dap = place("DAP-PS");
    let runs = [JUMP - 2, JUMP - 1, JUMP].map(|gib| trace(dap, End::Bounded(gib), NO));
    numbers.push(claim("bound-dap-ps-jump", runs, |lives| {
        let writes: Vec<f64> = lives.iter().map(|life| life.drive_writes()).collect();
        writes[2] - writes[1] > 2.0 * (writes[1] - writes[0]).max(0.1)
    }));
    numbers
}
