//! The main claims of `scenarios/rack`, on a small rack with small switches.

use flashyard_describe::{Files, Overrides};
use flashyard_report::Figures;
use flashyard_workload::Records;
use flashyard_xbof::jbof::Design;
use flashyard_xbof::room::result::run::{BORROWERS, SCAN_CORE_SHARE, SCAN_HOST_CORE_SHARE, SCANS};
use flashyard_xbof::room::{JbofRun, resolve_with, run_design};

const SCENARIO: &str = include_str!("../../../../scenarios/rack/scenario.toml");
const BURST: &str = include_str!("../../../../scenarios/rack/burst.fio");
const IDLE: &str = include_str!("../../../../scenarios/rack/idle.fio");

struct JobFiles;

impl Files for JobFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        match name {
            "burst.fio" => Ok(BURST.replace("22500us", "2250us").replace("37500us", "3750us")),
            "idle.fio" => Ok(IDLE.replace("60ms", "6ms")),
            other => Err(format!("{other}: cannot be read")),
        }
    }
}

/// A rack of 32 drives on switches of 8 ports, with periods of 1 ms, for 8 ms.
fn attempt(settings: &[&str]) -> Result<JbofRun, String> {
    let base = [
        "jbof.drives=32",
        "jbof.busy_drives=32",
        "fabric.radix=8",
        "harvest.period='1 ms'",
        "run.measure='2 ms'",
        "sweep={}",
    ];
    let settings = base.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
    let overrides = Overrides { settings, ..Overrides::default() };
    let resolved = resolve_with(SCENARIO, "rack", &overrides, &JobFiles);
    let scenario = resolved.map_err(|error| error.to_string())?.scenario;
    run_design(&scenario, Design::ProcH, &JobFiles, &mut |_| true).map_err(|error| error.to_string())
}

fn search(settings: &[&str]) -> Figures {
    let run = attempt(settings).expect("it runs");
    assert!(run.result.laws.hold, "{:?}", run.result.laws.broken);
    run.result.figures
}

#[test]
fn every_borrower_of_a_rack_finds_a_lender_and_its_own_leaf_is_cheaper_to_read() {
    let all = search(&["harvest.lenders_max=1"]);
    let leaf = search(&["harvest.lenders_max=1", "harvest.scan=leaf-first"]);
    assert_eq!((all.count(&BORROWERS), leaf.count(&BORROWERS)), (16, 16));
    // Seven peers behind one switch instead of 31, 24 of them behind three; not every drive finds enough there.
    assert!(
        leaf.number(&SCAN_CORE_SHARE) < all.number(&SCAN_CORE_SHARE) / 2.0,
        "{} against {}",
        leaf.number(&SCAN_CORE_SHARE),
        all.number(&SCAN_CORE_SHARE)
    );
}

#[test]
fn own_leaf_first_saves_little_for_who_wants_more_than_there_is() {
    let (all, leaf) = (search(&[]), search(&["harvest.scan=leaf-first"]));
    assert!(
        leaf.number(&SCAN_CORE_SHARE) > all.number(&SCAN_CORE_SHARE) / 2.0,
        "{} against {}",
        leaf.number(&SCAN_CORE_SHARE),
        all.number(&SCAN_CORE_SHARE)
    );
}

#[test]
fn longer_hops_make_scans_longer_and_a_single_switch_none() {
    let near = search(&["fabric.radix=32"]);
    let far = search(&["fabric.hop='1 us'"]);
    let per_scan = |found: &Figures| found.number(&SCAN_CORE_SHARE) / found.number(&SCANS);
    // 31 loads of 300 ns, and 24 of them over two more switches, both ways.
    let expected = (31.0 * 0.3 + 24.0 * 4.0) / (31.0 * 0.3);
    assert!((per_scan(&far) / per_scan(&near) / expected - 1.0).abs() < 0.05, "{near:?} {far:?}");
}

#[test]
fn each_host_scans_for_its_own_drives() {
    let (one, four) = (search(&["host.drives_per_host=32"]), search(&["host.drives_per_host=8"]));
    // Four hosts scan four times as much with four times the cores.
    assert!(
        (one.number(&SCAN_HOST_CORE_SHARE) / four.number(&SCAN_HOST_CORE_SHARE) - 1.0).abs() < 0.01,
        "{one:?} {four:?}"
    );
    let error = attempt(&["host.drives_per_host=0"]).err().expect("no host");
    assert!(error.contains("host.drives_per_host"), "{error}");
}

#[test]
fn a_rack_gives_the_same_figures_again() {
    let run = |_| format!("{:?}", attempt(&["harvest.scan=leaf-first"]).expect("it runs").figures);
    assert!(run(0) == run(1), "two runs of one seed differ");
}
