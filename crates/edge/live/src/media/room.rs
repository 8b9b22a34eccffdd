//! Room on the disk for bytes that are about to be stored.
//!
//! A page that is stored to through a mapping and has no place on the disk yet gets one from the operating system, and
//! a disk that has none left ends the process with a signal. So places are reserved before. Some room is left to garbage
//! collection, which must be able to copy what is valid before it erases a superblock: writes of clients fail first.

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are reserved at once. Source: \[A\] 256 writes of 4 KiB pay for one call.
pub(super) const STEP_BYTES: usize = 1 << 20;

/// Pages of the disk's file system.
const PAGE_BYTES: u64 = 4096;

/// Reason to store bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's write, which may fail.
    Write,
    /// Bytes that have to be stored so that nothing is lost.
    Upkeep,
}

/// The room of one directory, shared by its drives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Bytes that garbage collection may need, over all drives.
    reserve: AtomicU64,
    /// The disk of a test.
    #[cfg(test)]
    small: std::sync::Mutex<SmallDisk>,
}

impl Room {
    /// A drive that needed `before` bytes for garbage collection needs `now`.
    pub(super) fn reserve(&self, before: u64, now: u64) {
        self.0.reserve.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Reserves a range of a file. What it holds stays.
    ///
    /// Errors: the disk has no room for it; others of the operating system.
    pub(super) fn take(&self, file: &File, range: Range<usize>, purpose: Purpose) -> io::Result<()> {
        let (first, bytes) = (range.start as u64, range.len() as u64);
        if purpose == Purpose::Write && self.free(file)? < bytes + self.0.reserve.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        #[cfg(test)]
        if self.small().free().is_some_and(|free| free < bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        loop {
            match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, first, bytes) {
                Err(rustix::io::Errno::INTR) => {}
                // A file system that cannot reserve: storing what is there makes places.
                Err(rustix::io::Errno::OPNOTSUPP) => return touch(file, first..first + bytes),
                result => return Ok(result?),
            }
        }
    }

    /// Bytes that the disk has for this program.
    fn free(&self, file: &File) -> io::Result<u64> {
        #[cfg(test)]
        if let Some(free) = self.small().free() {
            return Ok(free);
        }
        let disk = rustix::fs::fstatvfs(file)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// Stores the first byte of each page as it is.
fn touch(file: &File, range: Range<u64>) -> io::Result<()> {
    for at in range.step_by(PAGE_BYTES as usize) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at)?;
        file.write_all_at(&byte, at)?;
    }
    Ok(())
}

/// A disk that holds this many bytes, and nothing but the files of a directory.
#[cfg(test)]
#[derive(Debug, Default)]
struct SmallDisk(Option<(std::path::PathBuf, u64)>);

#[cfg(test)]
impl SmallDisk {
    fn taken(directory: &std::path::Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let files = std::fs::read_dir(directory).expect("it is there");
        files.map(|file| file.and_then(|file| file.metadata()).expect("it is there").blocks() * 512).sum()
    }

    fn free(&self) -> Option<u64> {
        self.0.as_ref().map(|(directory, bytes)| bytes.saturating_sub(Self::taken(directory)))
    }
}

#[cfg(test)]
impl Room {
    /// From now on the disk of `directory` has `bytes` left.
    pub(crate) fn set_left(&self, directory: &std::path::Path, bytes: u64) {
        *self.small() = SmallDisk(Some((directory.to_owned(), SmallDisk::taken(directory) + bytes)));
    }

    fn small(&self) -> std::sync::MutexGuard<'_, SmallDisk> {
        self.0.small.lock().expect("nobody panics with it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_to_garbage_collection_what_it_may_need() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = File::create(directory.path().join("file")).expect("there is room");
        file.set_len(64 << 10).expect("it can be sparse");
        let room = Room::default();
        room.set_left(directory.path(), 32 << 10);
        room.reserve(0, 16 << 10);
        room.take(&file, 0..16 << 10, Purpose::Write).expect("there is room");
        let full = room.take(&file, 16 << 10..20 << 10, Purpose::Write).expect_err("what is left is reserved");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        room.take(&file, 16 << 10..32 << 10, Purpose::Upkeep).expect("it is reserved for this");
        room.take(&file, 32 << 10..36 << 10, Purpose::Upkeep).expect_err("nothing is left");
        room.reserve(16 << 10, 0);
        room.take(&file, 32 << 10..36 << 10, Purpose::Write).expect_err("nothing is left");
        rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4096).expect("a hole");
        room.take(&file, 32 << 10..36 << 10, Purpose::Write).expect("there is room again");
    }

    #[test]
    fn bytes_stay_as_they_are_where_a_file_system_cannot_reserve() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(4 * PAGE_BYTES).expect("it can be sparse");
        file.write_all_at(b"kept", PAGE_BYTES).expect("there is room");
        touch(&file, 0..3 * PAGE_BYTES).expect("there is room");
        let mut found = [0; 4];
        file.read_exact_at(&mut found, PAGE_BYTES).expect("it is there");
        assert_eq!(&found, b"kept");
        use std::os::unix::fs::MetadataExt;
        assert_eq!(file.metadata().expect("it is there").blocks() * 512, 3 * PAGE_BYTES);
    }
}
