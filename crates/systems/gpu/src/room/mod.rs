//! Memory of a GPU beyond its own, for the table of systems.

mod charts;
mod numbers;
mod runs;
mod section;

use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{DesignInfo, Files, Room, Rooms, Scenario, ScenarioError, Section, Study, boxed};
use runs::{Design, GpuRun};
use section::GpuScenario;

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&CxlGpu]);

/// Memory of a GPU by page faults, from storage, and over CXL.
pub struct CxlGpu;

impl Room for CxlGpu {
    fn name(&self) -> &'static str {
        "cxl-gpu"
    }

    fn about(&self) -> &'static str {
        "a GPU whose data is ten times its memory: page faults, storage, and expanders over CXL that are read ahead"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        Design::ALL.iter().map(|design| DesignInfo::new(design.name(), design.about())).collect()
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["gpu"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        GpuScenario::of(scenario)?.check()
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: false, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<GpuRun>, StudyError> {
    let text = include_str!("../../../../../scenarios/cxl-gpu/scenario.toml");
    let base = GpuScenario::of(&LANGUAGE.resolve(text, "scenarios/cxl-gpu/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../scenarios/cxl-gpu/expected.toml");
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
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 19);
    }

    #[test]
    fn wrong_keys_and_values_are_refused_with_their_place() {
        let text = include_str!("../../../../../scenarios/cxl-gpu/scenario.toml");
        for (setting, expected) in [
            ("gpu.cores=0", "cores"),
            ("gpu.data=\"1 KiB\"", "gpu.data"),
            ("gpu.media.z-nand.spare=0.95", "gpu.media.z-nand.spare"),
            ("gpu.colour=1", "gpu.colour"),
        ] {
            let refused = LANGUAGE.resolve(text, "x.toml", &[setting.to_owned()], &NoFiles);
            let refused = refused.err().unwrap_or_else(|| panic!("{setting} is wrong")).to_string();
            assert!(refused.contains(expected), "{setting}: {refused}");
        }
    }
}
