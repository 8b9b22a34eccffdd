//! Numbers of lives under overwrites: fio and Filebench, and the study of errors and weights.
//!
use super::runs::CapacityNumber;
use super::runs::{CvssRun, Heavy, PASSES, run};
use crate::cvss::Design;
use crate::cvss::Design::{Artifact, AutoStream, Literal, Traditional};
use crate::cvss::{Below, DiscardRule, Placement, ideal_focusing_bytes};
use flashyard_describe::reproduce::{Number, claim, percent_above};
use flashyard_report::{CapacityRecord, CapacitySample};

/// A terabyte. [X]
const TB: f64 = 1e12;

/// The control whose file system writes in place.
pub(super) const IN_PLACE: Below = Below { placement: Placement::InPlace, ..Below::PUBLISHED };

/// Forced discards, whatever the drive.
pub(super) const FORCED: Below = Below { discards: DiscardRule::Forced, ..Below::PUBLISHED };

/// How fio is run.
#[derive(Clone, Copy, PartialEq)]
enum Job {
    /// As the artifact's commands run it: direct, 128 requests under way.
    Artifact,
    /// By its defaults, which the text names: buffered, one request under way.
    Defaults,
    /// By its defaults, on files in place.
    InPlace,
}

impl Job {
    /// The end of its numbers' names.
    fn suffix(self) -> &'static str {
        match self {
            Self::Artifact => "",
            Self::Defaults => "-buffered",
            Self::InPlace => "-in-place",
        }
    }

    /// A life under a load.
    fn life(self, design: Design, [direct, buffered]: FioLoad) -> CvssRun {
        match self {
            Self::Artifact => run(design, direct),
            Self::Defaults => run(design, buffered),
            Self::InPlace => CvssRun { below: IN_PLACE, ..run(design, buffered) },
        }
    }
}

