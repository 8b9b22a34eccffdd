//! Designs and errors, as rooms tell them.

use crate::design::Design;
use flashyard_describe::{DesignInfo, ScenarioError};
use flashyard_memory::MemoryError;
use flashyard_units::Named;

/// Those designs that a room has.
pub(super) fn infos(has: fn(Design) -> bool) -> Vec<DesignInfo> {
    Design::ALL
        .iter()
        .filter(|design| has(**design))
        .map(|design| DesignInfo::new(design.name(), design.about()))
        .collect()
}

/// An error of a machine, as one of its scenario.
pub(super) fn of_memory(error: MemoryError) -> ScenarioError {
    ScenarioError::of_world(error)
}
