//! The memory of one guest, as both ends see it.
//!
//! | from | what |
//! |---|---|
//! | 0 | slot after the last submission, written by the guest |
//! | 64 | slot of the next completion that the guest reads, written by the guest |
//! | 128 | commands that the server has completed, of all guests, and nanoseconds that its runtime was busy |
//! | 4096 | submission queue, 64 bytes an entry |
//! | behind it | completion queue, 16 bytes an entry, from a multiple of 4096 on |
//! | behind it | data, from a multiple of 4096 on |

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use vm_memory::volatile_memory::VolatileMemory;
use vm_memory::{Bytes, FileOffset, MmapRegion};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Place of the submission doorbell.
const TAIL: usize = 0;
/// Place of the completion doorbell.
const HEAD: usize = 64;
/// Place of the server's counts.
const COUNTS: usize = 128;

/// Entries of a queue at most, and bytes of data of a guest at most: 1 GiB.
pub(crate) const ENTRIES_MAX: u32 = 65_536;
/// See [`ENTRIES_MAX`].
pub(crate) const DATA_MAX: u64 = 1 << 30;

/// Memory that a guest and the server share.
#[derive(Debug)]
pub(crate) struct Shared {
    region: MmapRegion,
    completions: usize,
    data: usize,
    data_bytes: usize,
}

impl Shared {
    /// Bytes for queues of `entries` and so much data.
    pub(crate) fn bytes(entries: u32, data_bytes: u64) -> u64 {
        let page = PAGE as u64;
        let queues =
            (u64::from(entries) * 64).next_multiple_of(page) + (u64::from(entries) * 16).next_multiple_of(page);
        page + queues + data_bytes
    }

    /// Maps a file of [`Shared::bytes`].
    ///
    /// Errors: those of the operating system.
    pub(crate) fn map(file: File, entries: u32, data_bytes: u64) -> io::Result<Self> {
        let bytes = Self::bytes(entries, data_bytes) as usize;
        let region = MmapRegion::from_file(FileOffset::new(file, 0), bytes).map_err(io::Error::other)?;
        let completions = PAGE + (entries as usize * 64).next_multiple_of(PAGE);
        let data = completions + (entries as usize * 16).next_multiple_of(PAGE);
        Ok(Self { region, completions, data, data_bytes: data_bytes as usize })
    }

    fn load32(&self, at: usize) -> u32 {
        self.region.as_volatile_slice().load(at, Ordering::Acquire).unwrap_or(u32::MAX)
    }

    fn store32(&self, at: usize, value: u32) {
        // All places are within what was mapped.
        let _ = self.region.as_volatile_slice().store(value, at, Ordering::Release);
    }

    fn load64(&self, at: usize) -> u64 {
        self.region.as_volatile_slice().load(at, Ordering::Acquire).unwrap_or(0)
    }

    fn store64(&self, at: usize, value: u64) {
        let _ = self.region.as_volatile_slice().store(value, at, Ordering::Release);
    }

    pub(crate) fn tail(&self) -> u32 {
        self.load32(TAIL)
    }

    pub(crate) fn set_tail(&self, tail: u32) {
        self.store32(TAIL, tail);
    }

    pub(crate) fn head(&self) -> u32 {
        self.load32(HEAD)
    }

    pub(crate) fn set_head(&self, head: u32) {
        self.store32(HEAD, head);
    }

    /// Commands completed, and nanoseconds of work.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [self.load64(COUNTS), self.load64(COUNTS + 8)]
    }

    pub(crate) fn set_counts(&self, counts: [u64; 2]) {
        self.store64(COUNTS, counts[0]);
        self.store64(COUNTS + 8, counts[1]);
    }

    pub(crate) fn submissions(&self, first: u32, into: &mut [[u8; 64]]) {
        let from = PAGE + first as usize * 64;
        let _ = self.region.as_volatile_slice().read_slice(into.as_flattened_mut(), from);
    }

    pub(crate) fn set_submission(&self, slot: u32, entry: &[u8; 64]) {
        let _ = self.region.as_volatile_slice().write_slice(entry, PAGE + slot as usize * 64);
    }

    /// A completion entry, if it has this phase.
    pub(crate) fn completion(&self, slot: u32, phase: bool) -> Option<[u8; 16]> {
        let from = self.completions + slot as usize * 16;
        let second = self.load64(from + 8);
        if (second >> 48 & 1 == 1) != phase {
            return None;
        }
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&self.load64(from).to_le_bytes());
        entry[8..].copy_from_slice(&second.to_le_bytes());
        Some(entry)
    }

    /// Writes a completion entry, its phase with the last store.
    pub(crate) fn set_completion(&self, slot: u32, entry: [u8; 16]) {
        let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|byte| entry[from + byte]));
        let at = self.completions + slot as usize * 16;
        self.store64(at, word(0));
        self.store64(at + 8, word(8));
    }

    /// Copies bytes of the data; they are within it, or nothing is copied.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        if at.checked_add(into.len()).is_some_and(|end| end <= self.data_bytes) {
            let _ = self.region.as_volatile_slice().read_slice(into, self.data + at);
        }
    }

    /// As [`Shared::read`], the other way.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        if at.checked_add(bytes.len()).is_some_and(|end| end <= self.data_bytes) {
            let _ = self.region.as_volatile_slice().write_slice(bytes, self.data + at);
        }
    }
}
