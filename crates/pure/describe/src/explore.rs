//! Facts of a run for the explorer of a report: the equipment of its drives, and the conditions.

use crate::error::{ScenarioError, value};
use crate::measured::Measured;
use crate::names::Unknown;
use crate::room::Room;
use crate::schema::ExploreSection;
use crate::sweep::section_and_key;
use flashyard_report::Explorer;

impl ExploreSection {
    /// Errors: a reference that is no design.
    pub(crate) fn validate(&self, room: &dyn Room) -> Result<(), ScenarioError> {
        let Some(reference) = &self.reference else { return Ok(()) };
        let designs = room.designs();
        if designs.iter().any(|design| design.name == *reference) {
            return Ok(());
        }
        let unknown = Unknown::new("design", reference, designs.iter().map(|design| design.name.as_str()));
        Err(value("explore.reference", unknown.to_string()))
    }
}

/// The settings of a point under which equipment is compared: load, number of drives, host, prices.
pub(crate) fn load(point: &[String], room: &dyn Room) -> Vec<String> {
    let is_load = |setting: &&String| {
        let (section, key) = section_and_key(setting);
        !room.is_equipment(section, key)
    };
    point.iter().filter(is_load).cloned().collect()
}

/// Cost and energy of the runs of a sweep; `None` without one.
pub(crate) fn explorer(explore: &ExploreSection, room: &dyn Room, runs: &[Measured]) -> Option<Explorer> {
    let designs: Vec<_> = runs.iter().map(|run| run.result.clone()).collect();
    let equipment: Vec<_> = runs.iter().map(|run| run.equipment.clone()).collect();
    let first = room.designs().into_iter().next().map(|design| design.name);
    let reference = explore.reference.clone().or(first).unwrap_or_default();
    Explorer::new(&designs, &equipment, &reference, explore.within_percent)
}
