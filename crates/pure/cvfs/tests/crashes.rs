//! Power is lost at every command of short runs, and at random ones of others.

use flashyard_cvfs::crash::CrashWorld;
use flashyard_faults::{Case, FaultPlan, Limits, World, explore, shrink};

fn explored(points: u64, seed: u64, operations: u32) {
    let world = CrashWorld { operations, ..CrashWorld::default() };
    let base = Case { seed, size: None, plan: FaultPlan::NONE };
    let report = explore(&world, base, Limits { points, failures_kept: 1, ..Limits::default() });
    if let Some(failure) = report.failures().first() {
        let small = shrink(&world, &failure.case, 2000).map(|small| small.to_string());
        panic!("{report}\n{}", small.unwrap_or_else(|| failure.case.to_string()));
    }
    assert_eq!(report.points(), points);
    println!("{report}");
}

#[test]
fn nothing_is_lost_at_any_command_of_a_short_run() {
    explored(2_000, 1, 60);
}

#[test]
fn nothing_is_lost_while_the_volume_changes_its_size() {
    explored(2_000, 77, 150);
}

#[test]
fn a_run_depends_on_its_case_only() {
    let world = CrashWorld::default();
    let case: Case = "seed=5;power@e200+3ms;power@r40+4ms".parse().expect("a case");
    assert_eq!(world.run(&case), world.run(&case));
}

#[test]
#[ignore = "a hundred thousand points take minutes"]
fn nothing_is_lost_at_a_hundred_thousand_points() {
    for seed in 0..10 {
        explored(10_000, 1_000_000 * seed, 120);
    }
}
