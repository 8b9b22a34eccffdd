//! Numbers of lives under overwrites: fio and Filebench, and the study of errors and weights.
//!
//! "Artifact" and "tuned" are two readings of the published system; a row measured for both reports both.

use super::runs::CapacityNumber;
use super::runs::{CvssRun, Heavy, run};
use crate::cvss::Design::{self, Artifact, AutoStream, Literal, Traditional, Tuned};
use crate::cvss::ideal_focusing_bytes;
use flashyard_describe::reproduce::{Number, claim, percent_above};
use flashyard_report::{CapacityRecord, CapacitySample};

/// A terabyte. [X]
const TB: f64 = 1e12;

/// Causes of the rows of fio: the device alone, as in the independent simulation.
/// Source: [D] sheet cvss §8.5.
const DEVICE: &str = "in-place";

/// The file system of the rows of Filebench and YCSB.
pub(super) const CVFS: &str = "cvfs";

/// Loads of fio.
const FIO: [&str; 4] = ["zipf-30", "random-30", "zipf-70", "random-70"];

/// Readings that are reported where a row depends on them.
const READINGS: [(&str, Design); 2] = [("artifact", Artifact), ("tuned", Tuned)];

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let mut numbers = vec![
        number("wear-one-state", [device(Traditional, "zipf-30")], |lives| {
            100.0 * lives[0].mean(|sample| sample.in_one_state)
        }),
        number("write-mean", [fio(Artifact), fio(Traditional)].concat(), |lives| {
            let of = |sample: &CapacitySample| sample.written_bytes_per_second;
            mean(pairs(lives).map(|(ours, theirs)| percent_above(mean(ours.ratios(theirs, of).into_iter()), 1.0)))
        }),
        number("blocked-trss", [filebench(Traditional, "varmail")], delayed),
        number("blocked-cvss", [filebench(Artifact, "varmail")], delayed),
        Number::of("zipf-30-tb-bound", [], |_| ideal_focusing_bytes(137.438_953_472e9, 38e9, 0.0737, 290) / TB),
    ];
    numbers.extend(at_equal_writes());
    numbers.extend(while_fast());
    numbers.extend(errors());
    numbers.extend(weights());
    numbers
}

/// Rows 7, 8 and 10.
fn at_equal_writes() -> Vec<CapacityNumber> {
    let mut numbers = Vec::new();
    for (name, design) in READINGS {
        for (id, load) in [("zipf", "zipf-30"), ("random-30", "random-30"), ("random-70", "random-70")] {
            numbers.push(number(&format!("{id}-read-{name}"), both(design, load), |lives| {
                let gains = lives[0].ratios(lives[1], |sample| sample.requests_per_second);
                percent_above(gains.into_iter().fold(0.0, f64::max), 1.0)
            }));
        }
    }
    for load in ["fileserver", "netsfs", "varmail"] {
        let runs = [Artifact, Traditional].map(|design| filebench(design, load));
        numbers.push(number(&format!("latency-{load}"), runs, |lives| {
            percent_above(lives[0].mean(latency), lives[1].mean(latency))
        }));
    }
    let netsfs = [Artifact, Traditional].map(|design| filebench(design, "netsfs"));
    numbers.push(number("latency-netsfs-normal", netsfs, |lives| {
        let normal = lives[0].samples.iter().take_while(|sample| !sample.degraded);
        percent_above(mean(normal.map(latency)), lives[1].mean(latency))
    }));
    numbers
}

/// The mean time of an operation.
fn latency(sample: &CapacitySample) -> f64 {
    sample.operation_mean_us
}

/// Requests that a retry delays, in percent, mean over the life.
fn delayed(lives: &[&CapacityRecord]) -> f64 {
    100.0 * lives[0].mean(|sample| sample.delayed.unwrap_or(0.0))
}

