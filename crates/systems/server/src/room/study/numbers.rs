//! The published figures: under which load each is measured, and which figure of which runs it is.

use super::runs::{StackRecord, StackRun, State};
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
    StackRun { stack, drives, reads: true, kib, depth, state: State::Filled }
}

const fn writes(stack: Stack, depth: u32, state: State) -> StackRun {
    StackRun { stack, drives: 1, reads: false, kib: 4, depth, state }
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
    ("espresso-steady-writes", writes(Stack::Espresso, 128, State::Steady), thousands),
    ("doppio-steady-writes", writes(Stack::Doppio, 128, State::Steady), thousands),
    ("ristretto-steady-writes", writes(Stack::Ristretto, 128, State::Steady), thousands),
    ("espresso-write-tail", writes(Stack::Espresso, 128, State::Steady), p999),
    ("doppio-write-tail", writes(Stack::Doppio, 128, State::Steady), p999),
    ("ristretto-write-tail", writes(Stack::Ristretto, 128, State::Steady), p999),
    ("physical-read-latency", reads(Stack::Physical, 1, 4, 1), mean),
    ("physical-write-latency", writes(Stack::Physical, 1, State::Filled), mean),
    ("ristretto-read-latency", reads(Stack::Ristretto, 1, 4, 1), mean),
    ("ristretto-write-latency", writes(Stack::Ristretto, 1, State::Filled), mean),
    ("ebsx-requests", reads(Stack::Ebsx, 1, 4, DEEP), thousands),
    ("ebsx-rate", reads(Stack::Ebsx, 1, 128, SEQUENTIAL), gigabytes),
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
    let cores = [reads(Stack::Espresso, 8, 4, DEEP), reads(Stack::Kernel, 8, 4, DEEP)];
    numbers.push(Number::of("espresso-over-kernel", cores, |records: &[&StackRecord]| {
        thousands(records[0]) / thousands(records[1])
    }));
    // The slowest at depth 8, as a factor over the slowest local stack.
    let local = [Stack::Ebs, Stack::Espresso, Stack::Doppio, Stack::Ristretto].map(|stack| reads(stack, 1, 4, 8));
    numbers.push(Number::of("ebs-reads-slowest", local, |records: &[&StackRecord]| {
        mean(records[0]) / records[1..].iter().map(|record| mean(record)).fold(0.0, f64::max)
    }));
    numbers
}
