//! The FF-SSD study: how close fast-forward ageing comes to full simulation, and its rivals.
//!
//! A run is one life that is simulated in full, and then aged in fast-forward in every way that is asked for. Numbers
//! are accuracies over the blocks at the end of the full one.

mod charts;
mod numbers;
mod runs;

use super::LIVES;
use super::lived::LifeScenario;
use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use runs::ForwardRun;

/// The FF-SSD study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
pub(super) fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<ForwardRun>, StudyError> {
    let text = include_str!("../../../../../../../scenarios/ff-ssd/scenario.toml");
    let base = LifeScenario::of(&LIVES.resolve(text, "scenarios/ff-ssd/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../../../scenarios/ff-ssd/expected.toml");
    let numbers = numbers::numbers();
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 10);
    }
}
