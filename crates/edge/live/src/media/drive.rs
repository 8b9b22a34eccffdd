//! The bytes of one drive by physical slot, which follow what its data-end tells of payload.

use super::band::{Band, Found, Header, Record, State};
use super::life::Life;
use super::mapping::Mapping;
use super::payload::{BYTES, Payload};
use super::room::{Purpose, Room};
use super::tuples::{Entry, Tuples, UNWRITTEN};
use super::unkept::Unkept;
use flashyard_flash::{Layout, Slot};
use flashyard_ftl::{Stream, SuperblockContents};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;

/// Bytes that a slot without payload reads as.
static ZEROS: [u8; BYTES] = [0; BYTES];

/// The bytes of one drive.
#[derive(Debug)]
pub struct DriveMedia {
    number: u16,
    layout: Layout,
    room: Room,
    pub(super) payload: Payload,
    pub(super) band: Band,
    /// Metadata of its blocks, since some had any.
    pub(super) tuples: Option<Tuples>,
    /// Number of the last slot written.
    pub(super) sequence: u64,
    /// Whether payload gets checksums: it outlives the process.
    pub(super) checked: bool,
    /// Its lifetime record before this run, with this start, and as it was last kept.
    before: Life,
    kept: Life,
    /// Superblocks that are marked as retired.
    marked: u32,
    /// Whether the last write found no room, and the slots of all that did.
    is_full: bool,
    pub(super) unkept: Unkept,
    /// Superblocks whose records have their places on the disk.
    recorded: Vec<bool>,
    /// Blocks that the log has named as damaged.
    named: BTreeSet<u32>,
    /// Whether a slot was ever lost since the process began.
    pub(super) has_lost: bool,
}

/// Damaged blocks that the log names one by one.
const NAMED_MAX: usize = 1000;

impl DriveMedia {
    /// A drive in memory.
    ///
    /// Errors: those of the operating system.
    pub(super) fn memory(layout: Layout) -> io::Result<Self> {
        let payload = Payload::memory(layout)?;
        let band = Band::new(Mapping::memory(Band::bytes(&layout))?, layout);
        Ok(Self::over(0, layout, payload, band, Room::default(), false))
    }

    /// The drive with this number in two files, on a disk with this `room`.
    ///
    /// Errors: the disk has no room for what is always needed; others of the operating system.
    pub(super) fn of(number: u16, layout: Layout, payload: Mapping, band: Mapping, room: &Room) -> io::Result<Self> {
        let payload = Payload::file(payload, layout, room.clone());
        let drive = Self::over(number, layout, payload, Band::new(band, layout), room.clone(), true);
        drive.band.reserve_headers(room)?;
        Ok(drive)
    }

    fn over(number: u16, layout: Layout, payload: Payload, band: Band, room: Room, checked: bool) -> Self {
        let (before, kept) = (Life::first(), Life::first());
        let (sequence, marked, is_full, unkept, named) = (0, 0, false, Unkept::default(), BTreeSet::new());
        // Memory needs none.
        let recorded = vec![!checked; layout.superblocks as usize];
        Self {
            number,
            layout,
            room,
            payload,
            band,
            tuples: None,
            sequence,
            checked,
            before,
            kept,
            marked,
            is_full,
            unkept,
            recorded,
            named,
            has_lost: false,
        }
    }

    /// Slot arithmetic of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes that `slot` holds: zeros where nothing was written, and for [`Slot::NONE`].
    #[inline]
    pub fn slot(&self, slot: Slot) -> &[u8] {
        let slot = self.place_of(slot);
        if self.has_payload(slot) { self.payload.run(slot, 1) } else { &ZEROS }
    }

    /// Whether there are bytes for `slot`.
    #[inline]
    pub(super) fn has_payload(&self, slot: Slot) -> bool {
        slot.is_some()
            && self.payload.holds(slot)
            && matches!(self.band.get(slot.get()), Found::Whole(Record { state: State::Data | State::Dead, .. }))
    }

