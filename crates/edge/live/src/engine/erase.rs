//! Erasures of all data of a namespace, or of a drive: formats and sanitizes; and the deallocation of space that namespaces leave
//! or get.
//!
//! Requests of clients that are under way end first. Those that were given up are not waited for, but a drive that the driver has
//! lost may still carry them out: one unit is deallocated before anything is looked at, which such a drive does once it was reset.
//! Then everything that the drive maps is deallocated, as a host could do it;
//! where data must be left nowhere, the bytes that flash still holds are destroyed once nothing is mapped. The beginning is kept
//! before the first block goes, and the end after the last: a process that is killed in between goes on when it is started again.

use super::Engine;
use super::request::{Carried, Erasing, Job, Stage, Step, unanswered};
use super::tables::{expect_metadata, job_number, prepare, set_table, show, tell};
use super::window::Window;
use super::{manage, resize};
use crate::error::EngineError;
use crate::media::{BlockFormat, Erase, Erasures, SanitizeOutcome, Scrub};
use crate::namespaces::{Extent, ManageError};
use flashyard_blk::{Operation, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_nvme::NSID_ALL;
use flashyard_served::{Answer, Refused};
use flashyard_units::{DriveId, SimTime, VolumeId};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};

/// Units that one deallocation is about at most, and deallocations under way: some milliseconds of a drive's work.
const UNITS_MAX: u32 = 256;
const UNDER_WAY_MAX: u32 = 8;
/// Progress of an erasure that is not over: the number above stands for none at all.
const PROGRESS_MAX: u64 = 0xFFFE;
/// Units looked at in one turn.
const LOOKED_AT_MAX: u64 = 1 << 16;

/// Begins an erasure of a volume of the world, or of one of its namespaces, or refuses it.
pub(super) fn begin(engine: &mut Engine, (front, tag): (usize, u64), (world, nsid): (VolumeId, u32), erase: Erase) {
    let drives = engine.session.world().drives_of(world);
    // A drive that was not divided is erased as a whole.
    let is_all = nsid == NSID_ALL || erase.is_of_all() || engine.spaces.table(world).is_none();
    let volumes: Vec<(u32, VolumeId)> = engine.spaces.namespaces(world).iter().map(|it| (it.nsid, it.volume)).collect();
    let named: Vec<(u32, VolumeId)> = volumes.into_iter().filter(|&(found, _)| is_all || found == nsid).collect();
    let is_pinned = |volume: VolumeId| engine.fronts.iter().any(|front| front.pins(volume));
    let is_busy = |job: &Erasing| {
        // One that grows keeps no volume from its clients, and so has none here.
        let is_same = job.nsids.iter().any(|nsid| named.iter().any(|(other, _)| other == nsid));
        job.world == world && (is_all || is_same)
    };
    let reason = if drives.len() > 1 {
        Some("lies on several drives")
    } else if engine.erasing.iter().any(is_busy) {
        Some("is being erased, or gets another size")
    } else if named.iter().any(|&(_, volume)| is_pinned(volume)) {
        Some("is used by a client that cannot be told: a virtual machine, or the load of the server")
    } else if !is_all && named.is_empty() {
        Some("has no such namespace")
    } else {
        None
    };
    if let Some(reason) = reason {
        let reason = format!("volume {world} {reason}");
        return engine.fronts.erased(front, tag, Err(Refused::Control { reason }));
    }
    let drive = drives[0];
    let before = engine.media.drive(drive).before().erasures;
    if erase == Erase::LeaveFailure {
        engine.media.keep_erasures(drive, Erasures { sanitized: SanitizeOutcome::Left, ..before });
        return engine.fronts.erased(front, tag, Ok(()));
    }
    tracing::info!(volume = %world, nsid, ?erase, "all data is being erased");
    if let Err(error) = keep_begun(engine, (world, drive), &named, erase) {
        tracing::error!(volume = %world, %error, "the erasure is not begun");
        let reason = format!("volume {world}: {error}");
        return engine.fronts.erased(front, tag, Err(Refused::Control { reason }));
    }
    let by = match erase {
        Erase::Sanitize { .. } => {
            engine.fronts.erased(front, tag, Ok(()));
            None
        }
        _ => Some((front, tag)),
    };
    let volumes = named.iter().map(|&(_, volume)| volume).collect();
    add(engine, world, erase, (if is_all { NSID_ALL } else { nsid }, volumes), by);
    named.iter().for_each(|&(_, volume)| tell(engine, volume));
    if named.is_empty() {
        tell(engine, world);
    }
}

