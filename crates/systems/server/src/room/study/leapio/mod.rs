//! The study of LeapIO: its published results, and the runs that they are made of.

mod charts;
mod fleet;
mod loads;
mod numbers;
mod runs;

use crate::room::LEAPIOS;
use flashyard_describe::Files;
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use runs::LeapRun;

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
pub(in crate::room) fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<LeapRun>, StudyError> {
    let text = include_str!("../../../../../../../scenarios/leapio/scenario.toml");
    let base = LEAPIOS.resolve(text, "scenarios/leapio/scenario.toml", &[], files)?.scenario;
    let expectations = include_str!("../../../../../../../scenarios/leapio/expected.toml");
    Ok(NamedStudy::new(base, files, expectations, numbers::numbers(), ids)?
        .with_drawn(charts::drawn())
        .with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 20);
    }
}