    /// Whether `slot` holds what was written there, as far as that can be known: bytes that outlive the process have
    /// checksums.
    #[inline]
    pub(crate) fn is_whole(&self, slot: Slot) -> bool {
        let place = self.place_of(slot);
        if !self.checked || !place.is_some() {
            let is_marked = || matches!(self.band.get(place.get()), Found::Whole(Record { state: State::Lost, .. }));
            let is_lost = self.has_lost && place.is_some() && is_marked();
            return !is_lost && !self.unkept.is_gone(slot);
        }
        let slot = place;
        match self.band.get(slot.get()) {
            Found::Nothing => true,
            Found::Torn => false,
            Found::Whole(Record { state, checksum, .. }) => match state {
                State::Zeros => self.tuples.as_ref().is_none_or(|tuples| tuples.seal(0, slot) == checksum),
                State::Lost => false,
                State::Data | State::Dead => {
                    self.payload.holds(slot) && sealed(&self.tuples, self.payload.run(slot, 1), slot) == checksum
                }
            },
        }
    }

    /// Which drive of its directory it is.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Makes sure that the record of a slot can be stored.
    ///
    /// Errors: the disk has no room; others of the operating system.
    #[inline]
    pub(super) fn reserve_record(&mut self, slot: Slot, purpose: Purpose) -> io::Result<()> {
        let superblock = self.layout.split(slot).0;
        if self.recorded[superblock as usize] { Ok(()) } else { self.reserve_records(superblock, purpose) }
    }

    /// Like [`Self::reserve_record`], for all slots of a superblock.
    ///
    /// Errors: as of [`DriveMedia::reserve_record`].
    #[cold]
    pub(super) fn reserve_records(&mut self, superblock: u32, purpose: Purpose) -> io::Result<()> {
        self.band.reserve_records(superblock, &self.room, purpose)?;
        if let Some(tuples) = &self.tuples {
            tuples.reserve(superblock, &self.room, purpose)?;
        }
        self.recorded[superblock as usize] = true;
        Ok(())
    }

    /// Where the bytes of `slot` are: elsewhere if the disk had no room for them.
    #[inline]
    pub(super) fn place_of(&self, slot: Slot) -> Slot {
        self.unkept.place_of(slot)
    }

    /// Whether bytes have checksums.
    #[inline]
    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    /// A read of `logical` has failed for its bytes: counts it, and names the block in the log.
    #[cold]
    pub(super) fn failed_read(&mut self, logical: u32) {
        self.before.media_errors = self.before.media_errors.saturating_add(1);
        self.name_damaged(logical);
    }

    /// Names a damaged block in the log, once.
    pub(super) fn name_damaged(&mut self, logical: u32) {
        let drive = self.number;
        if self.named.len() == NAMED_MAX {
            return;
        }
        if self.named.insert(logical) {
            tracing::error!(drive, block = logical, "the block is damaged: reads of it fail until it is written");
            if self.named.len() == NAMED_MAX {
                tracing::error!(drive, "further damaged blocks are not named");
            }
        }
    }

    /// Whether the bytes of `next` lie behind those of the slot before it.
    #[inline]
    pub(super) fn adjoins(&self, next: Slot) -> bool {
        self.layout.split(next).1 != 0
    }

