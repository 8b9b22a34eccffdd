//! The study as charts: rates and latencies of each stack along the depth.

use super::beyond;
use super::runs::{FixedRule, StackRecord, StackRun};
use crate::stack::Stack;
use flashyard_latte::dispatch::throughput;
use flashyard_report::{Chart, ChartAxis, ChartPanel, ChartSection, ChartSeries, Comparison, factor_chart};
use flashyard_units::Named;

/// Depths that are drawn. Source: \[P\] sheet §4: 8 to 128.
const DEPTHS: [u32; 5] = [8, 16, 32, 64, 128];

/// Shares of hits that are drawn, in percent. Source: \[P\] figures 16 and 17, and the published optimum between two of them.
const SHARES: [u32; 7] = [0, 25, 50, 63, 75, 90, 100];

/// LATTE with so many hits in 100: requests of one job, and bytes.
fn by_hits(hits: u32) -> [StackRun; 2] {
    let small = StackRun::new(Stack::Latte, 1, true, 4, 128).of_one_job();
    [small.with_hits(hits), StackRun::new(Stack::Latte, 1, true, 128, 128).with_hits(hits)]
}

/// Rules for writes; none is the learned one.
const RULES: [Option<FixedRule>; 4] = [None, Some(FixedRule::Shortest), Some(FixedRule::Split), Some(FixedRule::Front)];

/// Rates of a network volume that is throttled, in MB/s. Source: \[A\] halves of the class's.
const NETWORKS: [u64; 4] = [500, 1000, 2000, 4000];

/// Writes of 128 KiB through LATTE by a rule.
fn by_rule(rule: Option<FixedRule>, depth: u32, network_mb: Option<u64>) -> StackRun {
    StackRun { rule, network_mb, ..StackRun::new(Stack::Latte, 1, false, 128, depth) }
}

/// Reads of 4 KiB by each stack along the depth and alone, of LATTE along the share of hits, and its writes by rule.
pub(super) fn drawn() -> Vec<StackRun> {
    let run = |stack, depth| StackRun::new(stack, 1, true, 4, depth);
    let depths = Stack::LOCAL.iter().flat_map(|&stack| DEPTHS.map(|depth| run(stack, depth)));
    let hits = SHARES.iter().flat_map(|&hits| by_hits(hits));
    let rules = RULES.iter().flat_map(|&rule| {
        let depths = DEPTHS.map(|depth| by_rule(rule, depth, None));
        depths.into_iter().chain(NETWORKS.map(|rate| by_rule(rule, 128, Some(rate))))
    });
    let alone = Stack::LOCAL.iter().map(|&stack| StackRun::new(stack, 1, true, 4, 1));
    depths.chain(hits).chain(rules).chain(alone).chain(beyond::drawn()).collect()
}

