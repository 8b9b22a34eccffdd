//! The published figures: under which load each is measured, and which figure of which runs it is.

use super::runs::{Phase, StackRecord, StackRun};
use crate::stack::{Part, Stack};
use flashyard_describe::reproduce::Number;
use flashyard_describe::reproduce::percent_above;

/// A number made of runs.
type StackNumber = Number<StackRun, StackRecord>;

/// Depth of the greatest rates. Source: \[P\] sheet §4: up to 128; of several jobs, so 256 is \[A\].
const DEEP: u32 = 256;

/// Depth of requests of 128 KiB. Source: \[P\] sheet §4.
const SEQUENTIAL: u32 = 128;

const fn reads(stack: Stack, drives: u32, kib: u32, depth: u32) -> StackRun {
    StackRun::new(stack, drives, true, kib, depth)
}

const fn writes(stack: Stack, depth: u32) -> StackRun {
    StackRun::new(stack, 1, false, 4, depth)
}

/// Reads of 128 KiB through LATTE with so many hits in 100.
const fn rate_at(hits: u32) -> StackRun {
    reads(Stack::Latte, 1, 128, SEQUENTIAL).with_hits(hits)
}

/// Reads of 4 KiB of one job through LATTE with so many hits in 100.
const fn requests_at(hits: u32) -> StackRun {
    one_job(Stack::Latte).with_hits(hits)
}

/// Reads of 4 KiB of one job at the greatest depth. Source: \[P\] sheet §4.
const fn one_job(stack: Stack) -> StackRun {
    reads(stack, 1, 4, 128).of_one_job()
}

fn thousands(record: &StackRecord) -> f64 {
    record.thousand_per_second
}

fn gigabytes(record: &StackRecord) -> f64 {
    record.gigabytes_per_second
}

fn mean(record: &StackRecord) -> f64 {
    record.mean_us
}

fn p999(record: &StackRecord) -> f64 {
    record.percentiles_us[1]
}

/// A figure of a run.
type Figure = fn(&StackRecord) -> f64;

/// Figures of one run, by their ids among the expectations.
const SINGLE: &[(&str, StackRun, Figure)] = &[
    ("kernel-one-drive", reads(Stack::Kernel, 1, 4, DEEP), thousands),
    ("kernel-eight-drives", reads(Stack::Kernel, 8, 4, DEEP), thousands),
    ("espresso-one-drive", reads(Stack::Espresso, 1, 4, DEEP), thousands),
    ("espresso-eight-drives", reads(Stack::Espresso, 8, 4, DEEP), thousands),
    ("doppio-one-drive", reads(Stack::Doppio, 1, 4, DEEP), thousands),
    ("doppio-eight-drives", reads(Stack::Doppio, 8, 4, DEEP), thousands),
    ("doppio-card", reads(Stack::Doppio, 2, 4, DEEP), thousands),
    ("ristretto-one-drive", reads(Stack::Ristretto, 1, 4, DEEP), thousands),
    ("ristretto-eight-drives", reads(Stack::Ristretto, 8, 4, DEEP), thousands),
    ("espresso-sequential-one-drive", reads(Stack::Espresso, 1, 128, SEQUENTIAL), gigabytes),
    ("espresso-sequential-eight-drives", reads(Stack::Espresso, 8, 128, SEQUENTIAL), gigabytes),
    ("doppio-sequential-one-drive", reads(Stack::Doppio, 1, 128, SEQUENTIAL), gigabytes),
    ("doppio-sequential-eight-drives", reads(Stack::Doppio, 8, 128, SEQUENTIAL), gigabytes),
    ("ristretto-sequential-one-drive", reads(Stack::Ristretto, 1, 128, SEQUENTIAL), gigabytes),
    ("ristretto-sequential-eight-drives", reads(Stack::Ristretto, 8, 128, SEQUENTIAL), gigabytes),
    ("espresso-steady-writes", writes(Stack::Espresso, 128).steady(), thousands),
    ("doppio-steady-writes", writes(Stack::Doppio, 128).steady(), thousands),
    ("ristretto-steady-writes", writes(Stack::Ristretto, 128).steady(), thousands),
    ("espresso-write-tail", writes(Stack::Espresso, 128).steady(), p999),
    ("doppio-write-tail", writes(Stack::Doppio, 128).steady(), p999),
    ("ristretto-write-tail", writes(Stack::Ristretto, 128).steady(), p999),
    ("physical-read-latency", reads(Stack::Physical, 1, 4, 1), mean),
    ("physical-write-latency", writes(Stack::Physical, 1), mean),
    ("ristretto-read-latency", reads(Stack::Ristretto, 1, 4, 1), mean),
    ("ristretto-write-latency", writes(Stack::Ristretto, 1), mean),
    ("ebsx-requests", reads(Stack::Ebsx, 1, 4, DEEP), thousands),
    ("ebsx-rate", reads(Stack::Ebsx, 1, 128, SEQUENTIAL), gigabytes),
    ("ristretto-single-job", one_job(Stack::Ristretto), thousands),
    ("ebsx-single-job", one_job(Stack::Ebsx), thousands),
    ("latte-single-job", requests_at(75), thousands),
    ("latte-read-rate", rate_at(75), gigabytes),
    ("latte-write-rate", StackRun::new(Stack::Latte, 1, false, 128, SEQUENTIAL), gigabytes),
    ("espresso-cores", reads(Stack::Espresso, 8, 4, DEEP), |record| record.host_cores),
];

