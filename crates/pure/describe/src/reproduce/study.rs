//! A study as its users see it: runs by name, a record of each, and what comes of the records.

use crate::error::ScenarioError;
use flashyard_report::{ChartSection, Comparison};
use serde_json::Value;

/// A study: published numbers, and runs that are carried out one by one and kept by name.
pub trait Reproduction: Send + Sync {
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
    pub(super) run: String,
    pub(super) message: String,
}

/// Why a study cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The expectations are wrong.
    #[error(transparent)]
    Expectations(#[from] flashyard_report::ExpectationError),
    /// An id that is not there.
    #[error("there is no published number {0:?}; there are {1}")]
    Unknown(String, String),
}
