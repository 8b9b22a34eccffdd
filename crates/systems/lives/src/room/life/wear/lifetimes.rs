//! Lives under surrogates of the traces, from new to dead.

use super::runs::LifeNumber;
use super::runs::{DP, End, LifeRun, NO, OBP, PWL, Victims, place, trace, traces};
use super::synthetic::claim;
use flashyard_describe::reproduce::{Number, percent_above};
use flashyard_ftl::WearLeveling;
use flashyard_report::LifeRecord;
use flashyard_workload::surrogates::TRACES;

/// Workloads "with a relatively small footprint", for which the source says that variable capacity with wear leveling
/// gains little. Source: [P] §4.5.1, by name.
const SMALL: [&str; 5] = ["DAP-DS", "DAP-PS", "MSN-CFS", "RAD-AS", "RAD-BE"];

use End::{Fixed, Variable};

pub(super) fn numbers() -> Vec<LifeNumber> {
    let mut numbers = vec![
        mean("mean-fix-dp", (Fixed, DP), (Fixed, NO), |ratio| 100.0 * (ratio - 1.0)),
        mean("mean-var-nowl-over-fix-pwl", (Variable, NO), (Fixed, PWL), |ratio| ratio),
        ratio("rad-be-var-nowl-over-fix-pwl", "RAD-BE", (Variable, NO), (Fixed, PWL)),
        ratio("dap-ds-var-nowl-over-fix-nowl", "DAP-DS", (Variable, NO), (Fixed, NO)),
        ratio("msn-befs-var-nowl-over-fix-nowl", "MSN-BEFS", (Variable, NO), (Fixed, NO)),
        number("msn-befs-var-nowl-drive-writes", [of("MSN-BEFS", Variable, NO)], |lives| lives[0].drive_writes()),
        percent("msn-befs-fix-nowl-over-fix-dp", "MSN-BEFS", (Fixed, NO), (Fixed, DP)),
        percent("vdi-var-nowl-over-fix-pwl", "VDI", (Variable, NO), (Fixed, PWL)),
        percent("lm-tbe-var-nowl-over-fix-dp", "LM-TBE", (Variable, NO), (Fixed, DP)),
        percent("dtrs-fix-nowl-over-fix-obp", "DTRS", (Fixed, NO), (Fixed, OBP)),
        percent("dtrs-fix-nowl-over-fix-dp", "DTRS", (Fixed, NO), (Fixed, DP)),
        percent("dtrs-var-nowl-over-fix-dp", "DTRS", (Variable, NO), (Fixed, DP)),
        percent("dtrs-var-pwl-over-var-nowl", "DTRS", (Variable, PWL), (Variable, NO)),
        number("dap-ds-fix-dp-amplification", [of("DAP-DS", Fixed, DP)], |lives| lives[0].leveling_share()),
        number("lm-tbe-fix-obp-amplification", [of("LM-TBE", Fixed, OBP)], |lives| lives[0].leveling_share()),
        number("lm-tbe-fix-dp-amplification", [of("LM-TBE", Fixed, DP)], |lives| lives[0].leveling_share()),
    ];
    numbers.push(gains_most("rad-be-gains-most", "RAD-BE", PWL));
    numbers.push(gains_most("dap-ds-gains-most", "DAP-DS", NO));
    let leveled_fixed = [OBP, DP, PWL].map(|leveling| traces(Fixed, leveling)).concat();
    numbers.push(number("amplification-most", leveled_fixed, |lives| {
        lives.iter().map(|life| life.leveling_share()).fold(0.0, f64::max)
    }));
    for (id, name) in [("vdi-worse", "VDI"), ("dtrs-worse", "DTRS")] {
        let runs = [of(name, Fixed, OBP), of(name, Fixed, DP), of(name, Fixed, NO)];
        numbers
            .push(claim(id, runs, |lives| lives[..2].iter().all(|life| life.drive_writes() < lives[2].drive_writes())));
    }
    let lm_tbe = [Fixed, Variable].map(|end| [NO, OBP, DP, PWL].map(|leveling| of("LM-TBE", end, leveling))).concat();
    numbers.push(claim("lm-tbe-var-dp-longest", [vec![of("LM-TBE", Variable, DP)], lm_tbe].concat(), |lives| {
        lives.iter().all(|life| life.drive_writes() <= lives[0].drive_writes())
    }));
    let of_trace =
        |place| [DP, NO, OBP, PWL].map(|leveling| [Variable, Fixed].map(|end| trace(place, end, leveling))).concat();
    numbers.push(claim("var-dp-longest-once", (0..TRACES.len()).flat_map(of_trace).collect::<Vec<_>>(), |lives| {
        let longest = |lives: &[&LifeRecord]| lives.iter().all(|life| life.drive_writes() <= lives[0].drive_writes());
        let lm_tbe = place("LM-TBE");
        (0..).zip(lives.chunks(8)).all(|(place, lives)| longest(lives) == (place == lm_tbe))
    }));
    let dtrs = |end| [NO, OBP, DP].map(|leveling| of("DTRS", end, leveling));
    numbers.push(claim("dtrs-variance-lengthens", [dtrs(Variable), dtrs(Fixed)].concat(), |lives| {
        ratios(lives).iter().all(|&ratio| ratio > 1.0)
    }));
    let leveled = [OBP, DP, PWL];
    let pairs = |leveling| [traces(Variable, leveling), traces(Fixed, leveling)].concat();
    numbers.push(number("var-leveled-most", leveled.map(pairs).concat(), |lives| {
        let runs = lives.len() / 3;
        lives.chunks(runs).map(|both| most(&ratios(both))).fold(0.0, f64::max)
    }));
    for (id, leveling) in [("small-var-pwl", PWL), ("small-var-dp", DP), ("small-var-obp", OBP)] {
        let under = |end| SMALL.map(|name| of(name, end, leveling));
        numbers.push(number(id, [under(Variable), under(Fixed)].concat(), |lives| most(&ratios(lives))));
    }
    numbers.extend(cost_benefit());
    numbers
}

