//! From the figures of a JBOF to those of reports.
//!
//! A row of a table here is a metric with the function that computes it: tables, JSON, Parquet, `docs/results.md` and the
//! report page follow from it. A new figure is a new row; a metric that other code reads has a name besides.

pub mod drive;
mod lending;
pub mod run;
pub mod series;
pub mod wear;

use self::drive::DriveFacts;
use super::groups::OneDrive;
use super::steadiness::halves;
use crate::jbof::{JbofFigures, SanityReport};
use flashyard_describe::figures::split_rows;
use flashyard_report::{ByKind, Cause, Component, DRIVE, Declaration, DesignResult, ExtraTable, Laws, Part};

/// Where the time of a request goes in a JBOF, in the order in which a request meets them.
pub static CAUSES: [Cause; 10] = [
    Cause { key: "host", label: "Host software", note: "submission and completion on host cores, and waiting for one" },
    Cause { key: "queue", label: "Submission queue", note: "waiting for a drive core" },
    Cause { key: "core", label: "Drive core", note: "firmware work, with stalls on the drive's own memory" },
    Cause { key: "mapping", label: "Mapping", note: "translation pages read from flash, and waiting for them" },
    Cause { key: "link", label: "Host link", note: "host data over the drive's link, and waiting for its turn" },
    Cause { key: "bus", label: "Flash bus", note: "transfers on the channel, and waiting for the channel" },
    Cause { key: "die", label: "Flash die", note: "array time, and waiting for host commands on the same die" },
    Cause { key: "retry", label: "Read retry", note: "sensing a page again after an error" },
    Cause {
        key: "gc_wait",
        label: "Reclaim wait",
        note: "waiting behind garbage collection, or for the space it frees",
    },
    Cause { key: "inter_ssd", label: "Other drives", note: "messages and memory accesses between drives" },
];

/// Declaration of the figures of a JBOF.
pub static DECLARATION: Declaration = Declaration {
    metrics: run::metrics,
    shown: run::SHOWN,
    parts: &[Part { kind: &DRIVE, metrics: drive::metrics, series: series::metrics, timeline: "timeline", shown: &[] }],
    causes: &CAUSES,
    tables: &[
        ExtraTable {
            about: "what lending did; others are busy drives that borrow nothing:",
            text: lending::lending_table,
        },
        ExtraTable { about: "what wear has made of the busy drives and of reading them:", text: wear::wear_table },
    ],
};

/// Figures of one design, as reports have them.
pub(crate) fn design_result(figures: &JbofFigures, drives: &[OneDrive]) -> DesignResult {
    let components = drives.iter().enumerate();
    DesignResult {
        point: Vec::new(),
        name: figures.design.name().to_owned(),
        design: figures.design.name().to_owned(),
        computes_on_host: figures.design.computes_on_host(),
        declared: &DECLARATION,
        figures: run::figures(figures, drives.iter().map(|drive| drive.price).sum()),
        latency_split: split_rows(&figures.split),
        causes: CAUSES.to_vec(),
        halves: halves(figures).map_or_else(Vec::new, Vec::from),
        laws: laws(&figures.sanity),
        components: ByKind::new(&DRIVE, components.map(|(number, one)| component(figures, number, one)).collect()),
    }
}

fn component(figures: &JbofFigures, number: usize, one: &OneDrive) -> Component {
    let page_bytes = one.model.drive.nand.geometry.page_bytes;
    let figures = drive::figures(figures, number, &DriveFacts { price: one.price, page_bytes });
    Component { name: one.name.clone(), figures }
}

fn laws(sanity: &SanityReport) -> Laws {
    Laws { hold: sanity.holds(), broken: sanity.broken().map(ToString::to_string).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jbof::SanityCheck;
    use flashyard_report::Metric;

    #[test]
    fn a_law_that_does_not_hold_is_named_with_both_of_its_sides() {
        let check = |law, counted| SanityCheck { law, expected: 7, counted };
        let whole = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 7)] });
        assert!(whole.hold && whole.broken.is_empty());
        let broken = laws(&SanityReport { checks: vec![check("bytes", 7), check("time", 8)] });
        assert!(!broken.hold);
        assert_eq!(broken.broken, ["time: 7 against 8"]);
    }

    #[test]
    fn no_two_metrics_of_a_component_share_a_name_in_json_or_in_parquet() {
        let lists = DECLARATION.parts.iter().flat_map(|part| [part.metrics, part.series]);
        for list in std::iter::once(DECLARATION.metrics).chain(lists) {
            for name in [|metric: &Metric| metric.key.to_owned(), |metric: &Metric| metric.column_name().into_owned()] {
                let mut names: Vec<String> = list().into_iter().map(name).collect();
                let count = names.len();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), count, "{names:?}");
            }
        }
    }
}