pub(super) fn numbers() -> Vec<StackNumber> {
    let mut numbers: Vec<StackNumber> = SINGLE
        .iter()
        .map(|&(id, run, of)| Number::of(id, [run], move |records: &[&StackRecord]| of(records[0])))
        .collect();
    // Interrupts against polling, alone at depth 1.
    let alone = [reads(Stack::Espresso, 1, 4, 1), reads(Stack::EspressoM, 1, 4, 1)];
    for (id, part) in [("espresso-m-guest", Part::Guest), ("espresso-m-host", Part::Host)] {
        numbers.push(Number::of(id, alone, move |records: &[&StackRecord]| {
            percent_above(records[1].part_us(part), records[0].part_us(part))
        }));
    }
    let bandwidth = [reads(Stack::Doppio, 1, 128, SEQUENTIAL), reads(Stack::Physical, 1, 128, SEQUENTIAL)];
    numbers.push(Number::of("doppio-share-of-rate", bandwidth, |records: &[&StackRecord]| {
        100.0 * gigabytes(records[0]) / gigabytes(records[1])
    }));
    let of_gen3 = |stack| StackRun { gen3: true, ..reads(stack, 8, 4, DEEP) };
    let cores = [of_gen3(Stack::Espresso), of_gen3(Stack::Kernel)];
    numbers.push(Number::of("espresso-over-kernel", cores, |records: &[&StackRecord]| {
        thousands(records[0]) / thousands(records[1])
    }));
    // The slowest at depth 8, as a factor over the slowest local stack.
    let local = [Stack::Ebs, Stack::Espresso, Stack::Doppio, Stack::Ristretto].map(|stack| reads(stack, 1, 4, 8));
    numbers.push(Number::of("ebs-reads-slowest", local, |records: &[&StackRecord]| {
        mean(records[0]) / records[1..].iter().map(|record| mean(record)).fold(0.0, f64::max)
    }));
    numbers.extend(latte());
    numbers
}

/// Figures of two runs, the first over the second, by their ids among the expectations.
const RATIOS: &[(&str, StackRun, StackRun, Figure)] = &[
    ("latte-rate-over-ristretto-at-25", rate_at(25), reads(Stack::Ristretto, 1, 128, SEQUENTIAL), gigabytes),
    ("latte-rate-over-ristretto-at-50", rate_at(50), reads(Stack::Ristretto, 1, 128, SEQUENTIAL), gigabytes),
    ("latte-rate-over-ebsx-at-50", rate_at(50), reads(Stack::Ebsx, 1, 128, SEQUENTIAL), gigabytes),
    ("latte-rate-at-100-over-75", rate_at(100), rate_at(75), gigabytes),
    ("latte-requests-over-ristretto-at-50", requests_at(50), one_job(Stack::Ristretto), thousands),
    ("latte-requests-over-ristretto-at-75", requests_at(75), one_job(Stack::Ristretto), thousands),
    ("latte-requests-at-100-over-75", requests_at(100), requests_at(75), thousands),
    ("latte-read-latency-over-ebsx", reads(Stack::Latte, 1, 4, 8), reads(Stack::Ebsx, 1, 4, 8), mean),
    ("latte-read-tail-over-ristretto", reads(Stack::Latte, 1, 4, 8), reads(Stack::Ristretto, 1, 4, 8), p999),
];

/// A recorded database on a stack.
pub(super) const fn database(stack: Stack, phase: Phase) -> StackRun {
    StackRun { database: Some(phase), ..StackRun::new(stack, 1, true, 4, 1) }
}

