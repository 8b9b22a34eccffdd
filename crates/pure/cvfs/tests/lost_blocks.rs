//! Blocks that cannot be read until they are written: one of two copies is enough, and an older state never stands for a newer
//! one.

use flashyard_blk::{
    Blocking, Completion, Immediate, Operation, Payload, Volume, VolumeError, VolumeInfo, VolumeRequest,
};
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, FsError, Kind, MemoryDevice, NewInode, ROOT};
use flashyard_units::SimTime;
use std::collections::BTreeSet;

const BLOCKS: u32 = 1000;

/// A device that has lost some blocks.
#[derive(Clone, Debug)]
struct Lost {
    device: MemoryDevice,
    lost: BTreeSet<u64>,
    ended: Immediate,
}

impl Volume for Lost {
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
        let range = request.first..request.first + u64::from(request.count);
        match request.operation {
            Operation::Read => {
                if let Some(&block) = self.lost.range(range).next() {
                    self.ended.complete(now, token, Err(VolumeError::Unread { block }));
                    return Ok(());
                }
            }
            Operation::Write => self.lost.retain(|block| !range.contains(block)),
            _ => {}
        }
        self.device.submit(now, token, request, payload)
    }

    fn advance(&mut self, until: SimTime, into: &mut Vec<Completion>) -> Result<SimTime, VolumeError> {
        let held = into.len();
        let now = self.ended.advance(until, into);
        if into.len() > held { Ok(now) } else { self.device.advance(until, into) }
    }
}

/// A volume whose file `new` came with its last checkpoint.
fn volume() -> MemoryDevice {
    let format = Format { segment_blocks: 16, id: 9 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it fits");
    for name in [&b"old"[..], b"new"] {
        fs.create(ROOT, name, NewInode::of(Kind::File, 0o644), 0).expect("it fits");
        fs.sync().expect("memory does not fail");
    }
    fs.into_device()
}

fn mount(device: &MemoryDevice, lost: &[u32]) -> Result<FileSystem<Lost>, FsError> {
    let lost = lost.iter().map(|&block| block.into()).collect();
    FileSystem::mount(Lost { device: device.clone(), lost, ended: Immediate::default() }, Config::default())
}

fn assert_newest(mounted: Result<FileSystem<Lost>, FsError>) -> FileSystem<Lost> {
    let mut fs = mounted.expect("another copy is whole");
    assert!(fs.lookup(ROOT, b"new").is_ok());
    fs.create(ROOT, b"newer", NewInode::of(Kind::File, 0o644), 0).expect("it fits");
    assert!(fs.check().expect("what was lost is written again").is_clean());
    fs
}

#[test]
fn one_superblock_that_can_be_read_is_enough() {
    let device = volume();
    for copy in [0, 1] {
        let fs = assert_newest(mount(&device, &[copy]));
        assert!(fs.device().lost.is_empty(), "the mount writes the copy again");
    }
    let lost = FsError::Device(VolumeError::Unread { block: 1 });
    assert_eq!(mount(&device, &[0, 1]).err(), Some(lost));
}

#[test]
fn a_pack_that_cannot_be_read_is_passed_over_where_it_is_known_to_be_the_older_one() {
    let device = volume();
    let mut packs = Vec::new();
    let mut copy = Blocking::new(device.clone());
    for block in 0..BLOCKS {
        let mut bytes = vec![0; BLOCK_BYTES];
        copy.read(block, &mut bytes).expect("it is on the device");
        if bytes[..8] == 0x4356_4653_5041_434b_u64.to_le_bytes() {
            packs.push((bytes[16], block));
        }
    }
    packs.sort_unstable();
    let [(_, older), (_, newer)] = packs[..] else { panic!("{packs:?}") };
    assert_newest(mount(&device, &[]));
    // Its first block says which one it is.
    assert_newest(mount(&device, &[older + 1]));
    for lost in [older, newer, newer + 1] {
        let found = mount(&device, &[lost]);
        assert_eq!(found.err(), Some(FsError::Device(VolumeError::Unread { block: lost.into() })));
    }
}
