//! A study of long runs that have names: what those of whole lives share.

use super::StudyError;
use super::number::Number;
use super::resumable::{Reproduction, ReproductionError, check_ids, chosen, runs_of};
use crate::Files;
use crate::parse::ScenarioError;
use flashyard_report::{ChartSection, Comparison, Expectations};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One run of such a study.
pub(crate) trait NamedRun: Copy + PartialEq + Sync {
    /// The scenario that all runs begin with.
    type Base: Sync;
    /// What a run leaves behind: plain data.
    type Record: Serialize + DeserializeOwned;

    /// The run in words, all that makes it: the name under which its record is kept.
    fn name(&self) -> String;

    /// Carries the run out; `None` when the observer stopped it.
    ///
    /// Errors: a world that cannot be built.
    fn carry_out(
        &self,
        base: &Self::Base,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Self::Record>, ScenarioError>;

    /// The records as a table for people.
    fn table(records: &[Self::Record]) -> String;

    /// The records as charts, beside the published figures where there are any.
    fn charts(records: &[(Self, Self::Record)], comparisons: &[Comparison]) -> Vec<ChartSection>;
}

/// The study: published numbers, and the runs that they are made of.
pub(crate) struct NamedStudy<R: NamedRun> {
    pub(crate) base: R::Base,
    pub(crate) files: &'static dyn Files,
    expectations: Expectations,
    numbers: Vec<Number<R, R::Record>>,
    wanted: Vec<String>,
    pub(crate) runs: Vec<R>,
}

impl<R: NamedRun> NamedStudy<R> {
    /// The study, for all numbers or for those named in `ids`; `expectations` is the text of the published ones.
    ///
    /// Errors: an id that is not there.
    pub(crate) fn new(
        base: R::Base,
        files: &'static dyn Files,
        expectations: &str,
        numbers: Vec<Number<R, R::Record>>,
        ids: &[String],
    ) -> Result<Self, StudyError> {
        let expectations = Expectations::parse(expectations)?;
        check_ids(&expectations, ids)?;
        let runs = runs_of(&numbers, ids);
        Ok(Self { base, files, expectations, numbers, wanted: ids.to_vec(), runs })
    }

    /// The study with runs that no number is made of but its charts, when all of it was asked for.
    pub(crate) fn with_drawn(mut self, drawn: Vec<R>) -> Self {
        let wanted = drawn.into_iter().filter(|_| self.wanted.is_empty());
        for run in wanted {
            if !self.runs.contains(&run) {
                self.runs.push(run);
            }
        }
        self
    }

    /// The finished runs with their records, in the order of the study.
    fn records(&self, finished: &[(String, Value)]) -> Result<Vec<(R, R::Record)>, ReproductionError> {
        let mut records = Vec::new();
        for run in &self.runs {
            let name = run.name();
            if let Some((_, value)) = finished.iter().find(|entry| entry.0 == name) {
                records.push((*run, read_record(&name, value)?));
            }
        }
        Ok(records)
    }
}

fn read_record<T: DeserializeOwned>(run: &str, value: &Value) -> Result<T, ReproductionError> {
    T::deserialize(value).map_err(|error| ReproductionError { run: run.to_owned(), message: error.to_string() })
}

impl<R: NamedRun> Reproduction for NamedStudy<R> {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(R::name).collect()
    }

    fn carry_out(&self, index: usize, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<Value>, ScenarioError> {
        let record = self.runs[index].carry_out(&self.base, self.files, observer)?;
        Ok(record.map(|record| serde_json::to_value(record).expect("a record is plain data")))
    }

    fn compare(&self, finished: &[(String, Value)]) -> Result<Vec<Comparison>, ReproductionError> {
        let records = self.records(finished)?;
        Ok(chosen(&self.expectations, &self.wanted, |id| {
            self.numbers.iter().find(|number| number.id == id)?.value_of(&records)
        }))
    }

    fn details(&self, finished: &[(String, Value)]) -> Result<String, ReproductionError> {
        let records: Result<Vec<R::Record>, _> =
            finished.iter().map(|(name, value)| read_record(name, value)).collect();
        Ok(R::table(&records?))
    }

    fn charts(
        &self,
        finished: &[(String, Value)],
        comparisons: &[Comparison],
    ) -> Result<Vec<ChartSection>, ReproductionError> {
        Ok(R::charts(&self.records(finished)?, comparisons))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reproduce::tests;
    use std::collections::BTreeSet;

    /// Numbers are as their kinds say, and runs have different names.
    pub(crate) fn assert_complete<R: NamedRun>(study: &NamedStudy<R>, rows: u32) {
        tests::assert_complete(&study.expectations, &study.numbers, rows);
        let names: BTreeSet<String> = study.runs().into_iter().collect();
        assert_eq!(names.len(), study.runs.len());
    }
}
