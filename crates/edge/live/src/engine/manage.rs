//! Namespaces that clients create, delete and attach.
//!
//! A change is kept before its client is answered. A namespace that is deleted is gone for clients and in the record
//! before its first block goes, so a process that is killed in between leaves space that no namespace has, and the next process
//! deallocates what is left there. A namespace is created where nothing is mapped, and what should be is deallocated before.

use super::request::{Erasing, Job, Waiting};
use super::space::{add, free_space, is_pinned, no_room};
use super::tables::{block_of, can_divide, expect_metadata, prepare, set_table, table_of, take_table, tell};
use super::{Engine, resize};
use crate::media::{BlockFormat, RecordKind};
use crate::namespaces::{Entry, Manage, ManageError, Table, take};
use crate::operator::{OPERATOR, Wanted};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvmf::target::Attachment;
use flashyard_units::{DriveId, VolumeId};
use std::io;

/// Begins what a client wants, or refuses it.
pub(super) fn begin(engine: &mut Engine, (front, tag): (usize, u64), world: VolumeId, wish: Manage) {
    let done = check(engine, world).and_then(|()| match &wish {
        Manage::Create { blocks, block, is_private } => {
            create(engine, (front, tag), world, (*blocks, *block, *is_private)).map(|()| None)
        }
        Manage::Delete { nsid } => delete(engine, (front, tag), world, *nsid).map(|()| None),
        Manage::Attach { nsid, attachment } => attach(engine, world, *nsid, attachment).map(|()| Some(*nsid)),
        Manage::Resize { nsid, bytes } => resize::begin(engine, (front, tag), world, (*nsid, *bytes)).map(|()| None),
    });
    // Identify tells of that space as free already.
    let frees = |job: &Erasing| job.world == world && matches!(job.kind, Job::Delete | Job::Shrink { .. });
    match done {
        Ok(None) => {}
        Ok(Some(nsid)) => engine.fronts.managed(front, tag, Ok(nsid)),
        Err(ManageError::NoRoom { .. }) if engine.erasing.iter().any(frees) => {
            engine.waiting.push(Waiting { client: (front, tag), world, wish });
        }
        Err(error) => engine.fronts.managed(front, tag, Err(error)),
    }
}

/// Begins what the operator wants of the namespaces of a drive.
pub(super) fn begin_wanted(engine: &mut Engine, wanted: Wanted) {
    let on = engine.volume_on.get(wanted.drive.index()).copied().flatten();
    let world = on.filter(|volume| engine.exports.contains(volume));
    if let Some((tag, world, wish)) = engine.fronts.operator.begin(wanted, world) {
        begin(engine, (OPERATOR, tag), world, wish);
    }
}

fn check(engine: &Engine, world: VolumeId) -> Result<(), ManageError> {
    let is_erased = |job: &Erasing| job.world == world && matches!(job.kind, Job::Erase(_));
    if !can_divide(engine, world) {
        Err(ManageError::Refused("it lies on several drives"))
    } else if engine.erasing.iter().any(is_erased) {
        Err(ManageError::Refused("it is being erased"))
    } else {
        Ok(())
    }
}

fn create(
    engine: &mut Engine,
    client: (usize, u64),
    world: VolumeId,
    (blocks, block, is_private): (u64, BlockFormat, bool),
) -> Result<(), ManageError> {
    let needed = blocks.div_ceil(u64::from(SLOT_BYTES / block.data_bytes));
    let table = table_of(engine, world);
    let jobs = || engine.erasing.iter().filter(|job| job.world == world);
    let busy: Vec<u32> = jobs().flat_map(|job| job.nsids.iter().copied()).collect();
    let nsid =
        (1..=crate::namespaces::NAMESPACES_MAX).find(|nsid| table.entry(*nsid).is_none() && !busy.contains(nsid));
    let nsid = nsid.ok_or(ManageError::NoIdentifier)?;
    let free = free_space(engine, world, &table);
    let extents = take(&free, needed).ok_or_else(|| no_room(needed, &free))?;
    prepare(engine, world, block).map_err(|error| ManageError::NotKept(error.to_string()))?;
    let attachment = Attachment::NONE;
    let entry =
        Entry { nsid, serial: 0, block, blocks, is_private, format: None, attachment, extents: extents.clone() };
    let job = Job::Create(Box::new(entry));
    add(engine, world, job, (vec![nsid], Vec::new()), extents, Some(client));
    Ok(())
}

