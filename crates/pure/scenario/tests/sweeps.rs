//! Sweeps: grids, and the runs that they take.

use flashyard_scenario::{
    NoFiles, Overrides, Resolved, Sweep, SweepValue, designs_of, points, resolve, resolve_with, tasks,
};

/// The point in words: the last part of each key, with its value.
fn label(point: &[String]) -> String {
    let last = |setting: &String| {
        let key = setting.split('=').next().unwrap_or_default();
        format!(" {}", &setting[key.rfind('.').map_or(0, |dot| dot + 1)..])
    };
    point.iter().map(last).collect()
}

#[test]
fn a_grid_has_every_combination_in_order() {
    let sizes = ["4 KiB", "64 KiB"].map(|size| SweepValue::Text(size.to_owned()));
    let sweep = Sweep::from([
        ("drive.cores".to_owned(), vec![SweepValue::Whole(2), SweepValue::Whole(3)]),
        ("workload.size".to_owned(), sizes.to_vec()),
    ]);
    let found: Vec<String> = points(&sweep).expect("it is a grid").iter().map(|point| label(point)).collect();
    let expected = [" cores=2 size=4 KiB", " cores=2 size=64 KiB", " cores=3 size=4 KiB", " cores=3 size=64 KiB"];
    assert_eq!(found, expected);
}

/// A scenario that sweeps `axes`.
fn swept_over(designs: &str, axes: &[&str]) -> Resolved {
    let text = include_str!("../../../../scenarios/demo/scenario.toml");
    let overrides = Overrides {
        settings: vec![format!("designs={designs}")],
        sweeps: axes.iter().map(|&axis| axis.to_owned()).collect(),
        ..Overrides::default()
    };
    resolve_with(text, "demo.toml", &overrides, &NoFiles).expect("it is a scenario")
}

fn runs(Resolved { scenario, room, .. }: &Resolved) -> Vec<String> {
    let tasks = tasks(scenario, *room, |_| Ok((designs_of(&room.designs(), scenario)?, ()))).expect("it is a grid");
    tasks.iter().map(|(design, point, ())| format!("{}{}", design.name, label(point))).collect()
}

#[test]
fn a_key_is_swept_once() {
    let text = include_str!("../../../../scenarios/demo/scenario.toml");
    let sweeps = ["drive.cores=2,3", "drive.cores=4"].map(str::to_owned).to_vec();
    let refused = resolve_with(text, "demo.toml", &Overrides { sweeps, ..Overrides::default() }, &NoFiles);
    let refused = refused.err().expect("values would be lost").to_string();
    assert!(refused.contains("--sweep \"drive.cores=4\": this key is swept already"), "{refused}");
}

#[test]
fn a_design_is_run_once_for_settings_that_it_ignores() {
    let scenario = swept_over(
        "[\"conv\", \"vh\", \"xbof\"]",
        &["jbof.shrunk_cores=0.5,1", "harvest.lenders_max=1,2", "jbof.busy_drives=4,6"],
    );
    let found = runs(&scenario);
    let count = |design: &str| found.iter().filter(|name| name.split(' ').next() == Some(design)).count();
    assert_eq!([count("conv"), count("vh"), count("xbof")], [2, 4, 8]);
    assert_eq!(found[0], "conv busy_drives=4");
    assert!(found.contains(&"vh busy_drives=4 shrunk_cores=0.5".to_owned()), "{found:?}");
}

#[test]
fn without_a_sweep_each_named_design_is_run() {
    assert_eq!(runs(&swept_over("[\"xbof\", \"conv\"]", &[])), ["xbof", "conv"]);
}

#[test]
fn what_the_explorer_holds_runs_against_must_exist() {
    for (setting, expected) in [
        ("explore.within_percent=-1", "give a number from 0.0 to 100.0"),
        ("explore.reference=cnov", "did you mean \"conv\"? It is one of conv, oc"),
    ] {
        let text = include_str!("../../../../scenarios/demo/scenario.toml");
        let resolved = resolve(text, "demo.toml", &[setting.to_owned()], &NoFiles);
        let error = resolved.and_then(|found| tasks(&found.scenario, found.room, |_| Ok((Vec::new(), ()))));
        let error = error.expect_err("it is wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn nothing_swept_is_one_point_and_empty_axes_are_refused() {
    assert_eq!(points(&Sweep::new()).expect("one point"), [Vec::<String>::new()]);
    assert!(points(&Sweep::from([("drive.cores".to_owned(), Vec::new())])).is_err());
}
