//! A device that cannot read once, at every read of a change of size in turn: the file system neither ends in a panic nor writes a state that is
//! not whole.

use flashyard_blk::{
    Blocking, Completion, Immediate, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest,
};
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

/// Pages of a file that needs nodes besides its inode.
const MANY: u64 = 1100;
/// A page below two further nodes.
const FAR: u64 = 2500;

/// A large file beside a small one; the inodes of both.
fn large() -> (MemoryDevice, u32, u32) {
    let format = Format { segment_blocks: 32, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it works");
    let [large, small] = [b"large", b"small"].map(|name| {
        let ino = fs.create(ROOT, name, NewInode::of(Kind::File, 0o644), 0).expect("it works");
        fs.write(ino, 0, &page(1, 0), 0).expect("it works");
        ino
    });
    for at in (0..MANY).chain([FAR]) {
        fs.write(large, at * BLOCK_BYTES as u64, &page(7, at), 0).expect("it works");
    }
    fs.sync().expect("it works");
    (fs.into_device(), large, small)
}

fn failing(device: &MemoryDevice) -> Failing {
    Failing { device: device.clone(), failing: None, failed: false, ended: Immediate::default() }
}

fn assert_clean(fs: &mut FileSystem<impl Volume>, at: &str) {
    let report = fs.check().expect("it works");
    assert!(report.is_clean(), "{at}: {:?}", report.problems);
}

/// The large file is as it was written, and another one can be made durable.
fn assert_large(fs: &mut FileSystem<impl Volume>, large: u32, at: &str) {
    assert_eq!(fs.inode(large).expect("it is there").size, (FAR + 1) * BLOCK_BYTES as u64, "{at}");
    for number in (0..MANY).chain([FAR]) {
        let mut found = vec![0; BLOCK_BYTES];
        fs.read(large, number * BLOCK_BYTES as u64, &mut found).expect("it works");
        assert!(found == page(7, number), "{at}: page {number}");
    }
    let other = fs.lookup(ROOT, b"small").expect("it works");
    fs.write(other, 0, &page(2, 0), 0).expect("nothing is frozen");
    fs.sync().expect("nothing is frozen");
}

#[test]
fn a_large_file_that_cannot_be_read_is_not_cut() {
    let (device, large, _) = large();
    for size in [0, 100, 1000 * BLOCK_BYTES as u64 + 1, MANY * BLOCK_BYTES as u64] {
        let mut failures = 0;
        for read in 0.. {
            let mut fs = FileSystem::mount(failing(&device), Config::default()).expect("it works");
            fs.device_mut().failing = Some(read);
            let cut = fs.truncate(large, size, 1);
            if !fs.device().failed {
                cut.expect("it works");
                fs.device_mut().failing = None;
                assert_clean(&mut fs, "cut");
                break;
            }
            failures += 1;
            let at = format!("{size} bytes, read {read}");
            assert!(matches!(cut, Err(FsError::Device(_))), "{at}: {cut:?}");
            assert_large(&mut fs, large, &at);
            assert_clean(&mut fs, &at);
        }
        assert!(failures >= 3, "the table, the inode and nodes: {failures}");
    }
}

#[test]
fn a_large_file_that_cannot_be_read_keeps_its_name() {
    let (device, large, _) = large();
    for replace in [false, true] {
        let mut failures = 0;
        for read in 0.. {
            let mut fs = FileSystem::mount(failing(&device), Config::default()).expect("it works");
            fs.list(ROOT).expect("it works");
            fs.device_mut().failing = Some(read);
            let gone = if replace {
                fs.rename((ROOT, b"small"), (ROOT, b"large"), true, 1)
            } else {
                fs.unlink(ROOT, b"large", 1)
            };
            if !fs.device().failed {
                gone.expect("it works");
                fs.device_mut().failing = None;
                assert_clean(&mut fs, "gone");
                break;
            }
            let at = format!("{replace}, read {read}");
            assert!(matches!(gone, Err(FsError::Device(_))), "{at}: {gone:?}");
            // A page of the directory, which is read last.
            if fs.sync() == Err(FsError::Frozen) {
                continue;
            }
            failures += 1;
            assert_eq!(fs.lookup(ROOT, b"large"), Ok(large), "{at}");
            assert_large(&mut fs, large, &at);
            assert_clean(&mut fs, &at);
        }
        assert!(failures >= 4, "the inode and three nodes: {failures}");
    }
}

#[test]
fn an_open_file_that_cannot_be_read_stays_without_a_name_until_it_can() {
    let (device, large, small) = large();
    let mut failures = 0;
    for read in 0.. {
        let mut fs = FileSystem::mount(failing(&device), Config::default()).expect("it works");
        fs.open(large).expect("it works");
        fs.unlink(ROOT, b"large", 1).expect("it works");
        fs.device_mut().failing = Some(read);
        let released = fs.release(large);
        if !fs.device().failed {
            released.expect("it works");
            fs.device_mut().failing = None;
            assert_clean(&mut fs, "gone");
            break;
        }
        failures += 1;
        assert!(matches!(released, Err(FsError::Device(_))), "read {read}: {released:?}");
        assert_large(&mut fs, large, "without a name");
        let report = fs.check().expect("it works");
        assert_eq!(report.problems, [format!("inode {large} has no name, and could not be deleted")], "read {read}");
        let mut fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it works");
        assert_eq!((fs.inode(large), fs.inode(small).is_ok()), (Err(FsError::NotFound), true), "read {read}");
        assert_clean(&mut fs, "the next mount deletes it");
    }
    assert!(failures >= 3, "three nodes: {failures}");
}

#[test]
fn a_deleted_file_that_cannot_be_read_does_not_keep_a_volume_from_its_mount() {
    let (device, large, _) = large();
    let mut fs = FileSystem::mount(device, Config::default()).expect("it works");
    fs.open(large).expect("it works");
    fs.unlink(ROOT, b"large", 1).expect("it works");
    fs.sync().expect("it works");
    let device = fs.into_device();
    let mut stayed = 0;
    for read in 0.. {
        let mut fails = failing(&device);
        fails.failing = Some(read);
        let Ok(mut fs) = FileSystem::mount(fails, Config::default()) else { continue };
        if !fs.device().failed {
            break;
        }
        fs.device_mut().failing = None;
        if fs.inode(large).is_err() {
            continue;
        }
        stayed += 1;
        assert_large(&mut fs, large, "without a name");
        let report = fs.check().expect("it works");
        assert_eq!(report.problems, [format!("inode {large} has no name, and could not be deleted")], "read {read}");
        let mut fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it works");
        assert_eq!(fs.inode(large), Err(FsError::NotFound), "read {read}");
        assert_clean(&mut fs, "the next mount deletes it");
    }
    assert!(stayed >= 4, "the inode and three nodes: {stayed}");
}

/// The device with a changed bit in the node that is the first one besides the inode of `ino`.
fn damaged(device: &MemoryDevice, ino: u32) -> MemoryDevice {
    let mut device = Blocking::new(device.clone());
    let mut found = None;
    for block in 0..BLOCKS {
        let mut bytes = vec![0; BLOCK_BYTES];
        device.read(block, &mut bytes).expect("it is on the device");
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        // Node, inode, first page: the end of each node.
        if number(4064) != ino && number(4068) == ino && number(4072) == 981 {
            found = Some((block, bytes));
        }
    }
    let (block, mut bytes) = found.expect("the file has it");
    bytes[500] ^= 1;
    device.write(block, &bytes).expect("it is on the device");
    device.into_volume()
}

#[test]
fn a_node_that_is_damaged_for_good_harms_its_file_alone() {
    let (device, large, small) = large();
    let mut fs = FileSystem::mount(damaged(&device, large), Config::default()).expect("it works");
    for size in [0, 500_000] {
        assert!(matches!(fs.truncate(large, size, 1), Err(FsError::Corrupt { .. })));
    }
    assert!(matches!(fs.unlink(ROOT, b"large", 1), Err(FsError::Corrupt { .. })));
    let mut found = vec![0; BLOCK_BYTES];
    fs.read(large, 0, &mut found).expect("its inode is whole");
    assert!(found == page(7, 0));
    fs.open(large).expect("its inode is whole");
    fs.unlink(ROOT, b"large", 1).expect("it is open");
    assert!(matches!(fs.release(large), Err(FsError::Corrupt { .. })));
    fs.sync().expect("nothing is frozen");
    let mut device = fs.into_device();
    for _ in 0..2 {
        let mut fs = FileSystem::mount(device, Config::default()).expect("all else is whole");
        fs.write(small, 0, &page(3, 0), 0).expect("all else is whole");
        let report = fs.check().expect("it works");
        assert!(report.problems.contains(&format!("inode {large} has no name, and could not be deleted")));
        assert!(report.problems.iter().any(|problem| problem.contains("damaged node")), "{:?}", report.problems);
        device = fs.into_device();
    }
}
