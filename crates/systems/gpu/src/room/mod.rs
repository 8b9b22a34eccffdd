//! Memory of a GPU beyond its own, for the table of systems.

mod charts;
mod numbers;
mod result;
mod runs;
mod section;

use crate::Gpu;
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Room, Rooms, Run, Scenario, ScenarioError, Section, Study, Unknown,
    boxed, carried, fio_report,
};
use flashyard_report::{DesignDetail, Equipment};
use flashyard_units::SimSpan;
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
        &["designs", "gpu"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        GpuScenario::of(scenario)?.check()
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        Design::ALL.into_iter().find(|of| of.name() == design).is_none_or(|design| runs::reads(design, key))
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "gpu" && !matches!(key, "kernel" | "accesses" | "data")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        GpuScenario::of(scenario).map(|scenario| scenario.in_words()).unwrap_or_default()
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "cxl-gpu": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: true, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// Runs the kernel of a scenario on the design called `name`.
///
/// Errors: values outside their ranges, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    _files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let names = || Design::ALL.iter().map(|design| design.name());
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, names()).to_string());
    let design = Design::ALL.into_iter().find(|design| design.name() == name).ok_or_else(unknown)?;
    let base = GpuScenario::of(scenario)?;
    let config = design.config(&base, base.kernel()?, base.medium());
    let gpu = Gpu::new(config).map_err(|error| ScenarioError::value("gpu", error.to_string()))?;
    let figures = gpu.run(observer).ok_or(ScenarioError::Interrupted)?;
    Ok(Measured {
        design: name.to_owned(),
        detail: DesignDetail { name: name.to_owned(), ..DesignDetail::default() },
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: true,
            load: Vec::new(),
            cores: config.cores,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result: result::result(name, &figures),
        jobs: None,
        scaling: Vec::new(),
        closed_loop: true,
        first_end_seconds: None,
        simulated_seconds: figures.time.as_secs_f64(),
    })
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
    use crate::Kernel;
    use crate::room::section::Media;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 19);
    }

    #[test]
    fn every_design_runs_a_kernel_and_laws_hold() {
        let text = include_str!("../../../../../scenarios/cxl-gpu/scenario.toml");
        for medium in ["dram", "optane", "z-nand", "nand"] {
            let settings =
                ["gpu.accesses=3000".to_owned(), "gpu.kernel=\"bfs\"".to_owned(), format!("gpu.medium=\"{medium}\"")];
            let scenario = LANGUAGE.resolve(text, "x.toml", &settings, &NoFiles).expect("it is good").scenario;
            for design in Design::ALL {
                let measured = run(&scenario, design.name(), &NoFiles, &mut |_| true).expect("it runs");
                assert!(measured.result.laws.hold, "{medium} {}: {:?}", design.name(), measured.result.laws.broken);
                assert!(measured.simulated_seconds > 0.0);
            }
        }
    }

    #[test]
    fn keys_concern_the_designs_that_they_change_alone() {
        let concerned = |key: &str| {
            let reads = Design::ALL.into_iter().filter(|&design| runs::reads(design, key));
            reads.map(Design::name).collect::<Vec<_>>()
        };
        // A runtime that works for each fault alone takes one at once.
        assert_eq!(concerned("gpu.faults_at_once"), ["uvm", "gds"]);
        assert_eq!(concerned("gpu.fault_page"), ["uvm", "gds", "uvm-alone", "gds-alone"]);
        // Without hints there is nothing that they bring, and two designs say it by their name.
        let hinted = ["cxl-naive", "cxl-dyn", "cxl-largest", "cxl-sr", "cxl-sr-literal", "cxl-ds"];
        assert_eq!(concerned("gpu.hints_fill"), hinted);
        let text = include_str!("../../../../../scenarios/cxl-gpu/scenario.toml");
        let with = |setting: &str| {
            let settings = ["gpu.accesses=1000".to_owned(), setting.to_owned()];
            GpuScenario::of(&LANGUAGE.resolve(text, "x.toml", &settings, &NoFiles).expect("it is good").scenario)
                .expect("it is of this system")
        };
        // Designs make the same GPU of both values where the key does not concern them, and another one where it does.
        for (key, values) in [("gpu.hints_fill", ["\"pages\"", "\"sectors\""]), ("gpu.faults_at_once", ["1", "256"])] {
            for design in [Design::Uvm, Design::UvmAlone, Design::GdsAlone, Design::NaiveSectors, Design::Sr] {
                let of_faults = matches!(design, Design::Uvm | Design::UvmAlone | Design::GdsAlone);
                if of_faults != (key == "gpu.faults_at_once") {
                    continue;
                }
                let [one, other] = values.map(|value| {
                    let scenario = with(&format!("{key}={value}"));
                    format!("{:?}", design.config(&scenario, Kernel::Vadd, Some(Media::ZNand)))
                });
                assert_eq!(one != other, runs::reads(design, key), "{key} {}", design.name());
            }
        }
    }

    #[test]
    fn wrong_keys_and_values_are_refused_with_their_place() {
        let text = include_str!("../../../../../scenarios/cxl-gpu/scenario.toml");
        for (setting, expected) in [
            ("gpu.cores=0", "cores"),
            ("gpu.data=\"1 KiB\"", "gpu.data"),
            ("gpu.media.z-nand.spare=0.95", "gpu.media.z-nand.spare"),
            ("gpu.colour=1", "gpu.colour"),
            ("gpu.kernel=\"vad\"", "vadd"),
            ("gpu.medium=\"tape\"", "gpu.medium"),
        ] {
            let refused = LANGUAGE.resolve(text, "x.toml", &[setting.to_owned()], &NoFiles);
            let refused = refused.err().unwrap_or_else(|| panic!("{setting} is wrong")).to_string();
            assert!(refused.contains(expected), "{setting}: {refused}");
        }
    }
}
