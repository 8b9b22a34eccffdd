//! The XBOF study: runs of a JBOF, and the published numbers that they make.
//!
//! Numbers by subject: `closed` (arithmetic), `micro` (one pattern at a time), `replay` (the workloads of Table 2 and
//! sweeps on them), `sharing` (lenders and borrowers with work of their own, latency, firmware costs).

mod closed;
mod loads;
mod micro;
mod number;
mod record;
mod replay;
mod runs;
mod sharing;

use super::JBOFS;
use super::section::JbofScenario;
use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use runs::Run;

/// The study of XBOF, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
pub(super) fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<Run>, StudyError> {
    let text = include_str!("../../../../../../scenarios/xbof/scenario.toml");
    let base = JbofScenario::of(&JBOFS.resolve(text, "scenarios/xbof/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../../scenarios/xbof/expected.toml");
    let prices = flashyard_describe::prices(&base.prices);
    let mut numbers = closed::numbers(prices, base.jbof.kept());
    numbers.extend(micro::numbers());
    numbers.extend(replay::numbers(prices, base.jbof.kept()));
    numbers.extend(sharing::numbers(&base));
    NamedStudy::new(base, files, expectations, numbers, ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::NamedRun;
    use flashyard_describe::reproduce::Reproduction;
    use flashyard_describe::reproduce::assert_complete;
    use serde_json::Value;

    fn of(ids: &[&str]) -> NamedStudy<Run> {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        study(&ids, &NoFiles).expect("the study is complete")
    }

    #[test]
    fn every_row_has_a_number_and_every_number_is_made_as_its_kind_says() {
        assert_complete(&of(&[]), 42);
    }

    #[test]
    fn a_run_that_two_numbers_need_is_listed_once_and_only_wanted_runs_are() {
        assert_eq!(of(&["shrunk-64k-processor", "shrunk-64k-flash"]).runs().len(), 1);
        assert!(of(&["bom-saving"]).runs().is_empty());
    }

    /// Reads at depth 1, and three formulas from them: of causes of latency, of drives and of the whole run.
    #[test]
    fn a_run_read_back_from_text_gives_the_same_numbers() {
        let study = of(&["latency-remote-access", "latency-host", "random-4k-misses-shrunk"]);
        let mut base = study.base.clone();
        base.run.warmup = Some(flashyard_describe::Time(flashyard_units::SimSpan::from_ms(1)));
        base.run.warm_mapping_requests = 0;
        let record = |run: &Run| {
            let record = run.carry_out(&base, study.files, &mut |_| true).expect("the run is valid");
            (run.name(), serde_json::to_value(record.expect("it was not stopped")).expect("it is plain data"))
        };
        let finished: Vec<(String, Value)> = study.runs.iter().map(record).collect();
        let text = serde_json::to_string(&finished).expect("it is plain data");
        let again: Vec<(String, Value)> = serde_json::from_str(&text).expect("it was just written");
        let numbers = |finished: &[(String, Value)]| -> Vec<Option<f64>> {
            study.compare(finished).expect("the records are whole").iter().map(|number| number.measured).collect()
        };
        assert!(numbers(&finished).iter().all(Option::is_some));
        assert_eq!(numbers(&finished), numbers(&again));
    }

    #[test]
    fn a_run_that_is_stopped_leaves_no_record() {
        let study = of(&["shrunk-64k-processor"]);
        assert!(study.carry_out(0, &mut |_| false).expect("a stop is no error").is_none());
    }
}
