//! The study as charts: throughput by design, what drives give in arrays with slower ones, utilization by layout, emission.

use super::runs::{Manner, ParaidRecord, ParaidRun};
use flashyard_report::{Bar, ChartAxis, ChartPanel, ChartSection, Comparison, bar_panels};
use flashyard_units::Named;

type Records = [(ParaidRun, ParaidRecord)];

pub(super) fn sections(records: &Records, _: &[Comparison]) -> Vec<ChartSection> {
    vec![
        section(
            "drives",
            "What does one slower drive cost?",
            "Reads from three drives under mdraid: the slowest one holds all of them up.",
            "Arrays",
            arrays(records),
        ),
        section(
            "loads",
            "Which design gives most from unlike drives?",
            "Throughput of seven designs on the three NVMe and three SATA drives of config-1.",
            "Loads",
            loads(records, "Throughput", &ChartAxis::new("throughput", "GiB/s"), |record| record.gib_per_s),
        ),
        section(
            "tails",
            "And for how long do requests wait?",
            "99th percentiles of latency in the same runs.",
            "Loads",
            loads(records, "Latency", &ChartAxis::new("latency", "ms"), |record| record.p99_us / 1e3),
        ),
        section(
            "emission",
            "What does a unit of work emit?",
            "Emission of five years by throughput, in the same runs.",
            "Loads",
            loads(records, "Emission", &ChartAxis::new("emission", "kg a GiB/s"), |record| {
                record.emission_kg / record.gib_per_s
            }),
        ),
        section(
            "layouts",
            "How much of unlike drives can be used?",
            "Mean utilization over 300 drawn sets of drives, by the deviation of their sizes.",
            "Drives",
            layouts(records),
        ),
    ]
}

fn section(id: &str, title: &str, finding: &str, choice: &str, panels: Vec<ChartPanel>) -> ChartSection {
    ChartSection::choice(id, title, finding.to_owned(), choice, panels)
}

fn arrays(records: &Records) -> Vec<ChartPanel> {
    let bar = |(run, record): &(ParaidRun, ParaidRecord)| match run {
        ParaidRun::Array { array, load, manner: Manner::Study, .. } if load.len() == "f-read".len() => Some(Bar {
            panel: "three drives".to_owned(),
            category: (*array).to_owned(),
            series: if *load == "f-read" { "full stripes" } else { "random chunks" }.to_owned(),
            value: record.gib_per_s,
        }),
        _ => None,
    };
    let bars: Vec<Bar> = records.iter().filter_map(bar).collect();
    bar_panels("Throughput", &ChartAxis::new("throughput", "GiB/s"), &bars)
}

fn loads(records: &Records, caption: &str, axis: &ChartAxis, value: fn(&ParaidRecord) -> f64) -> Vec<ChartPanel> {
    let is_shown = |run: &ParaidRun| {
        matches!(run, ParaidRun::Array { array: "config-1", manner: Manner::Replay, .. }) && run.trace().is_none()
    };
    let mut shown: Vec<&(ParaidRun, ParaidRecord)> = records.iter().filter(|(run, _)| is_shown(run)).collect();
    shown.sort_by_key(|(run, _)| match run {
        ParaidRun::Array { design, load, .. } => Some((*load, *design)),
        _ => None,
    });
    let bar = |(run, record): &&(ParaidRun, ParaidRecord)| match run {
        ParaidRun::Array { design, load, .. } => Some(Bar {
            panel: (*load).to_owned(),
            category: "config-1".to_owned(),
            series: design.name().to_owned(),
            value: value(record),
        }),
        _ => None,
    };
    let bars: Vec<Bar> = shown.iter().filter_map(bar).collect();
    bar_panels(caption, axis, &bars)
}

fn layouts(records: &Records) -> Vec<ChartPanel> {
    let mut bars = Vec::new();
    for (run, record) in records {
        let ParaidRun::Drawn { drives, deviation } = run else { continue };
        let series = ["most stripes", "by hand", "equal shares"];
        bars.extend(series.into_iter().zip(&record.drawn).map(|(series, percent)| Bar {
            panel: format!("{drives} drives"),
            category: format!("{deviation}"),
            series: series.to_owned(),
            value: percent / 100.0,
        }));
    }
    bar_panels("Utilization", &ChartAxis::new("utilization", "share"), &bars)
}
