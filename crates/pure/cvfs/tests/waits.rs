//! How often a change of size waits for reads: those of a batch are under way together.

use flashyard_blk::{Completion, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest};
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Kind, MemoryDevice, Method, NewInode, ROOT};
use flashyard_units::SimTime;

const BLOCKS: u32 = 65_536;
const FILES: u32 = 128;
const PAGES: usize = 32;

/// A device that counts how often reads are waited for, however many.
#[derive(Debug)]
struct Counting {
    device: MemoryDevice,
    under_way: bool,
    waits: u32,
}

impl Volume for Counting {
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
        self.under_way |= request.operation == Operation::Read;
        self.device.submit(now, token, request, payload)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        self.waits += u32::from(std::mem::take(&mut self.under_way));
        self.device.advance(until, into)
    }
}

/// 4,096 pages of files behind as many as half of the volume has, which are free again.
fn high_up() -> MemoryDevice {
    let format = Format { segment_blocks: 512, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it works");
    let mut file = |name: &str, pages: usize| {
        let ino = fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("it works");
        fs.write(ino, 0, &vec![1; pages * BLOCK_BYTES], 0).expect("it works");
    };
    file("low", BLOCKS as usize / 2);
    for number in 0..FILES {
        file(&format!("{number}"), PAGES);
    }
    fs.sync().expect("it works");
    fs.unlink(ROOT, b"low", 0).expect("it works");
    fs.sync().expect("it works");
    fs.into_device()
}

#[test]
fn a_batch_of_blocks_is_moved_with_few_waits() {
    let device = high_up();
    // Tables, nodes and, where they are copied, pages of each segment; then owners in each segment that takes them.
    for (method, most) in [(Method::Remap, 20), (Method::Relocate, 30)] {
        let counting = Counting { device: device.clone(), under_way: false, waits: 0 };
        let mut fs = FileSystem::mount(counting, Config::default()).expect("it works");
        fs.device_mut().waits = 0;
        let shrunk = fs.shrink(BLOCKS / 2, method).expect("it works");
        assert!(shrunk.blocks_moved >= u64::from(FILES) * PAGES as u64, "{shrunk:?}");
        assert!(fs.device().waits < most, "{method:?}: {} waits", fs.device().waits);
        let report = fs.check().expect("it works");
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

#[test]
fn owners_of_segments_with_slack_are_read_together() {
    let format = Format { segment_blocks: 512, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it works");
    for number in 0..1600 {
        let name = format!("{number}");
        let ino = fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("it works");
        fs.write(ino, 0, &vec![1; PAGES * BLOCK_BYTES], 0).expect("it works");
    }
    for number in (0..1600).step_by(2) {
        fs.unlink(ROOT, format!("{number}").as_bytes(), 0).expect("it works");
    }
    fs.sync().expect("it works");
    let counting = Counting { device: fs.into_device(), under_way: false, waits: 0 };
    let mut fs = FileSystem::mount(counting, Config::default()).expect("it works");
    fs.device_mut().waits = 0;
    let (before, blocks) = (fs.usage(), 55 * 512);
    let shrunk = fs.shrink(before.blocks - blocks, Method::Holes).expect("it works");
    let whole = before.segments_free - fs.usage().segments_free;
    assert!(shrunk.blocks_given == u64::from(blocks) && whole < 30, "{shrunk:?}, {whole} whole segments");
    // At least 50 segments have given half of their blocks.
    assert!(fs.device().waits < 20, "{} waits", fs.device().waits);
    let report = fs.check().expect("it works");
    assert!(report.is_clean(), "{:?}", report.problems);
}
