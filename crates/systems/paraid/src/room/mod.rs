//! Arrays of unlike drives, for the table of systems.

mod charts;
mod designs;
mod drawn;
mod numbers;
mod orders;
mod result;
mod runs;
mod section;

use crate::{Array, Design};
use flashyard_describe::reproduce::{NamedStudy, StudyError};
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Room, Rooms, Run, Scenario, ScenarioError, Section, Study, Unknown,
    boxed, carried, fio_report, is_in,
};
use flashyard_report::Equipment;
use flashyard_units::{Named, SimSpan};
use runs::ParaidRun;
use section::{ParaidScenario, of_array};

/// The language of the study's scenario.
static LANGUAGE: Rooms = Rooms::new(&[&ParaidRoom]);

/// Arrays of unlike drives.
pub struct ParaidRoom;

impl Room for ParaidRoom {
    fn name(&self) -> &'static str {
        "paraid"
    }

    fn about(&self) -> &'static str {
        "arrays of unlike drives: ways to lay out, write and move data over the same ones"
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
        &["designs", "carbon", "paraid"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn has_own_emission(&self) -> bool {
        true
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        ParaidScenario::of(scenario)?.check()
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        Design::by_name(design).is_none_or(|design| reads(design, key))
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "paraid"
            && !matches!(key, "workload" | "trace" | "workers" | "warmup" | "measure" | "failed" | "wear")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        ParaidScenario::of(scenario).map(|scenario| scenario.in_words()).unwrap_or_default()
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "paraid": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run })
    }

    fn study(&self) -> Option<Study> {
        Some(Study { is_long: false, open: |ids, files| boxed(study(ids, files)) })
    }
}

/// Whether a design reads a key of the section.
fn reads(design: Design, key: &str) -> bool {
    match () {
        () if is_in(key, "paraid.moves") => design.moves(),
        () if is_in(key, "paraid.fusion") => design == Design::FusionRaid,
        () if is_in(key, "paraid.spare") => design.is_log(),
        () if is_in(key, "paraid.software.visit") => design == Design::Mdraid,
        () if is_in(key, "paraid.software.parity_cache") => design == Design::Straid || design.is_fast_first(),
        () if is_in(key, "paraid.software.parity_rate") || is_in(key, "paraid.failed") => !design.is_log(),
        () => true,
    }
}

/// Runs the load of a scenario on the design called `name`.
///
/// Errors: values outside their ranges, a trace that fails, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, Design::names()).to_string());
    let design = Design::by_name(name).ok_or_else(unknown)?;
    let base = ParaidScenario::of(scenario)?;
    let world = Array::new(base.config(&base.paraid.array, design)?).map_err(of_array)?;
    let source = base.source(world.volume(), files)?;
    let figures = world.run(source, observer).map_err(of_array)?;
    Ok(Measured {
        design: name.to_owned(),
        detail: result::detail(design, &figures),
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: true,
            load: Vec::new(),
            cores: base.paraid.workers,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result: result::result(&base, design, &figures)?,
        jobs: None,
        scaling: Vec::new(),
        closed_loop: true,
        first_end_seconds: None,
        simulated_seconds: figures.measured.as_secs_f64(),
    })
}

