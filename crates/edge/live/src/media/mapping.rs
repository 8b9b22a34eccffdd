//! Memory that looks like flash: anonymous, or a file seen through a mapping. The only place with unsafe code.
//!
//! A file is mapped shared: what was stored is in the page cache, and outlives the process however that ends.
#![allow(unsafe_code, reason = "mapping a file cannot be done without")]

use super::room::{Purpose, Room};
use memmap2::{Advice, MmapMut};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Bytes of one mapped area.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: MmapMut,
    /// The file behind it; `None` for memory.
    file: Option<File>,
}

/// Pages of this size are given back.
const PAGE_BYTES: usize = 4096;

impl Mapping {
    /// Zeroed memory, taken page by page as it is written.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn memory(bytes: usize) -> io::Result<Self> {
        let map = MmapMut::map_anon(bytes.max(PAGE_BYTES))?;
        // Fewer faults on the way of writes; a system without huge pages does as well.
        if let Err(error) = map.advise(Advice::HugePage) {
            tracing::debug!(%error, "no huge pages");
        }
        Ok(Self { map, file: None })
    }

    /// A file of at least one page. The caller holds the lock of the directory that it is in.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn file(file: File) -> io::Result<Self> {
        // SAFETY: the mapping is sound as long as the file is not truncated or otherwise written to. The lock of the
        // directory keeps other processes of this program out, and this one reaches the file through the mapping only,
        // but for holes that are punched while no reference into the mapping exists (`discard` takes `&mut self`).
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self { map, file: Some(file) })
    }

    /// All bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// All bytes, to write.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// Takes the first bytes of memory from the system before they are used; a file takes nothing.
    ///
    /// Errors: the system has not so much memory, or cannot do that.
    pub(super) fn populate(&self, bytes: usize) -> io::Result<()> {
        match &self.file {
            Some(_) => Ok(()),
            None => self.map.advise_range(Advice::PopulateWrite, 0, bytes.min(self.map.len())),
        }
    }

    /// Copies a range, without giving its pages places on the disk as looking at them may.
    ///
    /// Errors: those of the operating system.
    pub(super) fn read(&self, range: Range<usize>, into: &mut Vec<u8>) -> io::Result<()> {
        into.resize(range.len(), 0);
        match &self.file {
            Some(file) => file.read_exact_at(into, range.start as u64),
            None => {
                into.copy_from_slice(&self.map[range]);
                Ok(())
            }
        }
    }

    /// Makes a range zero. The place on disk that whole pages of a file take is given back; memory is kept, as taking
    /// pages again costs a virtual machine more than writing them.
    ///
    /// Errors: those of the operating system. The range may be zero or not then.
    pub(crate) fn discard(&mut self, range: Range<usize>) -> io::Result<()> {
        let Some(file) = &self.file else {
            self.map[range].fill(0);
            return Ok(());
        };
        // The operating system zeroes the parts of pages at both ends, and knows which of them have a place.
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(file, flags, range.start as u64, range.len() as u64) {
            // A file system without holes keeps the place, and zeros do as well.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.map[range].fill(0);
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Makes sure that a range can be stored to: pages of a file get their places on the disk, under the rules of `room`.
    ///
    /// Errors: the disk has no room; others of the operating system.
    pub(super) fn reserve(&self, range: Range<usize>, room: &Room, purpose: Purpose) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let first = range.start / PAGE_BYTES * PAGE_BYTES;
        room.take(file, first..range.end.next_multiple_of(PAGE_BYTES).min(self.map.len()), purpose)
    }

    /// Bytes that a file takes on the disk.
    pub(super) fn on_disk_bytes(&self) -> u64 {
        // A file that cannot be asked takes what it could at most.
        let bytes = |file: &File| file.metadata().map_or(self.map.len() as u64, |found| found.blocks() * 512);
        self.file.as_ref().map_or(0, bytes)
    }

    /// The file below it, to wait for elsewhere until everything is on disk; `None` for memory.
    ///
    /// Errors: those of the operating system.
    pub(super) fn below(&self) -> io::Result<Option<File>> {
        self.file.as_ref().map(File::try_clone).transpose()
    }

    /// Waits until everything is on disk.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.file.is_some() { self.map.flush() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut mapping: Mapping) {
        mapping.bytes_mut().fill(7);
        mapping.discard(100..3 * PAGE_BYTES + 5).expect("the range is mapped");
        mapping.discard(3 * PAGE_BYTES + 10..3 * PAGE_BYTES + 12).expect("the range is mapped");
        for (index, &byte) in mapping.bytes().iter().enumerate() {
            let gone = (100..3 * PAGE_BYTES + 5).contains(&index) || (12_298..12_300).contains(&index);
            assert_eq!(byte, if gone { 0 } else { 7 }, "byte {index}");
        }
        mapping.sync().expect("it can be written back");
    }

    #[test]
    fn what_is_discarded_reads_as_zeros_and_its_neighbours_stay() {
        check(Mapping::memory(4 * PAGE_BYTES).expect("there is memory"));
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(4 * PAGE_BYTES as u64).expect("it can be sparse");
        check(Mapping::file(file).expect("a file can be mapped"));
    }

    #[test]
    fn memory_that_is_taken_before_it_is_used_is_there_and_zero() {
        let mapping = Mapping::memory(1 << 20).expect("there is memory");
        mapping.populate(512 << 10).expect("the system can do that");
        // A word for each page of the process; its highest bit says that the page is there.
        let pages = File::open("/proc/self/pagemap").expect("Linux has it");
        let mut words = vec![0; (1 << 20) / PAGE_BYTES * 8];
        let first = mapping.bytes().as_ptr().addr() / PAGE_BYTES * 8;
        pages.read_exact_at(&mut words, first as u64).expect("they are our own");
        let there = words.chunks_exact(8).filter(|word| word[7] & 0x80 > 0).count();
        assert!((128..=256).contains(&there), "{there} of 256 pages");
        assert!(mapping.bytes().iter().all(|&byte| byte == 0));
        mapping.populate(usize::MAX).expect("no more than there is");
    }

    #[test]
    fn what_is_discarded_of_a_file_takes_no_place_and_what_is_reserved_does() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(16 * PAGE_BYTES as u64).expect("it can be sparse");
        let mut mapping = Mapping::file(file).expect("a file can be mapped");
        let room = Room::default();
        mapping.reserve(PAGE_BYTES + 1..3 * PAGE_BYTES + 1, &room, Purpose::Upkeep).expect("there is room");
        assert_eq!(mapping.on_disk_bytes(), 3 * PAGE_BYTES as u64);
        // Also what lies in pages without a place: they stay so.
        mapping.discard(100..16 * PAGE_BYTES - 100).expect("the range is mapped");
        assert_eq!(mapping.on_disk_bytes(), 0);
    }
}
