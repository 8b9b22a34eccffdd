//! The enclosure of a scenario, ready to serve.

use super::designs::designs;
use super::faulty::needs_protection;
use super::section::JbofScenario;
use super::{aged, assemble, groups, keyed};
use crate::jbof::LiveJbof;
use flashyard_describe::{DriveShape, Files, Scenario, ScenarioError};
use flashyard_flash::Layout;
use flashyard_ftl::SuperblockContents;
use flashyard_ssd::DriveConfig;

/// The enclosure of the first design that the scenario names, ready to serve: with its drives preconditioned or begun
/// as aged ones from `files`, or with `contents` from an earlier run, which take precedence.
///
/// Errors: values outside their ranges; a design that cannot serve; contents of another enclosure; a file of an aged
/// drive that cannot be read, or is of another shape.
pub fn live(
    scenario: &Scenario,
    files: &dyn Files,
    contents: Option<&[Vec<SuperblockContents>]>,
) -> Result<LiveJbof, ScenarioError> {
    let scenario = JbofScenario::of(scenario)?;
    let design = designs(&scenario)?[0];
    let config = assemble::jbof(&scenario, design)?;
    let drives = groups::drives(&scenario, design)?;
    let mut models: Vec<_> = drives.iter().map(|drive| drive.model).collect();
    for model in &mut models {
        model.drive.expects_power_cuts = needs_protection(design, &model.drive).is_none();
    }
    let mut world = LiveJbof::new(config, models, scenario.seed, contents).map_err(keyed::of)?;
    if contents.is_none() {
        aged::restore(&drives, files, |drive, aged| world.restore(drive, aged))?;
    }
    Ok(world)
}

/// How the flash of each drive is divided, and how many slots the drive exports.
///
/// Errors: values outside their ranges.
pub fn shapes(scenario: &Scenario) -> Result<Vec<DriveShape>, ScenarioError> {
    let scenario = JbofScenario::of(scenario)?;
    let drives = groups::drives(&scenario, designs(&scenario)?[0])?.into_iter();
    let shape = |drive: &DriveConfig| (Layout::new(&drive.data_geometry()), drive.ftl.logical_slots);
    Ok(drives.map(|drive| shape(&drive.model.drive)).collect())
}
