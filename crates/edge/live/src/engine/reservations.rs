//! Reservations that an earlier process has kept: they are in force before clients come, whatever front ends there are.

use super::Engine;
use crate::media::RecordKind;
use crate::namespaces::NamespaceInfo;
use crate::reserved::kept_in;
use flashyard_units::DriveId;
use std::io;

/// Keeps clients out that are no hosts, until a front end that knows hosts says more.
///
/// Errors: a record that is none.
pub(super) fn resume(engine: &mut Engine) -> io::Result<()> {
    for world in engine.exports.clone() {
        let drive = engine.session.world().drives_of(world)[0];
        let Some(record) = engine.media.record(drive, RecordKind::Reservations) else { continue };
        let kept = kept_in(record).ok_or_else(|| damaged(drive))?;
        for NamespaceInfo { nsid, serial, volume, .. } in engine.spaces.namespaces(world) {
            engine.fronts.set_reserved(volume, kept.strangers(nsid, serial));
        }
    }
    Ok(())
}

fn damaged(drive: DriveId) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "drive-{drive}.reservations is no record of the reservations of this drive; put it back from a copy, or remove it to \
             serve the drive without any"
        ),
    )
}
