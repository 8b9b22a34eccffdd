//! Erasures of all data of a volume: formats and sanitizes.
//!
//! Requests of clients that are under way end first. Then everything that the drive maps is deallocated, as a host could do it;
//! where data must be left nowhere, the bytes that flash still holds are destroyed once nothing is mapped. The beginning is kept
//! before the first block goes, and the end after the last: a process that is killed in between goes on when it is started again.

use super::Engine;
use super::request::{Erasing, Step};
use super::window::Window;
use crate::error::EngineError;
use crate::media::{Erase, Erasures, SanitizeOutcome};
use flashyard_blk::{Operation, Payload, VolumeInfo, VolumeLimits, VolumeRequest};
use flashyard_flash::SLOT_BYTES;
use flashyard_served::{Answer, Refused};
use flashyard_units::{DriveId, SimTime, VolumeId};

/// Units that one deallocation is about at most, and deallocations under way: some milliseconds of a drive's work.
const UNITS_MAX: u32 = 256;
const UNDER_WAY_MAX: u32 = 8;
/// Progress of an erasure that is not over: the number above stands for none at all.
const PROGRESS_MAX: u64 = 0xFFFE;
/// Units looked at in one turn.
const LOOKED_AT_MAX: u64 = 1 << 16;

/// Begins an erasure, or refuses it.
pub(super) fn begin(engine: &mut Engine, (front, tag): (usize, u64), volume: VolumeId, erase: Erase) {
    let drives = engine.session.world().drives_of(volume);
    let reason = if drives.len() > 1 {
        Some("lies on several drives")
    } else if engine.erasing.iter().any(|erasing| erasing.volume == volume) {
        Some("is being erased")
    } else if engine.fronts.iter().any(|front| front.pins(volume)) {
        Some("is used by a client that cannot be told: a virtual machine, or the load of the server")
    } else {
        None
    };
    if let Some(reason) = reason {
        let reason = format!("volume {volume} {reason}");
        return engine.fronts.erased(front, tag, Err(Refused::Control { reason }));
    }
    let drive = drives[0];
    let before = engine.media.drive(drive).before().erasures;
    if erase == Erase::LeaveFailure {
        engine.media.keep_erasures(drive, Erasures { sanitized: SanitizeOutcome::Left, ..before });
        return engine.fronts.erased(front, tag, Ok(()));
    }
    tracing::info!(%volume, ?erase, "all data is being erased");
    engine.media.keep_erasures(drive, Erasures { under_way: Some(erase), ..before });
    let by = match erase {
        Erase::Sanitize { .. } => {
            engine.fronts.erased(front, tag, Ok(()));
            None
        }
        _ => Some((front, tag)),
    };
    add(engine, volume, erase, by);
    tell(engine, volume);
}

/// Goes on with erasures of an earlier process, and gives volumes the blocks that they were formatted to.
pub(super) fn resume(engine: &mut Engine) {
    for volume in engine.fronts.volumes().to_vec() {
        let drives = engine.session.world().drives_of(volume.id);
        let Erasures { block_bytes, under_way, .. } = engine.media.drive(drives[0]).before().erasures;
        if let Some(block_bytes) = block_bytes.filter(|_| drives.len() == 1) {
            set_blocks(engine, volume.id, block_bytes);
        }
        if let Some(erase) = under_way {
            tracing::info!(volume = %volume.id, ?erase, "all data is being erased, as was begun before");
            add(engine, volume.id, erase, None);
        }
    }
}

fn add(engine: &mut Engine, volume: VolumeId, erase: Erase, by: Option<(usize, u64)>) {
    let (next, under_way, is_quiet, has_failed) = (0, 0, false, false);
    engine.erasing.push(Erasing { volume, erase, by, next, under_way, is_quiet, has_failed });
    engine.fronts.set_erasing(volume, Some(0));
}

/// Lets all front ends look at a volume.
fn tell(engine: &mut Engine, volume: VolumeId) {
    (0..engine.fronts.len())
        .for_each(|front| engine.with_front(front, |front, context| front.changed(volume, context)));
}

