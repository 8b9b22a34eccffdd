//! Sweeps: one scenario at every point of a grid of keys and values.

use crate::error::ScenarioError;
use crate::room::{DesignInfo, Room};
use crate::schema::{Scenario, Sweep, SweepValue};
use std::collections::BTreeSet;

/// Points at most: a larger grid is rather a slip of the keyboard.
const POINTS_MAX: usize = 10_000;

/// One point of a grid: overrides `section.key=value`, none where nothing is swept.
pub type Point = Vec<String>;

/// Every combination of the axes' values; the last key in alphabetical order changes fastest. A scenario without
/// axes is one point.
///
/// Errors: an axis without values or with one twice, more than 10,000 points.
pub fn points(sweep: &Sweep) -> Result<Vec<Point>, ScenarioError> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for (key, values) in sweep {
        if values.is_empty() {
            return Err(ScenarioError::Sweep(key.clone()));
        }
        let texts: Vec<String> = values.iter().map(SweepValue::to_string).collect();
        if let Some(again) = (1..texts.len()).find(|&place| texts[..place].contains(&texts[place])) {
            let message = format!("{key} has the value {} twice; give each value once", texts[again]);
            return Err(ScenarioError::Value { key: "sweep", message });
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
pub type Task<T> = (DesignInfo, Point, T);

/// Which designs to run at which points. A setting that a design ignores is left out of its point, and what is then
/// the same run is run once: Conv has no cores to give up, however many are swept.
///
/// Errors: values of `explore` outside their ranges, and those of [`points`] and `at`, which gives the designs to run
/// at a point.
pub fn tasks<T: Clone>(
    scenario: &Scenario,
    room: &dyn Room,
    mut at: impl FnMut(&[String]) -> Result<(Vec<DesignInfo>, T), ScenarioError>,
) -> Result<Vec<Task<T>>, ScenarioError> {
    scenario.explore.validate(room)?;
    let mut tasks: Vec<Task<T>> = Vec::new();
    let mut known = BTreeSet::new();
    for point in points(&scenario.sweep)? {
        let (designs, with) = at(&point)?;
        for design in designs {
            let seen: Point =
                point.iter().filter(|setting| room.concerns(key_of(setting), &design.name)).cloned().collect();
            if known.insert((design.name.clone(), seen.clone())) {
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

    #[test]
    fn a_value_that_is_there_twice_is_refused_by_its_axis() {
        let of = |values: &[i64]| {
            points(&Sweep::from([("drive.cores".to_owned(), values.iter().map(|&it| SweepValue::Whole(it)).collect())]))
        };
        assert_eq!(of(&[2, 3]).map(|points| points.len()).ok(), Some(2));
        let said = of(&[2, 3, 2]).expect_err("it is there twice").to_string();
        assert_eq!(said, "sweep: drive.cores has the value 2 twice; give each value once");
    }

    #[test]
    fn axes_are_told_in_words() {
        assert_eq!(swept(&Sweep::new()), "");
        let sweep = Sweep::from([("jbof.busy_drives".to_owned(), vec![SweepValue::Whole(4), SweepValue::Whole(6)])]);
        assert_eq!(swept(&sweep), "; swept: jbof.busy_drives over 4, 6");
        assert_eq!(label(&["jbof.busy_drives=4".to_owned(), "seed=3".to_owned()]), " busy_drives=4 seed=3");
    }
}