/// Keeps that an erasure has begun: of a drive, or of namespaces of a divided one.
fn keep_begun(
    engine: &mut Engine,
    (world, drive): (VolumeId, DriveId),
    named: &[(u32, VolumeId)],
    erase: Erase,
) -> Result<(), ManageError> {
    if let Erase::Format { block, .. } = erase {
        prepare(engine, world, block).map_err(|error| ManageError::NotKept(error.to_string()))?;
    }
    match (erase, engine.spaces.table(world).cloned()) {
        (Erase::Format { block, destroys }, Some(mut table)) => {
            for &(nsid, _) in named {
                if let Some(entry) = table.entry_mut(nsid) {
                    entry.format = Some((block, destroys));
                }
            }
            set_table(engine, world, table)
        }
        _ => {
            let before = engine.media.drive(drive).before().erasures;
            engine.media.keep_erasures(drive, Erasures { under_way: Some(erase), ..before });
            Ok(())
        }
    }
}

/// Goes on with erasures of an earlier process, and gives volumes the blocks that they were formatted to.
///
/// Errors: metadata of their blocks is gone.
pub(super) fn resume(engine: &mut Engine) -> io::Result<()> {
    for world in engine.exports.clone() {
        let drives = engine.session.world().drives_of(world);
        let Erasures { block, under_way, .. } = engine.media.drive(drives[0]).before().erasures;
        let wanted = if let Some(Erase::Format { block, .. }) = under_way { Some(block) } else { None };
        expect_metadata(engine, world, &[block, wanted].into_iter().flatten().collect::<Vec<_>>())?;
        if let Some(block) = block.filter(|_| drives.len() == 1) {
            set_blocks(engine, world, block);
        }
        let namespaces = engine.spaces.namespaces(world);
        if let Some(erase) = under_way {
            tracing::info!(volume = %world, ?erase, "all data is being erased, as was begun before");
            let volumes = namespaces.iter().map(|it| it.volume).collect();
            add(engine, world, erase, (NSID_ALL, volumes), None);
            continue;
        }
        let table = engine.spaces.table(world);
        let formats = table.iter().flat_map(|table| &table.entries).filter_map(|it| Some((it.nsid, it.format?)));
        for (nsid, (block, destroys)) in formats.collect::<Vec<_>>() {
            tracing::info!(volume = %world, nsid, "a namespace is being formatted, as was begun before");
            let volume = engine.spaces.volume_of(world, nsid);
            add(engine, world, Erase::Format { block, destroys }, (nsid, vec![volume]), None);
        }
    }
    Ok(())
}

fn add(
    engine: &mut Engine,
    world: VolumeId,
    erase: Erase,
    (nsid, volumes): (u32, Vec<VolumeId>),
    by: Option<(usize, u64)>,
) {
    let number = job_number(engine);
    let units = engine.spaces.world(world).limits.blocks;
    let extents = match volumes[..] {
        [volume] if nsid != NSID_ALL => engine.spaces.of(volume).extents().to_vec(),
        _ => vec![Extent { first: 0, units }],
    };
    let nsids = volumes.iter().map(|&volume| engine.spaces.nsid_of(volume)).collect();
    let mut job = Erasing::new(number, world, Job::Erase(erase), (nsids, volumes), extents, by);
    job.scope = nsid;
    set_erasing(engine, &job, Some(0));
    engine.erasing.push(job);
}

/// Clients may ask nothing of the volumes of an erasure, and see how far it is.
fn set_erasing(engine: &mut Engine, job: &Erasing, progress: Option<u16>) {
    if !matches!(job.kind, Job::Erase(_)) {
        return;
    }
    for &volume in &job.volumes {
        engine.fronts.set_erasing(volume, progress.map(|progress| (progress, job.scope)));
    }
    if job.scope == NSID_ALL {
        engine.fronts.set_erasing(job.world, progress.map(|progress| (progress, job.scope)));
    }
}

/// A deallocation was answered.
#[cold]
pub(super) fn deallocated(engine: &mut Engine, token: u32, answer: Answer) {
    let number = engine.pending[token as usize].tag;
    if let Some(erasing) = engine.erasing.iter_mut().find(|erasing| erasing.number == number) {
        erasing.under_way -= 1;
        erasing.has_failed |= answer != Answer::Done;
    }
    engine.forget(token);
}

