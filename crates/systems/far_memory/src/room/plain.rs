//! Designs of the memory machine under any program: `flashyard run memory`.

use super::designs::infos;
use super::result;
use super::section::{self, MemorySection};
use crate::design::Design;
use crate::trace::Trace;
use flashyard_describe::{
    Carried, DesignInfo, Files, Measured, Observer, Room, Run, Scenario, ScenarioError, Section, Unknown, carried,
    fio_report, is_in,
};
use flashyard_report::Equipment;
use flashyard_units::{Named, SimSpan};

/// Designs of the memory machine under any program.
pub struct MemoryRoom;

impl Room for MemoryRoom {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "a processor whose loads and stores are answered by DRAM or by flash, over PCIe or CXL"
    }

    fn designs(&self) -> Vec<DesignInfo> {
        infos(|_| true)
    }

    fn sections(&self) -> &'static [&'static Section] {
        &section::SECTIONS
    }

    /// The device with flash is a part of the section.
    fn has_drive(&self) -> bool {
        false
    }

    fn required(&self) -> &'static [&'static str] {
        &["designs", "memory"]
    }

    fn read(&self, merged: &str) -> Result<(), toml::de::Error> {
        toml::from_str::<section::Sections>(merged).map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        MemorySection::of(scenario)?.chosen_program(scenario.seed).map(drop)
    }

    fn concerns(&self, key: &str, design: &str) -> bool {
        Design::by_name(design).is_none_or(|design| section::reads(design, key))
    }

    /// The section has the parts of eleven designs, and scenarios name some of them.
    fn offers(&self, key: &str) -> bool {
        is_in(key, "memory")
    }

    fn is_equipment(&self, section: &str, key: &str) -> bool {
        section == "memory" && !matches!(key, "program" | "trace" | "accesses" | "warm_accesses")
    }

    fn load_in_words(&self, scenario: &Scenario) -> String {
        let Ok(memory) = MemorySection::of(scenario) else { return String::new() };
        let program = memory.trace.as_deref().or(memory.program.as_deref()).unwrap_or("nothing");
        format!("{program}: {} accesses of each core after {}", memory.accesses, memory.warm_accesses)
    }

    fn carries(&self) -> &'static [Carried] {
        carried! { "../../../scenarios": "memory": "scenario.toml"; "memory-combined": "scenario.toml"; }
    }

    fn run(&self) -> Option<Run> {
        Some(Run { declaration: &result::DECLARATION, design: run })
    }
}

