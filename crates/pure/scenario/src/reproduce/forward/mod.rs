//! The FF-SSD study: how close fast-forward ageing comes to full simulation, and its rivals.
//!
//! A run is one life that is simulated in full, and then aged in fast-forward in every way that is asked for. Numbers
//! are accuracies over the blocks at the end of the full one.

mod charts;
mod numbers;
mod runs;

use super::number::Number;
use super::{Reproduction, ReproductionError, StudyError, chosen};
use crate::Files;
use crate::parse::{ScenarioError, resolve};
use crate::schema::Scenario;
use flashyard_report::{ChartSection, Comparison, Expectations, ForwardRecord};
use runs::ForwardRun;
use serde_json::Value;

/// A number made of comparisons.
type ForwardNumber = Number<ForwardRun, ForwardRecord>;

/// The FF-SSD reproduction.
pub struct ForwardStudy {
    base: Scenario,
    files: &'static dyn Files,
    expectations: Expectations,
    numbers: Vec<ForwardNumber>,
    wanted: Vec<String>,
    runs: Vec<ForwardRun>,
}

impl ForwardStudy {
    /// The study, for all numbers or for those named in `ids`.
    ///
    /// Errors: an id that is not there.
    pub fn new(ids: &[String], files: &'static dyn Files) -> Result<Self, StudyError> {
        let text = include_str!("../../../../../../scenarios/ff-ssd/scenario.toml");
        let base = resolve(text, "scenarios/ff-ssd/scenario.toml", &[], files)?.scenario;
        let expectations = Expectations::parse(include_str!("../../../../../../scenarios/ff-ssd/expected.toml"))?;
        super::check_ids(&expectations, ids)?;
        let numbers = numbers::numbers();
        let runs = super::runs_of(&numbers, ids);
        Ok(Self { base, files, expectations, numbers, wanted: ids.to_vec(), runs })
    }
}

impl Reproduction for ForwardStudy {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(ForwardRun::name).collect()
    }

    fn carry_out(&self, index: usize, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<Value>, ScenarioError> {
        let record = self.runs[index].carry_out(&self.base, self.files, observer)?;
        Ok(record.map(|record| serde_json::to_value(record).expect("a record is plain data")))
    }

    fn compare(&self, finished: &[(String, Value)]) -> Result<Vec<Comparison>, ReproductionError> {
        let records = super::records_of(&self.runs, ForwardRun::name, finished)?;
        Ok(chosen(&self.expectations, &self.wanted, |id| {
            self.numbers.iter().find(|number| number.id == id)?.value_of(&records)
        }))
    }

    fn details(&self, finished: &[(String, Value)]) -> Result<String, ReproductionError> {
        let records: Result<Vec<ForwardRecord>, _> =
            finished.iter().map(|(name, value)| super::read_record(name, value)).collect();
        Ok(flashyard_report::forward_table(&records?))
    }

    fn charts(
        &self,
        finished: &[(String, Value)],
        comparisons: &[Comparison],
    ) -> Result<Vec<ChartSection>, ReproductionError> {
        let records = super::records_of(&self.runs, ForwardRun::name, finished)?;
        Ok(charts::sections(&records, comparisons))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::tests::NoFiles;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        let study = ForwardStudy::new(&[], &NoFiles).expect("the study is complete");
        let rows: BTreeSet<u32> = study.expectations.expectation.iter().map(|entry| entry.row).collect();
        assert!(rows.iter().copied().eq(1..=10), "{rows:?}");
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
}