/// Row 23: the other way to choose victims, as the public code has it and as its score is printed.
fn cost_benefit() -> Vec<LifeNumber> {
    let designs = [("obp", OBP), ("dp", DP), ("pwl", PWL), ("nowl", NO)];
    let greedy = |leveling| traces(Variable, leveling);
    let with = |victims, lives: &[LifeRun]| lives.iter().map(|&run| LifeRun { victims, ..run }).collect::<Vec<_>>();
    let mut numbers = Vec::new();
    for (victims, suffix) in [(Victims::CostBenefit, ""), (Victims::Score, "-printed")] {
        for (name, leveling) in designs {
            let runs = [with(victims, &greedy(leveling)), greedy(leveling)].concat();
            numbers.push(number(&format!("cost-benefit-{name}{suffix}"), runs, |lives| {
                let differences = differences(lives);
                differences.iter().sum::<f64>() / differences.len() as f64
            }));
        }
        let ycsb = [of("YCSB-A", Variable, NO)];
        let runs = [with(victims, &ycsb), ycsb.to_vec()].concat();
        numbers.push(number(&format!("cost-benefit-ycsb-nowl{suffix}"), runs, |lives| differences(lives)[0]));
    }
    let greedy = designs.map(|(_, leveling)| greedy(leveling)).concat();
    let chosen = with(Victims::CostBenefit, &greedy);
    numbers.push(number("cost-benefit-most", [chosen.clone(), greedy].concat(), |lives| {
        differences(lives).into_iter().fold(0.0, f64::max)
    }));
    numbers.push(claim("cost-benefit-var-nowl-longest", chosen, |lives| {
        let sum = |lives: &[&LifeRecord]| lives.iter().map(|life| life.drive_writes()).sum::<f64>();
        let sums: Vec<f64> = lives.chunks(TRACES.len()).map(sum).collect();
        sums[..3].iter().all(|&leveled| leveled < sums[3])
    }));
    numbers
}

/// Percent by which lifetimes of the first half of the lives differ from those of the second, either way.
fn differences(lives: &[&LifeRecord]) -> Vec<f64> {
    ratios(lives).iter().map(|ratio| 100.0 * (ratio - 1.0).abs()).collect()
}

/// Whether `name` is the trace under which Var_NoWL outlives a fixed drive with `leveling` by the greatest factor.
fn gains_most(id: &str, name: &str, leveling: WearLeveling) -> LifeNumber {
    let of_it = place(name);
    claim(id, [traces(Variable, NO), traces(Fixed, leveling)].concat(), move |lives| {
        let ratios = ratios(lives);
        ratios.iter().all(|&ratio| ratio <= ratios[of_it])
    })
}

fn of(name: &str, end: End, leveling: WearLeveling) -> LifeRun {
    trace(place(name), end, leveling)
}

fn number(
    id: &str,
    runs: impl Into<Vec<LifeRun>>,
    value: impl Fn(&[&LifeRecord]) -> f64 + Send + Sync + 'static,
) -> LifeNumber {
    Number::of(id, runs, value)
}

/// Lifetimes of the first half of the lives by those of the second.
pub(super) fn ratios(lives: &[&LifeRecord]) -> Vec<f64> {
    let (ours, theirs) = lives.split_at(lives.len() / 2);
    ours.iter().zip(theirs).map(|(ours, theirs)| ours.drive_writes() / theirs.drive_writes()).collect()
}

/// The greatest gain in percent.
fn most(ratios: &[f64]) -> f64 {
    ratios.iter().map(|&ratio| percent_above(ratio, 1.0)).fold(f64::NEG_INFINITY, f64::max)
}

/// The mean over all traces of the ratio of two designs' lifetimes.
fn mean(id: &str, ours: (End, WearLeveling), theirs: (End, WearLeveling), value: fn(f64) -> f64) -> LifeNumber {
    number(id, [traces(ours.0, ours.1), traces(theirs.0, theirs.1)].concat(), move |lives| {
        let ratios = ratios(lives);
        value(ratios.iter().sum::<f64>() / ratios.len() as f64)
    })
}

/// The ratio of two designs' lifetimes under one trace.
fn ratio(id: &str, name: &str, ours: (End, WearLeveling), theirs: (End, WearLeveling)) -> LifeNumber {
    number(id, [of(name, ours.0, ours.1), of(name, theirs.0, theirs.1)], |lives| ratios(lives)[0])
}

/// Like [`ratio`], in percent above one.
fn percent(id: &str, name: &str, ours: (End, WearLeveling), theirs: (End, WearLeveling)) -> LifeNumber {
    number(id, [of(name, ours.0, ours.1), of(name, theirs.0, theirs.1)], |lives| most(&ratios(lives)))
}