/// Rates of a database on two stacks, the first over the second.
fn databases() -> Vec<StackNumber> {
    let ratio = |id, phase, above, below| {
        Number::of(id, [database(above, phase), database(below, phase)], |records: &[&StackRecord]| {
            thousands(records[0]) / thousands(records[1])
        })
    };
    let time = |id, below| {
        let runs = [database(below, Phase::ReadOnly), database(Stack::Ristretto, Phase::ReadOnly)];
        Number::of(id, runs, |records: &[&StackRecord]| percent_above(thousands(records[0]), thousands(records[1])))
    };
    vec![
        ratio("database-ristretto-over-doppio", Phase::ReadOnly, Stack::Ristretto, Stack::Doppio),
        ratio("database-ristretto-over-espresso", Phase::ReadOnly, Stack::Ristretto, Stack::Espresso),
        time("database-ristretto-over-doppio-time", Stack::Doppio),
        time("database-ristretto-over-espresso-time", Stack::Espresso),
        ratio("database-latte-over-ebsx-reads", Phase::ReadOnly, Stack::Latte, Stack::Ebsx),
        ratio("database-latte-over-ebsx-writes", Phase::WriteOnly, Stack::Latte, Stack::Ebsx),
        ratio("database-latte-over-ebsx-mixed", Phase::Mixed, Stack::Latte, Stack::Ebsx),
        ratio("database-latte-over-ristretto-writes", Phase::WriteOnly, Stack::Latte, Stack::Ristretto),
    ]
}

/// A part of the step of load.
const fn part(number: u32) -> StackRun {
    StackRun { part: Some(number), ..StackRun::new(Stack::Latte, 1, false, 4, 1) }
}

/// Numbers of LATTE that are made of several runs.
fn latte() -> Vec<StackNumber> {
    let ratio = |&(id, above, below, of): &(&'static str, StackRun, StackRun, Figure)| {
        Number::of(id, [above, below], move |records: &[&StackRecord]| of(records[0]) / of(records[1]))
    };
    let mut numbers: Vec<StackNumber> = RATIOS.iter().map(ratio).collect();
    // Its writes against the least of all others, of one job as the source's. [P] sheet §4
    let all = [Stack::Latte, Stack::Espresso, Stack::Doppio, Stack::Ristretto, Stack::Ebs, Stack::Ebsx];
    numbers.push(Number::of(
        "latte-writes-lowest",
        all.map(|stack| writes(stack, 128).steady().of_one_job()),
        |records: &[&StackRecord]| {
            mean(records[0]) / records[1..].iter().map(|record| mean(record)).fold(f64::INFINITY, f64::min)
        },
    ));
    let depths = [8, 16, 32, 64, 128].map(|depth| writes(Stack::Latte, depth));
    numbers.push(Number::of("latte-right-choices", depths, |records: &[&StackRecord]| {
        let right = || records.iter().filter_map(|record| record.right_percent);
        right().sum::<f64>() / right().count() as f64
    }));
    for (id, parts) in [("latte-first-training", [part(1), part(0)]), ("latte-second-training", [part(3), part(2)])] {
        numbers.push(Number::of(id, parts, |records: &[&StackRecord]| mean(records[0]) / mean(records[1])));
    }
    numbers.extend(databases());
    numbers.push(Number::of("latte-price", [one_job(Stack::Latte)], |records: &[&StackRecord]| {
        records[0].price.unwrap_or(f64::NAN)
    }));
    let most = Stack::Latte.table().price.expect("the source has one");
    numbers.push(Number::of("latte-price-most", [one_job(Stack::Latte)], move |_: &[&StackRecord]| most.at(1e6)));
    let launch = [reads(Stack::Ristretto, 1, 4, DEEP), StackRun { gen3: true, ..reads(Stack::Doppio, 1, 4, DEEP) }];
    numbers.push(Number::of("ristretto-over-doppio-at-launch", launch, |records: &[&StackRecord]| {
        percent_above(thousands(records[0]), thousands(records[1]))
    }));
    let alone = [Stack::Physical, Stack::Kernel, Stack::Espresso].map(|stack| reads(stack, 1, 4, 1));
    numbers.push(Number::of("espresso-overhead", alone, |records: &[&StackRecord]| {
        let added = |record: &StackRecord| mean(record) - mean(records[0]);
        percent_above(added(records[2]), added(records[1]))
    }));
    let cores = [Stack::Ristretto, Stack::Espresso].map(|stack| reads(stack, 8, 4, DEEP));
    numbers.push(Number::of("ristretto-over-espresso-per-core", cores, |records: &[&StackRecord]| {
        percent_above(thousands(records[0]), thousands(records[1]))
    }));
    numbers
}
