//! The study of reads during garbage collection: what they wait for, and what rebuilding them from a stripe's other
//! dies saves.
//!
//! A run is a drive in use under reads and writes that arrive at their own times; a drive with flash enough to do
//! without garbage collection stands for what the source calls "no GC".

mod charts;
mod numbers;
mod planes;
mod runs;

use flashyard_describe::Files;
use flashyard_describe::reproduce::NamedStudy;
use flashyard_describe::reproduce::StudyError;
use flashyard_describe::{DesignInfo, Room, Study, boxed};
use flashyard_xbof::room::JBOFS;
use runs::{ReclaimRun, Rival};

/// ttFlash, and what each of its mechanisms does alone.
pub struct TtFlash;

impl Room for TtFlash {
    fn name(&self) -> &'static str {
        "ttflash"
    }

    fn about(&self) -> &'static str {
        "a drive whose reads do not wait for garbage collection: they are rebuilt from the other dies of a stripe"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        Rival::ALL.map(|rival| DesignInfo::new(rival.name(), rival.about())).to_vec()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study of reads during garbage collection, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<ReclaimRun>, StudyError> {
    let text = include_str!("../../../../scenarios/ttflash/scenario.toml");
    let base = JBOFS.resolve(text, "scenarios/ttflash/scenario.toml", &[], files)?.scenario;
    let expectations = include_str!("../../../../scenarios/ttflash/expected.toml");
    Ok(NamedStudy::new(base, files, expectations, numbers::numbers(), ids)?
        .with_drawn(numbers::drawn())
        .with_charts(charts::sections))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 5);
    }
}
