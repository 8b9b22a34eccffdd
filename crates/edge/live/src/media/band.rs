//! The out-of-band area of one drive: a record for each physical slot, and a header for each superblock.
//!
//! ```text
//! 0        a change of owner under way, in the first 32 bytes of one page
//! 1024     the drive's lifetime record (`life.rs`), twice, 1024 bytes apart
//! 4096     a header of 32 bytes for each superblock, to the end of a page
//!          a record of 24 bytes for each slot
//! ```
//!
//! All numbers are little endian. A record ends with a checksum over itself and its slot number: a record written in
//! part, or strayed, is seen. A record that was ever written says that its slot is used, whether or not it is whole.
//! A slot that gets another owner has no other copy: its new record is noted in the first page before it is written, so
//! that a process that ends in between leaves one of both whole. What the drive remembers replaces the older of its two
//! records, for the same reason.

use super::life::{self, Life};
use super::mapping::Mapping;
use super::room::{Purpose, Room};
use flashyard_flash::Layout;
use flashyard_ftl::Stream;
use std::io;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

/// Bytes before the headers.
const NOTE_PAGE_BYTES: usize = 4096;
/// A note: slot, record, checksum over both.
const NOTE_BYTES: usize = 4 + RECORD_BYTES + 4;
/// Where the records of its life are.
const LIVES: [usize; 2] = [1024, 2048];
const HEADER_BYTES: usize = 32;
const RECORD_BYTES: usize = 24;

// States as they are stored: none is zero.
const DATA: u32 = 1;
const ZEROS: u32 = 2;
const DEAD: u32 = 3;
const LOST: u32 = 4;

/// The contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Payload.
    Data,
    /// Zeros, without a copy of them.
    Zeros,
    /// Nothing that is current.
    Dead,
    /// Current data that could not be read: it reads as an error.
    Lost,
}

/// The record of a written slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    pub(crate) logical: u32,
    pub(crate) state: State,
    /// Checksum of the payload.
    pub(crate) checksum: u32,
}

/// The header of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) used: bool,
    pub(crate) stream: Stream,
    pub(crate) single_level: bool,
    /// Whether it is used no more, as was last looked.
    pub(crate) retired: bool,
    pub(crate) erases: u32,
    /// The sequence number of its opening.
    pub(crate) opened: u64,
}

impl Header {
    /// A superblock that was never used.
    pub(crate) const NEW: Self =
        Self { used: false, stream: Stream::Host, single_level: false, retired: false, erases: 0, opened: 0 };
}

/// State of a place for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The slot was not written since its superblock was erased.
    Nothing,
    /// A record that is whole.
    Whole(Record),
    /// A record that was written in part, or has changed since: nothing in it is sure.
    Torn,
}

/// The out-of-band area of one drive.
#[derive(Debug)]
pub(crate) struct Band {
    pub(crate) mapping: Mapping,
    layout: Layout,
    records: usize,
}

impl Band {
    /// Bytes that it takes.
    pub(crate) fn bytes(layout: &Layout) -> usize {
        let slots = layout.superblocks as usize * layout.slots_per_superblock as usize;
        Self::first_record(layout) + slots * RECORD_BYTES
    }

    fn first_record(layout: &Layout) -> usize {
        NOTE_PAGE_BYTES + (layout.superblocks as usize * HEADER_BYTES).next_multiple_of(4096)
    }

    /// Makes sure that everything but the records of slots can be stored to.
    ///
    /// Errors: the disk has no room; others of the operating system.
    pub(super) fn reserve_headers(&self, room: &Room) -> io::Result<()> {
        self.mapping.reserve(0..self.records, room, Purpose::Upkeep)
    }

    /// Makes sure that the records of a superblock can be stored to, and looked at: also that may need room.
    ///
    /// Errors: as of [`Band::reserve_headers`].
    pub(super) fn reserve_records(&self, superblock: u32, room: &Room, purpose: Purpose) -> io::Result<()> {
        self.mapping.reserve(self.records_of(superblock), room, purpose)
    }