/// Runs the design called `name` of a scenario.
///
/// Errors: values outside their ranges, an observer that stops.
fn run(
    scenario: &Scenario,
    name: &str,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let unknown = || ScenarioError::value("designs", Unknown::new("design", name, Design::names()).to_string());
    let design = Design::by_name(name).ok_or_else(unknown)?;
    let memory = MemorySection::of(scenario)?;
    let parts = memory.parts(false, scenario.seed)?;
    let trace = memory.trace.as_deref().map(|name| Trace::new(files, "memory.trace", name));
    // A trace in the place of the program has its own gaps, and is one window.
    let named = memory.program.as_deref().filter(|_| memory.trace.is_none());
    let pace = named.and_then(|name| memory.pace(name));
    let job = crate::run::Job {
        design,
        parts: &parts,
        annotations: memory.annotations(),
        programs: &[memory.chosen_program(scenario.seed)?],
        trace: trace.as_ref(),
        paces: &[pace],
        beside: None,
        windows: named.map_or(1, |name| memory.windows(name)),
        warm_accesses: memory.warm_accesses,
        accesses: memory.accesses,
        seed: scenario.seed,
    };
    let finished = crate::run::run(&job, observer)?;
    let figures = finished.and_then(|figures| figures.into_iter().next()).ok_or(ScenarioError::Interrupted)?;
    let result = result::result(design, &figures);
    Ok(Measured {
        design: name.to_owned(),
        detail: result::detail(&figures, name),
        fio: fio_report(SimSpan::ZERO, &[], None, Vec::new()),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: true,
            load: Vec::new(),
            cores: parts.machine.cores,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result,
        jobs: None,
        scaling: Vec::new(),
        closed_loop: true,
        first_end_seconds: None,
        simulated_seconds: figures.time.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_describe::{AccessRecords, NoFiles, Rooms};
    use flashyard_memory::Access;
    use flashyard_workload::Records;

    static LANGUAGE: Rooms = Rooms::new(&[&MemoryRoom]);
    const TEXT: &str = include_str!("../../../../../scenarios/memory/scenario.toml");

    fn resolved(settings: &[&str]) -> Result<Scenario, ScenarioError> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        LANGUAGE.resolve(TEXT, "x.toml", &settings, &NoFiles).map(|resolved| resolved.scenario)
    }

    #[test]
    fn every_design_runs_every_program() {
        let names = MemorySection::of(&resolved(&[]).expect("it is good")).expect("it is of this system");
        for name in names.programs() {
            let program = format!("memory.program=\"{name}\"");
            let smaller = [
                ("mix", "footprint=\"1 GB\""),
                ("apex_map", "words=134217728"),
                ("stream", "elements=67108864"),
                ("bfs", "scale=14"),
                ("pagerank", "scale=14"),
                ("btree", "keys=100000"),
            ]
            .map(|(kind, set)| (format!("[memory.{kind}.{name}]"), format!("memory.{kind}.{name}.{set}")));
            let mut settings = vec![
                program.as_str(),
                "memory.accesses=2000",
                "memory.warm_accesses=100",
                "memory.endpoint.cache=\"1 MiB\"",
                "memory.flash.blocks_per_plane=64",
            ];
            // The published footprints need the published device, and larger graphs and trees much time to make.
            settings.extend(smaller.iter().filter(|(section, _)| TEXT.contains(section)).map(|(_, set)| set.as_str()));
            let scenario = resolved(&settings).expect("it is good");
            for design in Design::names() {
                let measured = run(&scenario, design, &NoFiles, &mut |_| true).expect("it runs");
                assert!(measured.result.laws.hold, "{name} {design}: {:?}", measured.result.laws.broken);
                assert!(measured.simulated_seconds > 0.0);
            }
        }
    }

    #[test]
    fn a_footprint_beyond_the_device_is_one_error_with_the_address() {
        let settings = ["memory.program=\"cactus\"", "memory.accesses=2000", "memory.flash.blocks_per_plane=64"];
        let scenario = resolved(&settings).expect("it is good");
        for design in ["cxl-ssd", "cxl-dram", "pcie-ssd"] {
            let refused =
                run(&scenario, design, &NoFiles, &mut |_| true).err().expect("22.7 GB do not fit").to_string();
            assert!(refused.contains("requests to addresses that no memory has, the first to 0x"), "{refused}");
            assert!(refused.contains("HDM decoders claim 0x0 to 0xd9998fff"), "{refused}");
        }
        assert!(run(&scenario, "dram", &NoFiles, &mut |_| true).is_ok(), "DRAM on the processor has all addresses");
    }

    /// A trace of loads of one page after the other.
    struct Loads;

    impl Files for Loads {
        fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
            Ok(None)
        }

        fn open_trace(&self, name: &str) -> Result<Records, String> {
            Err(format!("{name}: there is none"))
        }

        fn open_accesses(&self, _name: &str) -> Result<AccessRecords, String> {
            let of = |number: u64| Ok(Access { address: number * 4096, gap: 40, ..Access::default() });
            Ok(Box::new((0..2000).map(of)))
        }
    }

    #[test]
    fn a_trace_runs_at_its_own_pace_whatever_program_it_takes_the_place_of() {
        let regular = "{ streams = 6, stride = 4, footprint = \"32 MiB\", loads = 0.8, misses_per_thousand = 0.01 }";
        let times = ["cactus", "slow"].map(|program| {
            let (program, slow) = (format!("memory.program=\"{program}\""), format!("memory.regular.slow={regular}"));
            let settings = ["memory.trace=\"x\"", "memory.accesses=2000", "memory.warm_accesses=100", &program, &slow];
            let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
            let scenario = LANGUAGE.resolve(TEXT, "x.toml", &settings, &Loads).expect("it is good").scenario;
            run(&scenario, "dram", &Loads, &mut |_| true).expect("it runs").simulated_seconds
        });
        assert!(times[0] > 0.0);
        assert_eq!(times[0], times[1]);
    }

    #[test]
    fn wrong_values_are_refused_by_their_keys() {
        for (setting, expected) in [
            ("memory.program=\"gc\"", "did you mean \"gcc\""),
            ("memory.processor.width=0", "memory.processor.width is 0; give a whole number from 1"),
            ("memory.endpoint.policy=\"lur\"", "give one of fifo, lru"),
            ("memory.flash.spare=0.95", "memory.flash.spare is 0.95"),
            ("memory.dram.rows=3", "there is no key memory.dram.rows"),
        ] {
            let found = resolved(&[setting]).expect_err("it is wrong").to_string();
            assert!(found.contains(expected), "{expected:?} is not in {found}");
        }
        let scenario = resolved(&["memory.flash.spare=0.0"]).expect("the schema lets it pass");
        let refused = run(&scenario, "cxl-ssd", &NoFiles, &mut |_| true).err().expect("there is no spare space");
        assert!(refused.to_string().contains("spare superblocks"), "{refused}");
    }
}
