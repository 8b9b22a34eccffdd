//! The published numbers and what each is made of.

use super::runs::{ExpandNumber, ExpandRecord, ExpandRun, Media, PLAIN, Point, PointRecord, of};
use crate::design::Design;
use flashyard_describe::reproduce::{Number, claim, percent_above};
use flashyard_prefetch::TransformerShape;

/// Kernels over a graph.
pub(super) const GRAPH: [&str; 4] = ["cc", "pr", "sssp", "tc"];
/// Programs of SPEC.
pub(super) const SPEC: [&str; 5] = ["bwaves", "leslie3d", "lbm", "libquantum", "mcf"];
/// Those of them that are regular.
const REGULAR: [&str; 4] = ["bwaves", "leslie3d", "lbm", "libquantum"];
/// All nine.
pub(super) const NINE: [&str; 9] = ["cc", "pr", "sssp", "tc", "bwaves", "leslie3d", "lbm", "libquantum", "mcf"];

/// Lines that a program must prefetch for its accuracy to count.
const FEW: u64 = 100;

/// A figure of the records of a program, in the order of designs.
type OfProgram = fn(&[&ExpandRecord]) -> f64;

/// Folds a figure over programs.
fn over(
    id: &str,
    programs: &[&'static str],
    designs: &[Design],
    figure: OfProgram,
    fold: fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> ExpandNumber {
    let runs: Vec<ExpandRun> =
        programs.iter().flat_map(|&program| designs.iter().map(move |&design| of(program, design))).collect();
    let count = designs.len();
    Number::of(id, runs, move |records: &[&ExpandRecord]| fold(&mut records.chunks_exact(count).map(figure)))
}

fn mean(values: &mut dyn Iterator<Item = f64>) -> f64 {
    let (sum, count) =
        values.filter(|value| value.is_finite()).fold((0.0, 0.0), |sum, value| (sum.0 + value, sum.1 + 1.0));
    sum / count
}

fn largest(values: &mut dyn Iterator<Item = f64>) -> f64 {
    values.fold(f64::MIN, f64::max)
}

fn least(values: &mut dyn Iterator<Item = f64>) -> f64 {
    values.fold(f64::MAX, f64::min)
}

/// How many times as long the first design takes as the second.
fn times(records: &[&ExpandRecord]) -> f64 {
    records[0].seconds() / records[1].seconds()
}

/// How many times as long an instruction takes, of programs that run equally long beside each other: mean over these programs.
fn times_of_an_instruction(records: &[&ExpandRecord]) -> f64 {
    let of = |record: &ExpandRecord, instructions: &u64| record.seconds() / (*instructions).max(1) as f64;
    let [first, second] = [records[0], records[1]].map(|record| &record.at(PLAIN).instructions_of);
    let pairs = first.iter().zip(second);
    mean(&mut pairs.map(|(here, there)| of(records[0], here) / of(records[1], there)))
}

/// All numbers of the study.
pub(super) fn numbers() -> Vec<ExpandNumber> {
    let mut numbers = of_oracle();
    numbers.extend(of_prefetchers());
    numbers.extend(of_expand());
    numbers.extend(of_time());
    numbers.extend(of_dram());
    numbers.extend(of_levels());
    numbers.extend(of_tables());
    numbers
}

fn effective(record: &ExpandRecord, percent: u32) -> f64 {
    record.at(PLAIN.effective(percent)).seconds
}

/// How many times as long an oracle of 90 % takes behind four switches that it does not know as behind none.
fn unaware(records: &[&ExpandRecord]) -> f64 {
    records[0].at(PLAIN.effective(90).behind(4).unaware()).seconds / effective(records[0], 90)
}

fn fourth_root(number: f64) -> f64 {
    number.sqrt().sqrt()
}

fn of_oracle() -> Vec<ExpandNumber> {
    let knee: Vec<ExpandRun> =
        GRAPH.iter().flat_map(|&program| [of(program, Design::Oracle), of(program, Design::Dram)]).collect();
    vec![
        over(
            "effectiveness-75",
            &GRAPH,
            &[Design::Oracle, Design::Dram],
            |of| effective(of[0], 75) / of[1].seconds(),
            largest,
        ),
        Number::of("effectiveness-knee", knee, |records: &[&ExpandRecord]| {
            // Times are normalized program by program: the longest one would decide otherwise.
            let normal = |pair: &[&ExpandRecord], percent| effective(pair[0], percent) / pair[1].seconds();
            let sum = |percent| records.chunks_exact(2).map(|pair| normal(pair, percent)).sum::<f64>();
            claim(sum(90) - sum(100) > sum(80) - sum(90))
        }),
        over(
            "effectiveness-100",
            &GRAPH,
            &[Design::Dram, Design::Oracle],
            |of| of[0].seconds() / effective(of[1], 100),
            largest,
        ),
        over("unaware-four", &GRAPH, &[Design::Oracle], unaware, mean),
        over("unaware-slope", &["cc", "pr", "tc"], &[Design::Oracle], |of| fourth_root(unaware(of)), mean),
        over("unaware-slope-sssp", &["sssp"], &[Design::Oracle], |of| fourth_root(unaware(of)), mean),
    ]
}

/// Percentage of fetched lines that were used; no number where few were fetched.
fn accuracy(records: &[&ExpandRecord]) -> f64 {
    let point = records[0].at(PLAIN);
    point.accuracy.filter(|_| point.fetched >= FEW).map_or(f64::NAN, |share| 100.0 * share)
}

fn of_prefetchers() -> Vec<ExpandNumber> {
    let accuracies = [
        ("accuracy-best-offset", Design::BestOffset),
        ("accuracy-isb", Design::Isb),
        ("accuracy-lstm", Design::Lstm),
        ("accuracy-attention", Design::Attention),
        ("accuracy-expand", Design::Expand),
    ];
    let mut numbers: Vec<ExpandNumber> =
        accuracies.into_iter().map(|(id, design)| over(id, &NINE, &[design], accuracy, mean)).collect();
    let better = [Design::CxlSsd, Design::BestOffset, Design::Isb];
    let of_better: OfProgram = |of| of[0].seconds() / of[1].seconds().min(of[2].seconds());
    let networks = [Design::Lstm, Design::Attention];
    let rules = [Design::BestOffset, Design::Isb, Design::Lstm, Design::Attention];
    numbers.extend([
        over("rule1-graph", &GRAPH, &[Design::CxlSsd, Design::BestOffset], times, mean),
        over("rule1-over-rule2", &GRAPH, &[Design::Isb, Design::BestOffset], times, mean),
        over("rules-regular", &REGULAR, &better, of_better, mean),
        over("rules-mcf", &["mcf"], &better, of_better, mean),
        over(
            "ml-over-rules",
            &NINE,
            &rules,
            |of| (of[0].seconds() + of[1].seconds()) / (of[2].seconds() + of[3].seconds()),
            mean,
        ),
        over(
            "ml-speed",
            &NINE,
            &[Design::CxlSsd, networks[0], networks[1]],
            |of| 2.0 * of[0].seconds() / (of[1].seconds() + of[2].seconds()),
            mean,
        ),
        over(
            "expand-over-ml",
            &NINE,
            &[networks[0], networks[1], Design::Expand],
            |of| (of[0].seconds() + of[1].seconds()) / 2.0 / of[2].seconds(),
            mean,
        ),
    ]);
    let mixed = [
        ("mixed-best-offset", Design::BestOffset),
        ("mixed-isb", Design::Isb),
        ("mixed-lstm", Design::Lstm),
        ("mixed-attention", Design::Attention),
    ];
    numbers.extend(
        mixed
            .into_iter()
            .map(|(id, design)| over(id, &["mixed"], &[design, Design::Expand], times_of_an_instruction, mean)),
    );
    numbers
}

fn of_expand() -> Vec<ExpandNumber> {
    let speed = [Design::CxlSsd, Design::Expand];
    let percent = |share: Option<f64>| share.map_or(f64::NAN, |share| 100.0 * share);
    let timely: Vec<ExpandRun> = NINE.iter().map(|&program| of(program, Design::Expand)).collect();
    vec![
        over("graph-speed", &GRAPH, &speed, times, mean),
        over("spec-speed", &SPEC, &speed, times, mean),
        over("expand-least", &NINE, &speed, times, least),
        over("expand-most", &NINE, &speed, times, largest),
        Number::of("timeliness", timely, move |records: &[&ExpandRecord]| {
            mean(&mut records.iter().map(|record| percent(record.at(PLAIN).timeliness)))
        }),
        over("graph-hits", &GRAPH, &[Design::Expand], |of| 100.0 * of[0].at(PLAIN).hits, mean),
        over("hits-most", &NINE, &[Design::Expand], |of| 100.0 * of[0].at(PLAIN).hits, largest),
        over("hits-gain", &NINE, &speed, |of| 100.0 * (of[1].at(PLAIN).hits - of[0].at(PLAIN).hits), mean),
    ]
}

fn of_time() -> Vec<ExpandNumber> {
    let tc = [of("tc", Design::Expand)];
    let spoiled = |record: &ExpandRecord, percent| record.at(PLAIN.spoiled(percent)).seconds;
    let change = of("sssp", Design::Expand).followed_by("tc");
    vec![
        Number::of("timeliness-saturates", tc, move |records: &[&ExpandRecord]| {
            spoiled(records[0], 16) / spoiled(records[0], 0)
        }),
        Number::of("timeliness-knee", tc, move |records: &[&ExpandRecord]| {
            let gain = |from, to| spoiled(records[0], from) - spoiled(records[0], to);
            claim(gain(48, 32) > gain(16, 0))
        }),
        over(
            "interval-stable",
            &["tc"],
            &[Design::CxlSsd],
            |of| {
                let [first, ninth] = of[0].at(PLAIN).interval_ns;
                ninth / first
            },
            mean,
        ),
        Number::of("tuning", [change, change.with_events(false)], |records: &[&ExpandRecord]| {
            claim(records[0].seconds() < records[1].seconds())
        }),
    ]
}

fn of_dram() -> Vec<ExpandNumber> {
    let pair = [Design::Dram, Design::Expand];
    let on_dram: OfProgram = |of| of[0].seconds() / of[1].at(PLAIN.on(Media::Dram)).seconds;
    vec![
        over("graph-dram", &GRAPH, &pair, times, mean),
        over("leslie3d-dram", &["leslie3d"], &pair, times, mean),
        over("libquantum-dram", &["libquantum"], &pair, times, mean),
        over("lbm-dram", &["lbm"], &pair, times, mean),
        over("lbm-dram-backend", &["lbm"], &pair, times, mean),
        over(
            "z-over-p",
            &NINE,
            &[Design::Expand],
            |of| of[0].at(PLAIN).seconds / of[0].at(PLAIN.on(Media::Pmem)).seconds,
            mean,
        ),
        over("d-dram", &NINE, &pair, on_dram, mean),
        over("d-dram-least", &NINE, &pair, on_dram, least),
        over("d-dram-most", &NINE, &pair, on_dram, largest),
    ]
}

/// Media with the letters that the source has for them.
const MEDIA: [(&str, Media); 3] = [("z", Media::Flash), ("p", Media::Pmem), ("d", Media::Dram)];

fn seconds(record: &ExpandRecord, point: Point) -> f64 {
    record.at(point).seconds
}

fn of_levels() -> Vec<ExpandNumber> {
    let mut numbers = vec![
        over(
            "levels-graph",
            &GRAPH,
            &[Design::Expand],
            |of| {
                let of_level = |switches| seconds(of[0], PLAIN.behind(switches)) / seconds(of[0], PLAIN);
                mean(&mut (1..=4).map(of_level))
            },
            mean,
        ),
        Number::of("libquantum-levels", [of("libquantum", Design::Expand)], |records: &[&ExpandRecord]| {
            claim(MEDIA.into_iter().all(|(_, media)| {
                let point = PLAIN.on(media);
                seconds(records[0], point.behind(4)) >= 1.2 * seconds(records[0], point)
            }))
        }),
    ];
    for (letter, media) in MEDIA {
        let tc = [of("tc", Design::Expand)];
        let point = PLAIN.on(media);
        numbers.push(Number::of(format!("tc-{letter}-first"), tc, move |records: &[&ExpandRecord]| {
            percent_above(seconds(records[0], point.behind(1)), seconds(records[0], point))
        }));
        numbers.push(Number::of(format!("tc-{letter}-further"), tc, move |records: &[&ExpandRecord]| {
            let three = seconds(records[0], point.behind(4)) / seconds(records[0], point.behind(1));
            percent_above(libm::cbrt(three), 1.0)
        }));
    }
    numbers
}

fn of_tables() -> Vec<ExpandNumber> {
    let published = TransformerShape::PUBLISHED;
    let misses = |record: &PointRecord| record.misses_per_thousand;
    let mut numbers = vec![
        Number::closed("network-bytes", published.bytes() as f64 / 1e3),
        Number::closed("network-operations", published.operations_of_a_window() as f64 / 1e6),
    ];
    let programs = [("misses-pr", "pr"), ("misses-sssp", "sssp"), ("misses-tc", "tc"), ("misses-mcf", "mcf")];
    numbers.extend(programs.into_iter().map(|(id, program)| {
        Number::of(id, [of(program, Design::CxlSsd)], move |records: &[&ExpandRecord]| misses(records[0].at(PLAIN)))
    }));
    numbers
}
