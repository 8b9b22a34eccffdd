use super::*;
use crate::RunReport;
use crate::common::WRITE_AMPLIFICATION;
use crate::html::tests::{document, shape};
use std::collections::BTreeMap;

/// Report that the tests of the page draw.
const FIXTURE: &str = include_str!("../../../../../web/report/fixture/explorer.json");

/// A run of `name` with this cost, p99 and throughput.
fn run(name: &str, busy: &str, dollars: f64, p99: f64, throughput: f64) -> (DesignResult, Equipment) {
    let mut design = document().report.designs.remove(0);
    design.name = format!("{name} {dollars}");
    design.point = vec![format!("jbof.busy_drives={busy}"), format!("jbof.shrunk_cores={dollars}")];
    design.figures.set(&PRICE, dollars);
    design.figures.set(&LATENCY_P99, p99);
    design.figures.set(&THROUGHPUT, throughput);
    design.figures.set(&WRITE_AMPLIFICATION, 1.0);
    let equipment = Equipment {
        design: name.to_owned(),
        computes_on_host: false,
        load: vec![design.point[0].clone()],
        cores: 2,
        memory_share: 0.5,
        lenders_per_busy: 1.0,
    };
    (design, equipment)
}

fn explore(runs: &[(DesignResult, Equipment)]) -> Explorer {
    let (designs, equipment): (Vec<_>, Vec<_>) = runs.iter().cloned().unzip();
    Explorer::new(&designs, &equipment, "conv", 5.0).expect("it is a sweep")
}

fn told(explorer: &Explorer) -> String {
    explorer_text(explorer, 200).expect("there is a choice")
}

/// A report of two loads with `count` runs each; Conv is the first, and nothing else serves as well.
pub(crate) fn sweep(count: u32) -> RunReport {
    let mut runs = Vec::new();
    for busy in ["6", "4"] {
        runs.push(run("conv", busy, 200.0, 100.0, 100.0));
        runs.extend((1..count).map(|at| run("xbof", busy, f64::from(at), 300.0 - f64::from(at), f64::from(at))));
    }
    let explorer = explore(&runs);
    let designs = runs.into_iter().map(|(design, _)| design).collect();
    RunReport { designs, explorer: Some(explorer), ..document().report }
}

#[test]
fn runs_are_compared_with_those_of_their_load() {
    let explorer = explore(&[
        run("conv", "6", 200.0, 100.0, 60.0),
        run("xbof", "6", 150.0, 120.0, 55.0),
        run("xbof", "6", 160.0, 120.0, 55.0),
        run("conv", "4", 200.0, 90.0, 80.0),
    ]);
    let on = |place: usize| explorer.points[place].fronts.contains(&Front::CostP99Throughput);
    assert_eq!([on(0), on(1), on(2), on(3)], [true, true, false, true]);
    let counts: Vec<_> = explorer.loads.iter().map(|load| (load.points.len(), load.dominated)).collect();
    assert_eq!(counts, [(3, 1), (1, 0)]);
}

#[test]
fn fronts_of_two_figures_leave_the_third_out() {
    let explorer = explore(&[
        run("conv", "6", 200.0, 100.0, 60.0),
        run("xbof", "6", 150.0, 100.0, 50.0),
        run("xbof", "6", 170.0, 130.0, 55.0),
    ]);
    let fronts = |place: usize| {
        [Front::CostP99, Front::CostThroughput].map(|front| explorer.points[place].fronts.contains(&front))
    };
    assert_eq!([fronts(0), fronts(1), fronts(2)], [[false, true], [true, true], [false, true]]);
}

#[test]
fn the_cheapest_of_the_same_service_is_within_the_slack_on_both_sides() {
    let explorer = explore(&[
        run("conv", "6", 200.0, 100.0, 100.0),
        run("xbof", "6", 150.0, 105.0, 95.0),
        run("xbof", "6", 140.0, 105.1, 95.0),
        run("xbof", "6", 130.0, 105.0, 94.9),
        run("oc", "6", 150.0, 104.0, 95.0),
    ]);
    // Of the two that cost 150 and move as much, the one with less p99.
    assert_eq!((explorer.loads[0].reference, explorer.loads[0].cheapest), (Some(0), Some(4)));
}

#[test]
fn the_reference_may_be_the_cheapest_or_missing() {
    let alone = explore(&[run("conv", "6", 200.0, 100.0, 100.0), run("xbof", "6", 100.0, 300.0, 100.0)]);
    assert_eq!(alone.loads[0].cheapest, Some(0));
    assert!(told(&alone).contains("nothing cheaper is within 5 % of the throughput and p99 of conv"));
    let missing = explore(&[run("oc", "6", 200.0, 100.0, 100.0), run("xbof", "6", 100.0, 300.0, 100.0)]);
    assert_eq!((missing.loads[0].reference, missing.loads[0].cheapest), (None, None));
    assert!(told(&missing).contains("conv was not run at this load"));
}

