//! The study as charts: rates and latencies of each stack along the depth.

use super::runs::{StackRecord, StackRun, State};
use crate::stack::Stack;
use flashyard_report::{ChartAxis, ChartPanel, ChartSection, Comparison, factor_chart};
use flashyard_units::Named;

/// Depths that are drawn. Source: \[P\] sheet §4: 8 to 128.
const DEPTHS: [u32; 5] = [8, 16, 32, 64, 128];

/// Reads of 4 KiB by each stack along the depth.
pub(super) fn drawn() -> Vec<StackRun> {
    let run = |stack, depth| StackRun { stack, drives: 1, reads: true, kib: 4, depth, state: State::Filled };
    Stack::ALL.iter().flat_map(|&stack| DEPTHS.map(|depth| run(stack, depth))).collect()
}

pub(super) fn sections(records: &[(StackRun, StackRecord)], _: &[Comparison]) -> Vec<ChartSection> {
    let wanted = drawn();
    let curves = |figure: fn(&StackRecord) -> f64| -> Vec<(String, Vec<(f64, f64)>)> {
        let of = |stack: Stack| {
            let own = records.iter().filter(|(run, _)| run.stack == stack && wanted.contains(run));
            let mut points: Vec<(f64, f64)> = own.map(|(run, record)| (f64::from(run.depth), figure(record))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            (stack.name().to_owned(), points)
        };
        Stack::ALL.iter().map(|&stack| of(stack)).filter(|curve| curve.1.len() > 1).collect()
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
    vec![ChartSection::choice("depth", "What does each stack give at which depth?", finding, "", panels)]
}
