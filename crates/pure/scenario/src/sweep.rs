//! Sweeps: one scenario at every point of a grid of keys and values.

use crate::parse::ScenarioError;
use crate::schema::Scenario;
use crate::systems::jbof::concerns;
use flashyard_systems::jbof::Design;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Points at most: a larger grid is rather a slip of the keyboard.
const POINTS_MAX: usize = 10_000;

/// A value of an axis, as it stands in the file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepValue {
    /// A switch.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A quantity with its unit, or a name.
    Text(String),
}

impl std::fmt::Display for SweepValue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch(value) => value.fmt(out),
            Self::Whole(value) => value.fmt(out),
            Self::Number(value) => value.fmt(out),
            Self::Text(value) => value.fmt(out),
        }
    }
}

/// Keys (`section.key`) with the values that each takes.
pub type Sweep = BTreeMap<String, Vec<SweepValue>>;

/// One point of a grid: overrides `section.key=value`, none where nothing is swept.
pub type Point = Vec<String>;

/// Every combination of the axes' values; the last key in alphabetical order changes fastest. A scenario without
/// axes is one point.
///
/// Errors: an axis without values, more than 10,000 points.
pub fn points(sweep: &Sweep) -> Result<Vec<Point>, ScenarioError> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for (key, values) in sweep {
        if values.is_empty() {
            return Err(ScenarioError::Sweep(key.clone()));
        }
        if points.len().saturating_mul(values.len()) > POINTS_MAX {
            return Err(ScenarioError::Value {
                key: "sweep",
                message: format!("the grid has more than {POINTS_MAX} points, give fewer values"),
            });
        }
        points = points
            .iter()
            .flat_map(|point| values.iter().map(|value| [&point[..], &[format!("{key}={value}")]].concat()))
            .collect();
    }
    Ok(points)
}

/// A run of a sweep: a design, its point as far as it concerns the design, and what the caller runs it with.
pub type Task<T> = (Design, Point, T);

/// Which designs to run at which points. A setting that a design ignores is left out of its point, and what is then
/// the same run is run once: Conv has no cores to give up, however many are swept.
///
/// Errors: values of `explore` outside their ranges, and those of [`points`] and `at`, which gives the designs to run
/// at a point.
pub fn tasks<T: Clone>(
    scenario: &Scenario,
    mut at: impl FnMut(&[String]) -> Result<(Vec<Design>, T), ScenarioError>,
) -> Result<Vec<Task<T>>, ScenarioError> {
    scenario.explore.validate()?;
    let mut tasks: Vec<Task<T>> = Vec::new();
    let mut known = BTreeSet::new();
    for point in points(&scenario.sweep)? {
        let (designs, with) = at(&point)?;
        for (place, design) in designs.into_iter().enumerate() {
            let seen: Point = point.iter().filter(|setting| concerns(key_of(setting), design)).cloned().collect();
            // A design that is named twice is run twice, as without a sweep.
            if known.insert((place, design.name(), seen.clone())) {
                tasks.push((design, seen, with.clone()));
            }
        }
    }
    Ok(tasks)
}

/// `jbof.shrunk_cores` of `jbof.shrunk_cores=0.5`.
fn key_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or_default().trim()
}

/// `jbof` and `shrunk_cores` of `jbof.shrunk_cores=0.5`.
pub(crate) fn section_and_key(setting: &str) -> (&str, &str) {
    let key = key_of(setting);
    key.split_once('.').unwrap_or(("", key))
}

/// The axes in words, to stand behind what the scenario says without them; empty where there are none.
pub(crate) fn swept(sweep: &Sweep) -> String {
    let values = |values: &[SweepValue]| values.iter().map(SweepValue::to_string).collect::<Vec<_>>().join(", ");
    let axes: Vec<String> = sweep.iter().map(|(key, along)| format!("{key} over {}", values(along))).collect();
    if axes.is_empty() { String::new() } else { format!("; swept: {}", axes.join("; ")) }
}

/// The point in a design's name: the last part of each key, with its value.
pub(crate) fn label(point: &[String]) -> String {
    let short = |setting: &String| {
        let start = setting.split('=').next().and_then(|key| key.rfind('.')).map_or(0, |dot| dot + 1);
        format!(" {}", &setting[start..])
    };
    point.iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoFiles, Overrides, resolve, resolve_with};

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
    fn swept_over(designs: &str, axes: &[&str]) -> Scenario {
        let text = include_str!("../../../../scenarios/demo/scenario.toml");
        let overrides = Overrides {
            settings: vec![format!("designs={designs}")],
            sweeps: axes.iter().map(|&axis| axis.to_owned()).collect(),
            ..Overrides::default()
        };
        resolve_with(text, "demo.toml", &overrides, &NoFiles).expect("it is a scenario").scenario
    }

    fn runs(scenario: &Scenario) -> Vec<String> {
        let tasks = tasks(scenario, |_| Ok((scenario.design_list()?, ()))).expect("it is a grid");
        tasks.iter().map(|(design, point, ())| format!("{}{}", design.name(), label(point))).collect()
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
        assert_eq!(runs(&swept_over("[\"conv\", \"conv\"]", &[])), ["conv", "conv"]);
    }

    #[test]
    fn what_the_explorer_holds_runs_against_must_exist() {
        for (setting, expected) in [
            ("explore.within_percent=-1", "give a number from 0.0 to 100.0"),
            ("explore.reference=cnov", "did you mean \"conv\"? It is one of conv, oc"),
        ] {
            let text = include_str!("../../../../scenarios/demo/scenario.toml");
            let resolved = resolve(text, "demo.toml", &[setting.to_owned()], &NoFiles);
            let error = resolved.and_then(|found| tasks(&found.scenario, |_| Ok((Vec::new(), ()))));
            let error = error.expect_err("it is wrong").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn axes_are_told_in_words() {
        assert_eq!(swept(&Sweep::new()), "");
        let scenario = swept_over("[\"conv\"]", &["jbof.busy_drives=4,6"]);
        assert_eq!(swept(&scenario.sweep), "; swept: jbof.busy_drives over 4, 6");
    }

    #[test]
    fn nothing_swept_is_one_point_and_empty_axes_are_refused() {
        assert_eq!(points(&Sweep::new()).expect("one point"), [Vec::<String>::new()]);
        assert!(points(&Sweep::from([("drive.cores".to_owned(), Vec::new())])).is_err());
    }
}
