//! Designs and errors, as rooms tell them.

use crate::design::Design;
use flashyard_describe::{DesignInfo, ScenarioError};
use flashyard_memory::MemoryError;
use flashyard_units::Named;

/// All designs.
pub(super) fn infos() -> Vec<DesignInfo> {
    Design::ALL.iter().map(|design| DesignInfo::new(design.name(), design.about())).collect()
}

/// An error of a machine, as one of its scenario.
pub(super) fn of_memory(error: MemoryError) -> ScenarioError {
    ScenarioError::of_world(error)
}
