//! A run under several seeds: means with their confidence intervals, and differences between designs that are none.
//!
//! All designs meet the same seeds, so differences are taken seed by seed: what one seed does to every design cancels out.

use crate::common::{LATENCY_MEAN, LATENCY_P99, THROUGHPUT};
use crate::figure::{Better, Figures, Metric, Shown};
use crate::fitted::{fitted, right};
use crate::ranking::{different_loads, known, told, unranked_tails};
use crate::schema::{Laws, RunReport};
use crate::seeds::{Difference, SeededDesign, SeededFigure, SeededLaws, Seeds};
use comfy_table::Cell;
use flashyard_stats::{ConfidenceInterval, MeanEstimate};
use std::collections::BTreeMap;

/// A run under one seed, as far as means go by it.
#[derive(Clone, Debug)]
pub struct SeededRun {
    /// Name of the run, with its point of a sweep.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// Its figures.
    pub figures: Figures,
    /// The laws that were checked on it.
    pub laws: Laws,
}

impl SeededFigure {
    fn of(metric: &'static Metric, seeds: &[u64], runs: &[&SeededRun]) -> Self {
        let under = |seed: &u64| known(&runs.iter().find(|run| run.seed == *seed)?.figures, metric);
        let values: Vec<_> = seeds.iter().map(under).collect();
        let estimate = estimate(values.iter().flatten().copied());
        let interval = estimate.interval_95();
        let known = estimate.count() > 0;
        Self {
            key: metric.key,
            mean: known.then_some(interval.mean),
            half_width: (known && interval.half_width.is_finite()).then_some(interval.half_width),
            values,
        }
    }

    /// The figure as the terminal shows it: its mean, and half of its interval.
    fn text(&self, shown: &Shown) -> String {
        let Some(mean) = self.mean else { return "-".to_owned() };
        let text = |value: f64| shown.text(value.into());
        self.half_width.map_or_else(|| text(mean), |half| format!("{} ±{}", text(mean), text(half)))
    }
}

fn estimate(values: impl IntoIterator<Item = f64>) -> MeanEstimate {
    let mut estimate = MeanEstimate::new();
    values.into_iter().for_each(|value| estimate.record(value));
    estimate
}

/// Figures of `report`'s designs over all `runs`, which name them; the report is that of the first seed. Figures of a run
/// that broke a law cannot be trusted, so it has none.
pub fn over_seeds(report: &RunReport, seeds: &[u64], runs: &[SeededRun]) -> Seeds {
    let named: Vec<(&str, Vec<&SeededRun>)> = report
        .designs
        .iter()
        .map(|design| {
            let own = |run: &&SeededRun| run.name == design.name && run.laws.hold;
            (design.name.as_str(), runs.iter().filter(own).collect())
        })
        .collect();
    let shown: Vec<&'static Metric> =
        report.declared().shown.into_iter().filter(|metric| metric.terminal.is_some()).collect();
    let designs = named
        .iter()
        .map(|(name, runs)| SeededDesign {
            name: (*name).to_owned(),
            figures: shown.iter().map(|metric| SeededFigure::of(metric, seeds, runs)).collect(),
        })
        .collect();
    let ranked = ranked(report);
    let differences = ranked.into_iter().flat_map(|metric| differences(metric, &named)).collect();
    let broken = runs.iter().filter(|run| !run.laws.hold);
    let broken = broken
        .map(|run| SeededLaws { name: run.name.clone(), seed: run.seed, laws: run.laws.broken.clone() })
        .collect();
    Seeds { seeds: seeds.to_vec(), designs, differences, broken }
}

/// The figures by which designs of the report may be ranked.
fn ranked(report: &RunReport) -> Vec<&'static Metric> {
    if different_loads(report) {
        return Vec::new();
    }
    let tails = unranked_tails(report).is_none().then_some(&LATENCY_P99);
    [&THROUGHPUT, &LATENCY_MEAN].into_iter().chain(tails).collect()
}

