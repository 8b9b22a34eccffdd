//! The capacity-variant storage study: lives of drives with the file system above them, under sets of causes.
//!
//! Numbers by subject: `closed` (arithmetic), `numbers` (overwrites), `trees` (YCSB and traces). The scenario is one of
//! its own, `section`: sets of causes and loads by name.

mod charts;
mod closed;
mod numbers;
mod runs;
mod section;
mod trees;

use crate::cvss::Design;
use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use flashyard_describe::{DesignInfo, Room, Study, boxed};
use flashyard_units::Named;
use runs::CvssRun;
use section::CvssScenario;

/// Capacity-variant storage and its rivals.
pub struct Cvss;

impl Room for Cvss {
    fn name(&self) -> &'static str {
        "cvss"
    }

    fn about(&self) -> &'static str {
        "a drive that gives up worn capacity in place of performance, with the file system above it"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        let about = |design| match design {
            Design::Traditional => "fixed capacity, progressive wear leveling",
            Design::Literal => "variable capacity as the paper describes it",
            Design::Artifact => "variable capacity as the public artifact does it",
            Design::Tuned => "the artifact's, with a required performance and a frontier for data that is read much",
            Design::AutoStream => "the traditional drive with eight streams by access pattern",
            Design::TtFlash => {
                "the traditional drive with a parity page for every seven, and garbage collection in turn"
            }
        };
        Design::ALL.iter().map(|&design| DesignInfo::new(design.name(), about(design))).collect()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study of the capacity-variant storage system, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<CvssRun>, StudyError> {
    let base = CvssScenario::parse(include_str!("../../../../../../scenarios/cvss/scenario.toml"))?;
    let expectations = include_str!("../../../../../../scenarios/cvss/expected.toml");
    let mut numbers = closed::numbers();
    numbers.extend(numbers::numbers());
    numbers.extend(trees::numbers());
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 22);
    }

    #[test]
    fn a_scenario_that_is_wrong_is_refused_in_words() {
        let text = include_str!("../../../../../../scenarios/cvss/scenario.toml");
        let refused = |from: &str, to: &str| {
            let scenario = CvssScenario::parse(&text.replacen(from, to, 1));
            let error =
                scenario.and_then(|scenario| scenario.file_system("scattered-limited")).expect_err("it is wrong");
            error.to_string()
        };
        assert!(refused("seed = 1", "sede = 1").contains("line 3"), "{}", refused("seed = 1", "sede = 1"));
        assert!(refused("discards_per_page = 0.3 ", "").contains("discards_per_page"));
    }
}
