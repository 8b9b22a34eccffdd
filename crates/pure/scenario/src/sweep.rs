//! Sweeps: one scenario at every point of a grid of keys and values.

use crate::parse::ScenarioError;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

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

    #[test]
    fn nothing_swept_is_one_point_and_empty_axes_are_refused() {
        assert_eq!(points(&Sweep::new()).expect("one point"), [Vec::<String>::new()]);
        assert!(points(&Sweep::from([("drive.cores".to_owned(), Vec::new())])).is_err());
    }
}