    /// Takes over what the drive holds before it is used: slots that are current, and hold zeros.
    ///
    /// Errors: the disk has no room; others of the operating system.
    pub(super) fn adopt(&mut self, contents: &[SuperblockContents]) -> io::Result<()> {
        let mut order: Vec<_> = (0..).zip(contents).collect();
        // Superblocks are numbered in the order in which they were opened.
        order.sort_by_key(|(_, contents)| contents.used.as_ref().map_or(0, |used| used.opened));
        for (superblock, contents) in order {
            let erases = contents.erases;
            let Some(used) = &contents.used else {
                self.band.set_header(superblock, &Header { erases, ..Header::NEW });
                continue;
            };
            self.reserve_records(superblock, Purpose::Upkeep)?;
            self.sequence += 1;
            let (stream, single_level) = (used.stream, used.single_level);
            let opened = self.sequence;
            self.band
                .set_header(superblock, &Header { used: true, stream, single_level, retired: false, erases, opened });
            let mut valid = used.valid.iter().peekable();
            let is_lost = |logical| used.lost.contains(&logical);
            for index in 0..used.written {
                self.sequence += 1;
                let current = valid.next_if(|entry| entry.0 == index);
                let state = match current {
                    Some(&(_, logical)) if is_lost(logical) => State::Lost,
                    Some(_) => State::Zeros,
                    None => State::Dead,
                };
                let logical = current.map_or(u32::MAX, |entry| entry.1);
                let record = Record { sequence: self.sequence, logical, state, checksum: 0 };
                self.band.set(self.layout.slot(superblock, index).get(), &record);
            }
        }
        Ok(())
    }

    /// A superblock is opened.
    pub(super) fn opened(&mut self, superblock: u32, stream: Stream, single_level: bool) {
        self.sequence += 1;
        let (erases, opened) = (self.band.header(superblock).erases, self.sequence);
        self.band.set_header(superblock, &Header { used: true, stream, single_level, retired: false, erases, opened });
    }

    /// A slot of a write goes to its place; `None` stands for zeros. Payload first, then what says that it is there,
    /// then what says that the old copy is not current: whatever moment the process ends at, one of both is. Returns
    /// whether the bytes are there: without room for them the block holds what it held.
    #[inline]
    pub(super) fn write(&mut self, logical: u32, slot: Slot, before: Slot, payload: Option<&[u8]>) -> bool {
        if !store(self, logical, slot, before, payload) {
            return false;
        }
        // A slot that a power cut has taken back is written again without an erase: it may have those of before.
        if let Some(tuples) = &mut self.tuples
            && tuples.get(slot) != UNWRITTEN
        {
            tuples.set(slot, &UNWRITTEN);
        }
        let (mut state, mut checksum) = (State::Zeros, 0);
        if let Some(payload) = payload {
            state = State::Data;
            checksum = if self.checked { crc32c::crc32c(payload) } else { 0 };
        }
        self.written(logical, slot, before, state, checksum);
        true
    }

    #[cold]
    fn found_no_room(&mut self, error: &io::Error) {
        if !self.is_full {
            self.is_full = true;
            tracing::error!(drive = self.number, %error, "there is no room for the drive's bytes: writes fail");
        }
    }

    /// Garbage collection has moved a slot.
    ///
    /// Errors: the disk has no room for it; others of the operating system. The slot is where it was then.
    pub(super) fn moved(&mut self, logical: u32, from: Slot, to: Slot) -> io::Result<()> {
        if self.unkept.stands(from) {
            // Its stand-in moves to the new place: that needs no room.
            self.unkept.add(logical, to, from);
            return Ok(());
        }
        self.reserve_record(to, Purpose::Upkeep)?;
        let (state, checksum) = match self.band.get(from.get()) {
            Found::Nothing => (State::Zeros, 0),
            Found::Torn => (State::Lost, 0),
            Found::Whole(Record { state: State::Lost, .. }) => (State::Lost, 0),
            // A checksum goes with its bytes: what is damaged stays so.
            Found::Whole(record) if self.has_payload(from) => (State::Data, record.checksum),
            Found::Whole(record) => (State::Zeros, record.checksum),
        };
        if state == State::Data {
            self.payload.copy(from, to)?;
        }
        if !self.unkept.is_empty() {
            self.unkept.settled(to);
        }
        copy_metadata(self, from, to);
        self.written(logical, to, from, state, checksum);
        Ok(())
    }

    fn written(&mut self, logical: u32, slot: Slot, before: Slot, state: State, checksum: u32) {
        self.sequence += 1;
        self.band.set(slot.get(), &Record { sequence: self.sequence, logical, state, checksum });
        self.kill(logical, before);
    }

