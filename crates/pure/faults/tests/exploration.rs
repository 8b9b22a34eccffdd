//! The explorer on a small store: every planted bug is found and shrunk, and the store without bugs survives.

mod toy;

use flashyard_faults::{Case, Explorer, FaultPlan, Limits, World, explore, shrink};
use toy::{Bug, ToyWorld};

fn base(seed: u64) -> Case {
    Case { seed, size: None, plan: FaultPlan::NONE }
}

/// Explores a store with a bug and gives the replay text of the smallest failing case.
fn found(bug: Bug, points: u64) -> String {
    let world = ToyWorld { bug: Some(bug), requests: 40 };
    let report = explore(&world, base(7), Limits { points, ..Limits::default() });
    let failure = report.failures().first().unwrap_or_else(|| panic!("{bug:?} was not found:\n{report}"));
    let shrunk = shrink(&world, &failure.case, 5_000).expect("it failed before");
    assert!(shrunk.minimal, "{shrunk}");
    assert_eq!(shrink(&world, &failure.case, 5_000).as_ref(), Some(&shrunk), "shrinking is deterministic");
    let text = shrunk.failure.case.to_string();
    let replayed = world.run(&text.parse().expect("the text of a case"));
    assert_eq!(replayed.violation.as_ref(), Some(&shrunk.failure.violation), "the replay text repeats it");
    eprintln!("{bug:?}, {report}\n{shrunk}\n");
    text
}

#[test]
fn a_store_without_bugs_survives_a_hundred_thousand_crash_points() {
    let world = ToyWorld { bug: None, requests: 40 };
    let report = explore(&world, base(7), Limits::default());
    eprintln!("{report}");
    assert_eq!(report.points(), 100_000);
    assert_eq!(report.violations(), 0, "{:?}", report.failures());
    assert!(report.fingerprints() > 1_000 && report.counters()["records replayed"] > 100_000, "{report}");
    assert!(report.is_complete() && report.untouched() < 1_000, "{report}");
}

#[test]
fn an_acknowledgement_before_the_log_is_found() {
    let text = found(Bug::AcknowledgeBeforeLog, 2_000);
    assert_eq!(text, "seed=7;size=3;power@e2+1ms");
}

#[test]
fn a_second_recovery_out_of_order_is_found() {
    let text = found(Bug::ReplayOutOfOrder, 20_000);
    assert_eq!(text, "seed=7;size=11;power@e34+1ms;power@r0+1ms");
}

#[test]
fn a_log_cleared_early_is_found() {
    let text = found(Bug::ClearLogEarly, 2_000);
    assert_eq!(text, "seed=7;size=6;power@e19+1ms");
}

#[test]
fn single_faults_and_faults_in_recovery_are_tried_exhaustively_where_the_points_suffice() {
    let world = ToyWorld { bug: None, requests: 12 };
    let report = explore(&world, base(3), Limits { points: 40_000, ..Limits::default() });
    let stages: Vec<_> = report.stages().collect();
    assert_eq!(stages[0].1.explored, stages[0].1.possible, "{report}");
    assert_eq!(stages[0].1.possible, report.events() * 3);
    assert_eq!(stages[1].1.explored, stages[1].1.possible, "{report}");
    assert_eq!(report.points(), 40_000);
}

#[test]
fn an_exploration_that_is_cut_short_says_so_and_ends() {
    let world = ToyWorld { bug: None, requests: 12 };
    let mut explorer = Explorer::new("toy".to_owned(), world.faults(), base(3), Limits::default());
    for _ in 0..2 {
        let jobs = explorer.jobs();
        let outcomes = jobs.iter().take(10).map(|case| world.run(case)).collect();
        explorer.absorb(outcomes);
    }
    assert!(explorer.jobs().is_empty() && !explorer.report().is_complete());
    assert_eq!(explorer.report().points(), 10);
    assert!(explorer.report().to_string().starts_with("toy, seed 3: 10 crash points, interrupted\n"));
}
