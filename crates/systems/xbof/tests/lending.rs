//! The main claims of the scenarios about lending, as orders rather than numbers, on shorter windows.

use flashyard_describe::Files;
use flashyard_report::{Component, DRIVE, DesignResult, LATENCY_P99, THROUGHPUT, Value};
use flashyard_workload::Records;
use flashyard_xbof::jbof::Design;
use flashyard_xbof::room::result::drive::{REDIRECTED_SETTLED, REDIRECTED_SWING};
use flashyard_xbof::room::{JbofRun, fio_report, resolve, run_design};

/// A scenario with its job files.
struct Case {
    text: &'static str,
    jobs: &'static [(&'static str, &'static str)],
}

static STABILITY: Case = Case {
    text: include_str!("../../../../scenarios/stability/scenario.toml"),
    jobs: &[
        ("borrower.fio", include_str!("../../../../scenarios/stability/borrower.fio")),
        ("light.fio", include_str!("../../../../scenarios/stability/light.fio")),
        ("heavy.fio", include_str!("../../../../scenarios/stability/heavy.fio")),
    ],
};

static QOS: Case = Case {
    text: include_str!("../../../../scenarios/lender-qos/scenario.toml"),
    jobs: &[
        ("borrower.fio", include_str!("../../../../scenarios/lender-qos/borrower.fio")),
        ("lender.fio", include_str!("../../../../scenarios/lender-qos/lender.fio")),
    ],
};

static CHOICE: Case = Case {
    text: include_str!("../../../../scenarios/lender-choice/scenario.toml"),
    jobs: &[
        ("first.fio", include_str!("../../../../scenarios/lender-choice/first.fio")),
        ("second.fio", include_str!("../../../../scenarios/lender-choice/second.fio")),
        ("third.fio", include_str!("../../../../scenarios/lender-choice/third.fio")),
    ],
};

impl Files for Case {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.jobs.iter().find(|file| file.0 == name).map(|file| file.1.to_owned());
        found.ok_or_else(|| format!("{name}: there is no such file"))
    }
}

fn attempt(case: &'static Case, design: Design, settings: &[&str]) -> Result<JbofRun, String> {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let resolved = resolve(case.text, "scenario.toml", &settings, case).map_err(|error| error.to_string())?;
    run_design(&resolved.scenario, design, case, &mut |_| true).map_err(|error| error.to_string())
}

fn run(case: &'static Case, design: Design, settings: &[&str]) -> DesignResult {
    attempt(case, design, settings).expect("it runs").result
}

fn drives(run: &DesignResult) -> &[Component] {
    run.components.of(&DRIVE)
}

fn worst_p99(drives: &[Component]) -> f64 {
    drives.iter().map(|drive| drive.figures.number(&LATENCY_P99)).fold(0.0, f64::max)
}

fn throughput(drives: &[Component]) -> f64 {
    drives.iter().map(|drive| drive.figures.number(&THROUGHPUT)).sum()
}

#[test]
fn the_literal_law_swings_on_old_reports_and_water_filling_settles_and_serves_best() {
    let with = |balance: &str| {
        let balance = format!("harvest.balance={balance}");
        let settings = [&balance, "harvest.host_phase=0.0", "harvest.sensing_delay=2", "jbof.busy_drives=2"];
        run(&STABILITY, Design::ProcH, &settings)
    };
    let [literal, damped, filled] = ["literal", "damped", "water-filling"].map(with);
    let swing = |run: &DesignResult| drives(run)[0].figures.number(&REDIRECTED_SWING);
    assert!(swing(&literal) > 0.3, "{}", swing(&literal));
    assert!(swing(&damped) < 0.1 && swing(&filled) < 0.1, "{} {}", swing(&damped), swing(&filled));
    let settled = |run: &DesignResult| drives(run)[0].figures.get(&REDIRECTED_SETTLED);
    assert_eq!(settled(&literal), Value::Absent);
    assert!(settled(&filled).number().is_some_and(|seconds| seconds < 0.1));
    assert!(throughput(drives(&literal)) < 0.95 * throughput(drives(&damped)));
    assert!(throughput(drives(&filled)) > 0.999 * throughput(drives(&damped)));
    let [damped, filled] = [&damped, &filled].map(|run| worst_p99(&drives(run)[..2]));
    assert!(filled < damped / 2.0, "{filled} against {damped}");
    assert!(worst_p99(&drives(&literal)[..2]) > damped);
}