fn delete(engine: &mut Engine, client: (usize, u64), world: VolumeId, nsid: Option<u32>) -> Result<(), ManageError> {
    let mut table = table_of(engine, world);
    let is_named = |entry: &Entry| nsid.is_none_or(|nsid| nsid == entry.nsid);
    let named: Vec<Entry> = table.entries.iter().filter(|entry| is_named(entry)).cloned().collect();
    if let (Some(nsid), true) = (nsid, named.is_empty()) {
        return Err(ManageError::Unknown(nsid));
    }
    let nsids: Vec<u32> = named.iter().map(|entry| entry.nsid).collect();
    let volumes: Vec<VolumeId> = nsids.iter().map(|&nsid| engine.spaces.volume_of(world, nsid)).collect();
    if volumes.iter().any(|&volume| is_pinned(engine, volume)) {
        return Err(ManageError::Refused("it is used by a client that cannot be told"));
    }
    if engine.spaces.table(world).is_none() {
        // Requests under way go on in the space that they were made for.
        take_table(engine, world, table.clone());
    }
    table.entries.retain(|entry| !is_named(entry));
    set_table(engine, world, table)?;
    let extents = named.into_iter().flat_map(|entry| entry.extents).collect();
    tracing::info!(%world, ?nsids, "namespaces are deleted");
    add(engine, world, Job::Delete, (nsids, volumes.clone()), extents, Some(client));
    volumes.into_iter().for_each(|volume| tell(engine, volume));
    Ok(())
}

fn attach(engine: &mut Engine, world: VolumeId, nsid: u32, attachment: &Attachment) -> Result<(), ManageError> {
    let mut table = table_of(engine, world);
    table.entry_mut(nsid).ok_or(ManageError::Unknown(nsid))?.attachment = attachment.clone();
    set_table(engine, world, table)
}

/// All of it is deallocated: the namespace comes, or its space is free.
#[cold]
pub(super) fn end(engine: &mut Engine, job: Erasing) {
    let world = job.world;
    let done = match job.kind {
        Job::Create(_) if job.has_failed => Err(ManageError::Refused("the drive does not deallocate its space")),
        Job::Create(entry) => {
            let nsid = entry.nsid;
            let mut table = table_of(engine, world);
            table.add(*entry);
            set_table(engine, world, table).map(|()| {
                tracing::info!(%world, nsid, "a namespace was created");
                tell(engine, engine.spaces.volume_of(world, nsid));
                nsid
            })
        }
        _ => {
            job.volumes.iter().for_each(|&volume| engine.spaces.forget(volume));
            Ok(job.nsids.first().copied().unwrap_or_default())
        }
    };
    if let Some((front, tag)) = job.by {
        engine.fronts.managed(front, tag, done);
    }
    try_again(engine, world);
}

/// Space may be free: what has waited for it is tried again.
pub(super) fn try_again(engine: &mut Engine, world: VolumeId) {
    let (now, later) = std::mem::take(&mut engine.waiting).into_iter().partition(|waiting| waiting.world == world);
    engine.waiting = later;
    now.into_iter().for_each(|Waiting { client, world, wish }: Waiting| begin(engine, client, world, wish));
}

/// Takes over what an earlier process has kept of the namespaces of all drives.
///
/// Errors: a record that is none.
pub(super) fn resume(engine: &mut Engine) -> io::Result<()> {
    for world in engine.exports.clone() {
        let drive = engine.session.world().drives_of(world)[0];
        let Some(record) = engine.media.record(drive, RecordKind::Namespaces).map(<[u8]>::to_vec) else { continue };
        let units = engine.spaces.world(world).limits.blocks;
        let table = Table::decode(&record, units).filter(|_| can_divide(engine, world));
        let table = table.ok_or_else(|| damaged(drive))?;
        let blocks: Vec<BlockFormat> =
            table.entries.iter().flat_map(|it| [Some(it.block), it.format.map(|(block, _)| block)]).flatten().collect();
        expect_metadata(engine, world, &blocks)?;
        take_table(engine, world, table);
        clean(engine, world);
    }
    Ok(())
}

fn damaged(drive: DriveId) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "drive-{drive}.namespaces is no record of the namespaces of this drive; put it back from a copy, or remove it to \
             serve the drive as one namespace"
        ),
    )
}

/// Divides a volume, unless it is divided: [`super::divide`].
pub(super) fn divide(engine: &mut Engine, volume: VolumeId, sizes: &[u64]) -> Result<(), ManageError> {
    if !can_divide(engine, volume) {
        return Err(ManageError::Refused("it lies on several drives"));
    }
    if engine.spaces.table(volume).is_some() {
        return Ok(());
    }
    let units = engine.spaces.world(volume).limits.blocks;
    let bytes = |units: u64| units.saturating_mul(SLOT_BYTES.into());
    let needed_bytes = bytes(sizes.iter().fold(0, |sum: u64, &size| sum.saturating_add(size)));
    let no_room = ManageError::NoRoom { needed_bytes, free_bytes: bytes(units) };
    let table = Table::divided(units, block_of(engine, volume), sizes).ok_or(no_room)?;
    set_table(engine, volume, table)?;
    clean(engine, volume);
    Ok(())
}

/// Deallocates what is mapped where no namespace is: a process was killed while one was deleted.
fn clean(engine: &mut Engine, world: VolumeId) {
    let served = engine.session.world();
    let is_mapped = |unit: u64| served.place(world, unit).is_some_and(|(_, slot)| slot.is_some());
    let units = engine.spaces.world(world).limits.blocks;
    let free = engine.spaces.table(world).map(|table| table.free(units)).unwrap_or_default();
    if free.iter().any(|extent| (extent.first..extent.end()).any(is_mapped)) {
        add(engine, world, Job::Delete, (Vec::new(), Vec::new()), free, None);
    }
}
