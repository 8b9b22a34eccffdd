//! Bytes that are left nowhere: the end of formats and sanitizes that destroy data, step by step.
//!
//! A drive has up to 2^32 slots, and one thread serves all drives: each step has a budget, and others have their turn between two.

use super::band::{Found, Record, State};
use super::drive::{DriveMedia, metadata_of};
use super::tuples::UNWRITTEN;
use super::unkept::Unkept;
use flashyard_flash::{SLOT_BYTES, Slot};
use std::collections::BTreeSet;
use std::io;

/// Records that a step looks at, at most. Source: \[A\] some tenths of a millisecond
const STEP: u32 = 8192;
/// Records that could be looked at while the bytes of a slot are overwritten, and while a superblock gets a hole. Source: \[A\] microseconds,
/// and a call of the operating system that gives back up to a gigabyte
const BLANK_COST: u32 = 32;
const HOLE_COST: u32 = 4096;

/// How far the destruction of a drive's bytes is: the next slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scrub {
    superblock: u32,
    index: u32,
}

impl Scrub {
    /// The superblock of the next slot.
    pub(crate) fn superblock(self) -> u32 {
        self.superblock
    }

    /// The slot after it, on a drive of this layout; `None` at the end.
    fn after(self, media: &DriveMedia) -> Option<Self> {
        let layout = media.layout();
        let Self { superblock, index } = self;
        if index + 1 < layout.slots_per_superblock {
            return Some(Self { superblock, index: index + 1 });
        }
        (superblock + 1 < layout.superblocks).then_some(Self { superblock: superblock + 1, index: 0 })
    }
}

/// Destroys bytes of a drive that holds nothing current, and their checksums, from a place on: they are left in no place of its file. Returns
/// where the next step begins; `None` at the end.
///
/// Errors: those of the operating system.
pub(super) fn scrub(media: &mut DriveMedia, from: Scrub) -> io::Result<Option<Scrub>> {
    let mut at = from;
    let mut left = STEP;
    if at == Scrub::default() {
        media.unkept = Unkept::default();
    }
    while left > 0 {
        if at.index == 0 {
            media.payload.erase(at.superblock)?;
            if let Some(tuples) = &mut media.tuples {
                tuples.erase(at.superblock)?;
            }
            left = left.saturating_sub(HOLE_COST);
        }
        let slot = media.layout().slot(at.superblock, at.index).get();
        if let Found::Whole(record) = media.band.get(slot) {
            let dead = match record.state {
                State::Zeros => Record { checksum: 0, ..record },
                _ => Record { logical: u32::MAX, state: State::Dead, checksum: 0, ..record },
            };
            if dead != record {
                media.band.set(slot, &dead);
            }
        }
        left = left.saturating_sub(1);
        let Some(next) = at.after(media) else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

/// Destroys bytes of a drive that are not current any more, and not `needed` after a power cut, from a place on and in one superblock at most.
/// Reads that were promised some there must have copied them. Returns what [`scrub`] does.
///
/// Bytes behind the place that lose their block between two steps are not looked at: they were those of a block that the erasure is not about.
///
/// Errors: bytes of current blocks lie among them, as the disk has had no room; others of the operating system.
pub(super) fn scrub_dead(media: &mut DriveMedia, needed: &BTreeSet<Slot>, from: Scrub) -> io::Result<Option<Scrub>> {
    if !media.unkept.is_empty() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let mut at = from;
    let mut left = STEP;
    let mut buffer = Vec::with_capacity(SLOT_BYTES as usize);
    while left > 0 && at.superblock == from.superblock {
        let slot = media.layout().slot(at.superblock, at.index);
        let cost = if blank(media, needed, slot, &mut buffer)? { BLANK_COST } else { 1 };
        left = left.saturating_sub(cost);
        let Some(next) = at.after(media) else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

/// Destroys the bytes of a slot if they are to be; returns whether they were looked at.
fn blank(media: &mut DriveMedia, needed: &BTreeSet<Slot>, slot: Slot, buffer: &mut Vec<u8>) -> io::Result<bool> {
    // A record written in part may be of any block, and reads of that fail already.
    let record = match media.band.get(slot.get()) {
        Found::Nothing => return Ok(false),
        Found::Torn => None,
        Found::Whole(record) => Some(record),
    };
    if needed.contains(&slot) || record.is_some_and(|record| record.logical != u32::MAX) {
        return Ok(false);
    }
    let has_bytes = media.payload.blank(slot, buffer)?;
    // Blocks of zeros have metadata too.
    let has_metadata = metadata_of(media, slot) != UNWRITTEN;
    if let (Some(tuples), true) = (&mut media.tuples, has_metadata) {
        tuples.set(slot, &UNWRITTEN);
    }
    if let Some(record) = record.filter(|_| has_bytes || has_metadata) {
        media.band.set(slot.get(), &Record { checksum: 0, ..record });
    }
    Ok(true)
}

/// All steps of [`scrub_dead`].
#[cfg(test)]
pub(super) fn scrub_all_dead(media: &mut DriveMedia, needed: &BTreeSet<Slot>) -> io::Result<()> {
    let mut at = Some(Scrub::default());
    while let Some(from) = at {
        at = scrub_dead(media, needed, from)?;
    }
    Ok(())
}