/// Every design against the best one. Both go by the seeds under which all of them have the figure: a seed that one of
/// them missed would make it better or worse than it is. Designs with fewer than two values are not compared.
fn differences(metric: &'static Metric, named: &[(&str, Vec<&SeededRun>)]) -> Vec<Difference> {
    let sign = if metric.better == Better::Less { -1.0 } else { 1.0 };
    let figures = |runs: &[&SeededRun]| -> BTreeMap<u64, f64> {
        runs.iter().filter_map(|run| Some((run.seed, told(&run.figures, metric)?))).collect()
    };
    let mut compared: Vec<(&str, BTreeMap<u64, f64>)> =
        named.iter().map(|(name, runs)| (*name, figures(runs))).filter(|(_, values)| values.len() > 1).collect();
    let Some(mut common) = compared.first().map(|(_, values)| values.clone()) else { return Vec::new() };
    common.retain(|seed, _| compared.iter().all(|(_, values)| values.contains_key(seed)));
    compared.iter_mut().for_each(|(_, values)| values.retain(|seed, _| common.contains_key(seed)));
    let mean = |values: &BTreeMap<u64, f64>| estimate(values.values().copied()).mean();
    let best = compared
        .iter()
        .map(|(name, values)| (*name, values, mean(values)))
        .reduce(|best, other| if sign * other.2 > sign * best.2 { other } else { best });
    let Some((best, best_values, best_mean)) = best.filter(|best| best.2 != 0.0) else { return Vec::new() };
    let against = |(name, values): &(&str, BTreeMap<u64, f64>)| {
        let interval = estimate(values.values().zip(best_values.values()).map(|(one, best)| one - best)).interval_95();
        let percent = |value: f64| 100.0 * value / best_mean.abs();
        interval.half_width.is_finite().then(|| Difference {
            key: metric.key,
            best: best.to_owned(),
            design: (*name).to_owned(),
            percent: percent(interval.mean),
            half_width_percent: percent(interval.half_width),
            is_there: is_there(interval),
            seeds: common.len(),
        })
    };
    compared.iter().filter(|(name, _)| *name != best).filter_map(against).collect()
}

/// Whether a difference is one: a pair of equal values under every seed is none.
fn is_there(interval: ConfidenceInterval) -> bool {
    !interval.contains(0.0)
}

/// One row a design with means and half widths, at most `width` characters wide.
pub fn seeds_table(report: &RunReport, seeds: &Seeds, width: usize) -> String {
    let shown: Vec<(&Metric, Shown)> =
        report.declared().shown.into_iter().filter_map(|metric| Some((metric, metric.terminal?))).collect();
    let header: Vec<&str> = ["design"].into_iter().chain(shown.iter().map(|(_, column)| column.header)).collect();
    let row = |design: &SeededDesign| {
        let figure = |(metric, column): &(&Metric, Shown)| {
            let found = design.figures.iter().find(|figure| figure.key == metric.key);
            right(found.map_or_else(|| "-".to_owned(), |figure| figure.text(column)))
        };
        [Cell::new(&design.name)].into_iter().chain(shown.iter().map(figure)).collect()
    };
    fitted(1, &header, &seeds.designs.iter().map(row).collect::<Vec<_>>(), width)
}

