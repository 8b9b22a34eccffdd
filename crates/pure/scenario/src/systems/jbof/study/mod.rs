//! The XBOF study: runs of a JBOF, and the published numbers that they make.
//!
//! Numbers by subject: `closed` (arithmetic), `micro` (one pattern at a time), `replay` (the workloads of Table 2 and
//! sweeps on them), `sharing` (lenders and borrowers with work of their own, latency, firmware costs).

mod closed;
mod evidence;
mod loads;
mod micro;
mod number;
mod replay;
mod runs;
mod sharing;

pub use runs::{LenderLoad, Run};

use crate::parse::{ScenarioError, resolve};
use crate::reproduce::StudyError;
use crate::reproduce::resumable::{check_ids, chosen, runs_of};
use crate::schema::Scenario;
use crate::{Files, assemble};
use flashyard_report::{Comparison, Expectations};
use flashyard_systems::jbof::JbofFigures;
use number::Number;

/// Figures of one finished run.
pub type Finished = (Run, JbofFigures);

/// The XBOF reproduction.
pub struct Study {
    base: Scenario,
    expectations: Expectations,
    numbers: Vec<Number>,
    wanted: Vec<String>,
}

impl Study {
    /// The XBOF study, for all numbers or for those named in `ids`.
    ///
    /// Errors: an id that is not there.
    pub fn xbof(ids: &[String], files: &dyn Files) -> Result<Self, StudyError> {
        let text = include_str!("../../../../../../../scenarios/xbof/scenario.toml");
        let base = resolve(text, "scenarios/xbof/scenario.toml", &[], files)?.scenario;
        let expectations = Expectations::parse(include_str!("../../../../../../../scenarios/xbof/expected.toml"))?;
        check_ids(&expectations, ids)?;
        let prices = assemble::prices(&base.prices);
        let mut numbers = closed::numbers(prices, base.jbof.kept());
        numbers.extend(micro::numbers());
        numbers.extend(replay::numbers(prices, base.jbof.kept()));
        numbers.extend(sharing::numbers(&base));
        Ok(Self { base, expectations, numbers, wanted: ids.to_vec() })
    }

    /// The runs that the wanted numbers need, each once.
    pub fn runs(&self) -> Vec<Run> {
        runs_of(&self.numbers, &self.wanted)
    }

    /// Carries out one run.
    ///
    /// Errors: as [`crate::run_design`]; the observer may stop it.
    pub fn run(
        &self,
        run: Run,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<JbofFigures, ScenarioError> {
        runs::carry_out(&self.base, run, files, observer)
    }

    /// What stands behind the numbers: the main figures of every finished run, as JSON.
    pub fn evidence(&self, finished: &[Finished]) -> serde_json::Value {
        finished.iter().map(|(run, figures)| evidence::of_run(*run, figures)).collect()
    }

    /// Puts every wanted number beside ours.
    pub fn compare(&self, finished: &[Finished]) -> Vec<Comparison> {
        chosen(&self.expectations, &self.wanted, |id| {
            self.numbers.iter().find(|number| number.id == id)?.value_of(finished)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;
    use crate::reproduce::tests::assert_complete;

    fn study(ids: &[&str]) -> Study {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        Study::xbof(&ids, &NoFiles).expect("the study is complete")
    }

    #[test]
    fn every_row_has_a_number_and_every_number_is_made_as_its_kind_says() {
        let study = study(&[]);
        assert_complete(&study.expectations, &study.numbers, 42);
    }

    #[test]
    fn a_run_that_two_numbers_need_is_listed_once_and_only_wanted_runs_are() {
        let runs = study(&["shrunk-64k-processor", "shrunk-64k-flash"]).runs();
        assert_eq!(runs.len(), 1);
        assert!(study(&["bom-saving"]).runs().is_empty());
    }
}
