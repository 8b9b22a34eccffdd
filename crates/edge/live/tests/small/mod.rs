//! A small box for tests.

use flashyard_live::{SetUp, SetUpError, Shape, set_up};
use flashyard_scenario::{Files, Scenario, ScenarioError, resolve};
use std::path::Path;

struct NoFiles;

impl Files for NoFiles {
    fn profile(&self, _kind: &str, _name: &str) -> Option<String> {
        None
    }

    fn open_trace(&self, name: &str) -> Result<flashyard_workload::Records, String> {
        Err(format!("{name}: there are no traces here"))
    }
}

/// The four small drives of `scenarios/faults`, filled to that share.
pub(crate) fn scenario(filled: &str) -> Scenario {
    let text = include_str!("../../../../../scenarios/faults/scenario.toml");
    resolve(text, "faults", &[format!("drive.filled={filled}")], &NoFiles).expect("the scenario is whole").scenario
}

/// All drives.
pub(crate) fn exported() -> Vec<u16> {
    (0..4).collect()
}

/// The box of a scenario with its bytes in memory, or in a directory.
pub(crate) fn box_of(scenario: &Scenario, data: Option<&Path>) -> Result<SetUp, SetUpError<ScenarioError>> {
    let shapes = scenario.shapes().map_err(SetUpError::World)?;
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    set_up(data, &shapes, |contents| scenario.live(contents))
}
