//! Namespaces of drives as the engine has them: their tables, and what front ends see of them.

use super::Engine;
use crate::media::{BlockFormat, RecordKind};
use crate::namespaces::{Extent, ManageError, Table};
use flashyard_flash::SLOT_BYTES;
use flashyard_units::VolumeId;

/// A number that no job has had.
pub(super) fn job_number(engine: &mut Engine) -> u64 {
    engine.jobs += 1;
    engine.jobs
}

/// Lets all front ends look at a volume.
pub(super) fn tell(engine: &mut Engine, volume: VolumeId) {
    (0..engine.fronts.len())
        .for_each(|front| engine.with_front(front, |front, context| front.changed(volume, context)));
}

/// Whether a volume of the world can have several namespaces: it lies on one drive.
pub(super) fn can_divide(engine: &Engine, volume: VolumeId) -> bool {
    engine.spaces.can_divide() && engine.session.world().drives_of(volume).len() == 1
}

/// The table of a drive, which is one namespace if it was never divided.
pub(super) fn table_of(engine: &Engine, world: VolumeId) -> Table {
    let units = engine.spaces.world(world).limits.blocks;
    engine.spaces.table(world).cloned().unwrap_or_else(|| Table::whole(units, block_of(engine, world)))
}

/// The blocks of a volume.
pub(super) fn block_of(engine: &Engine, volume: VolumeId) -> BlockFormat {
    let data_bytes = SLOT_BYTES >> engine.shifts[volume.index()];
    BlockFormat { data_bytes, metadata: engine.spaces.of(volume).metadata }
}

/// Gives the metadata of such blocks a place on a drive before there are any.
///
/// Errors: those of the operating system.
pub(super) fn prepare(engine: &mut Engine, world: VolumeId, block: BlockFormat) -> std::io::Result<()> {
    let drive = engine.session.world().drives_of(world)[0];
    if block.metadata.is_none() { Ok(()) } else { engine.media.keep_metadata(drive) }
}

/// The blocks of a drive of an earlier process: their metadata must be there.
///
/// Errors: it is not, where it should be.
pub(super) fn expect_metadata(engine: &Engine, world: VolumeId, blocks: &[BlockFormat]) -> std::io::Result<()> {
    let drive = engine.session.world().drives_of(world)[0];
    if blocks.iter().all(|block| block.metadata.is_none()) || engine.media.has_metadata(drive) {
        return Ok(());
    }
    Err(std::io::Error::new(
        std::io::ErrorKind::NotFound,
        format!(
            "drive-{drive}.metadata is missing, and blocks of this drive have metadata; put it back from a copy, or give another \
             --data"
        ),
    ))
}

/// Keeps a table, and lets the volumes follow.
pub(super) fn set_table(engine: &mut Engine, world: VolumeId, table: Table) -> Result<(), ManageError> {
    let drive = engine.session.world().drives_of(world)[0];
    let kept = engine.media.keep_record(drive, RecordKind::Namespaces, &table.encode());
    kept.map_err(|error| ManageError::NotKept(error.to_string()))?;
    take_table(engine, world, table);
    Ok(())
}

/// A drive has these namespaces.
pub(super) fn take_table(engine: &mut Engine, world: VolumeId, table: Table) {
    let served = engine.session.world();
    let (drive, units) = (served.drives_of(world)[0], engine.spaces.world(world).limits.blocks);
    let is_mapped = |unit: &u64| served.place(world, *unit).is_some_and(|(_, slot)| slot.is_some());
    engine.spaces.divide(world, table, |extents| match extents {
        // The drive counts that itself.
        [Extent { first: 0, units: all }] if *all == units => served.health(drive, served.now()).mapped_slots,
        _ => extents.iter().flat_map(|extent| extent.first..extent.end()).filter(is_mapped).count() as u64,
    });
    let shift = engine.shifts[world.index()];
    engine.shifts.resize(engine.spaces.volumes(), shift);
    show(engine, world);
}

/// Lets clients see the namespaces of a drive as they are now.
pub(super) fn show(engine: &mut Engine, world: VolumeId) {
    let shown = engine.spaces.shown(world, engine.shifts[world.index()]);
    for volume in &shown {
        engine.shifts[volume.id.index()] = (SLOT_BYTES / volume.block_bytes).trailing_zeros() as u8;
    }
    let all = engine.exports.iter().flat_map(|&export| engine.spaces.shown(export, engine.shifts[export.index()]));
    let all = all.collect();
    let drive = |&export: &VolumeId| engine.spaces.whole(export, engine.shifts[export.index()]);
    let drives = engine.exports.iter().map(drive).collect();
    engine.fronts.set_volumes(all, drives);
}