#[test]
fn a_cap_keeps_the_lenders_p99_and_leaves_the_borrower_some_gain() {
    let window = ["run.warmup=400 ms", "run.measure=500 ms"];
    let alone = run(&QOS, Design::Shrunk, &window);
    // Shadow queues weigh so much that the lenders' own commands get less of the cores than they need. With the low weight
    // slices alone protect them.
    let weights = ["harvest.shadow_weight=8", "harvest.lender_weight=9"];
    let with = |cap: &str| {
        let cap = format!("harvest.lender_p99_cap={cap}");
        run(&QOS, Design::ProcH, &[&cap, window[0], window[1], weights[0], weights[1]])
    };
    let [none, tenth, free] = ["0.0", "0.1", "100.0"].map(with);
    let lenders = |run: &DesignResult| worst_p99(&drives(run)[2..]) / worst_p99(&drives(&alone)[2..]);
    let borrowers = |run: &DesignResult| throughput(&drives(run)[..2]) / throughput(&drives(&alone)[..2]);
    assert!(lenders(&none) < 1.02 && lenders(&tenth) < 1.12, "{} {}", lenders(&none), lenders(&tenth));
    assert!(lenders(&free) > 2.0, "{}", lenders(&free));
    let gains = [borrowers(&none), borrowers(&tenth), borrowers(&free)];
    let low = run(&QOS, Design::ProcH, &window);
    assert!(lenders(&low) < 1.12 && borrowers(&low) > 1.3, "{} {}", lenders(&low), borrowers(&low));
    assert!(gains[1] > 1.1 && gains.windows(2).all(|pair| pair[0] < pair[1]), "{gains:?}");
}

#[test]
fn every_choice_of_lenders_beats_none_and_most_spare_beats_the_next_in_order() {
    let settings = |choice: &str| [format!("harvest.lender_choice={choice}"), "run.measure=240 ms".to_owned()];
    let with = |choice: &str| {
        let [choice, measure] = settings(choice);
        throughput(drives(&run(&CHOICE, Design::ProcH, &[&choice, &measure])))
    };
    let shrunk = throughput(drives(&run(&CHOICE, Design::Shrunk, &["run.measure=240 ms"])));
    let all = ["least-loaded", "next", "random", "two-choices", "most-spare"].map(with);
    assert!(all.iter().all(|&one| one > 1.1 * shrunk), "{all:?} against {shrunk}");
    assert!(all[4] > 1.02 * all[1], "{all:?}");
    // A drive's random numbers are its own.
    assert_eq!(with("random").to_bits(), all[2].to_bits());
}

#[test]
fn drives_run_the_job_files_in_turn() {
    let settings = ["jbof.busy_drives=3", "run.measure=5 ms"];
    let run = attempt(&CHOICE, Design::Shrunk, &settings).expect("it runs");
    let drives: Vec<u16> = run.figures.streams.iter().map(|stream| stream.volume.get()).collect();
    assert_eq!(drives, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let text = serde_json::to_string(&fio_report(&run)).expect("it is plain data");
    assert_eq!(text.matches("\"jobname\":\"own\"").count(), 3, "{text}");
}

#[test]
fn names_and_numbers_of_harvesting_are_checked() {
    for (setting, expected) in [
        ("harvest.balance=even", "one of literal, damped, water-filling"),
        ("harvest.lender_choice=best", "one of least-loaded, next, random, two-choices, most-spare"),
        ("harvest.host_phase=1.0", "give a number from 0.0 to 0.99"),
        ("harvest.sensing_delay=9", "give a whole number from 0 to 4"),
        ("harvest.lender_p99_cap=-0.1", "give a number from 0.0 to 100.0"),
        ("workload.fio=[]", "no job file given"),
    ] {
        let error = attempt(&CHOICE, Design::ProcH, &[setting]).err().expect("it is wrong");
        assert!(error.contains(expected), "{error}");
    }
}
