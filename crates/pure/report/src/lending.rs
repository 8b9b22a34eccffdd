//! Effects of lending in each run of a sweep: borrowers and the other busy drives apart.

use crate::fitted::{fitted, right};
use crate::schema::{DesignResult, DriveResult, RunReport};
use comfy_table::Cell;

/// A drive that sent less of its commands to lenders in every run is no borrower, whatever it lent. [A]
const BORROWS: f64 = 0.01;

/// Figures of several drives as one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Group {
    bytes_per_s: f64,
    /// The worst of the drives.
    p99_us: f64,
    /// Jain's index of their throughputs: 1 when all are alike, 1/n when one has everything.
    fairness: f64,
    redirected: f64,
    swing: f64,
    /// The last of the drives; `None` when one does not settle.
    settled_seconds: Option<f64>,
}

impl Group {
    fn of(drives: &[&DriveResult]) -> Option<Self> {
        let count = drives.len() as f64;
        let sum = |figure: fn(&DriveResult) -> f64| drives.iter().map(|drive| figure(drive)).sum::<f64>();
        let most = |figure: fn(&DriveResult) -> f64| drives.iter().map(|drive| figure(drive)).fold(0.0, f64::max);
        let bytes_per_s = sum(|drive| drive.throughput_bytes_per_s);
        let squares = sum(|drive| drive.throughput_bytes_per_s * drive.throughput_bytes_per_s);
        let last = |settled: Option<f64>, drive: &&DriveResult| Some(settled?.max(drive.redirected_settled_seconds?));
        (!drives.is_empty()).then(|| Self {
            bytes_per_s,
            p99_us: most(|drive| drive.latency_us.p99),
            fairness: if squares > 0.0 { bytes_per_s * bytes_per_s / squares / count } else { 1.0 },
            redirected: sum(|drive| drive.redirected_share) / count,
            swing: most(|drive| drive.redirected_swing),
            settled_seconds: drives.iter().fold(Some(0.0), last),
        })
    }
}

/// Borrowers and other busy drives of one run. All runs determine the borrowers, so that rows can be compared.
fn groups(report: &RunReport, design: &DesignResult) -> [Option<Group>; 2] {
    let borrows = |number: usize| {
        let in_runs = report.designs.iter().filter_map(|run| run.drives.get(number));
        in_runs.into_iter().any(|drive| drive.redirected_share > BORROWS)
    };
    [true, false].map(|borrowers| {
        let busy = design.drives.iter().enumerate().filter(|(_, drive)| drive.ios > 0);
        let members: Vec<&DriveResult> =
            busy.filter(|&(number, _)| borrows(number) == borrowers).map(|(_, drive)| drive).collect();
        Group::of(&members)
    })
}

/// Whether the runs differ in how drives lend: then the table of lending tells more than the others.
fn is_about_lending(report: &RunReport) -> bool {
    report.designs.iter().any(|design| design.point.iter().any(|setting| setting.starts_with("harvest.")))
}

/// One row a run, with units in the header, at most `width` characters wide; `None` unless the report is of a sweep of
/// `harvest` keys.
pub fn lending_table(report: &RunReport, width: usize) -> Option<String> {
    if !is_about_lending(report) {
        return None;
    }
    let header = [
        "run",
        "borrowers\nGB/s",
        "p99\nus",
        "even\n%",
        "redirected\n%",
        "swing\npoints",
        "settled\nms",
        "others\nGB/s",
        "p99\nus",
        "offers\ntaken",
        "came\ntoo late",
    ];
    let row = |design: &DesignResult| {
        let [borrowers, others] = groups(report, design);
        let cell =
            |group: &Option<Group>, figure: fn(&Group) -> String| right(group.as_ref().map_or("-".to_owned(), figure));
        vec![
            Cell::new(&design.name),
            cell(&borrowers, |group| format!("{:.2}", group.bytes_per_s / 1e9)),
            cell(&borrowers, |group| format!("{:.1}", group.p99_us)),
            cell(&borrowers, |group| format!("{:.1}", group.fairness * 100.0)),
            cell(&borrowers, |group| format!("{:.1}", group.redirected * 100.0)),
            cell(&borrowers, |group| format!("{:.1}", group.swing * 100.0)),
            cell(&borrowers, |group| group.settled_seconds.map_or("never".to_owned(), |s| format!("{:.0}", s * 1e3))),
            cell(&others, |group| format!("{:.2}", group.bytes_per_s / 1e9)),
            cell(&others, |group| format!("{:.1}", group.p99_us)),
            right(design.harvest.processors_taken.to_string()),
            right(design.harvest.contended.to_string()),
        ]
    };
    Some(fitted(1, &header, &report.designs.iter().map(row).collect::<Vec<_>>(), width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::document;

    fn report() -> RunReport {
        let mut report = document().report;
        let drive = report.designs[0].drives[0].clone();
        let with = |redirected_share: f64, throughput_bytes_per_s: f64| DriveResult {
            redirected_share,
            throughput_bytes_per_s,
            redirected_settled_seconds: Some(0.02),
            ..drive.clone()
        };
        report.designs[0].drives = vec![with(0.4, 3e9), with(0.3, 1e9), with(0.0, 5e9)];
        report.designs[0].point = vec!["harvest.balance=damped".to_owned()];
        let mut without = report.designs[0].clone();
        without.drives.iter_mut().for_each(|drive| drive.redirected_share = 0.0);
        without.point = vec!["harvest.balance=literal".to_owned()];
        report.designs.push(without);
        report
    }

    #[test]
    fn who_borrows_in_any_run_is_a_borrower_in_all() {
        let report = report();
        for design in &report.designs {
            let [borrowers, others] = groups(&report, design).map(|group| group.expect("there are some"));
            assert_eq!((borrowers.bytes_per_s, others.bytes_per_s), (4e9, 5e9));
            // (3 + 1)^2 / (9 + 1) / 2
            assert!((borrowers.fairness - 0.8).abs() < 1e-12);
            assert_eq!(borrowers.settled_seconds, Some(0.02));
        }
    }

    #[test]
    fn only_sweeps_of_harvest_keys_have_the_table() {
        let text = lending_table(&report(), 80).expect("harvest.balance is swept");
        assert!(text.contains("4.00") && text.contains("5.00") && text.contains("20"), "{text}");
        assert_eq!(lending_table(&document().report, 80), None);
    }
}
