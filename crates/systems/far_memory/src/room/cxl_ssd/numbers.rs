//! The published numbers and what each is made of.

use super::runs::{CxlNumber, CxlRecord, CxlRun, Deterministic, of};
use crate::design::Design::{self, CxlAssd, CxlDram, CxlSsd, Dram, PcieSsd};
use crate::room::section::MemorySection;
use flashyard_describe::reproduce::{Number, claim, percent_above};

/// Programs of table 2 that miss much. [P] more than 1.2 misses in a thousand instructions
pub(super) const HIGH: [&str; 8] = ["gcc", "gobmk", "cactus", "milc", "bzip2", "lbm", "sjeng", "namd"];

/// Programs of table 2 that miss little.
pub(super) const LOW: [&str; 10] =
    ["hmmer", "leslie3d", "quantum", "aes", "astar", "sha512", "calculix", "povray", "tonto", "bwaves"];

/// All programs of table 2.
pub(super) fn all() -> Vec<&'static str> {
    HIGH.iter().chain(&LOW).copied().collect()
}

/// The mean over `programs` of a figure of the runs `first` and `second` of each.
fn mean_of(
    id: &str,
    programs: &[&'static str],
    first: impl Fn(&'static str) -> CxlRun,
    second: impl Fn(&'static str) -> CxlRun,
    figure: fn(&CxlRecord, &CxlRecord) -> f64,
) -> CxlNumber {
    let runs: Vec<CxlRun> = programs.iter().flat_map(|&program| [first(program), second(program)]).collect();
    Number::of(id, runs, move |records: &[&CxlRecord]| {
        let pairs = records.chunks_exact(2);
        let count = pairs.len() as f64;
        pairs.map(|pair| figure(pair[0], pair[1])).sum::<f64>() / count
    })
}

/// How many times as long the first run takes.
fn times(first: &CxlRecord, second: &CxlRecord) -> f64 {
    first.seconds() / second.seconds()
}

/// By how many percent the first run has more requests.
fn more_requests(first: &CxlRecord, second: &CxlRecord) -> f64 {
    percent_above(first.first().requests as f64, second.first().requests as f64)
}

fn on(design: Design) -> impl Fn(&'static str) -> CxlRun {
    move |program| of(program, design)
}

fn cached(design: Design) -> impl Fn(&'static str) -> CxlRun {
    move |program| of(program, design).cached()
}

/// CXL-SSD with so many percent of functions and requests annotated.
fn annotated(functions: u32, requests: u32) -> impl Fn(&'static str) -> CxlRun {
    move |program| of(program, CxlAssd).annotated(functions, requests)
}

/// STREAM by threads.
pub(super) const fn stream(design: Design, threads: u32) -> CxlRun {
    of("add", design).annotated(75, 75).with_threads(threads)
}

/// Threads of which the best counts as "few". [A]
pub(super) const FEW: [u32; 4] = [1, 2, 4, 8];

/// The phases of the time series. Collection is due when they begin: the source's series shows what it does.
pub(super) const fn series(design: Design) -> CxlRun {
    CxlRun {
        then: Some("cactus-stores"),
        functions: 0,
        deterministic: Deterministic::Loads,
        due: true,
        ..of("cactus-loads", design)
    }
}

fn of_pair(id: &str, first: CxlRun, second: CxlRun, figure: fn(&CxlRecord, &CxlRecord) -> f64) -> CxlNumber {
    Number::of(id, [first, second], move |records: &[&CxlRecord]| figure(records[0], records[1]))
}

/// All numbers of the study; `memory` is the section of its scenario.
pub(super) fn numbers(memory: &MemorySection) -> Vec<CxlNumber> {
    let mut numbers = of_programs();
    numbers.extend(of_all_data());
    numbers.extend(of_annotations());
    numbers.extend(of_prototype());
    numbers.extend(of_stream());
    numbers.push(Number::closed("hot-functions", 100.0 * memory.share_of_hot_functions("gcc")));
    numbers
}

fn of_programs() -> Vec<CxlNumber> {
    let all = all();
    let difference = Number::of(
        "class-order",
        all.iter().flat_map(|&program| [of(program, PcieSsd), of(program, CxlSsd)]).collect::<Vec<_>>(),
        |records: &[&CxlRecord]| {
            let mean = |pairs: &[&CxlRecord]| {
                let pairs = pairs.chunks_exact(2);
                let count = pairs.len() as f64;
                pairs.map(|pair| times(pair[0], pair[1])).sum::<f64>() / count
            };
            let (high, low) = records.split_at(2 * HIGH.len());
            claim(mean(low) > mean(high))
        },
    );
    vec![
        mean_of("cxl-over-pcie", &all, on(PcieSsd), on(CxlSsd), times),
        mean_of("cxl-over-pcie-cached", &all, cached(PcieSsd), cached(CxlSsd), times),
        mean_of("assd-over-cxl", &all, on(CxlSsd), on(CxlAssd), times),
        mean_of("assd-over-cxl-cached", &all, cached(CxlSsd), cached(CxlAssd), times),
        mean_of("pcie-over-dram", &all, on(PcieSsd), on(Dram), times),
        mean_of("accesses", &all, on(CxlSsd), on(PcieSsd), more_requests),
        mean_of("accesses-low", &LOW, on(CxlSsd), on(PcieSsd), more_requests),
        mean_of("cxl-over-pcie-low", &LOW, on(PcieSsd), on(CxlSsd), times),
        mean_of("accesses-high", &HIGH, on(CxlSsd), on(PcieSsd), more_requests),
        mean_of("cxl-over-pcie-high", &HIGH, on(PcieSsd), on(CxlSsd), times),
        difference,
        mean_of("accesses-annotated", &all, on(CxlAssd), on(CxlSsd), |first, second| {
            first.first().requests as f64 / second.first().requests as f64
        }),
        mean_of("cxl-dram", &all, on(CxlDram), on(Dram), times),
    ]
}

/// The reading in which all data of a program lies on the device.
fn of_all_data() -> Vec<CxlNumber> {
    let all = all();
    let data = |design: Design| move |program| of(program, design).with_all_data();
    let quarter = |program| of(program, CxlAssd).annotated(25, 25).with_all_data();
    let longer = |first: &CxlRecord, second: &CxlRecord| percent_above(first.seconds(), second.seconds());
    vec![
        mean_of("cxl-over-pcie-all", &all, data(PcieSsd), data(CxlSsd), times),
        mean_of("assd-over-cxl-all", &all, data(CxlSsd), data(CxlAssd), times),
        mean_of("pcie-over-dram-all", &all, data(PcieSsd), data(Dram), times),
        mean_of("accesses-all", &all, data(CxlSsd), data(PcieSsd), more_requests),
        mean_of("accesses-low-all", &LOW, data(CxlSsd), data(PcieSsd), more_requests),
        mean_of("cxl-over-pcie-low-all", &LOW, data(PcieSsd), data(CxlSsd), times),
        mean_of("accesses-high-all", &HIGH, data(CxlSsd), data(PcieSsd), more_requests),
        mean_of("cxl-over-pcie-high-all", &HIGH, data(PcieSsd), data(CxlSsd), times),
        mean_of("quarter-annotated-all", &all, quarter, data(CxlSsd), longer),
    ]
}

fn of_annotations() -> Vec<CxlNumber> {
    let all = all();
    let longer = |first: &CxlRecord, second: &CxlRecord| percent_above(first.seconds(), second.seconds());
    let quarter = |program| of(program, CxlAssd).annotated(25, 25).cached();
    let kinds: Vec<CxlRun> =
        all.iter().flat_map(|&program| [annotated(100, 0)(program), annotated(0, 100)(program)]).collect();
    vec![
        mean_of("quarter-annotated", &all, annotated(25, 25), on(CxlSsd), longer),
        mean_of("quarter-annotated-cached", &all, quarter, cached(CxlSsd), longer),
        Number::of("bufferable-gives-mean", kinds, |records: &[&CxlRecord]| {
            // Both are held against the same runs: the faster one gains more.
            let sum =
                |offset: usize| records.iter().skip(offset).step_by(2).map(|record| record.seconds()).sum::<f64>();
            claim(sum(0) < sum(1))
        }),
        of_pair(
            "deterministic-cuts-tails",
            annotated(0, 100)("cactus").with_collection_due(),
            of("cactus", CxlSsd).with_collection_due(),
            |first, second| first.longest_ms(0) / second.longest_ms(0),
        ),
        Number::of("series-spikes", [series(CxlSsd)], |records: &[&CxlRecord]| records[0].longest_ms(0)),
        Number::of("series-loads", [series(CxlAssd)], |records: &[&CxlRecord]| records[0].longest_ms(0)),
        Number::of("series-stores", [series(CxlAssd)], |records: &[&CxlRecord]| records[0].longest_ms(1)),
    ]
}

fn of_prototype() -> Vec<CxlNumber> {
    let prototype = |program, design| of(program, design).on_prototype();
    vec![
        of_pair("prototype-local-pcie", prototype("apex-local", PcieSsd), prototype("apex-local", CxlSsd), times),
        of_pair("prototype-local-dram", prototype("apex-local", CxlSsd), prototype("apex-local", Dram), times),
        of_pair("prototype-random-dram", prototype("apex-random", CxlSsd), prototype("apex-random", Dram), times),
        of_pair("prototype-random-pcie", prototype("apex-random", PcieSsd), prototype("apex-random", CxlSsd), times),
    ]
}

/// The best gain by annotation of pairs of runs.
fn best(records: &[&CxlRecord]) -> f64 {
    records.chunks_exact(2).map(|pair| times(pair[0], pair[1])).fold(0.0, f64::max)
}

fn of_stream() -> Vec<CxlNumber> {
    let pair = |threads: u32| [stream(CxlSsd, threads), stream(CxlAssd, threads)];
    let few: Vec<CxlRun> = FEW.into_iter().flat_map(pair).collect();
    let both: Vec<CxlRun> = few.iter().copied().chain(pair(64)).collect();
    vec![
        Number::of("stream-few", few, best),
        of_pair("stream-many", stream(CxlSsd, 64), stream(CxlAssd, 64), times),
        of_pair("stream-dram", stream(CxlAssd, 64), stream(CxlDram, 64), times),
        Number::of("stream-order", both, |records: &[&CxlRecord]| {
            let (few, many) = records.split_at(2 * FEW.len());
            claim(best(many) < best(few))
        }),
    ]
}