/// The study, for all numbers or for those named in `ids`.
///
/// Errors: an id that is not there.
fn study(ids: &[String], files: &'static dyn Files) -> Result<NamedStudy<ParaidRun>, StudyError> {
    let text = include_str!("../../../../../scenarios/paraid/scenario.toml");
    let base = ParaidScenario::of(&LANGUAGE.resolve(text, "scenarios/paraid/scenario.toml", &[], files)?.scenario)?;
    let expectations = include_str!("../../../../../scenarios/paraid/expected.toml");
    let numbers = [numbers::numbers(&base)?, orders::numbers()].into_iter().flatten().collect();
    let mut study = NamedStudy::new(base, files, expectations, numbers, ids)?
        .with_drawn(numbers::drawn_in_charts())
        .with_charts(charts::sections);
    // Traces lie outside the repository: without them, their rows say "not measured".
    study.runs.retain(|run| run.trace().is_none_or(|trace| files.open_trace(&trace).is_ok()));
    Ok(study)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::NoFiles;
    use flashyard_describe::reproduce::assert_complete;

    const TEXT: &str = include_str!("../../../../../scenarios/paraid/scenario.toml");

    #[test]
    fn every_row_has_a_number_and_every_number_a_row() {
        assert_complete(&study(&[], &NoFiles).expect("the study is complete"), 21);
    }

    #[test]
    fn every_design_carries_out_every_load_and_laws_hold() {
        for load in ["p-write", "f-write", "p-read", "meta", "fiu-mail", "fiu-homes"] {
            let settings = ["paraid.warmup=\"20 ms\"", "paraid.measure=\"60 ms\"", "paraid.moves.interval=\"10 ms\""]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("paraid.workload=\"{load}\"")])
                .collect::<Vec<_>>();
            let scenario = LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).expect("it is good").scenario;
            for design in Design::ALL {
                let measured = run(&scenario, design.name(), &NoFiles, &mut |_| true).expect("it runs");
                assert!(measured.result.laws.hold, "{load} {}: {:?}", design.name(), measured.result.laws.broken);
                assert!(measured.simulated_seconds > 0.0);
            }
        }
    }

    #[test]
    fn whole_ssds_stand_beside_servers_of_rates() {
        let ssd = "ssd.drive={profile=\"r8\", blocks_per_plane=64, pages_per_block=32, filled=0.9}";
        let array = "paraid.arrays.mixed={width=3, parities=1, drives=[\
                     {kind=\"nvme\", capacity=\"1 GiB\", timed=true, count=2}, {kind=\"sata\", capacity=\"200 GiB\", count=2}]}";
        for (load, chunk) in [("p-write", "16 KiB"), ("p-read", "64 KiB"), ("meta", "256 KiB")] {
            let short = ["paraid.warmup=\"5 ms\"", "paraid.measure=\"40 ms\"", "paraid.array=\"mixed\"", ssd, array];
            let mut settings = short.map(str::to_owned).to_vec();
            settings.extend([format!("paraid.workload=\"{load}\""), format!("paraid.chunk=\"{chunk}\"")]);
            let scenario = LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).expect("it is good").scenario;
            for design in Design::ALL.iter().filter(|design| **design != Design::Swan) {
                let measured = run(&scenario, design.name(), &NoFiles, &mut |_| true).expect("it runs");
                assert!(measured.result.laws.hold, "{load} {}: {:?}", design.name(), measured.result.laws.broken);
            }
        }
    }

    /// Figures of a short run of a design, as they are written.
    fn figures(design: Design, settings: &[&str]) -> serde_json::Value {
        let short = ["paraid.warmup=\"100 ms\"", "paraid.measure=\"200 ms\""];
        let settings: Vec<String> = short.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        let scenario = LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).expect("it is good").scenario;
        let measured = run(&scenario, design.name(), &NoFiles, &mut |_| true).expect("it runs");
        serde_json::to_value(&measured.result).expect("it is plain data")
    }

    fn number(of: &serde_json::Value, pointer: &str) -> f64 {
        of.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{pointer} is not in {of}"))
    }

    #[test]
    fn emission_of_requests_adds_up_to_that_of_the_window() {
        // config-1, in bytes.
        let capacities = [150.0, 120.0, 100.0, 80.0, 60.0, 20.0].map(|gib| gib * 1_073_741_824.0);
        for load in ["meta", "fiu-homes", "p-read"] {
            let settings = [
                &format!("paraid.workload=\"{load}\""),
                "paraid.kinds.sata.drive_writes=100",
                "paraid.media_amplification=2",
                "carbon.grid_g_per_kwh=100",
            ];
            for design in Design::ALL.iter().copied() {
                let run = figures(design, &settings);
                let seconds = number(&run, "/window_seconds");
                let (mut joules, mut worn) = (0.0, 0.0);
                for (drive, capacity) in capacities.iter().enumerate() {
                    let of = |key: &str| number(&run, &format!("/drives/{drive}/{key}"));
                    joules += capacity / 1e12 * (5.0 + 1.4 * of("busy")) * seconds;
                    worn += of("write_bytes") * 2.0 * 16.9e-9 / if drive < 3 { 1825.0 } else { 100.0 };
                }
                let making = number(&run, "/emission/making_kg") * 1e3 * seconds / (5.0 * 365.25 * 86_400.0);
                for (key, total) in [("operation", joules / 3.6e6 * 100.0), ("making", making), ("wear", worn)] {
                    let sum = number(&run, &format!("/emission/{key}_g_per_request")) * number(&run, "/ios");
                    assert!((sum - total).abs() <= 1e-9 * total, "{load} {} {key}: {sum} of {total}", design.name());
                }
            }
        }
    }

    #[test]
    fn wear_of_a_request_is_that_of_the_chunks_that_it_programs() {
        let alike =
            "paraid.arrays.alike={width=6, parities=2, drives=[{kind=\"nvme\", capacity=\"447 GiB\", count=6}]}";
        let whole = "paraid.workloads.whole={pattern=\"sequential\", read_share=0.0, write=\"256 KiB\"}";
        // Chunks of a request: k / (k - p) for each chunk of data of a whole stripe, 1 + p for a chunk alone, none for a read.
        for (array, load, chunks) in [
            ("three-nvme", "f-write", 3.0),
            ("three-nvme", "p-write", 2.0),
            ("three-nvme", "p-read", 0.0),
            ("alike", "whole", 6.0),
            ("alike", "p-write", 3.0),
        ] {
            let [array, load] = [format!("paraid.array=\"{array}\""), format!("paraid.workload=\"{load}\"")];
            let run = figures(Design::Mdraid, &[alike, whole, &array, &load]);
            let (found, expected) =
                (number(&run, "/emission/wear_g_per_request"), chunks * 65_536.0 * 16.9e-9 / 1825.0);
            assert!((found - expected).abs() <= 0.01 * expected, "{array} {load}: {found} of {expected}");
        }
    }

    #[test]
    fn nothing_completed_has_no_emission_of_a_request() {
        let none = ["paraid.warmup=\"0 s\"", "paraid.measure=\"1 ms\"", "paraid.software.request=\"1 ms\""];
        let run = figures(Design::Straid, &none);
        assert!(run["emission"]["wear_g_per_request"].is_null() && number(&run, "/ios") == 0.0, "{run}");
    }

    #[test]
    fn wrong_keys_and_values_are_refused_with_their_place() {
        for (setting, expected) in [
            ("paraid.array=\"config-3\"", "config-1"),
            ("paraid.workload=\"p-rite\"", "p-write"),
            ("paraid.scale=0", "paraid.scale"),
            ("paraid.kinds.nvme.colour=1", "paraid.kinds.nvme.colour"),
            ("paraid.arrays.config-1.width=9", "paraid.arrays"),
            ("paraid.failed=17", "paraid.failed"),
            ("paraid.arrays.config-1.drives=[{kind=\"nvme\", capacity=\"9 GiB\", timed=true, count=3}]", "ssd.drive"),
            ("paraid.workloads.meta.theta=0.0", "theta"),
            ("paraid.chunk=\"96 KiB\"", "paraid.chunk"),
            ("paraid.chunk=\"1 MiB\"", "paraid.chunk"),
        ] {
            let refused = LANGUAGE.resolve(TEXT, "x.toml", &[setting.to_owned()], &NoFiles);
            let refused = refused.err().unwrap_or_else(|| panic!("{setting} is wrong")).to_string();
            assert!(refused.contains(expected), "{setting}: {refused}");
        }
    }
}