#[test]
fn a_run_without_requests_is_on_no_front_of_latency_and_has_no_figures_for_each_gigabyte() {
    let mut idle = run("xbof", "6", 100.0, 0.0, 0.0);
    idle.0.figures.set(&IOS, 0_u64);
    idle.0.figures.set(&ENERGY_PER_GB, None);
    let explorer = explore(&[run("conv", "6", 200.0, 100.0, 100.0), idle]);
    let point = &explorer.points[1];
    assert_eq!((point.latency_p99_us, point.energy_joules_per_gb), (None, None));
    assert_eq!(point.fronts, BTreeSet::from([Front::CostThroughput]));
    assert_eq!(explorer.loads[0].cheapest, Some(0));
}

#[test]
fn one_point_is_nothing_to_explore() {
    let (conv, equipment) = run("conv", "6", 200.0, 100.0, 100.0);
    let designs = [conv.clone(), conv];
    assert_eq!(Explorer::new(&designs, &[equipment.clone(), equipment], "conv", 5.0), None);
    assert_eq!(Explorer::new(&[], &[], "conv", 5.0), None);
}

#[test]
fn a_design_that_computes_on_the_host_is_on_no_front_and_never_the_cheapest() {
    let mut hosted = run("oc", "6", 100.0, 90.0, 110.0);
    hosted.1.computes_on_host = true;
    let explorer = explore(&[run("conv", "6", 200.0, 100.0, 100.0), hosted, run("xbof", "6", 150.0, 100.0, 100.0)]);
    assert!(explorer.points[1].fronts.is_empty());
    assert_eq!((explorer.loads[0].dominated, explorer.loads[0].cheapest), (1, Some(2)), "conv alone is beaten");
    assert!(told(&explorer).contains("not weighed: oc, where host cores work"), "{}", told(&explorer));
}

#[test]
fn a_sweep_of_the_load_of_one_drive_has_nothing_to_weigh() {
    let alone = |load: &str| {
        let (mut design, mut equipment) = run("conv", "1", 200.0, 100.0, 100.0);
        design.point = vec![load.to_owned()];
        equipment.load = design.point.clone();
        (design, equipment)
    };
    let explorer = explore(&[alone("workload.depth=1"), alone("workload.depth=32")]);
    assert_eq!((explorer.is_a_choice, explorer_text(&explorer, 80)), (false, None));
}

#[test]
fn systems_without_prices_are_not_weighed_and_are_shown() {
    let unpriced = |at: i32| {
        let (mut design, equipment) = run("turns", "6", f64::from(at), 1.0, f64::from(at));
        design.figures.set(&PRICE, f64::NAN);
        (design, equipment)
    };
    let runs: Vec<_> = (1..=20).map(unpriced).collect();
    let explorer = explore(&runs);
    assert_eq!((explorer.loads[0].dominated, explorer.loads[0].cheapest, explorer.is_a_choice), (0, None, false));
    assert_eq!((explorer.shown.len(), explorer_text(&explorer, 80)), (SHOWN_MAX, None));
}

#[test]
fn a_small_sweep_is_shown_whole_and_a_large_one_by_what_serves_alike() {
    let runs: Vec<_> = (1..=12).map(|at| run("oc", "6", f64::from(at), 1.0, 1.0)).collect();
    assert_eq!(explore(&runs).shown, (0..12).collect::<Vec<_>>());
    let large = sweep(30).explorer.expect("it is a sweep");
    assert_eq!(large.shown, [0, 30]);
    let runs: Vec<_> = (1..=40).map(|at| run("oc", "6", f64::from(at), 100.0 - f64::from(at), 1.0)).collect();
    assert_eq!(explore(&runs).shown.len(), 12);
}

#[test]
fn the_table_names_loads_dominated_runs_and_the_cheapest() {
    let text = told(&explore(&[
        run("conv", "6", 200.0, 100.0, 100e9),
        run("xbof", "6", 150.0, 102.0, 98e9),
        run("vh", "6", 190.0, 140.0, 90e9),
    ]));
    for words in [
        "1 of 3 runs are dominated",
        "jbof.busy_drives=6 (1.0 idle drives for each busy one): 3 runs, 1 dominated",
        "both, p99, throughput",
        "cheapest within 5 % of the throughput and p99 of conv: xbof, 2 cores, 50 % of the map in DRAM: $150.00 a drive \
         (-25.0 %), throughput -2.0 %, p99 +2.0 %, energy per GB +0.0 %",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("vh"), "it is on no front: {text}");
    assert!(!text.contains("xbof 150"), "nothing else is equipped as it is: {text}");
    let alike = told(&explore(&[run("xbof", "6", 150.0, 102.0, 98e9), run("xbof", "6", 140.0, 109.0, 95e9)]));
    assert!(alike.contains("xbof 150") && alike.contains("xbof 140"), "{alike}");
}

#[test]
fn the_fixture_of_the_page_has_exactly_the_keys_that_an_explorer_has() {
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    let explorer = sweep(3).explorer.expect("it is a sweep");
    shape(&serde_json::to_value(&explorer).expect("it is plain data"), "", &mut ours);
    shape(&serde_json::from_str(FIXTURE).expect("it is JSON"), "", &mut theirs);
    assert_eq!(ours, theirs);
}

#[test]
fn names_in_files_are_those_of_the_program() {
    for front in Front::ALL {
        assert_eq!(serde_json::to_value(front).expect("it is a name"), front.name());
    }
}