    /// Data just moved to `slot` could not be read.
    pub(super) fn lost(&mut self, logical: u32, slot: Slot) {
        if self.unkept.stands(slot) {
            // Its bytes are those of before, wherever the drive believes it has lost them: reads do not get that far.
            return;
        }
        if let Found::Whole(record) = self.band.get(slot.get())
            && record.logical == logical
        {
            self.band.set(slot.get(), &Record { state: State::Lost, ..record });
            self.has_lost = true;
        }
    }

    /// A logical slot was deallocated.
    pub(super) fn trimmed(&mut self, logical: u32, before: Slot) {
        self.kill(logical, before);
    }

    /// The data of `source` in `slot` became that of `logical`, which was in `before`.
    ///
    /// Errors: the disk has no room for it; others of the operating system.
    pub(super) fn remapped(&mut self, logical: u32, source: u32, slot: Slot, before: Slot) -> io::Result<()> {
        self.settle(slot)?;
        if self.unkept.hand_over(logical, slot) {
            self.kill(logical, before);
            return Ok(());
        }
        if let Found::Whole(record) = self.band.get(slot.get())
            && record.logical == source
        {
            self.sequence += 1;
            self.band.replace(slot.get(), &Record { sequence: self.sequence, logical, ..record });
            self.kill(logical, before);
        }
        Ok(())
    }

    /// The bytes that stand for `slot` are put there, as its own.
    ///
    /// Errors: the disk has no room for them; others of the operating system. Everything is as it was then.
    fn settle(&mut self, slot: Slot) -> io::Result<()> {
        let Some((old, logical)) = self.unkept.owed(slot) else { return Ok(()) };
        let found = if old.is_some() { self.band.get(old.get()) } else { Found::Nothing };
        let stands = match found {
            Found::Nothing => None,
            Found::Torn => Some((State::Lost, 0)),
            Found::Whole(Record { state: State::Data | State::Dead, checksum, .. }) => Some((State::Data, checksum)),
            Found::Whole(Record { state, checksum, .. }) => Some((state, checksum)),
        };
        let Some((state, checksum)) = stands else {
            self.unkept.hold_nothing(slot);
            return Ok(());
        };
        self.reserve_record(slot, Purpose::Upkeep)?;
        if state == State::Data {
            self.payload.copy_alone(old, slot)?;
        }
        copy_metadata(self, old, slot);
        self.sequence += 1;
        self.band.set(slot.get(), &Record { sequence: self.sequence, logical, state, checksum });
        self.kill(logical, old);
        self.unkept.settled(slot);
        Ok(())
    }

    /// A superblock is about to be erased: what stands for others there moves to them, and nothing stands for its own.
    ///
    /// Errors: as of [`DriveMedia::settle`].
    fn settle_before_erase(&mut self, superblock: u32) -> io::Result<()> {
        if self.unkept.is_empty() {
            return Ok(());
        }
        let layout = *self.layout();
        let is_here = |slot: Slot| slot.is_some() && layout.split(slot).0 == superblock;
        for slot in self.unkept.leave(is_here) {
            self.settle(slot)?;
            self.unkept.lose(slot);
        }
        Ok(())
    }

    /// The data of `logical` in `slot` is no longer current. Readers that were promised it still find it.
    pub(super) fn kill(&mut self, logical: u32, slot: Slot) {
        let slot = self.unkept.end(slot);
        if slot.is_some()
            && let Found::Whole(record) = self.band.get(slot.get())
            // A map that was led astray may name a slot that is another's.
            && record.logical == logical
        {
            // Zeros stay zeros for readers, and errors stay errors, but they belong to no logical slot.
            let state = match record.state {
                State::Zeros | State::Lost => record.state,
                State::Data | State::Dead => State::Dead,
            };
            self.band.set(slot.get(), &Record { logical: u32::MAX, state, ..record });
        }
    }

