//! Age in time: what erases, retention and the code make of the latency of reads, and what becomes of the superblocks.

use flashyard_describe::NoFiles;
use flashyard_report::{DRIVE, IOS, LATENCY_MEAN, Value};
use flashyard_served::Control;
use flashyard_units::{DriveId, SimTime};
use flashyard_xbof::jbof::{Design, LiveJbof};
use flashyard_xbof::room::result::wear::{ERASES_MAX, ERASES_MEAN, RETIRED, RETRIES_PER_READ, YOUNG};
use flashyard_xbof::room::{JbofRun, live, resolve, run_design};

const AGEING: &str = include_str!("../../../../scenarios/ageing/scenario.toml");

fn run(settings: &[&str]) -> Result<JbofRun, String> {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let scenario = resolve(AGEING, "ageing", &settings, &NoFiles).map_err(|error| error.to_string())?.scenario;
    run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).map_err(|error| error.to_string())
}

/// Mean latency of single reads of one page.
fn unloaded(settings: &[&str]) -> (f64, JbofRun) {
    let mut all = vec!["workload.depth=1", "workload.read_share=1.0", "run.measure=20 ms"];
    all.extend(settings);
    let run = run(&all).expect("it runs");
    (run.result.figures.number(&LATENCY_MEAN), run)
}

#[test]
fn every_retry_senses_once_more() {
    // At 50 erases some reads disturb blocks that were at the limit: 99.9 bits where 100 take a second retry.
    let (new, _) = unloaded(&[]);
    for (erases, retries) in [(75, 2.0), (100, 3.0), (150, 4.0), (300, 6.0)] {
        let (worn, run) = unloaded(&[&format!("drive.wear.erases={erases}")]);
        // All pages of this drive are sensed in 75 us. Percentiles are buckets, means are exact.
        assert!((worn - new - 75.0 * retries).abs() < 0.5, "{erases} erases: {worn} against {new}");
        let wear = &run.result.components.of(&DRIVE)[0].figures;
        assert_eq!((wear.number(&RETRIES_PER_READ), wear.count(&ERASES_MAX)), (retries, erases));
        assert_eq!([wear.get(&YOUNG), wear.get(&RETIRED)], [Value::Count(0); 2]);
    }
}

#[test]
fn retries_cost_energy() {
    let flash = |run: &JbofRun| run.figures.drives[0].energy.flash.as_joules() / run.result.figures.number(&IOS);
    let ((_, new), (_, worn)) = (unloaded(&[]), unloaded(&["drive.wear.erases=300"]));
    assert!(flash(&worn) > 3.0 * flash(&new), "{} J a read against {}", flash(&worn), flash(&new));
}

#[test]
fn data_that_lay_for_a_year_is_read_more_slowly_and_a_better_code_makes_up_for_it() {
    let (fresh, _) = unloaded(&["drive.wear.erases=100"]);
    let (old, _) = unloaded(&["drive.wear.erases=100", "drive.wear.retention_days=365.0"]);
    let (coded, _) = unloaded(&["drive.wear.erases=100", "drive.wear.retention_days=365.0", "drive.wear.ecc_bits=300"]);
    assert!(fresh < old && coded < fresh, "{fresh}, {old}, {coded}");
}

/// The scenario without a word on wear.
fn without_wear() -> String {
    let lines = AGEING.lines().filter(|line| !line.starts_with("\"drive.wear"));
    let text: String = lines.map(|line| line.to_owned() + "\n").collect();
    let (before, rest) = text.split_once("[drive.wear]").expect("there is the section");
    format!("{before}{}", &rest[rest.find("[host]").expect("there is the next one")..])
}

#[test]
fn the_wear_of_a_run_that_does_not_ask_for_it_is_not_in_its_results() {
    let scenario = resolve(&without_wear(), "ageing", &[], &NoFiles).expect("it is good").scenario;
    let run = run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true).expect("it runs");
    assert_eq!(run.result.components.of(&DRIVE)[0].figures.get(&ERASES_MEAN), Value::Absent);
    assert!(!serde_json::to_string(&run.result).expect("it is data").contains("\"wear\""));
}

#[test]
fn wear_that_cannot_be_is_refused_in_words() {
    let wrong = |settings: &[&str]| run(settings).err().expect("it is wrong");
    assert!(wrong(&["drive.wear.endurance=0"]).contains("give a whole number from 1 to 65535"));
    assert!(wrong(&["drive.wear.ecc_bits=0"]).contains("give a whole number from 1 to 16384"));
    assert!(wrong(&["drive.wear.retention_days=-1.0"]).contains("retention_days is -1"));
    assert!(wrong(&["drive.wear.retire_above=0.001"]).contains("a fresh block"));
    let dead = wrong(&["drive.wear.retire_above=0.05", "drive.wear.erases=267"]);
    assert!(dead.contains("retired at 267"), "{dead}");
}

