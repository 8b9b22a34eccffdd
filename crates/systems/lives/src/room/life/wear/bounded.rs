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
