//! Numbers of lives under trees: YCSB on CVFS; the traces above a model of a file system that wastes the drive's space, and
//! which of its causes they need.

use super::numbers::{CVFS, mean, number, pairs};
use super::runs::CapacityNumber;
use super::runs::{CvssRun, run};
use crate::cvss::Design::{self, Artifact, Traditional};
use flashyard_describe::reproduce::percent_above;
use flashyard_report::{CapacityRecord, CapacitySample};

/// All causes at once: free space lies scattered, and discards never come. Source: [D] sheet cvss §8.4, the traditional
/// drive must waste its writes.
const ALL: &str = "scattered-idle";

/// As above, under forced discards, which the source's file system issues above the capacity-variant drive.
/// Source: [P] sheet cvss §3.3.
const FORCED: &str = "scattered-forced";

/// Sets of causes, each of one step more, and what they are called in ids.
const CAUSES: [&str; 5] = ["in-place", "log", "log-idle", "scattered-limited", ALL];

/// The loads that the source averages lifetimes over: stores on CVFS.
const STORES: [&str; 2] = ["store-a", "store-f"];

/// The eight traces.
const TRACES: [&str; 8] =
    ["twitter-1", "twitter-2", "twitter-3", "twitter-4", "twitter-5", "twitter-6", "twitter-7", "trace38"];

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let mut numbers = traces();
    numbers.extend(latencies());
    numbers.extend(lifetimes());
    numbers
}

/// Rows 12 and 13, and what row 1 and 2 make of them.
fn traces() -> Vec<CapacityNumber> {
    let of = |design| TRACES.map(|load| run(design, causes(design), load)).to_vec();
    let both = || [of(Artifact), of(Traditional)].concat();
    let mut numbers = Vec::new();
    for id in ["performance-least", "twitter-least"] {
        numbers.push(number(id, both(), |lives| gains(lives).fold(f64::INFINITY, f64::min)));
    }
    for id in ["performance-most", "summary-throughput", "twitter-most"] {
        numbers.push(number(id, both(), |lives| gains(lives).fold(f64::NEG_INFINITY, f64::max)));
    }
    numbers.push(number("twitter-mean", both(), |lives| mean(gains(lives))));
    let one = [Artifact, Traditional].map(|design| run(design, causes(design), "trace38"));
    numbers.push(number("twitter-trace38", one, |lives| mean(gains(lives))));
    numbers.push(number("twitter-amplification-trss", of(Traditional), |lives| {
        lives.iter().map(|life| life.amplification).fold(0.0, f64::max)
    }));
    numbers.push(number("twitter-amplification-cvss", of(Artifact), |lives| {
        mean(lives.iter().map(|life| life.amplification))
    }));
    numbers
}

/// Gains in percent, each the mean over equal writes.
fn gains(lives: &[&CapacityRecord]) -> impl Iterator<Item = f64> {
    pairs(lives).map(|(ours, theirs)| {
        let requests = |sample: &CapacitySample| sample.requests_per_second;
        percent_above(mean(ours.ratios(theirs, requests).into_iter()), 1.0)
    })
}

/// Row 19.
fn latencies() -> Vec<CapacityNumber> {
    let mut numbers = Vec::new();
    for (letter, load) in [("a", STORES[0]), ("f", STORES[1])] {
        for percent in [4, 6] {
            let runs = [at(percent, CVFS, load), run(Traditional, CVFS, load)];
            let id = format!("p99-ycsb-{letter}-{percent}");
            numbers.push(number(&id, runs, latency));
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

/// Row 20 on CVFS, and row 20 under sets of causes in place of it.
fn lifetimes() -> Vec<CapacityNumber> {
    let runs = |percent, causes| [at(percent, causes, "ycsb-a"), run(Traditional, causes, "ycsb-a")];
    let ratio =
        |lives: &[&CapacityRecord]| mean(pairs(lives).map(|(ours, theirs)| ours.written_bytes / theirs.written_bytes));
    // The source averages both loads.
    let both = |percent| {
        let ours = STORES.map(|load| at(percent, CVFS, load));
        [ours, STORES.map(|load| run(Traditional, CVFS, load))].concat()
    };
    let mut numbers = vec![
        number("until-death-6", both(6), ratio),
        number("until-death-4", both(4), ratio),
        number("lifetime-most", both(6), ratio),
        number("lifetime-least", both(4), ratio),
        number("summary-lifetime", both(6), ratio),
        number("until-death-ratio", [4, 6].map(|percent| STORES.map(|load| at(percent, CVFS, load))).concat(), ratio),
    ];
    for causes in CAUSES {
        let id = format!("until-death-6-{causes}");
        numbers.push(number(&id, runs(6, causes), ratio));
        let given_back = [CvssRun { gives_back: true, ..at(6, causes, "ycsb-a") }, run(Traditional, causes, "ycsb-a")];
        if [ALL, "scattered-limited"].contains(&causes) {
            numbers.push(number(&format!("until-death-6-{causes}-given-back"), given_back, ratio));
        }
        let id = format!("amplification-trss-{causes}");
        numbers.push(number(&id, [run(Traditional, causes, "ycsb-a")], |lives| lives[0].amplification));
    }
    numbers
}

/// Causes under which a drive is measured.
fn causes(design: Design) -> &'static str {
    if design.is_variable() { FORCED } else { ALL }
}

/// The artifact's policy with retirement at a raw bit error rate in percent.
fn at(percent: u32, causes: &'static str, load: &'static str) -> CvssRun {
    CvssRun { rate_percent: Some(percent), ..run(Artifact, causes, load) }
}