/// Rows 14 to 18: what can be written while the drive is fast enough.
fn while_fast() -> Vec<CapacityNumber> {
    let at = |id: &str, design| number(id, [device(design, "zipf-30")], |lives| lives[0].written_bytes_at_80 / TB);
    let mut numbers = vec![
        at("zipf-30-tb-trss", Traditional),
        at("zipf-30-tb-autostream", AutoStream),
        at("zipf-30-tb-cvss", Artifact),
        at("zipf-30-tb-cvss-literal", Literal),
        at("zipf-30-tb-cvss-tuned", Tuned),
    ];
    for (name, design) in [("trss", Traditional), ("autostream", AutoStream), ("cvss", Artifact)] {
        let id = format!("zipf-30-tb-{name}-for-good");
        numbers.push(number(&id, [device(design, "zipf-30")], |lives| fast_for_good(lives[0]) / TB));
    }
    for (rival, against) in [("trss", Traditional), ("autostream", AutoStream)] {
        for (name, design) in READINGS {
            let gain = |lives: &[&CapacityRecord], figure: fn(&CapacityRecord) -> f64| {
                mean(pairs(lives).map(|(ours, theirs)| percent_above(figure(ours) / figure(theirs), 1.0)))
            };
            let runs = [device(design, "random-30"), device(against, "random-30")];
            let at_80 = |life: &CapacityRecord| life.written_bytes_at_80;
            numbers.push(number(&format!("random-30-over-{rival}-{name}"), runs, move |lives| gain(lives, at_80)));
            let of = |design| [device(design, "zipf-70"), device(design, "random-70")];
            let runs = [of(design), of(against)].concat();
            numbers.push(number(&format!("70-over-{rival}-{name}"), runs, move |lives| gain(lives, at_80)));
            let runs = [fio(design), fio(against)].concat();
            numbers.push(number(&format!("highest-over-{rival}-{name}"), runs, move |lives| gain(lives, untouched)));
        }
        let runs = [device(Artifact, "zipf-70"), device(against, "zipf-70")];
        numbers.push(number(&format!("zipf-70-more-than-{rival}"), runs, |lives| {
            (lives[0].written_bytes - lives[1].written_bytes) / TB
        }));
    }
    numbers
}

/// Writes until performance is below 0.8 of the first for good.
fn fast_for_good(life: &CapacityRecord) -> f64 {
    let last = life.samples.iter().rfind(|sample| sample.performance >= 0.8);
    last.map_or(0.0, |sample| sample.written_bytes)
}

/// Writes while at most one read of a thousand is retried, and at least one sample's.
fn untouched(life: &CapacityRecord) -> f64 {
    let whole = life.samples.iter().take_while(|sample| sample.retried <= 1e-3).last();
    whole.or(life.samples.first()).map_or(0.0, |sample| sample.written_bytes)
}

/// Row 21: retries over each life, from the error rate.
fn errors() -> Vec<CapacityNumber> {
    let with = |design, bits| CvssRun { ecc_bits: Some(bits), ..device(design, "zipf-30") };
    let ratio = |lives: &[&CapacityRecord]| lives[0].retries_mean / lives[1].retries_mean;
    vec![
        number("retries-50", [with(Traditional, 50), with(Artifact, 50)], ratio),
        number("retries-90", [with(Traditional, 90), with(Artifact, 50)], ratio),
    ]
}

/// Row 22: the weights of equation 5.1.
fn weights() -> Vec<CapacityNumber> {
    let base = device(Literal, "zipf-30");
    let heavy = |heavy| CvssRun { heavy: Some(heavy), ..base };
    let all = [base, heavy(Heavy::Invalid), heavy(Heavy::Age), heavy(Heavy::Reads)];
    vec![
        number("weights-invalid-amplification", all, |lives| claim(lives[1].amplification < lives[0].amplification)),
        number("weights-invalid-retries", all, |lives| percent_above(lives[1].retries_mean, lives[0].retries_mean)),
        number("weights-reads-retries", all, |lives| {
            claim(lives[3].retries_mean < lives[0].retries_mean && lives[3].amplification > lives[0].amplification)
        }),
        number("weights-age", all, |lives| {
            claim([0, 1, 3].into_iter().all(|other| lives[2].amplification > lives[other].amplification))
        }),
    ]
}

fn device(design: Design, load: &'static str) -> CvssRun {
    run(design, DEVICE, load)
}

fn filebench(design: Design, load: &'static str) -> CvssRun {
    run(design, CVFS, load)
}

fn both(design: Design, load: &'static str) -> [CvssRun; 2] {
    [device(design, load), device(Traditional, load)]
}

fn fio(design: Design) -> Vec<CvssRun> {
    FIO.map(|load| device(design, load)).to_vec()
}

/// The first half of the lives beside the second.
pub(super) fn pairs<'a>(
    lives: &'a [&CapacityRecord],
) -> impl Iterator<Item = (&'a CapacityRecord, &'a CapacityRecord)> {
    let (ours, theirs) = lives.split_at(lives.len() / 2);
    ours.iter().copied().zip(theirs.iter().copied())
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

pub(super) fn number(
    id: &str,
    runs: impl Into<Vec<CvssRun>>,
    value: impl Fn(&[&CapacityRecord]) -> f64 + Send + Sync + 'static,
) -> CapacityNumber {
    Number::of(id, runs, value)
}
