//! A regular file as a device.

use flashyard_cvfs::{BLOCK_BYTES, BlockDevice, DeviceError, check_range};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A regular file, whole blocks of it. Trimmed blocks become holes.
///
/// It can play a device that remaps by copying and punching a hole, so that this way of shrinking can be tried; it is
/// no faster than copying.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    blocks: u32,
    plays_remap: bool,
}

fn failed(error: impl Into<io::Error>) -> DeviceError {
    DeviceError::Io(error.into().to_string())
}

impl FileDevice {
    /// Opens a file that is there; with `bytes`, makes it, or makes it this large.
    ///
    /// Errors: it cannot be opened or made, or is larger than 16 TiB.
    pub fn open(path: &Path, bytes: Option<u64>, plays_remap: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(bytes.is_some()).truncate(false).open(path)?;
        if let Some(bytes) = bytes {
            file.set_len(bytes)?;
        }
        let blocks = u32::try_from(file.metadata()?.len() / BLOCK);
        let blocks = blocks.map_err(|_| io::Error::other("larger than 16 TiB"))?;
        Ok(Self { file, blocks, plays_remap })
    }

    fn punch(&self, first: u32, count: u32) -> Result<(), DeviceError> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, u64::from(first) * BLOCK, u64::from(count) * BLOCK) {
            Err(Errno::OPNOTSUPP) => Err(DeviceError::Unsupported("punch holes")),
            done => done.map_err(failed),
        }
    }

    fn is_mapped(&self, block: u32) -> Result<bool, DeviceError> {
        let at = u64::from(block) * BLOCK;
        match seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => Ok(data < at + BLOCK),
            Err(Errno::NXIO) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

impl BlockDevice for FileDevice {
    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn read(&mut self, first: u32, buffer: &mut [u8]) -> Result<(), DeviceError> {
        check_range(first, (buffer.len() / BLOCK_BYTES) as u64, self.blocks)?;
        self.file.read_exact_at(buffer, u64::from(first) * BLOCK).map_err(failed)
    }

    fn write(&mut self, first: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        check_range(first, (bytes.len() / BLOCK_BYTES) as u64, self.blocks)?;
        self.file.write_all_at(bytes, u64::from(first) * BLOCK).map_err(failed)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.file.sync_data().map_err(failed)
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), DeviceError> {
        check_range(first, count.into(), self.blocks)?;
        self.punch(first, count)
    }

    fn can_remap(&self) -> bool {
        self.plays_remap
    }

    fn remap(&mut self, destination: u32, source: u32, count: u32) -> Result<(), DeviceError> {
        check_range(destination, count.into(), self.blocks)?;
        check_range(source, count.into(), self.blocks)?;
        let mut block = [0; BLOCK_BYTES];
        let mut moved = Vec::new();
        for index in 0..count {
            if self.is_mapped(source + index)? {
                self.read(source + index, &mut block)?;
                self.write(destination + index, &block)?;
                moved.push(source + index);
            }
        }
        // The copies must last before the originals go.
        self.flush()?;
        moved.into_iter().try_for_each(|block| self.punch(block, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cvfs::{Config, FileSystem, Format, Kind, Method, NewInode, ROOT};

    #[test]
    fn a_volume_in_a_file_is_found_again_after_it_shrank() {
        for method in [Method::Remap, Method::Relocate] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("volume");
            let device = FileDevice::open(&path, Some(16 << 20), true).unwrap();
            let format = Format { segment_blocks: 16, id: 1 };
            let mut fs = FileSystem::format(device, format, Config::default(), 0).unwrap();
            let ino = fs.create(ROOT, b"name", NewInode::of(Kind::File, 0o644), 0).unwrap();
            for round in 0..4 {
                // Written over and over, so that some of it lies near the end.
                fs.write(ino, 0, &vec![round; 3 << 20], 0).unwrap();
                fs.sync().unwrap();
            }
            let shrunk = fs.shrink(2048, method).unwrap();
            assert!(shrunk.blocks <= 2048 && shrunk.blocks_moved > 0, "{shrunk:?}");
            drop(fs);
            let device = FileDevice::open(&path, Some(u64::from(shrunk.blocks) * BLOCK), true).unwrap();
            let mut fs = FileSystem::mount(device, Config::default()).unwrap();
            assert!(fs.check().unwrap().is_clean());
            let mut bytes = vec![0; 3 << 20];
            assert_eq!(fs.read(ino, 0, &mut bytes), Ok(3 << 20));
            assert!(bytes.iter().all(|&byte| byte == 3));
        }
    }
}