    /// A superblock was erased.
    ///
    /// Errors: those of the operating system.
    pub(super) fn erased(&mut self, superblock: u32) -> io::Result<()> {
        self.settle_before_erase(superblock)?;
        self.payload.erase(superblock)?;
        if let Some(tuples) = &mut self.tuples {
            tuples.erase(superblock)?;
        }
        self.band.forget(superblock)?;
        self.recorded[superblock as usize] &= !self.checked;
        let erases = self.band.header(superblock).erases + 1;
        self.band.set_header(superblock, &Header { erases, ..Header::NEW });
        Ok(())
    }

    /// Sets the erase counts of the superblocks, in order.
    pub(super) fn set_erases(&mut self, counts: impl Iterator<Item = u32>) {
        for (superblock, erases) in (0..self.layout.superblocks).zip(counts) {
            let header = self.band.header(superblock);
            self.band.set_header(superblock, &Header { erases, ..header });
        }
    }

    /// Counts this start of the drive: its life so far is on record before it serves. The last one ended in order, or
    /// lost the power that it had.
    pub(super) fn start(&mut self, in_order: bool) {
        let (life, torn) = self.band.life();
        if torn > 0 {
            tracing::warn!(torn, known = life.is_some(), "a record of the life of a drive was written in part");
        }
        let life = life.unwrap_or_default();
        self.before = Life {
            power_cycles: life.power_cycles.saturating_add(1),
            unsafe_shutdowns: life.unsafe_shutdowns.saturating_add(u64::from(!in_order && !life.is_dark)),
            is_dark: false,
            ..life
        };
        self.marked = (0..self.layout.superblocks).filter(|&number| self.band.header(number).retired).count() as u32;
        self.keep(self.before);
    }

    /// The lifetime record before this run, with this start; what a manager wants of the drive, as it is now.
    pub(crate) fn before(&self) -> &Life {
        &self.before
    }

    /// Stores `life` as the lifetime record.
    pub(super) fn keep(&mut self, life: Life) {
        self.kept = life;
        self.band.set_life(&life);
    }

    /// The manager of capacity wants superblocks to be retired so, or formats and sanitizes have left something: keeps what
    /// `change` makes of the lifetime record.
    pub(super) fn keep_wish(&mut self, change: impl Fn(&mut Life)) {
        change(&mut self.before);
        change(&mut self.kept);
        self.keep(self.kept);
    }

    /// The drive is in its degraded mode, or not.
    pub(super) fn keep_degraded(&mut self, is_degraded: bool) {
        self.keep(Life { is_degraded, ..self.kept });
    }

    /// Marks superblocks as retired, `count` of them, unless as many are.
    pub(super) fn mark_retired(&mut self, count: u32, retired: impl Iterator<Item = u32>) {
        if self.marked != count {
            self.marked = count;
            for superblock in retired {
                let header = self.band.header(superblock);
                self.band.set_header(superblock, &Header { retired: true, ..header });
            }
        }
    }

    /// Superblocks that are marked as retired.
    pub(crate) fn retired(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.superblocks).filter(|&superblock| self.band.header(superblock).retired)
    }

    /// Waits until everything is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.payload.sync()?;
        self.tuples.as_ref().map_or(Ok(()), Tuples::sync)?;
        self.band.mapping.sync()
    }
}

/// A power cut has taken the data of `logical` in `before`: what it last had on flash, in `slot`, is current again. That was
/// given up when newer data came, and is still there, since a drive erases nothing that it may need.
pub(super) fn revert(media: &mut DriveMedia, logical: u32, before: Slot, slot: Slot) {
    let slot = media.unkept.resume(slot);
    let stood = media.place_of(before);
    if slot.is_some()
        && let Found::Whole(record) = media.band.get(slot.get())
    {
        let state = match record.state {
            State::Zeros | State::Lost => record.state,
            State::Data | State::Dead => State::Data,
        };
        // Newer than what it takes the place of: whatever moment the process ends at, one of both is there.
        media.sequence += 1;
        media.band.replace(slot.get(), &Record { sequence: media.sequence, logical, state, ..record });
    }
    if stood == slot {
        // The newer data had no room, and what stood for it is what is current again.
        media.unkept.end(before);
    } else {
        media.kill(logical, before);
    }
}

