//! Memory that looks like flash: anonymous, or a file seen through a mapping. The only place with unsafe code.
//!
//! A file is mapped shared: what was stored is in the page cache, and outlives the process however that ends.
#![allow(unsafe_code, reason = "mapping a file cannot be done without")]

use memmap2::{Advice, MmapMut};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::ops::Range;

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

    /// A file, made `bytes` long if it is shorter. The caller holds the lock of the directory that it is in.
    ///
    /// Errors: those of the operating system.
    pub(crate) fn file(file: File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            file.set_len(bytes as u64)?;
        }
        // SAFETY: the mapping is sound as long as nobody truncates the file or writes to it otherwise. The lock of the
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

    /// Makes a range zero. The place on disk that whole pages of a file take is given back; memory is kept, as taking
    /// pages anew costs a virtual machine more than writing them.
    ///
    /// Errors: those of the operating system. The range may be zero or not then.
    pub(crate) fn discard(&mut self, range: Range<usize>) -> io::Result<()> {
        let first = range.start.next_multiple_of(PAGE_BYTES);
        let last = range.end / PAGE_BYTES * PAGE_BYTES;
        let Some(file) = self.file.as_ref().filter(|_| first < last) else {
            self.map[range].fill(0);
            return Ok(());
        };
        self.map[range.start..first].fill(0);
        self.map[last..range.end].fill(0);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(file, flags, first as u64, (last - first) as u64) {
            // A file system without holes keeps the place, and zeros do as well.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.map[first..last].fill(0);
                Ok(())
            }
            result => Ok(result?),
        }
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
        check(Mapping::file(file, 4 * PAGE_BYTES).expect("a file can be mapped"));
    }
}
