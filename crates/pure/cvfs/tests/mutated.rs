//! Images that were damaged: they are mounted, checked and read, or refused, and nothing panics.

use flashyard_blk::Blocking;
use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Kind, MemoryDevice, NewInode, ROOT};
use proptest::prelude::*;

/// Blocks of the volume.
const BLOCKS: u32 = 2048;

/// Files in directories, some of them removed, over two checkpoints.
fn image() -> MemoryDevice {
    let format = Format { segment_blocks: 16, id: 1 };
    let mut fs = FileSystem::format(MemoryDevice::new(BLOCKS), format, Config::default(), 0).expect("it fits");
    let directory = fs.create(ROOT, b"directory", NewInode::of(Kind::Directory, 0o755), 0).expect("there is room");
    for number in 0..20_u8 {
        let name = format!("file-{number}");
        let file = fs.create(directory, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("there is room");
        fs.write(file, u64::from(number) * 100_000, &vec![number; 9000], 0).expect("there is room");
        if number % 5 == 0 {
            fs.sync().expect("memory does not fail");
            fs.unlink(directory, name.as_bytes(), 0).expect("it is there");
        }
    }
    fs.sync().expect("memory does not fail");
    fs.into_device()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_image_is_refused_or_checked_in_words(
        // Most of the file system's metadata is in its first blocks.
        changes in prop::collection::vec((prop_oneof![0..64_u32, 0..BLOCKS], 0..BLOCK_BYTES, 1..=255_u8), 1..8),
    ) {
        let mut device = Blocking::new(image());
        let mut block = vec![0; BLOCK_BYTES];
        for (number, at, change) in changes {
            device.read(number, &mut block).expect("it is on the device");
            block[at] ^= change;
            device.write(number, &block).expect("it is on the device");
        }
        let mut fs = match FileSystem::mount(device.into_volume(), Config::default()) {
            Ok(fs) => fs,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                return Ok(());
            }
        };
        let _ = fs.check();
        if let Ok(directory) = fs.lookup(ROOT, b"directory") {
            for entry in fs.list(directory).unwrap_or_default() {
                let _ = fs.read(entry.ino, 0, &mut vec![0; 1 << 16]);
            }
        }
        let _ = fs.sync();
    }
}
