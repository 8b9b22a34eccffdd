//! Reproduction of published results: what all studies have in common.
//!
//! A study lists published numbers (`scenarios/*/expected.toml`), the runs that they need and a formula for each number
//! (`number`). Runs have names and records (`named`), so that finished ones can be kept and a study goes on where it ended
//! (`resumable`). The studies themselves are with their systems, in `systems`.

pub(crate) mod named;
pub(crate) mod number;
pub(crate) mod resumable;

pub use crate::systems::jbof::study::{Finished, LenderLoad, Run, Study};
pub use resumable::{Reproduction, ReproductionError, reproduction};

use crate::parse::ScenarioError;

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

#[cfg(test)]
pub(crate) mod tests {
    use super::number::Number;
    use flashyard_report::{Expectations, Kind};
    use std::collections::BTreeSet;

    /// Every row up to `rows` has a number; numbers that can be measured have one formula, others have none and say
    /// why; a prediction needs a run.
    pub(crate) fn assert_complete<R, F>(expectations: &Expectations, numbers: &[Number<R, F>], rows: u32) {
        let found: BTreeSet<u32> = expectations.expectation.iter().map(|entry| entry.row).collect();
        assert!(found.iter().copied().eq(1..=rows), "{found:?}");
        for entry in &expectations.expectation {
            let formulas: Vec<&Number<R, F>> = numbers.iter().filter(|number| number.id == entry.id).collect();
            assert_eq!(formulas.len(), usize::from(entry.kind.is_measured()), "{} is {:?}", entry.id, entry.kind);
            assert!(entry.kind.is_measured() || !entry.note.is_empty(), "{} does not say why", entry.id);
            let simulated = formulas.iter().any(|number| !number.runs.is_empty());
            assert!(simulated || entry.kind != Kind::Predicted, "{} is predicted without a run", entry.id);
        }
        for number in numbers {
            assert!(expectations.expectation.iter().any(|entry| entry.id == number.id), "{}", number.id);
        }
    }
}