/// Does the next bit of all erasures; returns whether there is more to do at once.
///
/// Errors: bytes of a drive cannot be followed.
#[cold]
pub(super) fn go_on(engine: &mut Engine, now: SimTime) -> Result<bool, EngineError> {
    let mut more = false;
    let mut has_destroyed = false;
    for place in (0..engine.erasing.len()).rev() {
        if engine.erasing[place].stage == Stage::Waits {
            if !is_used(engine, place) {
                settle(engine, now, place);
                more = true;
            }
            continue;
        }
        if engine.erasing[place].stage == Stage::Settles {
            if engine.erasing[place].under_way > 0 {
                continue;
            }
            engine.erasing[place].stage = Stage::Deallocates;
        }
        // One step a turn, of whatever drive: others have their turn between two.
        if let (Stage::Scrubs(from), false) = (engine.erasing[place].stage, has_destroyed) {
            engine.follow()?;
            destroy(engine, place, from);
            (has_destroyed, more) = (true, true);
        }
        if engine.erasing[place].stage == Stage::WritesBack {
            if let Some(result) = written_back(&engine.erasing[place]) {
                note_destroyed(&mut engine.erasing[place], result);
                let job = engine.erasing.remove(place);
                if let Job::Erase(erase) = job.kind {
                    end(engine, job, erase);
                }
                return Ok(true);
            }
            continue;
        }
        if matches!(engine.erasing[place].stage, Stage::Scrubs(_)) {
            continue;
        }
        more |= deallocate(engine, now, place);
        let job = &engine.erasing[place];
        let (is_over, progress) = (job.is_over(), (job.looked_at * PROGRESS_MAX / job.units().max(1)) as u16);
        let (world, volumes, scope) = (job.world, job.volumes.clone(), job.scope);
        if matches!(job.kind, Job::Erase(_)) {
            let drive = (scope == NSID_ALL).then_some(world);
            for volume in volumes.into_iter().chain(drive) {
                engine.fronts.set_erasing(volume, Some((progress, scope)));
            }
        }
        if is_over {
            // Deallocations are followed in the media, of which none may come behind this.
            engine.follow()?;
            let is_to_destroy = matches!(&engine.erasing[place].kind, Job::Erase(erase) if erase.destroys());
            if is_to_destroy && !engine.erasing[place].has_failed {
                engine.erasing[place].stage = Stage::Scrubs(Scrub::default());
                more = true;
                continue;
            }
            let job = engine.erasing.remove(place);
            match job.kind {
                Job::Erase(erase) => end(engine, job, erase),
                Job::Shrink { .. } | Job::Grow { .. } => {
                    let world = job.world;
                    resize::end(engine, job);
                    manage::try_again(engine, world);
                }
                _ => manage::end(engine, job),
            }
            return Ok(true);
        }
    }
    Ok(more)
}

/// Whether anything of clients is under way that an erasure waits for.
fn is_used(engine: &Engine, place: usize) -> bool {
    let volumes = &engine.erasing[place].volumes;
    if let Job::Shrink { units } = engine.erasing[place].kind {
        return volumes.iter().any(|&volume| resize::is_end_used(engine, volume, units));
    }
    let is_of_it = |volume: VolumeId| volumes.contains(&volume);
    unanswered(&engine.pending).any(|(_, it)| it.step != Step::Erasure && is_of_it(it.request.volume))
        || engine.changes.iter().any(|(_, change)| is_of_it(change.request.volume))
        || volumes.iter().any(|&volume| engine.claims.any_waits(volume))
}

/// Deallocates the first unit, whatever is there: the answer comes once nothing comes any more of requests that were given up.
fn settle(engine: &mut Engine, now: SimTime, place: usize) {
    engine.erasing[place].stage = Stage::Settles;
    if let Some(first) = engine.erasing[place].next().map(|extent| extent.first) {
        trim(engine, now, place, (first, 1));
    }
}

fn trim(engine: &mut Engine, now: SimTime, place: usize, (first, count): (u64, u32)) {
    let Erasing { world: volume, number, .. } = engine.erasing[place];
    let trim = VolumeRequest { volume, operation: Operation::Trim, first, count, source: 0 };
    // No front end has this number: its clients give nothing of it up.
    let client = (usize::MAX, number);
    if engine.hand_over(now, client, (trim, Window::whole(count)), Carried::NONE, Step::Erasure) {
        engine.erasing[place].under_way += 1;
    } else {
        engine.erasing[place].has_failed = true;
    }
}

/// Deallocates the next units that are mapped; returns whether some more could be looked at now.
fn deallocate(engine: &mut Engine, now: SimTime, place: usize) -> bool {
    let volume = engine.erasing[place].world;
    let mut looked_at = 0;
    while let Some(left) = engine.erasing[place].next()
        && engine.erasing[place].under_way < UNDER_WAY_MAX
    {
        let world = engine.session.world();
        let mapped = |unit: u64| world.place(volume, unit).map(|(_, slot)| slot.is_some());
        let first = left.first;
        let Some(is_mapped) = mapped(first) else { return false };
        let most = if is_mapped { UNITS_MAX.into() } else { LOOKED_AT_MAX };
        let end = (first + most).min(left.end());
        let end = (first + 1..end).find(|&unit| mapped(unit) != Some(is_mapped)).unwrap_or(end);
        engine.erasing[place].advance(end - first);
        if is_mapped {
            trim(engine, now, place, (first, (end - first) as u32));
        }
        looked_at += end - first;
        if looked_at >= LOOKED_AT_MAX {
            return true;
        }
    }
    false
}