/// Erases of the most erased superblock of a drive of 40 MiB after eight seconds of writes to 2 MiB of it.
fn most_erases(settings: &[&str]) -> u64 {
    let mut all = vec!["drive.channels=2", "drive.dies_per_channel=2", "drive.planes_per_die=1", "drive.filled=1.0"];
    all.extend(["drive.blocks_per_plane=40", "drive.pages_per_block=16", "drive.over_provisioning=0.15"]);
    all.extend(["drive.slc_superblocks=0", "drive.reclaim_below=2", "workload.read_share=0.0"]);
    all.extend(["workload.span=2 MiB", "run.measure=8 s"]);
    all.extend(settings);
    let run = run(&all).expect("it runs");
    run.result.components.of(&DRIVE)[0].figures.count(&ERASES_MAX)
}

#[test]
fn a_drive_in_time_levels_its_wear_as_its_scenario_says() {
    let unleveled = most_erases(&[]);
    for (name, allocation) in
        [("obp(2,4)", "fifo"), ("dp(2)", "fifo"), ("pwl(1)", "fifo"), ("uneven(95)", "youngest-first")]
    {
        let (policy, order) = (format!("drive.wear_leveling={name}"), format!("drive.allocation={allocation}"));
        let leveled = most_erases(&[&policy, &order]);
        assert!(3 * leveled < 2 * unleveled, "{name}: {leveled} erases against {unleveled}");
        let shared = most_erases(&[&policy, &order, "drive.frontiers=shared"]);
        assert!(3 * shared < 2 * unleveled, "{name}, shared: {shared} erases against {unleveled}");
    }
}

#[test]
fn policies_that_cannot_be_are_refused_in_words() {
    let refused = |text: &str, setting: &str| {
        let scenario = resolve(text, "ageing", &[setting.to_owned()], &NoFiles).map(|found| found.scenario);
        let run = scenario.and_then(|scenario| run_design(&scenario, Design::Conv, &NoFiles, &mut |_| true));
        let error = run.err().expect("it is wrong");
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error} {}", cause.unwrap_or_default())
    };
    let wrong = |setting: &str| refused(AGEING, setting);
    let message = wrong("drive.wear_leveling=dp");
    assert!(message.contains("drive.wear_leveling") && message.contains("dp(TH)"), "{message}");
    let message = wrong("drive.wear_leveling=uneven(101)");
    assert!(message.contains("0 to 100"), "{message}");
    let message = wrong("drive.frontiers=three");
    assert!(message.contains("drive.frontiers") && message.contains("separate, shared"), "{message}");
    let message = refused(&without_wear(), "drive.wear_leveling=pwl(50)");
    assert!(message.contains("endurance"), "{message}");
}

/// The enclosure of the scenario, ready to serve.
fn served(settings: &[&str]) -> LiveJbof {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let scenario = resolve(AGEING, "ageing", &settings, &NoFiles).expect("it is good").scenario;
    live(&scenario, &NoFiles, None).expect("its enclosure can serve")
}

#[test]
fn a_drive_that_serves_is_worn_at_a_word_and_its_health_says_so() {
    let mut world = served(&["drive.wear.retire_above=0.05"]);
    let now = SimTime::ZERO;
    let health = world.health(DriveId::new(0), now);
    assert_eq!((health.used(3000), health.spare(), health.endurance), (0.0, 1.0, Some(300)));
    let new = world.wear_states(DriveId::new(0)).expect("wear decides");
    assert_eq!((new.middle_aged, new.retries_max), (0, 0));
    world.control(now, Control::Wear { drive: DriveId::new(0), level: 0.5 }).expect("it can be worn so far");
    let worn = world.wear_states(DriveId::new(0)).expect("wear decides");
    assert_eq!((worn.young, worn.middle_aged, worn.retries_max), (0, new.young, 4));
    assert_eq!((world.health(DriveId::new(0), now).used(3000), world.health(DriveId::new(0), now).spare()), (0.5, 1.0));
    let refused = world
        .control(now, Control::Wear { drive: DriveId::new(0), level: 0.9 })
        .expect_err("superblocks retire at 267");
    assert_eq!(refused.to_string(), "0.9 is no level of wear for drive 0, give 0 to 0.887 of its nominal erases");
    assert!(world.control(now, Control::Wear { drive: DriveId::new(0), level: f64::NAN }).is_err());
    assert!(world.control(now, Control::Wear { drive: DriveId::new(7), level: 0.1 }).is_err());
}

#[test]
fn a_drive_that_does_not_wear_is_not_worn() {
    let scenario = resolve(&without_wear(), "ageing", &[], &NoFiles).expect("it is good").scenario;
    let mut world = live(&scenario, &NoFiles, None).expect("its enclosure can serve");
    let refused = world
        .control(SimTime::ZERO, Control::Wear { drive: DriveId::new(0), level: 0.5 })
        .expect_err("it does not wear");
    assert!(refused.to_string().contains("[drive.wear]"), "{refused}");
}