pub(super) fn sections(records: &[(StackRun, StackRecord)], _: &[Comparison]) -> Vec<ChartSection> {
    let curves = |figure: fn(&StackRecord) -> f64| -> Vec<(String, Vec<(f64, f64)>)> {
        let of = |stack: Stack| {
            let is_own = |run: &StackRun| DEPTHS.iter().any(|&depth| *run == StackRun::new(stack, 1, true, 4, depth));
            let own = records.iter().filter(|(run, _)| is_own(run));
            let mut points: Vec<(f64, f64)> = own.map(|(run, record)| (f64::from(run.depth), figure(record))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            (stack.name().to_owned(), points)
        };
        Stack::LOCAL.iter().map(|&stack| of(stack)).filter(|curve| curve.1.len() > 1).collect()
    };
    let chart = |name: &str, axis: ChartAxis, figure: fn(&StackRecord) -> f64| {
        factor_chart(name, "requests in flight", axis, &curves(figure))
    };
    let charts = vec![
        chart("Requests", ChartAxis::new("rate", "1/s"), |record| 1e3 * record.thousand_per_second),
        chart("Latency, mean", ChartAxis::new("latency", "µs"), |record| record.mean_us),
        chart("Latency, p99.9", ChartAxis::new("latency", "µs"), |record| record.percentiles_us[1]),
    ];
    let finding = "Reads of 4 KiB at random from one virtual drive.".to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    let depth = ChartSection::choice("depth", "What does each stack give at which depth?", finding, "", panels);
    let mut sections = vec![depth, hits(records), rules(records), parts(records)];
    sections.extend(beyond::sections(records));
    sections
}

/// LATTE along the share of hits, beside the closed form of two servers.
fn hits(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let found = |place: usize, figure: fn(&StackRecord) -> f64| -> Vec<(f64, f64)> {
        let of = |hits: u32| {
            let record = &records.iter().find(|(run, _)| *run == by_hits(hits)[place])?.1;
            Some((f64::from(hits), figure(record)))
        };
        SHARES.iter().filter_map(|&hits| of(hits)).collect()
    };
    let network = Stack::Latte.table().network.expect("it has a network volume");
    let chart = |name: &str, axis: ChartAxis, place: usize, scale: f64, back: f64, figure: fn(&StackRecord) -> f64| {
        let measured: Vec<_> = found(place, figure).into_iter().map(|(hits, value)| (hits, scale * value)).collect();
        // When all hit, the front end gives all that it can.
        let front = measured.last().map_or(0.0, |point| point.1);
        let closed = |hits: u32| (f64::from(hits), throughput(front, back, f64::from(hits) / 100.0));
        let curves =
            [("measured".to_owned(), measured), ("min(F / h, B / (1 - h))".to_owned(), SHARES.map(closed).to_vec())];
        factor_chart(name, "hits, %", axis, &curves)
    };
    let charts = vec![
        chart("Bytes", ChartAxis::new("rate", "B/s"), 1, 1e9, 1e6 * network.bytes_per_us as f64, |record| {
            record.gigabytes_per_second
        }),
        chart("Requests", ChartAxis::new("rate", "1/s"), 0, 1e3, network.requests_per_second as f64, |record| {
            record.thousand_per_second
        }),
    ];
    let finding =
        "Reads through LATTE at depth 128, 128 KiB in sequence and 4 KiB of one job. The best share of hits is \
                   F / (F + B), and more hits are worse."
            .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("hits", "What does LATTE give at which share of hits?", finding, "", panels)
}

/// Writes by each rule along the depth, and at depth 128 along the rate of the network volume.
fn rules(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let curve = |rule: Option<FixedRule>, points: &[(f64, StackRun)]| {
        let found = |(at, wanted): &(f64, StackRun)| {
            let record = &records.iter().find(|(run, _)| run == wanted)?.1;
            Some((*at, 1e9 * record.gigabytes_per_second))
        };
        (rule.map_or("learned", FixedRule::name).to_owned(), points.iter().filter_map(found).collect())
    };
    let by_depth = RULES.map(|rule| curve(rule, &DEPTHS.map(|depth| (f64::from(depth), by_rule(rule, depth, None)))));
    let by_rate =
        RULES.map(|rule| curve(rule, &NETWORKS.map(|rate| (1e6 * rate as f64, by_rule(rule, 128, Some(rate))))));
    let axis = || ChartAxis::new("rate", "B/s");
    let charts = vec![
        factor_chart("Along the depth", "requests in flight", axis(), &by_depth),
        factor_chart("Network volume throttled, depth 128", "B/s of the network volume", axis(), &by_rate),
    ];
    let finding = "Writes of 128 KiB in sequence through LATTE. A split by rates knows both ends' rates beforehand: \
                   it gives the sum of both at every depth, which the learned rule comes close to at depth 128 only. A rule \
                   that learns is for latency: it leaves a light load to the drive."
        .to_owned();
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("rules", "Does LATTE's rule have to learn?", finding, "", panels)
}

/// Parts of a lone read by stack.
fn parts(records: &[(StackRun, StackRecord)]) -> ChartSection {
    let alone = |stack: Stack| {
        let wanted = StackRun::new(stack, 1, true, 4, 1);
        records.iter().find(|(run, _)| *run == wanted).map(|(_, record)| record)
    };
    let stacks: Vec<_> = Stack::LOCAL.iter().filter(|&&stack| alone(stack).is_some()).collect();
    let bar = |(part, name): (usize, &str)| {
        ChartSeries::of_categories(name, stacks.iter().map(|&&stack| alone(stack).map(|record| record.parts_us[part])))
    };
    let series = ["guest", "host", "card", "network"].into_iter().enumerate().map(bar).collect();
    let names = stacks.iter().map(|stack| stack.name().to_owned()).collect();
    let finding = "Mean time of a lone read of 4 KiB by part; the rest is the drive's.".to_owned();
    let charts = vec![Chart::bars("Parts", ChartAxis::new("time", "µs"), names, series)];
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("parts", "Where does a lone request spend its time?", finding, "", panels)
}
