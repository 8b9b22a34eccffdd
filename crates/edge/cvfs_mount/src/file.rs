//! A regular file as a device.

use flashyard_blk::{
    Completion, Immediate, Operation, Payload, RequestError, Volume, VolumeError, VolumeInfo, VolumeLimits,
    VolumeRequest, check,
};
use flashyard_cvfs::BLOCK_BYTES;
use flashyard_units::{SimTime, VolumeId};
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, seek};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A regular file, whole blocks of it. Trimmed blocks become holes.
///
/// It can play a device that remaps by copying and punching a hole, so that this way of shrinking can be tried; it is
/// no faster than copying.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    blocks: u64,
    plays_remap: bool,
    ended: Immediate,
}

/// Time that a file is waited for, and between two tries. Source: \[A\] beyond the last checkpoint of a mount, short for a person
const LOCK_WAIT: Duration = Duration::from_secs(3);
/// As above.
const LOCK_AGAIN: Duration = Duration::from_millis(10);

fn failed(error: impl Into<io::Error>) -> VolumeError {
    VolumeError::Io(error.into().to_string())
}

/// Opens a file by `open`, for this program alone as long as it is open. A mount that has just been taken away writes its last checkpoint, for which this
/// waits. The file is that of the path by then: while it was waited for, another one may have taken its place.
///
/// Errors: it is in use by another program; those of the operating system.
pub fn open_alone(path: &Path, open: impl Fn(&Path) -> io::Result<File>) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        let file = open(path)?;
        let is_ours = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => is_at(&file, path)?,
            Err(Errno::WOULDBLOCK) => false,
            Err(error) => return Err(error.into()),
        };
        if is_ours {
            return Ok(file);
        }
        if begun.elapsed() >= LOCK_WAIT {
            let message = "it is mounted, or in use by another command; unmount it first";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
        }
        std::thread::sleep(LOCK_AGAIN);
    }
}

/// Whether a path leads to a file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl FileDevice {
    /// Opens a file that is there, and keeps other programs of ours away from it; with `bytes`, makes it, or makes it this large.
    ///
    /// Errors: it cannot be opened or made, it is in use.
    pub fn open(path: &Path, bytes: Option<u64>, plays_remap: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(bytes.is_some()).truncate(false);
        let file = open_alone(path, |path| options.open(path))?;
        if let Some(bytes) = bytes {
            file.set_len(bytes)?;
        }
        let blocks = file.metadata()?.len() / BLOCK;
        Ok(Self { file, blocks, plays_remap, ended: Immediate::default() })
    }

    fn punch(&self, first: u64, count: u32) -> Result<(), VolumeError> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, first * BLOCK, u64::from(count) * BLOCK) {
            Err(Errno::OPNOTSUPP) => {
                Err(RequestError::Unsupported { volume: VolumeId::new(0), operation: Operation::Trim }.into())
            }
            done => done.map_err(failed),
        }
    }

    fn is_mapped(&self, block: u64) -> Result<bool, VolumeError> {
        let at = block * BLOCK;
        match seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => Ok(data < at + BLOCK),
            Err(Errno::NXIO) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn carry_out(&mut self, request: &VolumeRequest, payload: Payload) -> Result<Vec<u8>, VolumeError> {
        let (first, len) = (request.first, request.count as usize * BLOCK_BYTES);
        match (request.operation, payload) {
            (Operation::Read, _) => {
                let mut found = vec![0; len];
                self.file.read_exact_at(&mut found, first * BLOCK).map_err(failed)?;
                return Ok(found);
            }
            (Operation::Write, Payload::Bytes(mut bytes)) => {
                self.file.write_all_at(&bytes, first * BLOCK).map_err(failed)?;
                bytes.clear();
                return Ok(bytes);
            }
            (Operation::Write, Payload::Zeros | Payload::None) => {
                self.file.write_all_at(&vec![0; len], first * BLOCK).map_err(failed)?;
            }
            (Operation::Flush, _) => self.file.sync_data().map_err(failed)?,
            (Operation::Trim, _) => self.punch(first, request.count)?,
            (Operation::Remap, _) if self.plays_remap => self.play_remap(first, request.source, request.count)?,
            _ => return Err(request.unsupported().into()),
        }
        Ok(Vec::new())
    }

    fn play_remap(&mut self, first: u64, source: u64, count: u32) -> Result<(), VolumeError> {
        let mut block = [0; BLOCK_BYTES];
        let mut moved = Vec::new();
        for index in 0..u64::from(count) {
            if self.is_mapped(source + index)? {
                self.file.read_exact_at(&mut block, (source + index) * BLOCK).map_err(failed)?;
                self.file.write_all_at(&block, (first + index) * BLOCK).map_err(failed)?;
                moved.push(source + index);
            }
        }
        // The copies must last before the originals go.
        self.file.sync_data().map_err(failed)?;
        moved.into_iter().try_for_each(|block| self.punch(block, 1))
    }
}

