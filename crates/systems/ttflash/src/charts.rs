//! The study as charts: latency of reads by how full the drive is, and by load.

use super::numbers::{RATES, USUAL};
use super::runs::{Load, Model, RATE, ReclaimRun};
use flashyard_report::{Bar, ChartAxis, ChartPanel, ChartSection, Comparison, ReclaimRecord, bar_panels, factor_chart};

/// Figures that are drawn, by their place in a record. [X]
const DRAWN: [(usize, &str); 4] = [(0, "mean"), (2, "p99"), (3, "p99.9"), (4, "p99.99")];

pub(super) fn sections(records: &[(ReclaimRun, ReclaimRecord)], _: &[Comparison]) -> Vec<ChartSection> {
    vec![reads(records), load(records)]
}

/// Reads at the usual rate.
fn reads(records: &[(ReclaimRun, ReclaimRecord)]) -> ChartSection {
    let mut usual: Vec<&(ReclaimRun, ReclaimRecord)> =
        records.iter().filter(|(run, _)| run.rate == RATE && !run.worn).collect();
    usual.sort_by_key(|(run, _)| run.rival);
    let bar = |model: &'static str, (place, name): (usize, &str)| {
        let of = usual.iter().filter(move |(run, _)| run.model.name() == model);
        of.map(move |(run, record)| Bar {
            panel: format!("{name}, {model}"),
            category: match run.model {
                Model::Planes(load) => load.name().to_owned(),
                Model::Superblocks => format!("{} % data", run.percent),
            },
            series: run.rival.name().to_owned(),
            value: record.read_us[place],
        })
        .collect::<Vec<Bar>>()
    };
    let bars: Vec<Bar> = [Model::Planes(Load::Dtrs), Model::Superblocks]
        .map(Model::name)
        .into_iter()
        .flat_map(|model| DRAWN.into_iter().flat_map(move |drawn| [(model, drawn)]))
        .flat_map(|(model, drawn)| bar(model, drawn))
        .collect();
    let finding = "Reads of a drive that reclaims, beside those of one with so much flash that it need not.";
    let panels = bar_panels("Latency of a read", &ChartAxis::new("latency", "µs"), &bars);
    ChartSection::choice("reads", "What do reads wait for?", finding.to_owned(), "Figure", panels)
}

/// Reads and writes along the load.
fn load(records: &[(ReclaimRun, ReclaimRecord)]) -> ChartSection {
    let curves = |figure: fn(&ReclaimRecord) -> f64| -> Vec<(String, Vec<(f64, f64)>)> {
        let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for rate in RATES {
            let at = records.iter().filter(|(run, _)| {
                run.rate == rate && run.percent == USUAL && run.model == Model::Superblocks && !run.worn
            });
            for (run, record) in at {
                let (name, point) = (run.rival.name(), (f64::from(rate), figure(record)));
                match curves.iter_mut().find(|curve| curve.0 == name) {
                    Some(curve) => curve.1.push(point),
                    None => curves.push((name.to_owned(), vec![point])),
                }
            }
        }
        curves.retain(|curve| curve.1.len() > 1);
        curves
    };
    let chart = |name: &str, unit: &str, figure: fn(&ReclaimRecord) -> f64| {
        factor_chart(name, "requests a second", ChartAxis::near("latency", unit), &curves(figure))
    };
    let charts = vec![
        chart("Reads, p99.9", "µs", |record| record.read_us[3]),
        // Writes that garbage collection cannot keep up with wait for seconds.
        chart("Writes, mean", "s", |record| 1e-6 * record.write_us[0]),
    ];
    let finding = format!("With data in {USUAL} % of the drive, half of the requests reads.");
    let panels = vec![ChartPanel { name: String::new(), charts }];
    ChartSection::choice("load", "What does it cost when there is more to do?", finding, "", panels)
}