/// A deallocation was answered.
#[cold]
pub(super) fn deallocated(engine: &mut Engine, token: u32, answer: Answer) {
    let volume = engine.pending[token as usize].request.volume;
    if let Some(erasing) = engine.erasing.iter_mut().find(|erasing| erasing.volume == volume) {
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
    for number in (0..engine.erasing.len()).rev() {
        let volume = engine.erasing[number].volume;
        if !engine.erasing[number].is_quiet {
            let is_of_it = |pending: &super::request::Pending| pending.request.volume == volume;
            let is_used = engine.pending.iter().any(|(_, pending)| is_of_it(pending))
                || engine.changes.iter().any(|(_, change)| change.request.volume == volume);
            engine.erasing[number].is_quiet = !is_used;
            more |= !is_used;
            continue;
        }
        let drive = engine.session.world().drives_of(volume)[0];
        let units = engine.session.world().volumes()[volume.index()].limits.blocks;
        more |= deallocate(engine, now, number, units);
        let Erasing { next, under_way, .. } = engine.erasing[number];
        engine.fronts.set_erasing(volume, Some((next * PROGRESS_MAX / units.max(1)) as u16));
        if next == units && under_way == 0 {
            // Deallocations are followed in the media, of which none may come behind this.
            engine.follow()?;
            end(engine, number, drive);
            more = true;
        }
    }
    Ok(more)
}

/// Deallocates the next units that are mapped; returns whether some more could be looked at now.
fn deallocate(engine: &mut Engine, now: SimTime, number: usize, units: u64) -> bool {
    let volume = engine.erasing[number].volume;
    let mut looked_at = 0;
    while engine.erasing[number].next < units && engine.erasing[number].under_way < UNDER_WAY_MAX {
        let world = engine.session.world();
        let mapped = |unit: u64| world.place(volume, unit).map(|(_, slot)| slot.is_some());
        let first = engine.erasing[number].next;
        let Some(is_mapped) = mapped(first) else { return false };
        let most = if is_mapped { UNITS_MAX.into() } else { LOOKED_AT_MAX };
        let end = (first + most).min(units);
        let end = (first + 1..end).find(|&unit| mapped(unit) != Some(is_mapped)).unwrap_or(end);
        engine.erasing[number].next = end;
        if is_mapped {
            let count = (end - first) as u32;
            let trim = VolumeRequest { volume, operation: Operation::Trim, first, count, source: 0 };
            // No front end has this number: its clients give nothing of it up.
            let client = (usize::MAX, first);
            if engine.hand_over(now, client, (trim, Window::whole(count)), Payload::None, Step::Erasure) {
                engine.erasing[number].under_way += 1;
            } else {
                engine.erasing[number].has_failed = true;
            }
        }
        looked_at += end - first;
        if looked_at >= LOOKED_AT_MAX {
            return true;
        }
    }
    false
}

/// Nothing is mapped any more: destroys what flash still holds if that was asked for, and lets clients in again.
fn end(engine: &mut Engine, number: usize, drive: DriveId) {
    let Erasing { volume, erase, by, has_failed, .. } = engine.erasing.remove(number);
    let mut is_done = !has_failed;
    if is_done
        && erase.destroys()
        && let Err(error) = engine.media.scrub(drive)
    {
        tracing::error!(%volume, %error, "bytes of the drive cannot be destroyed");
        is_done = false;
    }
    let ended = engine.media.drive(drive).before().erasures.ended(is_done);
    if let Some(block_bytes) = ended.block_bytes {
        set_blocks(engine, volume, block_bytes);
    }
    engine.media.keep_erasures(drive, ended);
    engine.fronts.set_erasing(volume, None);
    tracing::info!(%volume, is_done, "the erasure has come to its end");
    tell(engine, volume);
    if let Some((front, tag)) = by {
        let failed = || Refused::Control { reason: format!("volume {volume} could not be erased") };
        engine.fronts.erased(front, tag, if is_done { Ok(()) } else { Err(failed()) });
    }
}

/// A volume has blocks of this size, 512 or 4096 bytes, from now on.
pub(super) fn set_blocks(engine: &mut Engine, volume: VolumeId, block_bytes: u32) {
    engine.shifts[volume.index()] = (SLOT_BYTES / block_bytes).trailing_zeros() as u8;
    let of_world = engine.session.world().volumes()[volume.index()];
    engine.fronts.set_blocks(with_blocks(of_world, block_bytes));
}

/// A volume of a world, whose blocks are the units of its drive, with blocks of this size. Remaps are of whole units.
fn with_blocks(volume: VolumeInfo, block_bytes: u32) -> VolumeInfo {
    let blocks = SLOT_BYTES / block_bytes;
    let limits = VolumeLimits {
        blocks: volume.limits.blocks * u64::from(blocks),
        remaps: volume.limits.remaps && blocks == 1,
        request_blocks: volume.limits.request_blocks.saturating_mul(blocks),
    };
    VolumeInfo { block_bytes, limits, ..volume }
}
