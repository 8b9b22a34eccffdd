//! Drives that begin as aged ones: `drive.aged_state`.

use super::groups::OneDrive;
use crate::jbof::JbofError;
use flashyard_describe::{AgedDrive, Files, ScenarioError};
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
