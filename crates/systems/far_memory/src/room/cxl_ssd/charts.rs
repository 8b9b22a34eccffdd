//! The study as charts: times of all programs, gains by annotation, STREAM by threads.

use super::numbers::{self, FEW, stream};
use super::runs::{CxlRecord, CxlRun, of};
use crate::design::Design;
use flashyard_report::{Chart, ChartAxis, ChartSection, ChartSeries, Comparison};
use flashyard_units::Named;

type Runs = [(CxlRun, CxlRecord)];

pub(super) fn sections(runs: &Runs, _: &[Comparison]) -> Vec<ChartSection> {
    vec![programs(runs), threads(runs)]
}

fn seconds(runs: &Runs, run: CxlRun) -> Option<f64> {
    runs.iter().find(|entry| entry.0 == run).map(|entry| entry.1.seconds())
}

/// How many times as long one run takes as another one.
fn ratio(runs: &Runs, run: CxlRun, base: CxlRun) -> Option<f64> {
    Some(seconds(runs, run)? / seconds(runs, base)?)
}

fn programs(runs: &Runs) -> ChartSection {
    let all = numbers::all();
    let names: Vec<String> = all.iter().map(|&program| program.to_owned()).collect();
    let over_dram = |design: Design| {
        let values = all.iter().map(|&program| ratio(runs, of(program, design), of(program, Design::Dram)));
        ChartSeries::of_categories(design.name(), values.collect::<Vec<_>>())
    };
    let flash = [Design::CxlDram, Design::CxlSsd, Design::CxlAssd].map(over_dram);
    let device = |design: Design| {
        let share = |program| {
            runs.iter().find(|entry| entry.0 == of(program, design)).map(|entry| 100.0 * entry.1.first().device_hits)
        };
        ChartSeries::of_categories(design.name(), all.iter().map(|&program| share(program)).collect::<Vec<_>>())
    };
    let slower: Vec<f64> =
        all.iter().filter_map(|&program| ratio(runs, of(program, Design::CxlSsd), of(program, Design::Dram))).collect();
    let mean = slower.iter().sum::<f64>() / slower.len().max(1) as f64;
    let finding = format!("Flash behind CXL takes {mean:.1} times as long as DRAM on average, program by program.");
    let charts = vec![
        Chart::bars("Execution time", ChartAxis::new("times that of DRAM", ""), names.clone(), flash.into()),
        Chart::bars(
            "Requests that the internal DRAM answers",
            ChartAxis::new("share", "%"),
            names,
            [Design::PcieSsd, Design::CxlSsd, Design::CxlAssd].map(device).into(),
        ),
    ];
    ChartSection::of("programs", "How far is flash from DRAM?", finding, charts)
}

fn threads(runs: &Runs) -> ChartSection {
    let counts: Vec<u32> = FEW.into_iter().chain([64]).collect();
    let names = counts.iter().map(|threads| threads.to_string()).collect();
    let gain = |threads: &u32| ratio(runs, stream(Design::CxlSsd, *threads), stream(Design::CxlAssd, *threads));
    let gains: Vec<Option<f64>> = counts.iter().map(gain).collect();
    let best = gains.iter().flatten().copied().fold(0.0, f64::max);
    let finding = format!("Annotation of three quarters makes STREAM at most {best:.1} times as fast.");
    let series = vec![ChartSeries::of_categories("annotated", gains)];
    let axis = ChartAxis::new("times that of CXL-SSD", "");
    ChartSection::of(
        "threads",
        "How much does annotation gain?",
        finding,
        vec![Chart::bars("Performance of STREAM by threads", axis, names, series)],
    )
}
