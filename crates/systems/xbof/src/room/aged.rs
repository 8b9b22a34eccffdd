//! Drives that begin as aged ones: `drive.aged_state`, and drives that were overwritten for an earlier run.

use super::groups::OneDrive;
use crate::jbof::{DriveModel, JbofConfig, JbofError};
use flashyard_describe::{AgedDrive, Files, ScenarioError};
use flashyard_ftl::WearLeveling;
use flashyard_ssd::{Drive, Overwrites};
use flashyard_units::DriveId;
use std::collections::BTreeMap;

/// Hands every drive that begins as an aged one to `restore`.
///
/// Errors: a file that cannot be read or is no aged drive; those of `restore`, with the file.
pub(crate) fn restore(
    drives: &[OneDrive],
    files: &dyn Files,
    mut restore: impl FnMut(DriveId, &AgedDrive) -> Result<(), JbofError>,
) -> Result<(), ScenarioError> {
    let wrong = |message: String| ScenarioError::value("drive.aged_state", message);
    let mut known = BTreeMap::new();
    for (number, drive) in (0..).map(DriveId::new).zip(drives) {
        let Some(name) = drive.aged_state.as_deref() else { continue };
        if !known.contains_key(name) {
            let most_bytes = AgedDrive::most_bytes(&drive.model.drive.nand.geometry);
            let bytes = files.bytes(name, most_bytes).map_err(wrong)?;
            let aged = AgedDrive::decode(&bytes).map_err(|error| wrong(format!("{name}: {error}")))?;
            known.insert(name, aged);
        }
        restore(number, &known[name]).map_err(|error| wrong(format!("{name}: {error}")))?;
    }
    Ok(())
}

/// Slots of a drive whose state is kept at most: its file has some four bytes for each. Source: \[A\] a gigabyte.
const KEPT_SLOTS_MOST: u32 = 1 << 28;

/// Drives whose overwrites an earlier run has done, or that may spare a later one the work.
///
/// A state is found again by everything that it follows from, so that a run from it equals one that does the overwrites
/// itself to the last bit.
#[derive(Default)]
pub(crate) struct Overwritten {
    /// States that an earlier run has left.
    found: Vec<(DriveId, AgedDrive)>,
    /// Drives to be kept, by their keys.
    wanted: Vec<(DriveId, String)>,
}

impl Overwritten {
    /// Looks for the states of the busy drives, and takes the overwrites off those that it finds.
    pub(crate) fn find(config: &JbofConfig, models: &mut [DriveModel], seed: u64, files: &dyn Files) -> Self {
        let mut this = Self::default();
        let Some(least) = files.keeps_aged_from() else { return this };
        for (number, model) in models.iter_mut().enumerate().take(config.busy_drives as usize) {
            let Some(key) = key(config, model, seed, number, least) else { continue };
            let most_bytes = AgedDrive::most_bytes(&model.drive.nand.geometry);
            let kept = files.aged(&key, most_bytes).and_then(|bytes| AgedDrive::decode(&bytes).ok());
            let drive = DriveId::new(number as u16);
            match kept.filter(|aged| aged.note == key && aged.check(&config.placed(model)).is_ok()) {
                Some(aged) => {
                    model.overwrites = Overwrites::default();
                    this.found.push((drive, aged));
                }
                None => this.wanted.push((drive, key)),
            }
        }
        this
    }

    /// Hands the states that were found to `restore`.
    ///
    /// Errors: those of `restore`.
    pub(crate) fn restore(
        &self,
        mut restore: impl FnMut(DriveId, &AgedDrive) -> Result<(), JbofError>,
    ) -> Result<(), JbofError> {
        self.found.iter().try_for_each(|(drive, aged)| restore(*drive, aged))
    }

    /// Keeps the states of the other ones, which are overwritten by now.
    pub(crate) fn keep<'a>(&self, drive: impl Fn(DriveId) -> &'a Drive, files: &dyn Files) {
        for (number, key) in &self.wanted {
            let drive = drive(*number);
            let (geometry, state) = (drive.config().data_geometry(), drive.data.ftl.aged_state());
            let aged = AgedDrive::new(&geometry, drive.config().ftl.logical_slots, key, key.clone(), state);
            files.keep_aged(key, &aged.encode());
        }
    }
}

/// Everything from which the state of an overwritten drive follows; `None` where its keeping does not pay, or where a layer
/// has a memory that its state does not hold.
fn key(config: &JbofConfig, model: &DriveModel, seed: u64, number: usize, least: u64) -> Option<String> {
    let placed = config.placed(model);
    let ftl = placed.ftl;
    let rounds = if model.overwrites.until_steady { 1.0 } else { 0.0 };
    let slots = f64::from(ftl.filled_slots) * (model.overwrites.times + rounds);
    let has_memory = ftl.wear_leveling != WearLeveling::None || ftl.slc_superblocks > 0;
    if slots < least as f64 || ftl.logical_slots > KEPT_SLOTS_MOST || has_memory {
        return None;
    }
    let (geometry, unit, overwrites) = (placed.data_geometry(), placed.mapping_unit, model.overwrites);
    let layer = placed.translation(seed.wrapping_add(number as u64));
    Some(format!("{geometry:?} {layer:?} {unit} {overwrites:?} precondition.{number} of {seed}"))
}