/// A line for each figure that ranks: the best design, the distance of the others, and those that do not differ from it.
pub fn seeds_sentences(seeds: &Seeds) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for metric in [&THROUGHPUT, &LATENCY_MEAN, &LATENCY_P99] {
        let of: Vec<&Difference> = seeds.differences.iter().filter(|one| one.key == metric.key).collect();
        let Some(first) = of.first() else { continue };
        let word = if metric.better == Better::Less { "least" } else { "most" };
        let told = |one: &&Difference| {
            let Difference { design, percent, half_width_percent, .. } = one;
            format!("{design} {percent:+.2} ±{half_width_percent:.2} %")
        };
        let (there, none): (Vec<_>, Vec<_>) = of.iter().copied().partition(|one| one.is_there);
        let common = first.seeds;
        let fewer = if common < seeds.seeds.len() {
            format!(", by the {common} seeds that all of them finished")
        } else {
            String::new()
        };
        let mut parts = vec![format!("{}: {} has the {word}{fewer}", metric.title, first.best)];
        parts.extend((!there.is_empty()).then(|| there.iter().map(told).collect::<Vec<_>>().join(", ")));
        parts.extend((!none.is_empty()).then(|| {
            format!("no difference at 95 % confidence: {}", none.iter().map(told).collect::<Vec<_>>().join(", "))
        }));
        lines.push(parts.join("; "));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DesignResult;
    use crate::common::IOS;
    use crate::html::tests::document;

    /// A report of designs a, b and c, and their throughput and mean latency under each seed.
    fn seeded(throughput: [[f64; 4]; 3], latency: [[f64; 4]; 3]) -> (RunReport, Seeds) {
        let mut report = document().report;
        let run = report.designs[0].clone();
        report.closed_loop = false;
        let seeds = [7, 8, 9, 10];
        let mut runs = Vec::new();
        report.designs = ["a", "b", "c"]
            .iter()
            .enumerate()
            .map(|(place, name)| {
                for (at, &seed) in seeds.iter().enumerate() {
                    let mut figures = run.figures.clone();
                    figures.set(&THROUGHPUT, throughput[place][at]);
                    figures.set(&LATENCY_MEAN, latency[place][at]);
                    let laws = Laws { hold: true, broken: Vec::new() };
                    runs.push(SeededRun { name: (*name).to_owned(), seed, figures, laws });
                }
                DesignResult { name: (*name).to_owned(), ..run.clone() }
            })
            .collect();
        let seeds = over_seeds(&report, &seeds, &runs);
        (report, seeds)
    }

    fn example() -> (RunReport, Seeds) {
        let throughput = [[100e6, 140e6, 90e6, 110e6], [99e6, 139e6, 89e6, 109e6], [104e6, 134e6, 95e6, 107e6]];
        seeded(throughput, [[50.0; 4], [50.0; 4], [49.0, 51.0, 50.0, 50.0]])
    }

    #[test]
    fn differences_are_taken_seed_by_seed() {
        let (_, seeds) = example();
        let of = |key: &str, design: &str| {
            let found = seeds.differences.iter().find(|one| one.key == key && one.design == design);
            found.expect("it was compared").clone()
        };
        // One percent less under every seed, though seeds differ by half.
        let b = of(THROUGHPUT.key, "b");
        assert!(b.is_there && b.best == "a" && (b.percent + 100.0 / 110.0).abs() < 1e-9, "{b:?}");
        assert!(b.half_width_percent < 1e-9);
        let c = of(THROUGHPUT.key, "c");
        assert!(!c.is_there && c.half_width_percent > 4.0, "{c:?}");
        assert!(!of(LATENCY_MEAN.key, "b").is_there, "equal values are no difference");
    }

    #[test]
    fn means_have_the_interval_of_their_values() {
        let (_, seeds) = example();
        let figure = seeds.designs[0].figures.iter().find(|one| one.key == THROUGHPUT.key).expect("it is shown");
        assert_eq!((figure.mean, figure.values.len()), (Some(110e6), 4));
        // Deviation 21.602 million, t of three degrees of freedom 3.182.
        let half = figure.half_width.expect("four values");
        assert!((half - 3.182 * 21.602e6 / 2.0).abs() < 1e3, "{half}");
    }

    #[test]
    fn sentences_name_the_best_and_what_does_not_differ() {
        let (report, seeds) = example();
        let lines = seeds_sentences(&seeds);
        assert_eq!(
            lines[0],
            "Throughput: a has the most; b -0.91 ±0.00 %; no difference at 95 % confidence: c +0.00 ±7.74 %"
        );
        assert!(
            lines[1]
                .starts_with("Latency, mean: a has the least; no difference at 95 % confidence: b +0.00 ±0.00 %, c "),
            "{}",
            lines[1]
        );
        let table = seeds_table(&report, &seeds, 120);
        assert!(table.contains("0.11 ±0.03"), "{table}");
    }

    #[test]
    fn one_seed_has_no_interval_and_no_differences() {
        let (report, _) = example();
        let figures = report.designs[0].figures.clone();
        let laws = Laws { hold: true, broken: Vec::new() };
        let runs = [SeededRun { name: "a".to_owned(), seed: 1, figures, laws }];
        let seeds = over_seeds(&report, &[1], &runs);
        assert!(seeds.differences.is_empty() && seeds.designs[0].figures.iter().all(|one| one.half_width.is_none()));
        assert!(seeds.designs[1].figures.iter().all(|one| one.mean.is_none()), "b was not finished");
    }

    /// A run of `name` with this throughput in MB/s, after so many requests of this mean latency.
    fn run(name: &str, seed: u64, throughput: f64, (ios, latency): (u64, f64), broken: &[&str]) -> SeededRun {
        let mut figures = document().report.designs[0].figures.clone();
        figures.set(&THROUGHPUT, throughput * 1e6);
        figures.set(&LATENCY_MEAN, (ios > 0).then_some(latency));
        figures.set(&IOS, ios);
        let laws = Laws { hold: broken.is_empty(), broken: broken.iter().map(|law| (*law).to_owned()).collect() };
        SeededRun { name: name.to_owned(), seed, figures, laws }
    }

    /// Figures of designs a and b under four seeds.
    fn two(runs: &[SeededRun]) -> Seeds {
        let mut report = document().report;
        let first = report.designs[0].clone();
        report.closed_loop = false;
        report.designs =
            ["a", "b"].map(|name| DesignResult { name: name.to_owned(), ..first.clone() }).into_iter().collect();
        over_seeds(&report, &[7, 8, 9, 10], runs)
    }

    const SERVED: (u64, f64) = (1000, 50.0);

    #[test]
    fn the_best_is_that_of_the_seeds_that_all_designs_finished() {
        let mut runs: Vec<_> = (7..10).map(|seed| run("a", seed, 100.0, SERVED, &[])).collect();
        runs.extend((7..10).map(|seed| run("b", seed, 101.0, SERVED, &[])));
        // A slow seed that only b has finished.
        runs.push(run("b", 10, 40.0, SERVED, &[]));
        let seeds = two(&runs);
        let found = &seeds.differences[0];
        assert_eq!((found.best.as_str(), found.design.as_str()), ("b", "a"), "{found:?}");
        assert!(found.is_there && (found.percent + 100.0 / 101.0).abs() < 1e-9, "{found:?}");
        assert_eq!(serde_json::to_value(found).expect("it is plain data")["seeds"], 3);
        let line = &seeds_sentences(&seeds)[0];
        assert!(
            line.starts_with("Throughput: b has the most, by the 3 seeds that all of them finished; a -0.99"),
            "{line}"
        );
        assert_eq!(seeds.designs[1].figures[0].values.iter().flatten().count(), 4, "its means have all seeds");
    }

    #[test]
    fn a_design_with_one_seed_leaves_the_others_to_be_compared() {
        let mut runs: Vec<_> = (7..11).map(|seed| run("a", seed, 100.0, SERVED, &[])).collect();
        runs.push(run("b", 7, 101.0, SERVED, &[]));
        assert!(two(&runs).differences.is_empty(), "one seed is no interval");
        let (report, _) = example();
        let mut three: Vec<_> = (7..11)
            .flat_map(|seed| [("a", 100.0), ("b", 90.0)].map(|(name, moved)| run(name, seed, moved, SERVED, &[])))
            .collect();
        three.push(run("c", 7, 101.0, SERVED, &[]));
        let seeds = over_seeds(&report, &[7, 8, 9, 10], &three);
        let of: Vec<_> = seeds.differences.iter().filter(|one| one.key == THROUGHPUT.key).collect();
        assert_eq!((of.len(), of[0].best.as_str(), of[0].design.as_str()), (1, "a", "b"));
    }

    #[test]
    fn a_run_that_broke_a_law_has_no_figures_and_is_told() {
        let mut runs: Vec<_> = (7..11).map(|seed| run("a", seed, 100.0, SERVED, &[])).collect();
        runs.extend((7..10).map(|seed| run("b", seed, 90.0, SERVED, &[])));
        runs.push(run("b", 10, 900.0, SERVED, &["bytes: 1 against 2"]));
        let seeds = two(&runs);
        let figure = seeds.designs[1].figures.iter().find(|one| one.key == THROUGHPUT.key).expect("it is shown");
        assert_eq!((figure.mean, figure.values[3]), (Some(90e6), None));
        assert_eq!(seeds.differences[0].best, "a");
        let told = serde_json::to_value(&seeds).expect("it is plain data");
        assert_eq!(told["broken"], serde_json::json!([{ "name": "b", "seed": 10, "laws": ["bytes: 1 against 2"] }]));
        assert!(serde_json::to_value(two(&runs[..7])).expect("it is plain data").get("broken").is_none());
    }

    #[test]
    fn a_latency_of_no_request_is_none() {
        let (report, _) = example();
        let of = |name: &str, served| (7..11).map(|seed| run(name, seed, 90.0, served, &[])).collect::<Vec<_>>();
        let runs = [of("a", (10, 50.0)), of("b", (0, 0.0)), of("c", (10, 60.0))].concat();
        let seeds = over_seeds(&report, &[7, 8, 9, 10], &runs);
        let latency: Vec<_> = seeds.differences.iter().filter(|one| one.key == LATENCY_MEAN.key).collect();
        assert_eq!((latency.len(), latency[0].best.as_str(), latency[0].design.as_str()), (1, "a", "c"));
    }
}
