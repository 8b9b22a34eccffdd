//! The best runs, and the figures that do not rank them.

use crate::common::{IOPS, IOS, LATENCY_MEAN, LATENCY_P99, THROUGHPUT, THROUGHPUT_PER_DOLLAR};
use crate::figure::{Better, Figures, Metric, Value};
use crate::schema::{DesignResult, RunReport};

/// Figures that differ by less share a place.
const ALIKE: f64 = 0.01;
/// Halves of a window that differ by more are not those of a steady state. [A]
const STEADY: f64 = 0.1;

/// The best runs, by throughput, latency and money, in words, with the omitted rankings and the reasons. Runs within 1
/// % share a place. `None` for a single run, which is compared with nothing.
pub fn verdict_sentence(report: &RunReport) -> Option<String> {
    let runs: Vec<&DesignResult> = report.designs.iter().collect();
    if runs.is_empty() {
        return Some("no design was finished".to_owned());
    }
    if runs.len() == 1 {
        return None;
    }
    if different_loads(report) {
        return Some("these runs serve different loads, so none is called the best".to_owned());
    }
    let mut reasons = Vec::new();
    let mut ranked = vec![("most throughput", &THROUGHPUT), ("least mean latency", &LATENCY_MEAN)];
    match unranked_tails(report) {
        None => ranked.push(("least p99", &LATENCY_P99)),
        Some(reason) => reasons.push(reason),
    }
    // Systems have no such figure where nothing is asked of them, and one that has it alone is compared with nothing.
    ranked.retain(|(_, metric)| runs.iter().filter(|run| told(&run.figures, metric).is_some()).count() > 1);
    let mut parts: Vec<String> =
        ranked.iter().map(|(what, metric)| format!("{what}: {}", best(&runs, metric))).collect();
    let (hosted, own): (Vec<_>, Vec<_>) = runs.iter().copied().partition(|run| run.computes_on_host);
    let own: Vec<_> = own.into_iter().filter(|run| !run.figures.number(&THROUGHPUT_PER_DOLLAR).is_nan()).collect();
    if own.len() > 1 {
        parts.push(format!("most throughput for the money: {}", best(&own, &THROUGHPUT_PER_DOLLAR)));
    }
    if !hosted.is_empty() {
        reasons.push(format!(
            "energy and price do not rank {}: host cores do part of the work there, and their energy and price are \
             not known",
            listed(&hosted)
        ));
    }
    if parts.is_empty() {
        return None;
    }
    Some([parts.join("; ")].into_iter().chain(reasons).collect::<Vec<_>>().join("\n"))
}

/// Whether the runs of a report serve different loads, so that none of them is better than another.
pub(crate) fn different_loads(report: &RunReport) -> bool {
    report.explorer.as_ref().is_some_and(|explorer| explorer.loads.len() > 1)
}

/// Why percentiles of latency do not rank the runs of a report, where they do not.
pub(crate) fn unranked_tails(report: &RunReport) -> Option<String> {
    let rates = || report.designs.iter().map(|run| run.figures.number(&IOPS));
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    (report.closed_loop && most - least > ALIKE * most).then(|| {
        "percentiles of latency are not ranked: in a closed loop a slower design is asked for less, so fewer of its \
         requests wait for flash; compare at equal load, with workload.requests_per_second or a trace's arrivals"
            .to_owned()
    })
}

/// Names of the runs that are best in a figure.
fn best(runs: &[&DesignResult], metric: &Metric) -> String {
    let sign = if metric.better == Better::Less { -1.0 } else { 1.0 };
    let known: Vec<(&DesignResult, f64)> =
        runs.iter().filter_map(|&run| Some((run, sign * told(&run.figures, metric)?))).collect();
    let most = known.iter().map(|&(_, figure)| figure).fold(f64::NEG_INFINITY, f64::max);
    let near = |&&(_, figure): &&(&DesignResult, f64)| (figure - most).abs() <= ALIKE * most.abs();
    let near: Vec<&DesignResult> = known.iter().filter(near).map(|&(run, _)| run).collect();
    if near.len() == known.len() { "all alike".to_owned() } else { listed(&near) }
}

/// Requests that it takes until one is slower than the 99th percentile.
const P99_REQUESTS: u64 = 100;

/// A figure of a run, where it is a number.
pub(crate) fn known(figures: &Figures, metric: &Metric) -> Option<f64> {
    figures.get(metric).number().filter(|value| value.is_finite())
}

/// A figure by which a run may be ranked: of a percentile beyond all requests there is none.
pub(crate) fn told(figures: &Figures, metric: &Metric) -> Option<f64> {
    let is_told =
        metric.key != LATENCY_P99.key || figures.get(&IOS) == Value::Absent || figures.count(&IOS) >= P99_REQUESTS;
    known(figures, metric).filter(|_| is_told)
}

