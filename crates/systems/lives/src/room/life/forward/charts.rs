//! The study as charts: accuracy by trace and model, and along the factor.

use super::numbers::{SWEEP_FACTORS, SWEEP_TRACES, sweep_id};
use super::runs::{ForwardRun, Platform};
use flashyard_report::{Bar, ChartAxis, ChartPanel, ChartSection, Comparison, ForwardRecord, bar_panels, factor_chart};
use flashyard_workload::surrogates::TRACES;

pub(super) fn sections(records: &[(ForwardRun, ForwardRecord)], comparisons: &[Comparison]) -> Vec<ChartSection> {
    vec![accuracies(records), factors(comparisons)]
}

/// Every model and factor under every trace.
fn accuracies(records: &[(ForwardRun, ForwardRecord)]) -> ChartSection {
    let bars: Vec<Bar> = records
        .iter()
        .flat_map(|(run, record)| record.tries.iter().map(move |one| (run, one)))
        .map(|(run, one)| Bar {
            panel: run.platform.name().to_owned(),
            category: TRACES[run.trace].name.to_owned(),
            series: format!("{}, factor {}", one.prediction, one.factor),
            value: 100.0 * one.accuracy,
        })
        .collect();
    let of = |prediction: &str| {
        let accuracies = records.iter().filter(|(run, _)| run.platform == Platform::UntilFailure);
        let found: Vec<f64> =
            accuracies.filter_map(|(_, record)| Some(100.0 * record.of(prediction, 1.5)?.accuracy)).collect();
        let (least, most) =
            found.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &one| (least.min(one), most.max(one)));
        (!found.is_empty()).then(|| format!("{prediction} {least:.1} to {most:.1} %"))
    };
    let found: Vec<String> = ["two-point", "grouped", "devs", "cml"].into_iter().filter_map(of).collect();
    let finding = if found.is_empty() {
        "No life until failure was asked for.".to_owned()
    } else {
        format!("Until failure, at factor 1.5, erase counts are predicted with an accuracy of: {}.", found.join(", "))
    };
    let panels = bar_panels("Accuracy of erase counts, by trace", &ChartAxis::new("accuracy", "%"), &bars);
    ChartSection::choice("accuracy", "How close does fast-forward ageing come?", finding, "Lives", panels)
}

/// Accuracy of the two-point model along the factor, published and measured.
fn factors(comparisons: &[Comparison]) -> ChartSection {
    let along = |name: &str, figure: fn(&Comparison) -> Option<f64>| -> Vec<(f64, f64)> {
        let of = |factor: f64| {
            let found = comparisons.iter().find(|one| one.id == sweep_id(name, factor))?;
            Some((factor, figure(found)?))
        };
        SWEEP_FACTORS.into_iter().filter_map(of).collect()
    };
    let curves: Vec<(String, Vec<(f64, f64)>)> = SWEEP_TRACES
        .into_iter()
        .flat_map(|name| {
            [
                (format!("{name}, published"), along(name, |one| Some(one.published))),
                (format!("{name}, measured"), along(name, |one| one.measured)),
            ]
        })
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let chart = factor_chart(
        "Accuracy of the two-point model over 100 periods",
        "periods for each that is simulated",
        ChartAxis::near("accuracy", "%"),
        &curves,
    );
    let panels =
        if curves.is_empty() { Vec::new() } else { vec![ChartPanel { name: String::new(), charts: vec![chart] }] };
    let finding = "The more periods are predicted for each that is simulated, the less accurate the prediction.";
    let title = "What does going faster cost?";
    let finding = if curves.is_empty() { "The factor was not swept." } else { finding };
    ChartSection::choice("factors", title, finding.to_owned(), "", panels)
}
