//! Drives that begin as aged ones.

use flashyard_kernel::Rng;
use flashyard_report::DRIVE;
use flashyard_scenario::drive::drive;
use flashyard_scenario::result::wear::ERASES_MEAN;
use flashyard_scenario::{Aged, AgedDrive, Files, LifeStop, Scenario, age, resolve, run_design};
use flashyard_ssd::Drive;
use flashyard_workload::Records;
use flashyard_xbof::jbof::Design;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const AGEING: &str = include_str!("../../../../scenarios/ageing/scenario.toml");

/// A drive of 1 GiB, much of which is written.
const SMALL: [&str; 7] = [
    "drive.blocks_per_plane=64",
    "drive.pages_per_block=32",
    "drive.filled=1.0",
    "workload.span=600 MiB",
    "workload.read_share=0.3",
    "drive.wear.erases=60",
    "run.measure=20 ms",
];

/// One file of an aged drive.
struct One(Vec<u8>);

impl Files for One {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn bytes(&self, name: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        match name {
            "old" if self.0.len() as u64 <= most_bytes => Ok(self.0.clone()),
            _ => Err(format!("{name}: not there")),
        }
    }
}

fn scenario(settings: &[&str]) -> Scenario {
    let settings: Vec<String> = SMALL.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    resolve(AGEING, "ageing", &settings, &One(Vec::new())).expect("the scenario is good").scenario
}

fn files(bytes: Vec<u8>) -> &'static One {
    Box::leak(Box::new(One(bytes)))
}

fn result(scenario: &Scenario, bytes: Vec<u8>) -> Result<String, String> {
    let run = run_design(scenario, Design::Conv, files(bytes), &mut |_| true).map_err(|error| error.to_string())?;
    assert!(run.figures.sanity.holds(), "{:#?}", run.figures.sanity);
    Ok(serde_json::to_string(&(run.result, run.figures.events)).expect("it is data"))
}

/// The drive of a scenario, overwritten as a run would.
fn overwritten(scenario: &Scenario) -> Vec<u8> {
    let config = drive(&scenario.drive).expect("it is a drive");
    let mut drive = Drive::new(config, &[1], 1).expect("it is a drive");
    drive.data.overwrite(scenario.drive.overwrites(), &mut Rng::named(scenario.seed, "precondition.0"));
    let ftl = &drive.data.ftl;
    let note = "small, overwritten".to_owned();
    AgedDrive::new(&config.data_geometry(), ftl.config().logical_slots, "", note, ftl.aged_state()).encode()
}

#[test]
fn a_run_from_a_saved_state_equals_the_one_that_goes_on_in_memory() {
    let before = scenario(&["drive.overwritten=1.7"]);
    let saved = overwritten(&before);
    let in_memory = result(&before, Vec::new()).expect("it runs");
    let from_file = result(&scenario(&["drive.aged_state=old"]), saved).expect("it runs");
    assert_eq!(in_memory, from_file);
}

/// Keeps the state of one drive in memory.
#[derive(Default)]
struct Keeping {
    state: OnceLock<(String, Vec<u8>)>,
    found: AtomicU32,
}

impl Files for Keeping {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn keeps_aged_from(&self) -> Option<u64> {
        Some(1)
    }

    fn aged(&self, key: &str, most_bytes: u64) -> Option<Vec<u8>> {
        let found = self.state.get().filter(|state| state.0 == key).map(|state| state.1.clone());
        self.found.fetch_add(found.is_some().into(), Ordering::Relaxed);
        found.filter(|bytes| bytes.len() as u64 <= most_bytes)
    }

    fn keep_aged(&self, key: &str, bytes: &[u8]) {
        self.state.set((key.to_owned(), bytes.to_vec())).expect("a drive is overwritten once");
    }
}

#[test]
fn a_run_whose_overwrites_an_earlier_one_has_done_equals_one_that_does_them() {
    for settings in [
        &["drive.overwritten=1.7"][..],
        &["drive.overwritten=0.5", "drive.until_steady=true"],
        &["drive.overwritten=1", "drive.mapping_unit=8 KiB"],
        &["drive.overwritten=1", "drive.drawn=true", "drive.victim=greedy"],
    ] {
        let scenario = scenario(settings);
        let by_itself = result(&scenario, Vec::new()).expect("it runs");
        let keeping: &'static Keeping = Box::leak(Box::default());
        for found in [0, 1] {
            let run = run_design(&scenario, Design::Conv, keeping, &mut |_| true).expect("it runs");
            let run = serde_json::to_string(&(run.result, run.figures.events)).expect("it is data");
            assert_eq!(run, by_itself, "{settings:?}");
            assert_eq!(keeping.found.load(Ordering::Relaxed), found, "{settings:?}");
        }
    }
}

#[test]
fn a_run_from_a_drawn_state_that_was_saved_equals_the_one_that_draws_it() {
    let drawn = scenario(&["drive.drawn=true"]);
    let in_memory = result(&drawn, Vec::new()).expect("it runs");
    let from_file = result(&scenario(&["drive.aged_state=old"]), overwritten(&drawn)).expect("it runs");
    assert_eq!(in_memory, from_file);
    let other = result(&scenario(&["drive.drawn=true", "seed=7"]), Vec::new()).expect("it runs");
    assert_ne!(in_memory, other);
}

#[test]
fn states_that_cannot_be_drawn_are_refused_in_words() {
    for (setting, expected) in [
        ("drive.victim=cost-benefit", "give drive.victim = \"greedy\", or drive.drawn = false"),
        ("drive.slc_superblocks=2", "with a single-level cache; give drive.slc_superblocks = 0"),
    ] {
        let error = result(&scenario(&["drive.drawn=true", setting]), Vec::new()).expect_err("none is known");
        assert!(error.contains("drive.drawn") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_life_that_was_saved_is_where_a_timed_run_begins() {
    let young = scenario(&["life.random_fills=1", "life.endurance=300", "drive.wear.erases=0"]);
    let stop = LifeStop { drive_writes: Some(6.0), ..LifeStop::default() };
    let life = age(&young, stop, files(Vec::new()), &mut |_| true).expect("it lives").expect("nobody stopped it");
    let run = |bytes| run_design(&scenario(&["drive.aged_state=old"]), Design::Conv, files(bytes), &mut |_| true);
    let run = run(life.save("")).expect("it runs");
    let erases = run.result.components.of(&DRIVE)[0].figures.number(&ERASES_MEAN);
    assert!(erases >= life.record.last.erases_mean, "{erases} after {:?}", life.record.last);
    assert!(erases < life.record.last.erases_mean + 1.0 && erases > 3.0, "{erases}");
}

#[test]
fn a_file_that_does_not_fit_is_refused_in_words() {
    let saved = overwritten(&scenario(&[]));
    let refused =
        |settings: &[&str], bytes: &[u8]| result(&scenario(settings), bytes.to_vec()).expect_err("it does not fit");
    let other = refused(&["drive.aged_state=old", "drive.pages_per_block=64"], &saved);
    assert!(other.contains("drive.aged_state") && other.contains("pages_per_block = 32"), "{other}");
    assert!(other.contains("small, overwritten") && other.contains("has 64"), "{other}");
    let cut = refused(&["drive.aged_state=old"], &saved[..saved.len() - 1]);
    assert!(cut.contains("old: the aged drive is cut short or damaged"), "{cut}");
    assert!(refused(&["drive.aged_state=nowhere"], &saved).contains("nowhere: not there"));
    assert!(refused(&["drive.aged_state=old"], b"PAR1").contains("flashyard age --save"));
}
