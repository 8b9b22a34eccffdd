//! The study of ExPAND: published results of D. Oh et al., IEEE Micro 45(6), 2025.

mod charts;
mod numbers;
mod runs;

use super::designs::infos;
use super::section::{self, MemorySection};
use crate::design::Design;
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{DesignInfo, Files, Room, Rooms, Scenario, ScenarioError, Section, Study, boxed};
use runs::{Base, ExpandRun};

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&Expand]);

/// Flash behind CXL whose lines are fetched ahead, by the host or by the device.
pub struct Expand;

impl Room for Expand {
    fn name(&self) -> &'static str {
        "expand"
    }

    fn about(&self) -> &'static str {
        "flash behind CXL whose lines are fetched ahead: by rules and networks at the host, or pushed by the device"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        infos(|design| design.predicts().is_some() || matches!(design, Design::Dram | Design::CxlSsd))
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
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<ExpandRun>, StudyError> {
    let base = base(&[], files)?;
    let expectations = include_str!("../../../../../../scenarios/expand/expected.toml");
    Ok(NamedStudy::new(base, files, expectations, numbers::numbers(), ids)?.with_charts(charts::sections))
}

/// All that runs have in common, with further settings.
///
/// Errors: settings that cannot be.
fn base(settings: &[String], files: &'static dyn Files) -> Result<Base, ScenarioError> {
    let text = include_str!("../../../../../../scenarios/expand/scenario.toml");
    let scenario = LANGUAGE.resolve(text, "scenarios/expand/scenario.toml", settings, files)?.scenario;
    Ok(Base { seed: scenario.seed, memory: MemorySection::of(&scenario)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Parts;
    use crate::program::Program;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::{NamedRun, assert_complete};
    use flashyard_memory::{Accesses, MediumConfig, PAGE_BYTES, Strides};

    #[test]
    fn every_row_of_the_sheet_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 28);
    }

    /// Short runs over small graphs, that of shortest paths of so many vertices as a power of two.
    fn small(scale: u32) -> Base {
        let sssp = format!("memory.kernel.sssp.scale={scale}");
        let small = [
            "memory.accesses=2000",
            "memory.warm_accesses=2000",
            "memory.kernel.cc.scale=10",
            "memory.kernel.pr.scale=10",
            &sssp,
            "memory.kernel.tc.scale=10",
            "memory.ahead.training_requests=64",
        ]
        .map(str::to_owned);
        base(&small, &NoFiles).expect("the settings are good")
    }

    #[test]
    fn the_windows_of_a_kernel_make_one_record_with_its_misses() {
        // Its edges do not fit into the caches: all passes after the first would find them there.
        let base = small(16);
        for design in [Design::CxlSsd, Design::Isb, Design::Oracle] {
            let run = runs::of("sssp", design);
            let record = run.carry_out(&base, &NoFiles, &mut |_| true).expect("its laws hold").expect("it ends");
            let point = &record.points[0];
            // Twenty windows of a hundred accesses each.
            let misses = point.misses_per_thousand;
            assert!((misses / 11.03 - 1.0).abs() < 0.02, "{misses} of {} instructions", point.instructions);
            assert!(point.seconds > 0.0 && point.interval_ns[0] > 0.0 && point.interval_ns[0] <= point.interval_ns[1]);
        }
    }

    #[test]
    fn a_device_counts_its_medium_in_its_own_latency() {
        let base = base(&[], &NoFiles).expect("the settings are good");
        for medium in [None, Some("pmem"), Some("dram")] {
            let mut parts = base.memory.parts_on(medium, 1).expect("the parts are good");
            let end_to_end = |parts: &Parts| parts.latencies(1000).expect("it is enumerated").end_to_end;
            let whole = end_to_end(&parts);
            assert!(whole >= parts.endpoint.medium.line_read(), "{medium:?}: {whole:?}");
            parts.endpoint.caches_loads = true;
            assert!(end_to_end(&parts) < whole, "internal DRAM that keeps what loads bring answers most of them");
        }
    }

    #[test]
    fn streams_of_a_program_begin_on_dies_of_their_own() {
        let base = base(&[], &NoFiles).expect("the settings are good");
        let parts = base.memory.parts(false, 1).expect("the parts are good");
        let MediumConfig::Flash(flash) = parts.endpoint.medium else { panic!("the device has flash") };
        let dies = u64::from(flash.geometry.dies());
        for name in ["bwaves", "leslie3d", "lbm"] {
            let Program::Strides(config) = base.memory.program(name, 1).expect("it is in the scenario") else {
                panic!("{name} has streams");
            };
            let mut streams = Strides::new(&config).expect("it is possible");
            // Streams take turns from the first on. Pages that were written in their order go round the dies.
            let first = (0..config.streams).filter_map(|_| streams.next_access());
            let mut on: Vec<u64> = first.map(|access| access.address / PAGE_BYTES % dies).collect();
            on.sort_unstable();
            on.dedup();
            assert_eq!(on.len(), config.streams as usize, "{name}: {on:?}");
        }
    }

    #[test]
    fn every_run_of_the_study_can_be_made() {
        let base = small(10);
        let study = study(&[], &NoFiles).expect("the study is complete");
        for run in &study.runs {
            run.shortened(&base).unwrap_or_else(|error| panic!("{run:?}: {error}"));
        }
    }
}
