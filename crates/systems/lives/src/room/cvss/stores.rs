//! Numbers of lives under stores: YCSB and the traces.

use super::numbers::{FORCED, IN_PLACE, mean, number, pairs};
use super::runs::CapacityNumber;
use super::runs::{CvssRun, run};
use crate::cvss::Design::{Artifact, Traditional};
use flashyard_describe::reproduce::percent_above;
use flashyard_report::{CapacityRecord, CapacitySample};

/// Loads that the source averages lifetimes over.
const STORES: [&str; 2] = ["store-a", "store-f"];

/// The eight traces.
const TRACES: [&str; 8] = ["trace12", "trace15", "trace23", "trace32", "trace38", "trace40", "trace41", "trace48"];

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let mut numbers = traces();
    numbers.extend(latencies());
    numbers.extend(lifetimes());
    numbers
}

/// Rows 12 and 13, and what row 1 and 2 make of them.
fn traces() -> Vec<CapacityNumber> {
    let of = |design| TRACES.map(|load| run(design, load)).to_vec();
    let both = || [of(Artifact), of(Traditional)].concat();
    let mut numbers = Vec::new();
    for id in ["performance-least", "twitter-least"] {
        numbers.push(number(id, both(), |lives| gains(lives).fold(f64::INFINITY, f64::min)));
    }
    for id in ["performance-most", "summary-throughput", "twitter-most"] {
        numbers.push(number(id, both(), |lives| gains(lives).fold(f64::NEG_INFINITY, f64::max)));
    }
    numbers.push(number("twitter-mean", both(), |lives| mean(gains(lives))));
    let one = [Artifact, Traditional].map(|design| run(design, "trace38"));
    numbers.push(number("twitter-trace38", one, |lives| mean(gains(lives))));
    numbers.push(number("twitter-amplification-trss", of(Traditional), |lives| {
        lives.iter().map(|life| life.amplification).fold(0.0, f64::max)
    }));
    numbers.push(number("twitter-amplification-cvss", of(Artifact), |lives| {
        mean(lives.iter().map(|life| life.amplification))
    }));
    numbers
}

/// Gains in percent of the mean of each drive's own life.
fn gains(lives: &[&CapacityRecord]) -> impl Iterator<Item = f64> {
    pairs(lives).map(|(ours, theirs)| {
        let requests = |sample: &CapacitySample| sample.requests_per_second;
        percent_above(ours.mean(requests), theirs.mean(requests))
    })
}

/// Row 19.
fn latencies() -> Vec<CapacityNumber> {
    let mut numbers = Vec::new();
    for (letter, load) in [("a", STORES[0]), ("f", STORES[1])] {
        for percent in [4, 6] {
            let runs = [at(percent, load), run(Traditional, load)];
            let id = format!("p99-ycsb-{letter}-{percent}");
            numbers.push(number(&id, runs, latency));
            numbers.push(number(&format!("{id}-client"), runs, |lives| {
                let tail = |sample: &CapacitySample| sample.operation_p99_us;
                percent_above(lives[0].mean(tail), lives[1].mean(tail))
            }));
            if (letter, percent) == ("f", 4) {
                numbers.push(number("summary-latency", runs, latency));
            }
        }
    }
    numbers
}

/// The 99th percentile of a read's time, mean over equal writes, in percent above the rival's.
fn latency(lives: &[&CapacityRecord]) -> f64 {
    let tail = |sample: &CapacitySample| sample.read_p99_us;
    percent_above(mean(lives[0].ratios(lives[1], tail).into_iter()), 1.0)
}

/// Row 20, and what it would be with other file systems below: controls.
fn lifetimes() -> Vec<CapacityNumber> {
    let ratio =
        |lives: &[&CapacityRecord]| mean(pairs(lives).map(|(ours, theirs)| ours.written_bytes / theirs.written_bytes));
    // The source averages both loads.
    let both = |percent| {
        let ours = STORES.map(|load| at(percent, load));
        [ours, STORES.map(|load| run(Traditional, load))].concat()
    };
    let mut numbers = vec![
        number("until-death-6", both(6), ratio),
        number("until-death-4", both(4), ratio),
        number("lifetime-most", both(6), ratio),
        number("lifetime-least", both(4), ratio),
        number("summary-lifetime", both(6), ratio),
        number("until-death-ratio", [4, 6].map(|percent| STORES.map(|load| at(percent, load))).concat(), ratio),
    ];
    let managed = STORES.map(|load| CvssRun { is_managed: true, ..at(6, load) });
    let fixed = STORES.map(|load| run(Traditional, load));
    numbers.push(number("until-death-6-manager", [managed, fixed].concat(), ratio));
    let (ours, theirs) = (at(6, "store-a"), run(Traditional, "store-a"));
    // Discards above the variable drive are forced as published.
    numbers.push(number("until-death-6-forced", [ours, CvssRun { below: FORCED, ..theirs }], ratio));
    let in_place = [ours, theirs].map(|life| CvssRun { below: IN_PLACE, ..life });
    numbers.push(number("until-death-6-in-place", in_place, ratio));
    numbers
}

/// The artifact's policy with retirement at a raw bit error rate in percent.
fn at(percent: u32, load: &'static str) -> CvssRun {
    CvssRun { rate_percent: Some(percent), ..run(Artifact, load) }
}