/// Puts the bytes of a write to their place; returns whether there was room.
#[inline]
fn store(media: &mut DriveMedia, logical: u32, slot: Slot, before: Slot, payload: Option<&[u8]>) -> bool {
    let stored = media.reserve_record(slot, Purpose::Write);
    let stored = stored.and_then(|()| payload.map_or(Ok(()), |payload| media.payload.set(slot, payload)));
    if let Err(error) = stored {
        media.found_no_room(&error);
        media.unkept.add(logical, slot, before);
        return false;
    }
    // A power cut may have taken the slot back from a write that had no room.
    if !media.unkept.is_empty() {
        media.unkept.settled(slot);
    }
    if media.is_full {
        media.is_full = false;
        tracing::info!(drive = media.number, "there is room for the drive's bytes again");
    }
    true
}

/// Loads the record of a written slot, and its first bytes where it `is_read`; returns bytes of them.
#[inline]
pub(super) fn touch(media: &DriveMedia, slot: Slot, is_read: bool) -> u8 {
    // A slot that another one stands for may have no place on the disk, nor may one whose record is not stored yet. Looking at it may
    // need one.
    if !slot.is_some() || !media.unkept.is_empty() || !media.recorded[media.layout.split(slot).0 as usize] {
        return 0;
    }
    let first = if is_read { media.payload.touch(slot) } else { 0 };
    first ^ media.band.touch(slot.get())
}

/// The checksum of a slot with these bytes, and the metadata that it has.
#[inline]
fn sealed(tuples: &Option<Tuples>, payload: &[u8], slot: Slot) -> u32 {
    let checksum = crc32c::crc32c(payload);
    tuples.as_ref().map_or(checksum, |tuples| tuples.seal(checksum, slot))
}

/// Metadata of the blocks in a slot.
pub(crate) fn metadata_of(media: &DriveMedia, slot: Slot) -> Entry {
    let place = media.place_of(slot);
    media.tuples.as_ref().filter(|_| place.is_some()).map_or(UNWRITTEN, |tuples| tuples.get(place))
}

/// Blocks of the drive can have metadata from now on, which is kept there.
pub(super) fn keep_metadata(media: &mut DriveMedia, tuples: Tuples) {
    media.tuples = Some(tuples);
    // That of superblocks in use has no place on the disk yet.
    media.recorded.fill(!media.checked);
}

/// Like [`DriveMedia::write`], with the metadata of the blocks, which has to have a place. It is stored before the record, as the
/// payload is.
pub(super) fn write_with(
    media: &mut DriveMedia,
    (logical, slot, before): (u32, Slot, Slot),
    payload: Option<&[u8]>,
    metadata: &Entry,
) -> bool {
    if !store(media, logical, slot, before, payload) {
        return false;
    }
    if let Some(tuples) = &mut media.tuples {
        tuples.set(slot, metadata);
    }
    let state = if payload.is_some() { State::Data } else { State::Zeros };
    let checksum = match (media.checked, payload, &media.tuples) {
        (false, ..) => 0,
        (true, Some(payload), tuples) => sealed(tuples, payload, slot),
        (true, None, tuples) => tuples.as_ref().map_or(0, |tuples| tuples.seal(0, slot)),
    };
    media.written(logical, slot, before, state, checksum);
    true
}

/// Metadata goes with its blocks to another place.
fn copy_metadata(media: &mut DriveMedia, from: Slot, to: Slot) {
    if let Some(tuples) = &mut media.tuples {
        tuples.copy(from, to);
    }
}

/// The files in which bytes of blocks are, for a thread that waits until they are on disk: the destroyed ones are gone then.
///
/// Errors: those of the operating system.
pub(super) fn files_of(media: &DriveMedia) -> io::Result<Vec<File>> {
    let tuples = media.tuples.as_ref().map_or(Ok(None), Tuples::below)?;
    Ok(media.payload.below()?.into_iter().chain(tuples).collect())
}

#[cfg(test)]
impl DriveMedia {
    /// The room of the disk below it, for a test to make small.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }
}
