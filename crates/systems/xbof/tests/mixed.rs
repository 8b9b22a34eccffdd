//! Drives that differ: groups reach drives, rows and prices, and what each indicator of load makes of unlike lenders.

use flashyard_describe::{Files, Resolved};
use flashyard_report::{DRIVE, PRICE, THROUGHPUT};
use flashyard_workload::Records;
use flashyard_xbof::jbof::Design;
use flashyard_xbof::room::result::drive::LENT_UTILIZATION;
use flashyard_xbof::room::{JbofRun, resolve, run_design};

/// The job files of the scenario.
struct Mixed;

impl Files for Mixed {
    fn profile(&self, _kind: &str, _name: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        Err(format!("{name}: these tests use no traces"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let text = match name {
            "borrower.fio" => include_str!("../../../../scenarios/mixed/borrower.fio"),
            "slow.fio" => include_str!("../../../../scenarios/mixed/slow.fio"),
            "fast.fio" => include_str!("../../../../scenarios/mixed/fast.fio"),
            _ => return Err(format!("{name}: not one of the scenario's")),
        };
        Ok(text.to_owned())
    }
}

const MIXED: &str = include_str!("../../../../scenarios/mixed/scenario.toml");

fn resolved(text: &str, settings: &[&str]) -> Result<Resolved, String> {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    resolve(text, "mixed", &settings, &Mixed).map_err(|error| error.to_string())
}

fn run(design: Design, settings: &[&str]) -> JbofRun {
    let scenario = resolved(MIXED, settings).expect("the scenario is good").scenario;
    run_design(&scenario, design, &Mixed, &mut |_| true).expect("it runs")
}

/// GB/s of the borrower, and the share of each lender's cores that was lent.
fn lent(indicator: &str) -> (f64, f64, f64) {
    let indicator = format!("harvest.indicator={indicator}");
    let run = run(Design::ProcH, &["run.measure=60 ms", "harvest.lenders_max=1", &indicator]);
    assert!(run.figures.sanity.holds(), "{:#?}", run.figures.sanity);
    let drives = run.result.components.of(&DRIVE);
    let lent = |number: usize| drives[number].figures.number(&LENT_UTILIZATION);
    (drives[0].figures.number(&THROUGHPUT) / 1e9, lent(1), lent(2))
}

#[test]
fn utilization_and_queue_depth_take_the_slow_lender_and_waiting_work_the_fast_one() {
    let shrunk = run(Design::Shrunk, &["run.measure=60 ms"]).result;
    let shrunk = shrunk.components.of(&DRIVE)[0].figures.number(&THROUGHPUT) / 1e9;
    for indicator in ["utilization", "queue-depth"] {
        let (borrower, slow, fast) = lent(indicator);
        assert!(slow > 0.2 && fast < 0.05, "{indicator}: {slow} and {fast}");
        assert!(borrower < shrunk, "{indicator}: lending costs more than it gives, {borrower} against {shrunk}");
    }
    let (borrower, slow, fast) = lent("waiting-work");
    assert!(slow < 0.05 && fast > 0.2, "{slow} and {fast}");
    assert!(borrower > 1.4 * shrunk, "{borrower} against {shrunk}");
    assert_eq!((borrower, slow, fast), lent("waiting-work"), "the same seed gives the same figures");
}

#[test]
fn every_drive_keeps_a_share_of_its_own_and_has_its_own_row_and_price() {
    let run = run(Design::Shrunk, &["run.measure=5 ms"]);
    let cores: Vec<u32> = run.figures.drives.iter().map(|drive| drive.servers.cores).collect();
    assert_eq!(cores, [3, 1, 4]);
    let names: Vec<&str> = run.result.components.of(&DRIVE).iter().map(|drive| drive.name.as_str()).collect();
    assert_eq!(names, ["drive-0 borrower", "drive-1 slow", "drive-2 fast"]);
    let drives = run.result.components.of(&DRIVE);
    let prices: Vec<f64> = drives.iter().map(|drive| drive.figures.number(&PRICE)).collect();
    assert!(prices[1] < prices[0] && prices[0] < prices[2], "{prices:?}");
    assert!((run.result.figures.number(&PRICE) - prices.iter().sum::<f64>()).abs() < 1e-9);
}

#[test]
fn groups_may_differ_in_flash_and_idle_drives_come_last() {
    let text = MIXED
        .replace("name = \"slow\"\ncount = 1", "name = \"slow\"\ncount = 2\ndrive.channels = 4")
        .replace("fio = [\"borrower.fio\", \"slow.fio\", \"fast.fio\"]", "fio = \"borrower.fio\"");
    let scenario = resolved(&text, &["run.measure=5 ms"]).expect("it is good").scenario;
    let run = run_design(&scenario, Design::Xbof, &Mixed, &mut |_| true).expect("it runs");
    assert!(run.figures.sanity.holds(), "{:#?}", run.figures.sanity);
    let channels: Vec<u32> = run.figures.drives.iter().map(|drive| drive.servers.channels).collect();
    assert_eq!(channels, [8, 4, 8, 4]);
    assert_eq!(run.result.components.of(&DRIVE)[3].name, "drive-3 slow");
    assert_eq!(run.figures.drives[3].ios, 0);
    let error = run_design(&scenario, Design::Vh, &Mixed, &mut |_| true).err().expect("capacities differ");
    assert!(error.to_string().contains("equal drives"), "{error}");
}

#[test]
fn the_resolved_text_is_complete_and_says_where_a_groups_numbers_come_from() {
    let first = resolved(MIXED, &[]).expect("it is good");
    let again = resolved(&first.text, &[]).expect("it is complete");
    assert_eq!(again.text, first.text);
    assert!(first.text.contains("busy_drives = 3\n") && first.text.contains("\ndrives = 3\n"), "{}", first.text);
    let line = |start: &str| first.text.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    assert!(line("core_clock_mhz = 500")[0].contains("[A] so it runs"), "{:?}", line("core_clock_mhz"));
    assert!(line("erase").iter().all(|line| line.contains("[P] §4.1 (profile xbof-4tb)")), "{:?}", line("erase"));
}

#[test]
fn wrong_groups_are_named_with_what_is_accepted() {
    let error = |text: &str, settings: &[&str]| match resolved(text, settings) {
        Err(error) => error,
        Ok(good) => run_design(&good.scenario, Design::ProcH, &Mixed, &mut |_| true).err().expect("wrong").to_string(),
    };
    assert!(error(&MIXED.replace("drive.cores = 2", "drive.coers = 2"), &[]).contains("coers"));
    assert!(error(MIXED, &["jbof.drives=7"]).contains("leave jbof.drives"));
    assert!(error(&MIXED.replacen("busy = 1 ", "busy = 2 ", 1), &[]).contains("2 of 1 drives of \"borrower\""));
    assert!(
        error(&MIXED.replace("controller_dollars = 10.0", "shrunk_cores = 0.0"), &[]).contains("group.shrunk_cores")
    );
    assert!(error(MIXED, &["harvest.indicator=mood"]).contains("utilization, queue-depth, waiting-work"));
    let both = ["harvest.indicator=waiting-work", "harvest.balance=water-filling"];
    assert!(error(MIXED, &both).contains("water-filling"));
}
