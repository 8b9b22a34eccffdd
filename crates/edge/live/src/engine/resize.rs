//! Namespaces that become larger and smaller while clients use them.
//!
//! A namespace that grows gets free space of its drive, behind its end if there is some, and has it once nothing is mapped there: its
//! record, and then its clients, see the new size at the end. One that shrinks has its new size in the record and for clients before
//! the first block of its end goes. So a process that is killed leaves the old size or the new, and in the second case space that
//! no namespace has, which the next process deallocates.

use super::Engine;
use super::claimed::end_of;
use super::request::{Erasing, Job, Step, unanswered};
use super::space::{add, free_space, is_pinned, no_room};
use super::tables::{set_table, table_of, take_table, tell};
use crate::namespaces::{Entry, ManageError, cut, joined, take_behind};
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_units::VolumeId;

/// Begins to give a namespace another size, or refuses that.
pub(super) fn begin(
    engine: &mut Engine,
    client: (usize, u64),
    world: VolumeId,
    (nsid, bytes): (u32, u64),
) -> Result<(), ManageError> {
    let table = table_of(engine, world);
    let entry = table.entry(nsid).ok_or(ManageError::Unknown(nsid))?;
    let volume = engine.spaces.volume_of(world, nsid);
    let write = VolumeRequest { volume, operation: Operation::Write, first: 0, count: 1, source: 0 };
    let blocks = bytes / u64::from(entry.block.data_bytes);
    if bytes == 0 || !bytes.is_multiple_of(SLOT_BYTES.into()) {
        return Err(ManageError::Size);
    }
    let reason = if blocks == entry.blocks {
        Some("it has this size already")
    } else if engine.fronts.is_zoned(world) {
        Some("the drive is zoned: its size is that of its zones")
    } else if engine.erasing.iter().any(|job| job.world == world && job.nsids.contains(&nsid)) {
        Some("its size is being changed")
    } else if is_pinned(engine, volume) {
        Some("it is used by a client that cannot be told: a virtual machine, or the load of the server")
    } else if engine.fronts.keeps_out(client.0, &write) {
        Some("a host of NVMe/TCP has reserved it")
    } else {
        None
    };
    if let Some(reason) = reason {
        return Err(ManageError::Refused(reason));
    }
    let (had, units) = (entry.units(), bytes / u64::from(SLOT_BYTES));
    if units >= had {
        let free = free_space(engine, world, &table);
        let extents = take_behind(&entry.extents, &free, units - had).ok_or_else(|| no_room(units - had, &free))?;
        add(engine, world, Job::Grow { blocks }, (vec![nsid], Vec::new()), extents, Some(client));
        return Ok(());
    }
    let (kept, extents) = cut(&entry.extents, units);
    if engine.spaces.table(world).is_none() {
        // Requests under way go on in the space that they were made for.
        take_table(engine, world, table.clone());
    }
    engine.spaces.keep_end(volume);
    let done = set_size(engine, world, nsid, |entry| (entry.blocks, entry.extents) = (blocks, kept));
    if done.is_err() {
        engine.spaces.settle(volume);
    }
    done?;
    tracing::info!(%world, nsid, bytes, "a namespace shrinks");
    add(engine, world, Job::Shrink { units }, (vec![nsid], vec![volume]), extents, Some(client));
    tell(engine, volume);
    Ok(())
}

/// Keeps another size of a namespace.
fn set_size(
    engine: &mut Engine,
    world: VolumeId,
    nsid: u32,
    change: impl FnOnce(&mut Entry),
) -> Result<(), ManageError> {
    let mut table = table_of(engine, world);
    change(table.entry_mut(nsid).ok_or(ManageError::Unknown(nsid))?);
    set_table(engine, world, table)
}

/// Whether anything of clients is under way behind so many units of a volume.
pub(super) fn is_end_used(engine: &Engine, volume: VolumeId, units: u64) -> bool {
    let blocks = units << engine.shifts[volume.index()];
    let is_behind = |request: &VolumeRequest, end: u64| request.volume == volume && end_of(request) > end;
    unanswered(&engine.pending).any(|(_, pending)| pending.step != Step::Erasure && is_behind(&pending.request, units))
        || engine.changes.iter().any(|(_, change)| is_behind(&change.request, blocks))
        || engine.claims.any_waits_behind(volume, blocks)
}

/// Nothing is mapped in the space that a namespace gets, or has lost.
#[cold]
pub(super) fn end(engine: &mut Engine, job: Erasing) {
    let world = job.world;
    let nsid = job.nsids.first().copied().unwrap_or_default();
    let volume = engine.spaces.volume_of(world, nsid);
    let done = match job.kind {
        Job::Grow { .. } if job.has_failed => Err(ManageError::Refused("the drive does not deallocate its space")),
        Job::Grow { blocks } => {
            let grown = set_size(engine, world, nsid, |entry| {
                entry.extents = joined(&[&entry.extents[..], &job.extents].concat());
                entry.blocks = blocks;
            });
            grown.map(|()| {
                tracing::info!(%world, nsid, blocks, "a namespace has grown");
                tell(engine, volume);
                nsid
            })
        }
        _ => {
            engine.spaces.settle(volume);
            Ok(nsid)
        }
    };
    if let Some((front, tag)) = job.by {
        engine.fronts.managed(front, tag, done);
    }
}