    /// Whether a superblock has no record.
    ///
    /// Errors: those of the operating system.
    pub(super) fn is_blank(&self, superblock: u32) -> io::Result<bool> {
        let mut bytes = Vec::new();
        self.mapping.read(self.records_of(superblock), &mut bytes)?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }

    fn records_of(&self, superblock: u32) -> Range<usize> {
        let slots = self.layout.slots_per_superblock;
        let first = self.at(superblock * slots);
        first..first + slots as usize * RECORD_BYTES
    }

    /// A checksum over all headers and records that count. What a drive remembers of its life has checksums of its own.
    ///
    /// Errors: those of the operating system.
    pub(super) fn digest(&self) -> io::Result<u32> {
        let mut digest = crc32c::crc32c(&self.mapping.bytes()[NOTE_PAGE_BYTES..self.records]);
        let mut bytes = Vec::new();
        for superblock in (0..self.layout.superblocks).filter(|&superblock| self.header(superblock).used) {
            self.mapping.read(self.records_of(superblock), &mut bytes)?;
            digest = crc32c::crc32c_append(digest, &bytes);
        }
        Ok(digest)
    }

    /// The area in `mapping`, which has at least [`Band::bytes`].
    pub(crate) fn new(mapping: Mapping, layout: Layout) -> Self {
        Self { mapping, layout, records: Self::first_record(&layout) }
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: u32, record: &Record) {
        let bytes = encode(slot, record);
        let at = self.at(slot);
        self.mapping.bytes_mut()[at..at + RECORD_BYTES].copy_from_slice(&bytes);
    }

    /// Sets the record of a slot whose present one must not be lost.
    pub(crate) fn replace(&mut self, slot: u32, record: &Record) {
        let bytes = self.mapping.bytes_mut();
        bytes[..4].copy_from_slice(&slot.to_le_bytes());
        bytes[4..NOTE_BYTES - 4].copy_from_slice(&encode(slot, record));
        let whole = crc32c::crc32c(&bytes[..NOTE_BYTES - 4]);
        bytes[NOTE_BYTES - 4..NOTE_BYTES].copy_from_slice(&whole.to_le_bytes());
        // The process may end between any two stores; the compiler must not swap or drop them.
        compiler_fence(Ordering::SeqCst);
        self.set(slot, record);
        compiler_fence(Ordering::SeqCst);
        self.void_note(whole);
    }

    /// Ends a change of owner that was under way when the process ended.
    pub(crate) fn finish_replacing(&mut self) {
        let bytes = self.mapping.bytes();
        let whole = crc32c::crc32c(&bytes[..NOTE_BYTES - 4]);
        let slot = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let at = self.at(slot);
        if bytes[NOTE_BYTES - 4..NOTE_BYTES] == whole.to_le_bytes() && at + RECORD_BYTES <= bytes.len() {
            self.mapping.bytes_mut().copy_within(4..NOTE_BYTES - 4, at);
            compiler_fence(Ordering::SeqCst);
            self.void_note(whole);
        }
    }

    /// A note with this checksum is over.
    fn void_note(&mut self, whole: u32) {
        self.mapping.bytes_mut()[NOTE_BYTES - 4..NOTE_BYTES].copy_from_slice(&(!whole).to_le_bytes());
    }

    /// Lifetime record of the drive, and how many of the two were written in part. `None` where neither is whole.
    pub(crate) fn life(&self) -> (Option<Life>, u64) {
        let found = self.lives();
        let torn = found.iter().filter(|found| **found == life::Found::Torn).count() as u64;
        let whole = found.into_iter().filter_map(life::Found::whole).max_by_key(|(sequence, _)| *sequence);
        (whole.map(|(_, life)| life), torn)
    }

    /// Replaces the older lifetime record, or the one not whole.
    pub(crate) fn set_life(&mut self, life: &Life) {
        let last = self.lives().map(|found| found.whole().map_or(0, |(sequence, _)| sequence));
        let at = LIVES[usize::from(last[0] > last[1])];
        let bytes = life.encode(last[0].max(last[1]).saturating_add(1));
        self.mapping.bytes_mut()[at..at + bytes.len()].copy_from_slice(&bytes);
        // The other one is not touched before this one is whole.
        compiler_fence(Ordering::SeqCst);
    }

