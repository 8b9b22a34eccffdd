//! The capacity-variant storage study: lives of drives with the file system above them, under sets of causes.
//!
//! Numbers by subject: `closed` (arithmetic), `numbers` (overwrites), `trees` (YCSB and traces). The scenario is one of its own, `section`: sets of
//! causes and loads by name.

mod charts;
mod closed;
mod numbers;
mod runs;
mod section;
mod trees;

use super::number::Number;
use super::{Reproduction, ReproductionError, StudyError, chosen};
use crate::parse::ScenarioError;
use flashyard_report::{CapacityRecord, ChartSection, Comparison, Expectations};
use runs::CvssRun;
use section::CvssScenario;
use serde_json::Value;

/// A number made of lives.
type CapacityNumber = Number<CvssRun, CapacityRecord>;

/// The reproduction of the capacity-variant storage system.
pub struct CvssStudy {
    base: CvssScenario,
    expectations: Expectations,
    numbers: Vec<CapacityNumber>,
    wanted: Vec<String>,
    runs: Vec<CvssRun>,
}

impl CvssStudy {
    /// The study, for all numbers or for those named in `ids`.
    ///
    /// Errors: an id that is not there.
    pub fn new(ids: &[String]) -> Result<Self, StudyError> {
        let base = CvssScenario::parse(include_str!("../../../../../../scenarios/cvss/scenario.toml"))?;
        let expectations = Expectations::parse(include_str!("../../../../../../scenarios/cvss/expected.toml"))?;
        super::check_ids(&expectations, ids)?;
        let mut numbers = closed::numbers();
        numbers.extend(numbers::numbers());
        numbers.extend(trees::numbers());
        let runs = super::runs_of(&numbers, ids);
        Ok(Self { base, expectations, numbers, wanted: ids.to_vec(), runs })
    }
}

impl Reproduction for CvssStudy {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(CvssRun::name).collect()
    }

    fn carry_out(&self, index: usize, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<Value>, ScenarioError> {
        let life = self.runs[index].carry_out(&self.base, observer)?;
        Ok(life.map(|life| serde_json::to_value(life).expect("a record is plain data")))
    }

    fn compare(&self, finished: &[(String, Value)]) -> Result<Vec<Comparison>, ReproductionError> {
        let lives = super::records_of(&self.runs, CvssRun::name, finished)?;
        Ok(chosen(&self.expectations, &self.wanted, |id| {
            self.numbers.iter().find(|number| number.id == id)?.value_of(&lives)
        }))
    }

    fn details(&self, finished: &[(String, Value)]) -> Result<String, ReproductionError> {
        let lives: Result<Vec<CapacityRecord>, _> =
            finished.iter().map(|(name, value)| super::read_record(name, value)).collect();
        Ok(flashyard_report::capacity_table(&lives?))
    }

    fn charts(
        &self,
        finished: &[(String, Value)],
        comparisons: &[Comparison],
    ) -> Result<Vec<ChartSection>, ReproductionError> {
        let lives = super::records_of(&self.runs, CvssRun::name, finished)?;
        Ok(charts::sections(&lives, comparisons))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        let study = CvssStudy::new(&[]).expect("the study is complete");
        let rows: BTreeSet<u32> = study.expectations.expectation.iter().map(|entry| entry.row).collect();
        assert!(rows.iter().copied().eq(1..=22), "{rows:?}");
        for expectation in &study.expectations.expectation {
            let made = study.numbers.iter().filter(|number| number.id == expectation.id).count();
            assert!(made == 1 || (made == 0 && expectation.note.starts_with("not simulated: ")), "{}", expectation.id);
        }
        for number in &study.numbers {
            let count = study.expectations.expectation.iter().filter(|entry| entry.id == number.id).count();
            assert_eq!(count, 1, "{}", number.id);
        }
        let names: BTreeSet<String> = study.runs().into_iter().collect();
        assert_eq!(names.len(), study.runs().len());
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