/// A load of fio: its name where the job is direct, and where it is buffered.
type FioLoad = [&'static str; 2];

const ZIPF_30: FioLoad = ["zipf-30-direct", "zipf-30"];
const RANDOM_30: FioLoad = ["random-30-direct", "random-30"];
const ZIPF_70: FioLoad = ["zipf-70-direct", "zipf-70"];
const RANDOM_70: FioLoad = ["random-70-direct", "random-70"];

pub(super) fn numbers() -> Vec<CapacityNumber> {
    let mut numbers = vec![
        number("wear-one-state", [run(Traditional, PASSES)], in_one_state),
        number("wear-one-state-fio", [Job::Artifact.life(Traditional, RANDOM_30)], in_one_state),
        Number::of("zipf-30-tb-bound", [], |_| ideal_focusing_bytes(137.438_953_472e9, 38e9, 0.0737, 290) / TB),
    ];
    numbers.extend(filebench());
    numbers.extend(while_fast());
    for job in [Job::Artifact, Job::Defaults, Job::InPlace] {
        numbers.extend(of_fio(job));
    }
    numbers.extend(managed());
    numbers.extend(errors());
    numbers.extend(weights());
    numbers
}

/// Superblocks in one state of wear, in percent, mean over the samples.
fn in_one_state(lives: &[&CapacityRecord]) -> f64 {
    100.0 * lives[0].mean(|sample| sample.in_one_state)
}

/// Rows 14 to 17 where the manager degrades the drive by the rule of the text.
fn managed() -> Vec<CapacityNumber> {
    let life = |load| CvssRun { is_managed: true, ..Job::Artifact.life(Artifact, load) };
    let rival = |load| Job::Artifact.life(Traditional, load);
    let gain = |lives: &[&CapacityRecord]| {
        let ratio = |(ours, theirs): (&CapacityRecord, &CapacityRecord)| {
            percent_above(ours.written_bytes_at_80, theirs.written_bytes_at_80)
        };
        mean(pairs(lives).map(ratio))
    };
    let both = |loads: &[FioLoad]| -> Vec<CvssRun> {
        loads.iter().map(|&load| life(load)).chain(loads.iter().map(|&load| rival(load))).collect()
    };
    vec![
        number("zipf-30-tb-cvss-manager", [life(ZIPF_30)], |lives| lives[0].written_bytes_at_80 / TB),
        number("random-30-over-trss-artifact-manager", both(&[RANDOM_30]), gain),
        number("70-over-trss-artifact-manager", both(&[ZIPF_70, RANDOM_70]), gain),
        number("zipf-70-more-than-trss-manager", both(&[ZIPF_70]), |lives| {
            (lives[0].written_bytes - lives[1].written_bytes) / TB
        }),
    ]
}

/// Rows 10 and 11: discards are forced above both drives. Those of an idle file system above the traditional one are a reading.
fn filebench() -> Vec<CapacityNumber> {
    let mut numbers = Vec::new();
    for (suffix, below) in [("", FORCED), ("-idle", Below::PUBLISHED)] {
        let runs = |load| [run(Artifact, load), CvssRun { below, ..run(Traditional, load) }];
        for load in ["fileserver", "netsfs", "varmail"] {
            numbers.push(number(&format!("latency-{load}{suffix}"), runs(load), |lives| {
                percent_above(lives[0].mean(latency), lives[1].mean(latency))
            }));
        }
        numbers.push(number(&format!("latency-netsfs-normal{suffix}"), runs("netsfs"), |lives| {
            let normal = lives[0].samples.iter().take_while(|sample| !sample.degraded);
            percent_above(mean(normal.map(latency)), lives[1].mean(latency))
        }));
        let [variable, fixed] = runs("varmail");
        numbers.push(number(&format!("blocked-trss{suffix}"), [fixed], blocked));
        if below == FORCED {
            numbers.push(number("blocked-cvss", [variable], blocked));
            numbers.push(number("blocked-trss-delayed", [fixed], delayed));
            numbers.push(number("blocked-cvss-delayed", [variable], delayed));
        }
    }
    numbers
}

/// Rows 7 to 9 and 14 to 18 by one way to run fio.
fn of_fio(job: Job) -> Vec<CapacityNumber> {
    let suffix = job.suffix();
    let of =
        move |design, loads: &[FioLoad]| -> Vec<CvssRun> { loads.iter().map(|&load| job.life(design, load)).collect() };
    let all = [ZIPF_30, RANDOM_30, ZIPF_70, RANDOM_70];
    let mut numbers = Vec::new();
    for (name, design) in [("trss", Traditional), ("autostream", AutoStream), ("cvss", Artifact)] {
        let id = format!("zipf-30-tb-{name}{suffix}");
        numbers.push(number(&id, [job.life(design, ZIPF_30)], |lives| lives[0].written_bytes_at_80 / TB));
    }
    for (id, load) in [("zipf", ZIPF_30), ("random-30", RANDOM_30), ("random-70", RANDOM_70)] {
        let runs = [Artifact, Traditional].map(|design| job.life(design, load));
        numbers.push(number(&format!("{id}-read-artifact{suffix}"), runs, greatest_gain));
    }
    let written = [of(Artifact, &all), of(Traditional, &all)].concat();
    numbers.push(number(&format!("write-mean{suffix}"), written.clone(), |lives| {
        let ratio = |(ours, theirs)| mean(measured_ratios(ours, theirs, written_rate));
        mean(pairs(lives).map(|pair| percent_above(ratio(pair), 1.0)))
    }));
    if job == Job::Artifact {
        numbers.push(number("write-mean-own", written, |lives| {
            let own = |life| mean(measured(life).map(written_rate));
            mean(pairs(lives).map(|(ours, theirs)| percent_above(own(ours), own(theirs))))
        }));
    }
    for (rival, against) in [("trss", Traditional), ("autostream", AutoStream)] {
        let gain = |lives: &[&CapacityRecord], figure: fn(&CapacityRecord) -> f64| {
            mean(pairs(lives).map(|(ours, theirs)| percent_above(figure(ours) / figure(theirs), 1.0)))
        };
        let at_80 = |life: &CapacityRecord| life.written_bytes_at_80;
        let both = |loads: &[FioLoad]| [of(Artifact, loads), of(against, loads)].concat();
        let id = |name: &str| format!("{name}-over-{rival}-artifact{suffix}");
        numbers.push(number(&id("random-30"), both(&[RANDOM_30]), move |lives| gain(lives, at_80)));
        numbers.push(number(&id("70"), both(&[ZIPF_70, RANDOM_70]), move |lives| gain(lives, at_80)));
        numbers.push(number(&id("highest"), both(&all), move |lives| gain(lives, at_80)));
        numbers.push(number(&format!("zipf-70-more-than-{rival}{suffix}"), both(&[ZIPF_70]), |lives| {
            (lives[0].written_bytes - lives[1].written_bytes) / TB
        }));
    }
    numbers
}

/// Samples of a measurement of fio, which ends when performance falls below half of the first. Source: [P] §5.5.2, Zipfian.
fn measured(life: &CapacityRecord) -> impl Iterator<Item = &CapacitySample> {
    life.samples.iter().take_while(|sample| sample.performance >= 0.5)
}

/// Ratios of a figure at equal writes while both are measured.
fn measured_ratios(
    ours: &CapacityRecord,
    theirs: &CapacityRecord,
    figure: fn(&CapacitySample) -> f64,
) -> impl Iterator<Item = f64> {
    measured(ours).zip(measured(theirs)).map(move |(ours, theirs)| figure(ours) / figure(theirs))
}

/// The greatest gain in requests a second at equal writes.
fn greatest_gain(lives: &[&CapacityRecord]) -> f64 {
    let gains = measured_ratios(lives[0], lives[1], |sample| sample.requests_per_second);
    percent_above(gains.fold(0.0, f64::max), 1.0)
}

fn written_rate(sample: &CapacitySample) -> f64 {
    sample.written_bytes_per_second
}

/// The mean time of an operation.
fn latency(sample: &CapacitySample) -> f64 {
    sample.operation_mean_us
}

/// Commands that find their die busy with a retried read, in percent, mean over the life.
fn blocked(lives: &[&CapacityRecord]) -> f64 {
    100.0 * lives[0].mean(|sample| sample.blocked)
}

/// Requests that a retry delays, in percent, mean over the life.
fn delayed(lives: &[&CapacityRecord]) -> f64 {
    100.0 * lives[0].mean(|sample| sample.delayed)
}

/// Row 14: readings of what can be written while the drive is fast enough.
fn while_fast() -> Vec<CapacityNumber> {
    let life = |design| Job::Artifact.life(design, ZIPF_30);
    let at = |id: &str, life| number(id, [life], |lives| lives[0].written_bytes_at_80 / TB);
    let mut numbers = vec![
        at("zipf-30-tb-cvss-literal", life(Literal)),
        at("zipf-30-tb-cvss-required", CvssRun { is_required: true, ..life(Artifact) }),
    ];
    for (name, design) in [("trss", Traditional), ("autostream", AutoStream), ("cvss", Artifact)] {
        let id = format!("zipf-30-tb-{name}-for-good");
        numbers.push(number(&id, [life(design)], |lives| fast_for_good(lives[0]) / TB));
    }
    numbers
}

/// Writes until performance is below 0.8 of the first for good.
fn fast_for_good(life: &CapacityRecord) -> f64 {
    let last = life.samples.iter().rfind(|sample| sample.performance >= 0.8);
    last.map_or(0.0, |sample| sample.written_bytes)
}

/// Error rate in percent at which the sensitivity analysis retires superblocks where it varies something else. Source: [P] §5.5.4
const DEFAULT_PERCENT: u32 = 5;

/// Row 21: retries over each life, from the error rate, for each page that the host reads.
fn errors() -> Vec<CapacityNumber> {
    let with = |design: Design, bits| {
        let rate_percent = design.is_variable().then_some(DEFAULT_PERCENT);
        CvssRun { ecc_bits: Some(bits), rate_percent, ..Job::Artifact.life(design, ZIPF_30) }
    };
    let ratio = |lives: &[&CapacityRecord]| lives[0].retries_per_read / lives[1].retries_per_read;
    vec![
        number("retries-50", [with(Traditional, 50), with(Artifact, 50)], ratio),
        number("retries-90", [with(Traditional, 90), with(Artifact, 50)], ratio),
    ]
}

/// Row 22: the weights of equation 5.1.
fn weights() -> Vec<CapacityNumber> {
    let base = Job::Artifact.life(Literal, ZIPF_30);
    let heavy = |heavy| CvssRun { heavy: Some(heavy), ..base };
    let all = [base, heavy(Heavy::Invalid), heavy(Heavy::Age), heavy(Heavy::Reads)];
    vec![
        number("weights-invalid-amplification", all, |lives| claim(lives[1].amplification < lives[0].amplification)),
        number("weights-invalid-retries", all, |lives| {
            percent_above(lives[1].retries_per_read, lives[0].retries_per_read)
        }),
        number("weights-reads-retries", all, |lives| {
            claim(
                lives[3].retries_per_read < lives[0].retries_per_read
                    && lives[3].amplification > lives[0].amplification,
            )
        }),
        number("weights-age", all, |lives| {
            claim([0, 1, 3].into_iter().all(|other| lives[2].amplification > lives[other].amplification))
        }),
    ]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_drive_of_row_21_retires_at_the_default_rate() {
        for number in errors() {
            let rates: Vec<_> = number.runs.iter().map(|run| (run.design, run.ecc_bits, run.rate_percent)).collect();
            assert_eq!((rates[0].0, rates[0].2), (Traditional, None), "{}", number.id);
            assert_eq!(rates[1], (Artifact, Some(50), Some(5)), "{}", number.id);
        }
    }
}