/// Destroys the next of what flash still holds. At the end, or where that fails, the disk is waited for, which may take seconds: a thread does
/// that, and wakes the engine.
fn destroy(engine: &mut Engine, place: usize, from: Scrub) {
    let job = &engine.erasing[place];
    let world = job.world;
    let drive = engine.session.world().drives_of(world)[0];
    let destroyed = if job.scope == NSID_ALL && job.covers(engine.spaces.world(world).limits.blocks) {
        engine.media.scrub(drive, from)
    } else {
        engine.keep_promises(drive, from.superblock());
        // Other namespaces go on, and may yet lose their newest data: they need what they had before.
        let needed = engine.session.world().recoverable(drive).into_iter().collect();
        engine.media.scrub_dead(drive, &needed, from)
    };
    let stage = match destroyed {
        Ok(Some(next)) => Ok(Stage::Scrubs(next)),
        Ok(None) => {
            let written_back = engine.media.files(drive).and_then(|files| write_back(files, engine.waker()));
            written_back.map(|written_back| {
                engine.erasing[place].written_back = written_back;
                Stage::WritesBack
            })
        }
        Err(error) => Err(error),
    };
    let job = &mut engine.erasing[place];
    job.stage = stage.unwrap_or_else(|error| {
        note_destroyed(job, Err(error));
        Stage::WritesBack
    });
}

/// Waits elsewhere until files are on disk; `None` where there are none.
///
/// Errors: there is no thread.
fn write_back(files: Vec<File>, waker: Arc<mio::Waker>) -> io::Result<Option<Receiver<io::Result<()>>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let (sender, receiver) = mpsc::channel();
    let wait = move || {
        let result = files.iter().try_for_each(File::sync_data);
        // Where the engine has ended, the erasure goes on when it is started again.
        let is_heard = sender.send(result).is_ok();
        if is_heard && let Err(error) = waker.wake() {
            tracing::error!(%error, "the engine cannot be woken");
        }
    };
    std::thread::Builder::new().name("write-back".to_owned()).spawn(wait)?;
    Ok(Some(receiver))
}

/// How writing back has ended, once it has. Drives in memory, and those whose bytes could not be destroyed, have nothing to write back.
fn written_back(job: &Erasing) -> Option<io::Result<()>> {
    let Some(receiver) = &job.written_back else { return Some(Ok(())) };
    match receiver.try_recv() {
        Ok(result) => Some(result),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(Err(io::ErrorKind::BrokenPipe.into())),
    }
}

fn note_destroyed(job: &mut Erasing, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(volume = %job.world, %error, "bytes of the drive cannot be destroyed");
        job.has_failed = true;
    }
}

/// Nothing is mapped any more, and what was to be destroyed is: lets clients in again.
fn end(engine: &mut Engine, job: Erasing, erase: Erase) {
    let world = job.world;
    let drive = engine.session.world().drives_of(world)[0];
    let mut is_done = !job.has_failed;
    match (erase, engine.spaces.table(world).cloned()) {
        (Erase::Format { block, .. }, Some(mut table)) => {
            for entry in table.entries.iter_mut().filter(|entry| job.nsids.contains(&entry.nsid)) {
                entry.format = None;
                if is_done {
                    entry.reformat(block);
                }
            }
            if let Err(error) = set_table(engine, world, table) {
                tracing::error!(volume = %world, %error, "the format is done again when the server is started again");
                is_done = false;
            }
        }
        _ => {
            let ended = engine.media.drive(drive).before().erasures.ended(is_done);
            if let Some(block) = ended.block {
                set_blocks(engine, world, block);
            }
            engine.media.keep_erasures(drive, ended);
        }
    }
    set_erasing(engine, &job, None);
    tracing::info!(volume = %world, is_done, "the erasure has come to its end");
    job.volumes.iter().for_each(|&volume| tell(engine, volume));
    if job.volumes.is_empty() {
        tell(engine, world);
    }
    if let Some((front, tag)) = job.by {
        let failed = || Refused::Control { reason: format!("volume {world} could not be erased") };
        engine.fronts.erased(front, tag, if is_done { Ok(()) } else { Err(failed()) });
    }
}

/// A volume of the world that is not divided has such blocks from now on.
pub(super) fn set_blocks(engine: &mut Engine, world: VolumeId, block: BlockFormat) {
    if engine.spaces.table(world).is_none() {
        engine.shifts[world.index()] = (SLOT_BYTES / block.data_bytes).trailing_zeros() as u8;
        engine.spaces.set_metadata(world, block.metadata);
        show(engine, world);
    }
}
