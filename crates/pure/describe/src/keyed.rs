//! Complaints of lower layers, in the user's own keys and units.

use crate::error::{ScenarioError, value};
use flashyard_flash::GeometryError;
use flashyard_ftl::FtlConfigError;
use flashyard_nand::NandConfigError;
use flashyard_ssd::DriveConfigError;

/// A drive that cannot be built.
pub fn drive(error: DriveConfigError) -> ScenarioError {
    match error {
        DriveConfigError::Ftl(error) => translation(error),
        DriveConfigError::Nand(NandConfigError::Geometry(error)) => geometry(&error),
        DriveConfigError::Nand(NandConfigError::Rate { name: "raw_bit_error_rate", value: given }) => {
            value("drive.raw_bit_error_rate", format!("{given} is out of range; give 0 to 0.5"))
        }
        DriveConfigError::UnitDrawn => value(
            "drive.mapping_unit",
            "a drawn state does not have it; give 4 KiB, or precondition = \"snia\"".to_owned(),
        ),
        DriveConfigError::Range { name: "buffer_slots", value: given, least, .. } => {
            let (given, least) = (given * 4, least * 4);
            let message = format!(
                "{given} KiB cannot hold what a die is given at once; give at least \"{least} KiB\", two pages of every \
                 plane of a die"
            );
            value("drive.write_buffer", message)
        }
        DriveConfigError::Unit { unit, row } => value(
            "drive.mapping_unit",
            format!(
                "{} KiB do not divide the {} KiB that a die programs in a row; give less, or more drive.planes_per_die or \
                 drive.page_size",
                unit * 4,
                row * 4
            ),
        ),
        DriveConfigError::UnitRows => value(
            "drive.mapping_unit",
            "more than 4 KiB need drive.frontiers = \"separate\", and drive.coalesce_writes = true or pages that hold whole units"
                .to_owned(),
        ),
        DriveConfigError::MapEntry { bytes } => {
            value("drive.records.map_entry_bytes", format!("an entry of the map has no {bytes} bytes; give 4 or 8"))
        }
        DriveConfigError::Records => value(
            "drive.records.journal",
            "journal and checkpoints, two of each, take all blocks of the drive; give less".to_owned(),
        ),
        DriveConfigError::Range { name: "journal_entry_bytes", value: given, least, most } => {
            value("drive.records.journal_entry_bytes", format!("{given} is out of range; give {least} to {most}"))
        }
        DriveConfigError::Range { name: "journal_pages", value: given, most, .. } => value(
            "drive.records.journal",
            format!("it has {given} flash pages, and at most {most} are possible; give less"),
        ),
        DriveConfigError::Range { name, value: given, least, most } => {
            let key = if name == "cores" { "drive.cores" } else { "drive.reclaim_reads" };
            value(key, format!("{given} is out of range; give {least} to {most}"))
        }
        other => value("drive", other.to_string()),
    }
}

/// Flash that cannot be divided so.
pub fn geometry(error: &GeometryError) -> ScenarioError {
    match error {
        GeometryError::PageSize(bytes) => {
            value("drive.page_size", format!("{bytes} bytes are no page; give a multiple of \"4 KiB\""))
        }
        GeometryError::DieRow(slots) => value(
            "drive.planes_per_die",
            format!(
                "what every plane of a die programs at once is {} KiB, and at most 256 KiB are possible; give less \
                 drive.planes_per_die or drive.page_size",
                slots * 4
            ),
        ),
        GeometryError::TooLarge { slots, dies, planes } => value(
            "drive.blocks_per_plane",
            format!(
                "the flash has {slots} slots of 4 KiB, {dies} dies and {planes} planes a die, and at most 4294967294, 65535 \
                 and 255 are possible; give less of drive.channels, drive.dies_per_channel, drive.planes_per_die, \
                 drive.blocks_per_plane, drive.pages_per_block or drive.page_size"
            ),
        ),
        GeometryError::WordLine { .. } => value("drive.pages_per_block", error.to_string()),
        GeometryError::Zero(_) => value("drive", error.to_string()),
    }
}

/// A translation layer that does not fit the flash.
pub fn translation(error: FtlConfigError) -> ScenarioError {
    match error {
        FtlConfigError::TooLittleSpare { spare, total, most: 0, .. } => {
            let message = format!(
                "a drive of {total} superblocks has {spare} to spare, and garbage collection needs more than all of them; \
                 give more drive.blocks_per_plane, or less drive.reclaim_below or drive.slc_superblocks"
            );
            value("drive.blocks_per_plane", message)
        }
        FtlConfigError::TooLittleSpare { spare, total, most, raw, .. } => {
            // Rounded up in the fourth digit.
            let least = (u64::from(raw - most) * 10_000).div_ceil(u64::from(raw)) as f64 / 1e4;
            let message = format!(
                "{spare} of {total} superblocks are spare, too few for garbage collection; give drive.over_provisioning at \
                 least {least}, or more drive.blocks_per_plane, or less drive.reclaim_below or drive.slc_superblocks"
            );
            value("drive.over_provisioning", message)
        }
        FtlConfigError::NotShared { what } => {
            let key = if what.contains("cache") { "drive.slc_superblocks" } else { "drive.coalesce_writes" };
            let fitting = if what.contains("cache") { "0" } else { "true" };
            let message = format!(
                "data of the host and moved data in shared superblocks cannot have {what}; give {key} = {fitting}, or \
                 separate superblocks: drive.frontiers = \"separate\""
            );
            value(key, message)
        }
        FtlConfigError::NotDrawn { what } => {
            let fitting =
                if what.contains("cache") { "drive.slc_superblocks = 0" } else { "drive.victim = \"greedy\"" };
            let message = format!(
                "no steady state can be drawn with {what}; give {fitting}, or drive.drawn = false and drive.overwritten = 2 \
                 (precondition = \"snia\")"
            );
            value("drive.drawn", message)
        }
        FtlConfigError::NoEndurance { policy } => value(
            "drive.wear.endurance",
            format!("{policy} needs the erases that a superblock is made for; give drive.wear.endurance"),
        ),
        FtlConfigError::Range { name: "logical_slots", .. } => {
            value("drive.over_provisioning", "nothing is left to export; give less".to_owned())
        }
        FtlConfigError::Range { name: "percent", value: given, range } => {
            value("drive.wear_leveling", format!("{given} % is out of range; give {range}"))
        }
        FtlConfigError::Range { name: "reclaim_below", value: given, range } => {
            value("drive.reclaim_below", format!("{given} is out of range; give {range}"))
        }
        other => value("drive", other.to_string()),
    }
}
