//! Changes to the image of a volume, five bytes each: it is mounted, checked and read, or refused.

#![no_main]

use flashyard_cvfs::{BLOCK_BYTES, Config, FileSystem, Format, Kind, MemoryDevice, NewInode, ROOT};
use flashyard_blk::Blocking;
use libfuzzer_sys::fuzz_target;

fn image() -> MemoryDevice {
    let format = Format { segment_blocks: 16, id: 1 };
    let mut fs = FileSystem::format(MemoryDevice::new(1024), format, Config::default(), 0).expect("it fits");
    let directory = fs.create(ROOT, b"directory", NewInode::of(Kind::Directory, 0o755), 0).expect("there is room");
    for number in 0..6_u8 {
        let file = fs.create(directory, &[b'a' + number], NewInode::of(Kind::File, 0o644), 0).expect("there is room");
        fs.write(file, 0, &vec![number; 9000], 0).expect("there is room");
    }
    fs.sync().expect("memory does not fail");
    fs.into_device()
}

fuzz_target!(|input: &[u8]| {
    let mut device = Blocking::new(image());
    let mut block = vec![0; BLOCK_BYTES];
    for change in input.chunks_exact(5) {
        let number = u64::from(u16::from_le_bytes([change[0], change[1]])) % device.blocks();
        let at = usize::from(u16::from_le_bytes([change[2], change[3]])) % BLOCK_BYTES;
        device.read(number, &mut block).expect("it is on the device");
        block[at] = change[4];
        device.write(number, &block).expect("it is on the device");
    }
    let Ok(mut fs) = FileSystem::mount(device.into_volume(), Config::default()) else { return };
    let _ = fs.check();
    if let Ok(directory) = fs.lookup(ROOT, b"directory") {
        for entry in fs.list(directory).unwrap_or_default() {
            let _ = fs.read(entry.ino, 0, &mut vec![0; 1 << 16]);
        }
    }
    let _ = fs.sync();
});
