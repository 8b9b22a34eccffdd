//! Accuracies, in percent.

use super::runs::ForwardNumber;
use super::runs::{ForwardRun, Platform};
use flashyard_describe::reproduce::Number;
use flashyard_report::{ForwardRecord, WearFit};
use flashyard_workload::surrogates::TRACES;

use Platform::{Hundred, NoLeveling, Public, Threshold, UntilFailure};

/// Traces and factors of the sweep. Source: [P] sheet ff-ssd §7, rows 7 and 8.
pub(super) const SWEEP_TRACES: [&str; 2] = ["LM-TBE", "MSN-BEFS"];
/// Source: [P] the same.
pub(super) const SWEEP_FACTORS: [f64; 4] = [1.5, 2.0, 3.0, 4.0];

/// The number of a trace and a factor.
pub(super) fn sweep_id(trace: &str, factor: f64) -> String {
    format!("sweep-{}-{factor}", trace.to_lowercase())
}

pub(super) fn numbers() -> Vec<ForwardNumber> {
    let mut numbers = vec![
        number("best-accuracy", second(Threshold), |records| most(&of(records, "two-point", 2.0))),
        number("vdi-two-point", [run(UntilFailure, "VDI")], |records| of(records, "two-point", 1.5)[0]),
        number("speed-up", all(UntilFailure), |records| {
            let tries = records.iter().filter_map(|record| record.of("two-point", 2.0));
            let (periods, simulated) = tries.fold((0, 0), |sum, one| (sum.0 + one.periods, sum.1 + one.simulated));
            f64::from(periods) / f64::from(simulated)
        }),
        number("ff-1.5-mean", all(UntilFailure), |records| mean(&of(records, "two-point", 1.5))),
        number("ff-1.5-least", all(UntilFailure), |records| least(&of(records, "two-point", 1.5))),
        number("devs-least", all(UntilFailure), |records| least(&of(records, "devs", 1.5))),
        number("devs-most", all(UntilFailure), |records| most(&of(records, "devs", 1.5))),
        number("cml-least", all(UntilFailure), |records| least(&of(records, "cml", 1.5))),
        number("cml-most", all(UntilFailure), |records| most(&of(records, "cml", 1.5))),
    ];
    for prediction in ["two-point", "devs", "cml"] {
        let id = format!("ycsb-{prediction}");
        numbers.push(number(&id, [run(UntilFailure, "YCSB-A")], move |records| of(records, prediction, 1.5)[0]));
        for (platform, name) in [(Threshold, "threshold"), (Public, "public")] {
            let id = format!("{name}-{prediction}-mean");
            numbers.push(number(&id, second(platform), move |records| mean(&of(records, prediction, 2.0))));
        }
    }
    for (platform, name) in [(Threshold, "threshold"), (Public, "public")] {
        let id = format!("{name}-two-point-least");
        numbers.push(number(&id, second(platform), |records| least(&of(records, "two-point", 2.0))));
    }
    numbers.push(number("threshold-devs-most", second(Threshold), |records| most(&of(records, "devs", 2.0))));
    for (platform, name) in [(Threshold, "threshold"), (Public, "public")] {
        numbers.push(number(&format!("{name}-two-point-ahead"), second(platform), |records| {
            let [ours, devs, cml] = ["two-point", "devs", "cml"].map(|prediction| of(records, prediction, 2.0));
            let ahead = ours.iter().zip(devs.iter().zip(&cml)).all(|(ours, (devs, cml))| ours > devs && ours > cml);
            f64::from(u8::from(ahead))
        }));
    }
    for (prediction, name) in NAMED {
        let id = format!("threshold-{prediction}-{}", name.to_lowercase());
        numbers.push(number(&id, [run(Threshold, name)], move |records| of(records, prediction, 2.0)[0]));
    }
    for name in ["DTRS", "WBS"] {
        let id = format!("no-leveling-{}", name.to_lowercase());
        numbers.push(number(&id, [run(NoLeveling, name)], |records| {
            of(records, "two-point", 2.0)[0] - of(records, "devs", 2.0)[0]
        }));
    }
    for name in SWEEP_TRACES {
        for factor in SWEEP_FACTORS {
            let id = sweep_id(name, factor);
            numbers.push(number(&id, [run(Hundred, name)], move |records| of(records, "two-point", factor)[0]));
        }
    }
    numbers.push(number("factor-2-holds", SWEEP_TRACES.map(|name| run(Hundred, name)), |records| {
        let loss = |from, to| mean(&of(records, "two-point", from)) - mean(&of(records, "two-point", to));
        f64::from(u8::from(loss(2.0, 3.0) > DISTINCT * loss(1.5, 2.0)))
    }));
    numbers.push(published_fit("skew-normal-p", |fit| fit.p_value));
    numbers.push(published_fit("skew-normal-shape", |fit| fit.shape));
    numbers.push(published_fit("skew-normal-scale", WearFit::scale));
    numbers
}

/// A figure of the fit that lies where the published one does.
fn published_fit(id: &str, figure: fn(&WearFit) -> f64) -> ForwardNumber {
    number(id, [run(UntilFailure, "WBS")], move |records| {
        let far = |fit: &&WearFit| (fit.location() - FIT_LOCATION).abs();
        let nearest = records[0].fits.iter().min_by(|one, other| far(one).total_cmp(&far(other)));
        nearest.map_or(f64::NAN, figure)
    })
}

/// Traces that the source names for its second simulator, as best or worst of a model. Source: [P] Fig. 9.
const NAMED: [(&str, &str); 5] =
    [("two-point", "WBS"), ("two-point", "DAP-PS"), ("devs", "DTRS"), ("cml", "RAD-AS"), ("cml", "WBS")];

/// How much more a step costs that costs distinctively more. [A]
const DISTINCT: f64 = 2.0;

/// Erases at which the published fit lies. Source: [P] sheet ff-ssd §7, row 10.
const FIT_LOCATION: f64 = 310.0;

fn number(
    id: &str,
    runs: impl Into<Vec<ForwardRun>>,
    value: impl Fn(&[&ForwardRecord]) -> f64 + Send + Sync + 'static,
) -> ForwardNumber {
    Number::of(id, runs, value)
}

fn run(platform: Platform, name: &str) -> ForwardRun {
    let trace = TRACES.iter().position(|row| row.name == name).expect("the study knows its traces");
    ForwardRun { platform, trace }
}

fn all(platform: Platform) -> Vec<ForwardRun> {
    (0..TRACES.len()).map(|trace| ForwardRun { platform, trace }).collect()
}

/// Runs on the second simulator: under the traces that its public code predicts. Source: \[C\] `PageMapping::write`, which knows
/// the nine Microsoft production servers.
fn second(platform: Platform) -> Vec<ForwardRun> {
    let elsewhere = ["YCSB-A", "VDI"];
    all(platform).into_iter().filter(|run| !elsewhere.contains(&TRACES[run.trace].name)).collect()
}

/// Accuracies of one way under every trace, in percent.
fn of(records: &[&ForwardRecord], prediction: &str, factor: f64) -> Vec<f64> {
    let accuracy = |record: &&ForwardRecord| record.of(prediction, factor).map_or(f64::NAN, |one| 100.0 * one.accuracy);
    records.iter().map(accuracy).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
