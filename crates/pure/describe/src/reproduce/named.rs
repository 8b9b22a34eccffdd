//! A study whose runs have names and records.

use super::number::Number;
use super::study::{Reproduction, ReproductionError, StudyError};
use crate::error::ScenarioError;
use crate::files::Files;
use flashyard_report::{ChartSection, Comparison, Expectations, Kind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// One run of such a study.
pub trait NamedRun: Copy + PartialEq + Send + Sync {
    /// The scenario that all runs begin with.
    type Base: Send + Sync;
    /// Record of a run: plain data.
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
}

/// Draws records as charts, beside the published figures where there are any.
pub type Draw<R> = fn(&[(R, <R as NamedRun>::Record)], &[Comparison]) -> Vec<ChartSection>;

/// The study: published numbers, and the runs that they are made of.
pub struct NamedStudy<R: NamedRun> {
    /// The platform that every run begins with.
    pub base: R::Base,
    /// Files that runs read.
    pub files: &'static dyn Files,
    expectations: Expectations,
    numbers: Vec<Number<R, R::Record>>,
    wanted: Vec<String>,
    draw: Draw<R>,
    /// The runs that wanted numbers need, each once.
    pub runs: Vec<R>,
}

impl<R: NamedRun> NamedStudy<R> {
    /// The study, for all numbers or for those named in `ids`; `expectations` is the text of the published ones.
    ///
    /// Errors: an id that is not there.
    pub fn new(
        base: R::Base,
        files: &'static dyn Files,
        expectations: &str,
        numbers: Vec<Number<R, R::Record>>,
        ids: &[String],
    ) -> Result<Self, StudyError> {
        let expectations = Expectations::parse(expectations)?;
        check_ids(&expectations, ids)?;
        let runs = runs_of(&numbers, ids);
        Ok(Self { base, files, expectations, numbers, wanted: ids.to_vec(), draw: |_, _| Vec::new(), runs })
    }

    /// The study with runs that no number is made of but its charts, when all of it was asked for.
    pub fn with_drawn(mut self, drawn: Vec<R>) -> Self {
        let wanted = drawn.into_iter().filter(|_| self.wanted.is_empty());
        for run in wanted {
            if !self.runs.contains(&run) {
                self.runs.push(run);
            }
        }
        self
    }

    /// The study with charts.
    pub fn with_charts(self, draw: Draw<R>) -> Self {
        Self { draw, ..self }
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
        Ok((self.draw)(&self.records(finished)?, comparisons))
    }
}

/// Errors: an id that is not among the expectations.
fn check_ids(expectations: &Expectations, ids: &[String]) -> Result<(), StudyError> {
    let known = || expectations.expectation.iter().map(|entry| entry.id.as_str());
    match ids.iter().find(|id| !known().any(|entry| entry == id.as_str())) {
        Some(id) => Err(StudyError::Unknown(id.clone(), known().collect::<Vec<_>>().join(", "))),
        None => Ok(()),
    }
}

fn wants(wanted: &[String], id: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == id)
}

/// The runs that the wanted numbers need, each once.
fn runs_of<R: PartialEq + Copy, F>(numbers: &[Number<R, F>], wanted: &[String]) -> Vec<R> {
    let mut runs: Vec<R> = Vec::new();
    for number in numbers.iter().filter(|number| wants(wanted, &number.id)) {
        for run in &number.runs {
            if !runs.contains(run) {
                runs.push(*run);
            }
        }
    }
    runs
}

/// The wanted expectations beside what `measure` says of their ids.
fn chosen(expectations: &Expectations, wanted: &[String], measure: impl Fn(&str) -> Option<f64>) -> Vec<Comparison> {
    let chosen = expectations.expectation.iter().filter(|expectation| wants(wanted, &expectation.id));
    chosen.map(|expectation| Comparison::new(expectation, &expectations.constant, measure(&expectation.id))).collect()
}

/// Panics unless the expectations of a study, its formulas and its runs go together: rows are numbered without a gap up
/// to `rows`, every measured number has one formula, every predicted one a run, and runs have names of their own. For
/// the tests of studies.
pub fn assert_complete<R: NamedRun>(study: &NamedStudy<R>, rows: u32) {
    let (expectations, numbers) = (&study.expectations, &study.numbers);
    let found: BTreeSet<u32> = expectations.expectation.iter().map(|entry| entry.row).collect();
    assert!(found.iter().copied().eq(1..=rows), "{found:?}");
    for entry in &expectations.expectation {
        let formulas: Vec<&Number<R, R::Record>> = numbers.iter().filter(|number| number.id == entry.id).collect();
        assert_eq!(formulas.len(), usize::from(entry.kind.is_measured()), "{} is {:?}", entry.id, entry.kind);
        assert!(entry.kind.is_measured() || !entry.note.is_empty(), "{} does not say why", entry.id);
        let simulated = formulas.iter().any(|number| !number.runs.is_empty());
        assert!(simulated || entry.kind != Kind::Predicted, "{} is predicted without a run", entry.id);
    }
    for number in numbers {
        assert!(expectations.expectation.iter().any(|entry| entry.id == number.id), "{}", number.id);
    }
    let names: BTreeSet<String> = study.runs().into_iter().collect();
    assert_eq!(names.len(), study.runs.len());
}
