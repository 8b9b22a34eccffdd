//! Effects of lending in each run of a sweep: borrowers and the other busy drives apart.

use super::drive::{REDIRECTED_SETTLED, REDIRECTED_SHARE, REDIRECTED_SWING};
use super::run::{CONTENDED, PROCESSORS_TAKEN};
use flashyard_report::{DRIVE, DesignResult, Figures, IOS, LATENCY_P99, Metric, RunReport, THROUGHPUT, text_table};

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
    fn of(drives: &[&Figures]) -> Option<Self> {
        let count = drives.len() as f64;
        let sum = |metric: &Metric| drives.iter().map(|drive| drive.number(metric)).sum::<f64>();
        let most = |metric: &Metric| drives.iter().map(|drive| drive.number(metric)).fold(0.0, f64::max);
        let bytes_per_s = sum(&THROUGHPUT);
        let squares = drives.iter().map(|drive| drive.number(&THROUGHPUT) * drive.number(&THROUGHPUT)).sum::<f64>();
        let settled = |drive: &Figures| drive.get(&REDIRECTED_SETTLED).number();
        let last = |last: Option<f64>, drive: &&Figures| Some(last?.max(settled(drive)?));
        (!drives.is_empty()).then(|| Self {
            bytes_per_s,
            p99_us: most(&LATENCY_P99),
            fairness: if squares > 0.0 { bytes_per_s * bytes_per_s / squares / count } else { 1.0 },
            redirected: sum(&REDIRECTED_SHARE) / count,
            swing: most(&REDIRECTED_SWING),
            settled_seconds: drives.iter().fold(Some(0.0), last),
        })
    }
}

/// Figures of the drives of a run.
fn drives(run: &DesignResult) -> impl Iterator<Item = &Figures> {
    run.components.of(&DRIVE).iter().map(|drive| &drive.figures)
}

/// Borrowers and other busy drives of one run. All runs determine the borrowers, so that rows can be compared.
fn groups(report: &RunReport, design: &DesignResult) -> [Option<Group>; 2] {
    let borrows = |number: usize| {
        let mut in_runs = report.designs.iter().filter_map(|run| drives(run).nth(number));
        in_runs.any(|drive| drive.number(&REDIRECTED_SHARE) > BORROWS)
    };
    [true, false].map(|borrowers| {
        let busy = drives(design).enumerate().filter(|(_, drive)| drive.count(&IOS) > 0);
        let members: Vec<&Figures> =
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
pub(super) fn lending_table(report: &RunReport, width: usize) -> Option<String> {
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
        let cell = |group: &Option<Group>, figure: fn(&Group) -> String| group.as_ref().map_or("-".to_owned(), figure);
        vec![
            design.name.clone(),
            cell(&borrowers, |group| format!("{:.2}", group.bytes_per_s / 1e9)),
            cell(&borrowers, |group| format!("{:.1}", group.p99_us)),
            cell(&borrowers, |group| format!("{:.1}", group.fairness * 100.0)),
            cell(&borrowers, |group| format!("{:.1}", group.redirected * 100.0)),
            cell(&borrowers, |group| format!("{:.1}", group.swing * 100.0)),
            cell(&borrowers, |group| group.settled_seconds.map_or("never".to_owned(), |s| format!("{:.0}", s * 1e3))),
            cell(&others, |group| format!("{:.2}", group.bytes_per_s / 1e9)),
            cell(&others, |group| format!("{:.1}", group.p99_us)),
            design.figures.count(&PROCESSORS_TAKEN).to_string(),
            design.figures.count(&CONTENDED).to_string(),
        ]
    };
    Some(text_table(&header, report.designs.iter().map(row).collect(), width))
}

#[cfg(test)]
mod tests {
    use super::super::DECLARATION;
    use super::*;
    use flashyard_report::{ByKind, Component, Laws};

    fn design(setting: &str, drives: &[(f64, f64)]) -> DesignResult {
        let drive = |&(redirected, throughput): &(f64, f64)| Component {
            name: String::new(),
            figures: [
                (&IOS, 1_u64.into()),
                (&THROUGHPUT, throughput.into()),
                (&REDIRECTED_SHARE, redirected.into()),
                (&REDIRECTED_SETTLED, Some(0.02).into()),
            ]
            .into_iter()
            .collect(),
        };
        DesignResult {
            name: "proch".to_owned(),
            design: "proch".to_owned(),
            computes_on_host: false,
            point: vec![setting.to_owned()],
            declared: &DECLARATION,
            figures: Figures::default(),
            latency_split: Vec::new(),
            causes: Vec::new(),
            halves: Vec::new(),
            laws: Laws::default(),
            components: ByKind::new(&DRIVE, drives.iter().map(drive).collect()),
        }
    }

    fn report(key: &str) -> RunReport {
        let design = |balance: &str, drives: &[(f64, f64)]| design(&format!("{key}={balance}"), drives);
        RunReport {
            scenario: String::new(),
            title: String::new(),
            command: String::new(),
            about: Vec::new(),
            closed_loop: true,
            notes: Vec::new(),
            seed: 1,
            simulated_seconds: 1.0,
            wall_seconds: 1.0,
            workload: String::new(),
            scaling: Vec::new(),
            complete: true,
            designs: vec![
                design("damped", &[(0.4, 3e9), (0.3, 1e9), (0.0, 5e9)]),
                design("literal", &[(0.0, 3e9), (0.0, 1e9), (0.0, 5e9)]),
            ],
            explorer: None,
            seeds: None,
            failed: Vec::new(),
            interrupted: false,
        }
    }

    #[test]
    fn who_borrows_in_any_run_is_a_borrower_in_all() {
        let report = report("harvest.balance");
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
        let text = lending_table(&report("harvest.balance"), 80).expect("harvest.balance is swept");
        assert!(text.contains("4.00") && text.contains("5.00") && text.contains("20"), "{text}");
        assert_eq!(lending_table(&report("drive.cores"), 80), None);
    }
}
