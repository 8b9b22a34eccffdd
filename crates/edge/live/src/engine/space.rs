//! Space of a drive between its namespaces: what is free of it, and jobs that deallocate it.

use super::Engine;
use super::request::{Erasing, Job};
use super::tables::job_number;
use crate::namespaces::{Extent, ManageError, Table, free_of, units_of};
use flashyard_flash::SLOT_BYTES;
use flashyard_units::VolumeId;

/// Space of a drive that no namespace of its table has, and no job is at.
pub(super) fn free_space(engine: &Engine, world: VolumeId, table: &Table) -> Vec<Extent> {
    let taken = table.entries.iter().flat_map(|entry| entry.extents.iter().copied());
    let jobs = engine.erasing.iter().filter(|job| job.world == world && !matches!(job.kind, Job::Erase(_)));
    free_of(engine.spaces.world(world).limits.blocks, taken.chain(jobs.flat_map(|job| job.extents.iter().copied())))
}

/// So many units are needed, and no more than these are free.
pub(super) fn no_room(needed: u64, free: &[Extent]) -> ManageError {
    let bytes = |units: u64| units.saturating_mul(SLOT_BYTES.into());
    ManageError::NoRoom { needed_bytes: bytes(needed), free_bytes: bytes(units_of(free)) }
}

/// Whether a client uses a volume that cannot be told of changes.
pub(super) fn is_pinned(engine: &Engine, volume: VolumeId) -> bool {
    engine.fronts.iter().any(|front| front.pins(volume))
}

/// Begins to deallocate space, for a client or for none.
pub(super) fn add(
    engine: &mut Engine,
    world: VolumeId,
    kind: Job,
    (nsids, volumes): (Vec<u32>, Vec<VolumeId>),
    extents: Vec<Extent>,
    by: Option<(usize, u64)>,
) {
    let number = job_number(engine);
    engine.erasing.push(Erasing::new(number, world, kind, (nsids, volumes), extents, by));
}