    fn lives(&self) -> [life::Found; 2] {
        LIVES.map(|at| Life::decode(&self.mapping.bytes()[at..at + life::BYTES]))
    }

    /// The logical slot whose bytes a record stood for that is not whole, as far as it still tells.
    pub(super) fn named(&self, slot: u32) -> Option<u32> {
        let at = self.at(slot);
        let bytes = &self.mapping.bytes()[at..at + RECORD_BYTES];
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        [DATA, LOST].contains(&word(12)).then(|| word(8))
    }

    /// Loads the record of a slot, and returns its first byte.
    #[inline]
    pub(super) fn touch(&self, slot: u32) -> u8 {
        self.mapping.bytes()[self.at(slot)]
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Found {
        let at = self.at(slot);
        let bytes = &self.mapping.bytes()[at..at + RECORD_BYTES];
        if bytes.iter().all(|&byte| byte == 0) {
            return Found::Nothing;
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let state = match word(12) {
            DATA => State::Data,
            ZEROS => State::Zeros,
            DEAD => State::Dead,
            LOST => State::Lost,
            _ => return Found::Torn,
        };
        if word(20) != check(slot, bytes) {
            return Found::Torn;
        }
        let sequence = u64::from(word(0)) | u64::from(word(4)) << 32;
        Found::Whole(Record { sequence, logical: word(8), state, checksum: word(16) })
    }

    /// Zeroes the records of a superblock.
    pub(crate) fn forget(&mut self, superblock: u32) -> io::Result<()> {
        self.mapping.discard(self.records_of(superblock))
    }

    pub(crate) fn set_header(&mut self, superblock: u32, header: &Header) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = u8::from(header.used);
        bytes[1] = header.stream as u8;
        bytes[2] = u8::from(header.single_level);
        bytes[3] = u8::from(header.retired);
        bytes[4..8].copy_from_slice(&header.erases.to_le_bytes());
        bytes[8..16].copy_from_slice(&header.opened.to_le_bytes());
        let at = NOTE_PAGE_BYTES + superblock as usize * HEADER_BYTES;
        self.mapping.bytes_mut()[at..at + HEADER_BYTES].copy_from_slice(&bytes);
    }

    pub(crate) fn header(&self, superblock: u32) -> Header {
        let at = NOTE_PAGE_BYTES + superblock as usize * HEADER_BYTES;
        let bytes = &self.mapping.bytes()[at..at + HEADER_BYTES];
        let mut opened = [0; 8];
        opened.copy_from_slice(&bytes[8..16]);
        Header {
            used: bytes[0] != 0,
            stream: match bytes[1] {
                stream if stream == Stream::Moved as u8 => Stream::Moved,
                stream if stream == Stream::Leveled as u8 => Stream::Leveled,
                _ => Stream::Host,
            },
            single_level: bytes[2] != 0,
            retired: bytes[3] != 0,
            erases: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            opened: u64::from_le_bytes(opened),
        }
    }

    #[inline]
    fn at(&self, slot: u32) -> usize {
        self.records + slot as usize * RECORD_BYTES
    }
}

/// A record as it is stored.
#[inline]
fn encode(slot: u32, record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0..8].copy_from_slice(&record.sequence.to_le_bytes());
    bytes[8..12].copy_from_slice(&record.logical.to_le_bytes());
    let state: u32 = match record.state {
        State::Data => DATA,
        State::Zeros => ZEROS,
        State::Dead => DEAD,
        State::Lost => LOST,
    };
    bytes[12..16].copy_from_slice(&state.to_le_bytes());
    bytes[16..20].copy_from_slice(&record.checksum.to_le_bytes());
    let check = check(slot, &bytes);
    bytes[20..24].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Checksum of a record: everything before the checksum, and where it belongs.
#[inline]
fn check(slot: u32, record: &[u8]) -> u32 {
    crc32c::crc32c_append(slot.wrapping_add(1), &record[..20])
}

#[cfg(test)]
impl Band {
    /// Damages the record of a slot.
    pub(super) fn tear(&mut self, slot: u32) {
        let at = self.at(slot);
        self.mapping.bytes_mut()[at + 8] ^= 1;
    }
}