impl Volume for FileDevice {
    fn info(&self) -> VolumeInfo {
        let limits = VolumeLimits::new(self.blocks, self.plays_remap);
        VolumeInfo { id: VolumeId::new(0), block_bytes: BLOCK_BYTES as u32, limits, protected: false }
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        let info = self.info();
        check(request, &info.limits)?;
        payload.check(request, info.block_bytes)?;
        let result = self.carry_out(request, payload);
        self.ended.complete(now, token, result);
        Ok(())
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        Ok(self.ended.advance(until, into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_cvfs::{Config, FileSystem, Format, Kind, Method, NewInode, ROOT};
    use flashyard_live::{Load, run_load};
    use flashyard_units::SimSpan;

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

    #[test]
    fn a_file_is_opened_once_at_a_time() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("volume");
        let first = FileDevice::open(&path, Some(1 << 20), false).expect("it is free");
        let refused = FileDevice::open(&path, Some(2 << 20), false).expect_err("another one has it");
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        assert!(refused.to_string().contains("unmount it first"), "{refused}");
        let size = std::fs::metadata(&path).expect("it is there").len();
        assert_eq!(size, 1 << 20, "a refused one gives the file no other size");
        drop(first);
        assert!(FileDevice::open(&path, None, false).is_ok());
    }

    #[test]
    fn a_file_that_is_just_given_back_is_waited_for() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("volume");
        let first = FileDevice::open(&path, Some(1 << 20), false).expect("it is free");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| FileDevice::open(&path, None, false).map(|_| ()));
            std::thread::sleep(LOCK_AGAIN * 10);
            drop(first);
            second.join().expect("it ends").expect("it is free by then");
        });
    }

    #[test]
    fn a_file_that_another_one_replaces_while_it_is_waited_for_is_not_opened() {
        let directory = tempfile::tempdir().expect("there is room");
        let (path, beside) = (directory.path().join("volume"), directory.path().join("beside"));
        for bytes in [None, Some(1 << 20)] {
            let first = FileDevice::open(&path, Some(1 << 20), false).expect("it is free");
            std::thread::scope(|scope| {
                let second = scope.spawn(|| FileDevice::open(&path, bytes, false));
                std::thread::sleep(LOCK_AGAIN * 10);
                std::fs::write(&beside, [7; 3 * BLOCK_BYTES]).expect("there is room");
                std::fs::rename(&beside, &path).expect("it can be renamed");
                drop(first);
                let second = second.join().expect("it ends").expect("it is free by then");
                assert_eq!(second.blocks, bytes.map_or(3, |bytes| bytes / BLOCK));
                let mut found = [0; BLOCK_BYTES];
                second.file.read_exact_at(&mut found, 0).expect("it is there");
                assert_eq!(found, [7; BLOCK_BYTES], "a file without a name");
                second.punch(0, 1).expect("it is writable");
            });
        }
    }

    #[test]
    fn a_file_holds_what_the_load_wrote() {
        let directory = tempfile::tempdir().unwrap();
        let mut device = FileDevice::open(&directory.path().join("volume"), Some(4 << 20), false).unwrap();
        let load = Load {
            blocks: u64::MAX,
            requests: 5_000,
            depth: 4,
            blocks_max: 8,
            reads: 0.5,
            seed: 1,
            patience: SimSpan::from_ms(1),
        };
        let found = run_load(&mut device, &load, || false).unwrap();
        assert_eq!((found.answered, found.dropped, found.wrong), (5_000, 0, Vec::new()));
        assert!(found.compared > 5_000);
        // Another writer is noticed.
        device.file.write_all_at(&[1; BLOCK_BYTES], 0).unwrap();
        let load = Load { blocks: 8, reads: 1.0, ..load };
        assert!(!run_load(&mut device, &load, || false).unwrap().wrong.is_empty());
    }
}
