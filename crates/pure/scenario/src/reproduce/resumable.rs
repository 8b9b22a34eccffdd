//! Studies whose runs have names and records, so that finished ones can be kept and a study goes on where it ended;
//! and what all studies do alike.

use super::StudyError;
use super::number::Number;
use crate::Files;
use crate::parse::ScenarioError;
use crate::systems::life::{forward, wear};
use crate::systems::{cvss, ttflash};
use flashyard_report::{ChartSection, Comparison, Expectations};
use serde_json::Value;

/// A study of many long runs.
pub trait Reproduction: Sync {
    /// Names of the runs that the wanted numbers need, each once. The name says all that makes a run.
    fn runs(&self) -> Vec<String>;

    /// Carries out a run of [`runs`](Self::runs), by its place; its record, or `None` when the observer stopped it.
    ///
    /// Errors: a world that cannot be built.
    fn carry_out(&self, index: usize, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<Value>, ScenarioError>;

    /// Puts every wanted number beside ours, from the records of runs by name. A number whose runs are not all there
    /// is not measured.
    ///
    /// Errors: a record that this version did not write.
    fn compare(&self, finished: &[(String, Value)]) -> Result<Vec<Comparison>, ReproductionError>;

    /// The records as a table for people.
    ///
    /// Errors: a record that this version did not write.
    fn details(&self, finished: &[(String, Value)]) -> Result<String, ReproductionError>;

    /// The records as charts, beside the published figures where there are any.
    ///
    /// Errors: a record that this version did not write.
    fn charts(
        &self,
        finished: &[(String, Value)],
        comparisons: &[Comparison],
    ) -> Result<Vec<ChartSection>, ReproductionError>;
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the record of {run:?} was written by another version ({message}); remove the file and run again")]
pub struct ReproductionError {
    pub(crate) run: String,
    pub(crate) message: String,
}

/// The study of a system by its name; `None` for an unknown name.
pub fn reproduction(
    system: &str,
    ids: &[String],
    files: &'static dyn Files,
) -> Option<Result<Box<dyn Reproduction>, StudyError>> {
    match system {
        "wear-leveling" => Some(wear::study(ids, files).map(|study| Box::new(study) as Box<dyn Reproduction>)),
        "ff-ssd" => Some(forward::study(ids, files).map(|study| Box::new(study) as Box<dyn Reproduction>)),
        "cvss" => Some(cvss::study(ids, files).map(|study| Box::new(study) as Box<dyn Reproduction>)),
        "ttflash" => Some(ttflash::study(ids, files).map(|study| Box::new(study) as Box<dyn Reproduction>)),
        _ => None,
    }
}

/// Errors: an id that is not among the expectations.
pub(crate) fn check_ids(expectations: &Expectations, ids: &[String]) -> Result<(), StudyError> {
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
pub(crate) fn runs_of<R: PartialEq + Copy, F>(numbers: &[Number<R, F>], wanted: &[String]) -> Vec<R> {
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
pub(crate) fn chosen(
    expectations: &Expectations,
    wanted: &[String],
    measure: impl Fn(&str) -> Option<f64>,
) -> Vec<Comparison> {
    let chosen = expectations.expectation.iter().filter(|expectation| wants(wanted, &expectation.id));
    chosen.map(|expectation| Comparison::new(expectation, &expectations.constant, measure(&expectation.id))).collect()
}
