//! Ratios of latencies of reads.

use super::runs::ReclaimNumber;
use super::runs::{Load, Model, ReclaimRun, Rival, run};
use flashyard_describe::reproduce::{Number, claim, percent_above};
use flashyard_report::ReclaimRecord;

use Model::{Planes, Superblocks};
use Rival::{NoReclaim, Rotating, Sooner, Traditional, TtFlash};

/// Shares of the drive that data takes, in percent. The middle ones are those of the source of the comparison; parity
/// takes an eighth, so that the last is all but full. Source: [P] sheet cvss §6; 50 and 80 are [A].
pub(super) const PERCENT: [u32; 4] = [30, 50, 70, 80];

/// The least of them, where nothing needs to be moved. [P]
const LEAST: u32 = PERCENT[0];

/// Slow-down in percent that "limited effectiveness" leaves at least. [A] a fifth would not be limited
const LIMITED: f64 = 80.0;

/// Latencies that count as equal. [A] a hundred reads lie beyond p99.9
const SAME: f64 = 1.01;

/// The share that single comparisons are made at. Source: [P] sheet cvss §6.
pub(super) const USUAL: u32 = 70;

/// Rates of the sweep. [A] up to more than garbage collection in turns can keep up with
pub(super) const RATES: [u32; 4] = [1000, 2000, 4000, 8000];

/// Where the percentiles of 99 to 99.99 lie in a record. [X]
const TAIL: std::ops::Range<usize> = 2..5;

pub(super) fn numbers() -> Vec<ReclaimNumber> {
    let mut numbers = Vec::new();
    for (rival, name) in [(TtFlash, "ttflash"), (Traditional, "base")] {
        let runs: Vec<ReclaimRun> = [rival, NoReclaim].map(under_loads).concat();
        let id = format!("tail-{name}-least");
        numbers.push(number(&id, runs.clone(), |runs| slower(runs).fold(f64::INFINITY, f64::min)));
        let id = format!("tail-{name}-most");
        numbers.push(number(&id, runs, |runs| slower(runs).fold(0.0, f64::max)));
    }
    let parity = [run(TtFlash, Superblocks, LEAST), run(Traditional, Superblocks, LEAST)];
    numbers.push(number("parity-writes", parity, |runs| percent_above(runs[0].amplification, runs[1].amplification)));
    numbers.push(number("fail-slow-kept", worn_and_new(), |runs| claim(100.0 * kept(runs) >= LIMITED)));
    let loaded = |rival| RATES.map(|rate| ReclaimRun { rate, ..run(rival, Superblocks, USUAL) });
    numbers.push(number("tail-under-load", [loaded(TtFlash), loaded(Traditional)].concat(), |runs| {
        let (place, (ours, theirs)) = (TAIL.start + 1, runs.split_at(runs.len() / 2));
        claim(ours.iter().zip(theirs).all(|(ours, theirs)| ours.read_us[place] <= SAME * theirs.read_us[place]))
    }));
    numbers
}

/// Each mechanism by itself: no claim of the source, but charts show it.
pub(super) fn drawn() -> Vec<ReclaimRun> {
    [Rotating, Sooner, TtFlash, Traditional, NoReclaim]
        .map(|rival| PERCENT.map(|percent| run(rival, Superblocks, percent)))
        .concat()
}

/// ttFlash and the traditional drive, each worn and new.
fn worn_and_new() -> [ReclaimRun; 4] {
    let fresh = |rival| run(rival, Superblocks, USUAL);
    let worn = |rival| ReclaimRun { worn: true, ..fresh(rival) };
    [worn(TtFlash), fresh(TtFlash), worn(Traditional), fresh(Traditional)]
}

/// The slow-down of the mean read by wear, ttFlash's by the traditional drive's.
fn kept(runs: &[&ReclaimRecord]) -> f64 {
    (runs[0].read_us[0] - runs[1].read_us[0]) / (runs[2].read_us[0] - runs[3].read_us[0])
}

/// The drive of the source under each of its loads.
fn under_loads(rival: Rival) -> [ReclaimRun; 3] {
    Load::ALL.map(|load| run(rival, Planes(load), USUAL))
}

/// Percentiles of 99 to 99.99 by those of the drive without garbage collection, which is in the second half.
fn slower(runs: &[&ReclaimRecord]) -> impl Iterator<Item = f64> {
    let (ours, theirs) = runs.split_at(runs.len() / 2);
    let ratios = ours
        .iter()
        .zip(theirs)
        .flat_map(|(ours, theirs)| TAIL.map(|place| ours.read_us[place] / theirs.read_us[place]));
    ratios.collect::<Vec<_>>().into_iter()
}

fn number(
    id: &str,
    runs: impl Into<Vec<ReclaimRun>>,
    value: impl Fn(&[&ReclaimRecord]) -> f64 + Send + Sync + 'static,
) -> ReclaimNumber {
    Number::of(id, runs, value)
}
