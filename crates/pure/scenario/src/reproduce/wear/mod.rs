//! The wear-levelling study: lives of drives with and without wear levelling, of fixed and of variable capacity.
//!
//! Numbers by subject: `synthetic` (erase-count distributions after 100 drive writes), `lifetimes` (surrogates of the
//! traces, from new to dead), `bounded` (lives whose file system may relocate a bounded amount).

mod bounded;
mod charts;
mod lifetimes;
mod runs;
mod synthetic;

use super::number::Number;
use super::{Reproduction, ReproductionError, StudyError, chosen};
use crate::Files;
use crate::parse::{ScenarioError, resolve};
use crate::schema::Scenario;
use flashyard_report::{ChartSection, Comparison, Expectations, LifeRecord};
use runs::LifeRun;
use serde_json::Value;

/// A number made of lives.
type LifeNumber = Number<LifeRun, LifeRecord>;

/// The wear-levelling reproduction.
pub struct WearStudy {
    base: Scenario,
    files: &'static dyn Files,
    expectations: Expectations,
    numbers: Vec<LifeNumber>,
    wanted: Vec<String>,
    runs: Vec<LifeRun>,
}

impl WearStudy {
    /// The study, for all numbers or for those named in `ids`.
    ///
    /// Errors: an id that is not there.
    pub fn new(ids: &[String], files: &'static dyn Files) -> Result<Self, StudyError> {
        let text = include_str!("../../../../../../scenarios/wear-leveling/scenario.toml");
        let base = resolve(text, "scenarios/wear-leveling/scenario.toml", &[], files)?.scenario;
        let expectations =
            Expectations::parse(include_str!("../../../../../../scenarios/wear-leveling/expected.toml"))?;
        super::check_ids(&expectations, ids)?;
        let mut numbers = synthetic::numbers();
        numbers.extend(lifetimes::numbers());
        numbers.extend(bounded::numbers());
        let runs = super::runs_of(&numbers, ids);
        Ok(Self { base, files, expectations, numbers, wanted: ids.to_vec(), runs })
    }
}

impl Reproduction for WearStudy {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(LifeRun::name).collect()
    }

    fn carry_out(&self, index: usize, observer: &mut dyn FnMut(f64) -> bool) -> Result<Option<Value>, ScenarioError> {
        let life = self.runs[index].carry_out(&self.base, self.files, observer)?;
        Ok(life.map(|life| serde_json::to_value(life).expect("a record is plain data")))
    }

    fn compare(&self, finished: &[(String, Value)]) -> Result<Vec<Comparison>, ReproductionError> {
        let lives = super::records_of(&self.runs, LifeRun::name, finished)?;
        Ok(chosen(&self.expectations, &self.wanted, |id| {
            self.numbers.iter().find(|number| number.id == id)?.value_of(&lives)
        }))
    }

    fn details(&self, finished: &[(String, Value)]) -> Result<String, ReproductionError> {
        let lives: Result<Vec<LifeRecord>, _> =
            finished.iter().map(|(name, value)| super::read_record(name, value)).collect();
        Ok(flashyard_report::lives_table(&lives?))
    }

    fn charts(
        &self,
        finished: &[(String, Value)],
        comparisons: &[Comparison],
    ) -> Result<Vec<ChartSection>, ReproductionError> {
        let lives = super::records_of(&self.runs, LifeRun::name, finished)?;
        Ok(charts::sections(&lives, comparisons))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::tests::NoFiles;
    use std::collections::BTreeSet;

    fn study(ids: &[&str]) -> WearStudy {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        WearStudy::new(&ids, &NoFiles).expect("the study is complete")
    }

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        let study = study(&[]);
        let rows: BTreeSet<u32> = study.expectations.expectation.iter().map(|entry| entry.row).collect();
        assert!(rows.iter().copied().eq(1..=27), "{rows:?}");
        for expectation in &study.expectations.expectation {
            let made = study.numbers.iter().filter(|number| number.id == expectation.id).count();
            assert!(made == 1 || (made == 0 && expectation.note.starts_with("not simulated: ")), "{}", expectation.id);
        }
        for number in &study.numbers {
            let count = study.expectations.expectation.iter().filter(|entry| entry.id == number.id).count();
            assert_eq!(count, 1, "{}", number.id);
        }
    }

    #[test]
    fn runs_have_different_names() {
        let runs = study(&[]).runs();
        let names: BTreeSet<&String> = runs.iter().collect();
        assert_eq!(names.len(), runs.len());
    }

    #[test]
    fn a_life_read_back_from_text_gives_the_same_numbers() {
        let study = study(&["mean-var-nowl-over-fix-pwl"]);
        let life = |run: &LifeRun| {
            let mut scenario = study.base.clone();
            scenario.drive.blocks_per_plane = 120;
            scenario.life.endurance = Some(40);
            let life = run.carry_out(&scenario, study.files, &mut |_| true).expect("the run is valid");
            (run.name(), serde_json::to_value(life.expect("nobody stopped it")).expect("it is plain data"))
        };
        let finished: Vec<(String, Value)> = study.runs.iter().map(life).collect();
        let text = serde_json::to_string(&finished).expect("it is plain data");
        let again: Vec<(String, Value)> = serde_json::from_str(&text).expect("it was just written");
        let number = |finished| study.compare(finished).expect("the records are whole")[0].measured;
        assert!(number(&finished).is_some());
        assert_eq!(number(&finished), number(&again));
    }
}
