//! A device that cannot read once, at every read of a change of size in turn: the file system neither ends in a panic nor writes a state that is
//! not whole.

use flashyard_blk::{Completion, Immediate, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, FsError, Kind, MemoryDevice, Method, NewInode, ROOT};
use flashyard_units::SimTime;

const BLOCKS: u32 = 3000;
const FILES: u32 = 20;
const PAGES: u64 = 40;

/// A device whose read number `failing` fails, counted from the last time that it was set.
#[derive(Clone, Debug)]
struct Failing {
    device: MemoryDevice,
    failing: Option<u32>,
    failed: bool,
    ended: Immediate,
}

impl Volume for Failing {
    fn info(&self) -> VolumeInfo {
        self.device.info()
    }

    fn submit(
        &mut self,
        now: SimTime,
        token: u64,
        request: &VolumeRequest,
        payload: Payload,
    ) -> Result<(), VolumeError> {
        if request.operation == Operation::Read {
            if self.failing == Some(0) {
                (self.failing, self.failed) = (None, true);
                self.ended.complete(now, token, Err(VolumeError::Unread { block: request.first }));
                return Ok(());
            }
            self.failing = self.failing.map(|reads| reads - 1);
        }
        self.device.submit(now, token, request, payload)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        let held = into.len();
        let now = self.ended.advance(until, into);
        if into.len() > held { Ok(now) } else { self.device.advance(until, into) }
    }
}

fn page(file: u32, page: u64) -> Vec<u8> {
    (u64::from(file) << 32 | page).to_le_bytes().repeat(BLOCK_BYTES / 8)
}

/// A device with files all over it, between which there is space.
fn aged() -> MemoryDevice {
    let format = Format { segment_blocks: 32, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it works");
    let files: Vec<u32> = (0..FILES)
        .map(|file| {
            let name = format!("file {file}");
            fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("it works")
        })
        .collect();
    // Some pages once and others up to four times, so that segments have valid blocks and others.
    for round in 0..4 {
        for at in (0..PAGES).filter(|at| at % 4 >= round) {
            for (file, &ino) in (0..).zip(&files) {
                fs.write(ino, at * BLOCK_BYTES as u64, &page(file, at), 0).expect("it works");
            }
            fs.sync().expect("it works");
        }
    }
    fs.into_device()
}

fn assert_whole(device: Failing) {
    let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
    for file in 0..FILES {
        let ino = fs.lookup(ROOT, format!("file {file}").as_bytes()).expect("it works");
        for at in 0..PAGES {
            let mut found = vec![0; BLOCK_BYTES];
            fs.read(ino, at * BLOCK_BYTES as u64, &mut found).expect("it works");
            assert!(found == page(file, at), "file {file}, page {at}");
        }
    }
    let report = fs.check().expect("it works");
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_read_that_fails_while_a_volume_shrinks_leaves_the_last_state_that_is_whole() {
    let device = aged();
    // Holes are read of where free segments are not enough.
    for (method, blocks, least) in [(Method::Remap, 900, 3), (Method::Relocate, 900, 3), (Method::Holes, 1500, 1)] {
        let mut failures = 0;
        for failing in 0.. {
            let device = Failing { device: device.clone(), failing: None, failed: false, ended: Immediate::default() };
            let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
            fs.device_mut().failing = Some(failing);
            let shrunk = fs.shrink(BLOCKS - blocks, method);
            if !fs.device().failed {
                shrunk.expect("it works");
                break;
            }
            failures += 1;
            assert!(matches!(shrunk, Err(FsError::Device(_))), "{method:?}, read {failing}: {shrunk:?}");
            // A checkpoint is refused, or holds a state that is whole.
            assert!(matches!(fs.sync(), Ok(()) | Err(FsError::Frozen)), "{method:?}, read {failing}");
            assert_whole(fs.into_device());
        }
        assert!(failures >= least, "{method:?} reads tables and data: {failures}");
    }
}

#[test]
fn a_change_of_size_that_fails_leaves_the_holes_that_there_were() {
    let device = Failing { device: aged(), failing: None, failed: false, ended: Immediate::default() };
    let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
    fs.shrink(BLOCKS - 200, Method::Holes).expect("it works");
    let before = fs.usage();
    assert!(before.reserved >= 128, "{before:?}");
    for (method, blocks) in [(Method::Remap, 900), (Method::Relocate, 900), (Method::Holes, 1300)] {
        let mut failures = 0;
        for failing in 0.. {
            let device = Failing { device: fs.device().device.clone(), ..fs.device().clone() };
            let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
            fs.shrink_begin(BLOCKS - blocks, method).expect("it works");
            (fs.device_mut().failing, fs.device_mut().failed) = (Some(failing), false);
            let shrunk = loop {
                match fs.shrink_step(32) {
                    Ok(None) => {}
                    Ok(Some(_)) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if !fs.device().failed {
                shrunk.expect("it works");
                break;
            }
            assert!(matches!(shrunk, Err(FsError::Device(_))), "{method:?}, read {failing}: {shrunk:?}");
            fs.device_mut().failing = None;
            // A frozen one is what its last checkpoint says.
            if fs.sync().is_ok() {
                failures += 1;
                assert_eq!(fs.usage().reserved, before.reserved, "{method:?}, read {failing}");
                assert_whole(fs.into_device());
            }
        }
        assert!(failures >= 1, "{method:?}");
    }
}

/// A name in each of two directories, with so many others that each directory has several pages; the inodes of both.
fn named() -> (MemoryDevice, u32, u32) {
    let format = Format { segment_blocks: 32, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it works");
    let directory = fs.create(ROOT, b"d", NewInode::of(Kind::Directory, 0o755), 0).expect("it works");
    for parent in [ROOT, directory] {
        for number in 0..60 {
            let name = format!("{number} {}", "x".repeat(200));
            fs.create(parent, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("it works");
        }
    }
    let from = fs.create(ROOT, b"from", NewInode::of(Kind::File, 0o644), 0).expect("it works");
    let to = fs.create(directory, b"to", NewInode::of(Kind::File, 0o644), 0).expect("it works");
    fs.write(to, 0, &page(1, 0), 0).expect("it works");
    fs.sync().expect("it works");
    (fs.into_device(), from, to)
}

#[test]
fn a_read_that_fails_while_a_name_changes_leaves_the_state_before_or_the_one_after() {
    let (device, from, to) = named();
    let mut failures = 0;
    for failing in 0.. {
        let device = Failing { device: device.clone(), failing: None, failed: false, ended: Immediate::default() };
        let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
        fs.device_mut().failing = Some(failing);
        let renamed =
            fs.lookup(ROOT, b"d").and_then(|directory| fs.rename((ROOT, b"from"), (directory, b"to"), true, 1));
        if !fs.device().failed {
            renamed.expect("it works");
            break;
        }
        failures += 1;
        assert!(matches!(renamed, Err(FsError::Device(_))), "read {failing}: {renamed:?}");
        assert!(matches!(fs.sync(), Ok(()) | Err(FsError::Frozen)), "read {failing}");
        let mut fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it works");
        let directory = fs.lookup(ROOT, b"d").expect("it works");
        assert_eq!(fs.lookup(ROOT, b"from"), Ok(from), "read {failing}");
        assert_eq!(fs.lookup(directory, b"to"), Ok(to), "read {failing}");
        let report = fs.check().expect("it works");
        assert!(report.is_clean(), "read {failing}: {:?}", report.problems);
    }
    assert!(failures >= 5, "both directories, their nodes and the file that is replaced: {failures}");
}
