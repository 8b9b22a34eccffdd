//! The study of CXL-SSD: published results of M. Kwon et al., IEEE Micro 45(6), 2025.

mod charts;
mod numbers;
mod runs;

use super::designs::infos;
use super::section::{self, MemorySection};
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{DesignInfo, Files, Room, Rooms, Scenario, ScenarioError, Section, Study, boxed};
use runs::{Base, CxlRun};

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&CxlSsd]);

/// Flash behind CXL, its annotations and its rivals.
pub struct CxlSsd;

impl Room for CxlSsd {
    fn name(&self) -> &'static str {
        "cxl-ssd"
    }

    fn about(&self) -> &'static str {
        "flash that answers loads and stores, behind PCIe and behind CXL, with annotated requests"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        infos(|design| design.predicts().is_none())
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["memory"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        MemorySection::of(scenario).map(drop)
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<CxlRun>, StudyError> {
    let base = base(&[], files)?;
    let expectations = include_str!("../../../../../../scenarios/cxl-ssd/expected.toml");
    let numbers = numbers::numbers(&base.memory);
    Ok(NamedStudy::new(base, files, expectations, numbers, ids)?.with_charts(charts::sections))
}

/// All that runs have in common, with further settings.
///
/// Errors: settings that cannot be.
fn base(settings: &[String], files: &'static dyn Files) -> Result<Base, ScenarioError> {
    let text = include_str!("../../../../../../scenarios/cxl-ssd/scenario.toml");
    let scenario = LANGUAGE.resolve(text, "scenarios/cxl-ssd/scenario.toml", settings, files)?.scenario;
    Ok(Base { seed: scenario.seed, memory: MemorySection::of(&scenario)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;
    use flashyard_kernel::Rng;
    use flashyard_memory::{AnnotationRules, Mix};

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 20);
    }

    #[test]
    fn a_buffer_of_stores_is_full_after_long_however_few_stores_there_are() {
        let settings = ["memory.endpoint.cache=\"64 MiB\"", "memory.flash.worn_in=false"].map(str::to_owned);
        let base = base(&settings, &NoFiles).expect("the settings are good");
        let parts = base.memory.parts(false, 1).expect("the parts are good");
        for name in ["cactus-loads", "add"] {
            let program = base.memory.program(name, 1).expect("it is in the scenario");
            let mut endpoint = flashyard_memory::Endpoint::new(parts.endpoint).expect("it is possible");
            program.warm(&mut endpoint, &AnnotationRules::default(), 1, 1).expect("it is warmed");
            assert!(endpoint.is_full(), "{name}");
        }
    }

    #[test]
    fn a_quarter_of_the_functions_makes_half_of_the_misses() {
        let base = base(&[], &NoFiles).expect("the settings are good");
        let rules = AnnotationRules { bufferable: Some(0.25), ..AnnotationRules::default() };
        let Program::Mix(config) = base.memory.program("gcc", 1).expect("it is in the scenario") else {
            panic!("it goes by its rates");
        };
        let mix = Mix::new(&config, Rng::named(1, "test")).expect("it is possible");
        let share_of = |function: u16| {
            let first = usize::from(function);
            mix.share_of_first(first + 1) - mix.share_of_first(first)
        };
        let covered: f64 = (0..64).filter(|&function| rules.covers(function)).map(share_of).sum();
        assert!((covered - 0.505).abs() < 0.001, "{covered}");
    }

    #[test]
    fn vectors_of_stream_do_not_meet_in_one_bank() {
        let base = base(&[], &NoFiles).expect("the settings are good");
        let dram = base.memory.parts(false, 1).expect("the parts are good").dram;
        let round = u64::from(dram.channels) * u64::from(dram.banks) * u64::from(dram.row_bytes);
        let Program::Stream { elements, .. } = base.memory.program("add", 1).expect("it is in the scenario") else {
            panic!("it is STREAM");
        };
        // From one vector to the next, and from one of 64 threads to the next.
        for bytes in [elements * 8, elements / 64 * 8] {
            assert_ne!(bytes % round, 0, "{bytes} bytes on, an address is in its bank again");
        }
    }

    #[test]
    fn every_run_of_the_study_can_be_made() {
        let small = [
            "memory.accesses=1000",
            "memory.warm_accesses=100",
            "memory.endpoint.cache=\"1 MiB\"",
            "memory.flash.worn_in=false",
        ]
        .map(str::to_owned);
        let base = base(&small, &NoFiles).expect("the settings are good");
        let study = study(&[], &NoFiles).expect("the study is complete");
        for run in &study.runs {
            run.shortened(&base).unwrap_or_else(|error| panic!("{run:?}: {error}"));
        }
    }
}