fn listed(runs: &[&DesignResult]) -> String {
    runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Notes that the two halves of a run's window differ, where they do so notably.
pub fn unsteady_sentence(run: &DesignResult) -> Option<String> {
    let [first, second] = run.halves[..] else { return None };
    let differ = |a: f64, b: f64| (a - b).abs() > STEADY * a.max(b);
    let mut changes = Vec::new();
    if differ(first.throughput_bytes_per_s, second.throughput_bytes_per_s) {
        let [before, after] = [first, second].map(|half| half.throughput_bytes_per_s / 1e9);
        changes.push(format!("throughput goes from {before:.3} to {after:.3} GB/s"));
    }
    if let (Some(before), Some(after)) = (first.write_amplification, second.write_amplification)
        && differ(before, after)
    {
        changes.push(format!("write amplification goes from {before:.2} to {after:.2}"));
    }
    (!changes.is_empty()).then(|| {
        format!(
            "{}: not steady: {} between the halves of the measured window; a longer warm-up or window would tell more",
            run.name,
            changes.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowHalf;
    use crate::html::tests::document;

    /// Runs with these names, requests a second, p99 and whether the host computes; throughput follows requests.
    fn report(closed_loop: bool, runs: &[(&str, f64, f64, bool)]) -> RunReport {
        let mut report = document().report;
        let run = report.designs[0].clone();
        report.closed_loop = closed_loop;
        report.designs = runs
            .iter()
            .map(|&(name, iops, p99, computes_on_host)| {
                let mut run = DesignResult { name: name.to_owned(), computes_on_host, ..run.clone() };
                run.figures.set(&IOS, 1000_u64);
                run.figures.set(&IOPS, iops);
                run.figures.set(&THROUGHPUT, 4096.0 * iops);
                run.figures.set(&THROUGHPUT_PER_DOLLAR, iops);
                run.figures.set(&LATENCY_P99, p99);
                run
            })
            .collect();
        report
    }

    #[test]
    fn a_closed_loop_at_unequal_load_ranks_no_tail() {
        let runs = [("conv", 1000.0, 90.0, false), ("shrunk", 600.0, 70.0, false)];
        let closed = verdict_sentence(&report(true, &runs)).expect("two runs are compared");
        assert!(closed.contains("most throughput: conv") && !closed.contains("least p99"), "{closed}");
        assert!(closed.contains("closed loop a slower design is asked for less"), "{closed}");
        let open = verdict_sentence(&report(false, &runs)).expect("two runs are compared");
        assert!(open.contains("least p99: shrunk") && !open.contains("closed loop"), "{open}");
        let equal = [("conv", 1000.0, 90.0, false), ("shrunk", 995.0, 70.0, false)];
        let equal = verdict_sentence(&report(true, &equal)).expect("two runs are compared");
        assert!(equal.contains("least p99: shrunk") && equal.contains("most throughput: all alike"), "{equal}");
    }

    #[test]
    fn a_design_that_computes_on_the_host_wins_no_money() {
        let runs = [("conv", 1000.0, 90.0, false), ("oc", 1100.0, 90.0, true), ("shrunk", 700.0, 90.0, false)];
        let text = verdict_sentence(&report(true, &runs)).expect("runs are compared");
        assert!(text.contains("most throughput: oc;") && text.contains("for the money: conv\n"), "{text}");
        assert!(text.contains("energy and price do not rank oc"), "{text}");
    }

    #[test]
    fn a_single_run_is_compared_with_nothing() {
        assert_eq!(verdict_sentence(&report(true, &[("conv", 1000.0, 90.0, false)])), None);
    }

    #[test]
    fn halves_that_differ_are_told_and_others_are_not() {
        let mut run = document().report.designs.remove(0);
        let half =
            |throughput_bytes_per_s, write_amplification| WindowHalf { throughput_bytes_per_s, write_amplification };
        run.halves = vec![half(525e6, Some(1.0)), half(77e6, Some(7.4))];
        let text = unsteady_sentence(&run).expect("they differ");
        assert!(text.contains("from 0.525 to 0.077 GB/s and write amplification goes from 1.00 to 7.40"), "{text}");
        run.halves = vec![half(525e6, None), half(500e6, Some(7.4))];
        assert_eq!(unsteady_sentence(&run), None);
        run.halves.clear();
        assert_eq!(unsteady_sentence(&run), None);
    }

    #[test]
    fn runs_of_a_system_without_prices_are_not_ranked_by_money() {
        let mut report = report(false, &[("a", 2.0, 1.0, false), ("b", 1.0, 1.0, false)]);
        assert!(verdict_sentence(&report).expect("there are two").contains("for the money: a"));
        for run in &mut report.designs {
            let kept = run.figures.iter().filter(|(metric, _)| metric.key != THROUGHPUT_PER_DOLLAR.key);
            run.figures = kept.collect();
        }
        let text = verdict_sentence(&report).expect("there are two");
        assert!(text.contains("most throughput: a") && !text.contains("money"), "{text}");
    }

    #[test]
    fn a_latency_of_no_request_is_not_the_least() {
        let mut report = report(false, &[("a", 2.0, 5.0, false), ("b", 2.0, 6.0, false), ("idle", 0.0, 0.0, false)]);
        for (run, mean) in report.designs.iter_mut().zip([Some(5.0), Some(6.0), None]) {
            run.figures.set(&LATENCY_MEAN, mean);
        }
        report.designs[2].figures.set(&LATENCY_P99, None);
        report.designs[2].figures.set(&IOS, 0_u64);
        let text = verdict_sentence(&report).expect("there are three");
        assert!(text.contains("least mean latency: a;") && text.contains("least p99: a;"), "{text}");
        // Two runs that have the figure and are alike in it, and one that has none.
        report.designs[1].figures.set(&LATENCY_MEAN, 5.0);
        let text = verdict_sentence(&report).expect("there are three");
        assert!(text.contains("least mean latency: all alike;"), "{text}");
    }

    #[test]
    fn a_percentile_beyond_all_requests_ranks_nothing() {
        let mut report = report(false, &[("a", 2.0, 5.0, false), ("b", 2.0, 6.0, false)]);
        assert!(verdict_sentence(&report).expect("there are two").contains("least p99: a"));
        report.designs[0].figures.set(&IOS, 99_u64);
        assert!(!verdict_sentence(&report).expect("there are two").contains("p99"));
    }
}
