//! A changed bit in a page of a directory: each operation tells the truth, an error or at worst of another file that exists.

use flashyard_blk::Blocking;
use flashyard_cvfs::{
    BLOCK_BYTES, Config, FileSystem, Format, FsError, Kind, MemoryDevice, NewInode, ROOT, blocks_of_file,
};

const NAMES: [&[u8]; 6] = [b"a", b"bb", b"f2", b"f3", b"link", b"inner"];

/// A directory with files, a symbolic link, a directory and an open number beside them; the block of its page.
fn image() -> (MemoryDevice, u32) {
    let format = Format { segment_blocks: 16, id: 1 };
    let mut fs = FileSystem::format(MemoryDevice::new(600), format, Config::default(), 0).expect("it fits");
    let directory = fs.create(ROOT, b"directory", NewInode::of(Kind::Directory, 0o755), 0).expect("it fits");
    for name in &NAMES[..4] {
        let ino = fs.create(directory, name, NewInode::of(Kind::File, 0o644), 0).expect("it fits");
        fs.write(ino, 0, name, 0).expect("it fits");
    }
    fs.symlink(directory, b"link", b"f2", NewInode::of(Kind::Symlink, 0o777), 0).expect("it fits");
    fs.create(directory, b"inner", NewInode::of(Kind::Directory, 0o755), 0).expect("it fits");
    fs.sync().expect("memory does not fail");
    let mut blocks = Vec::new();
    blocks_of_file(&mut fs, directory, &mut blocks).expect("it is there");
    assert_eq!(blocks.len(), 1);
    (fs.into_device(), blocks[0])
}

fn mounted(device: &MemoryDevice, block: u32, bit: usize) -> (FileSystem<MemoryDevice>, u32) {
    let mut device = Blocking::new(device.clone());
    let mut page = vec![0; BLOCK_BYTES];
    device.read(block, &mut page).expect("it is on the device");
    page[bit / 8] ^= 1 << (bit % 8);
    device.write(block, &page).expect("it is on the device");
    let mut fs = FileSystem::mount(device.into_volume(), Config::default()).expect("all else is whole");
    let directory = fs.lookup(ROOT, b"directory").expect("all else is whole");
    (fs, directory)
}

#[test]
fn a_changed_bit_of_a_directory_harms_nothing_else() {
    let (device, block) = image();
    let (mut fs, directory) = mounted(&device, block, 8 * BLOCK_BYTES - 1);
    assert!(matches!(fs.list(directory), Err(FsError::Corrupt { .. })), "the end of a page is empty");
    // All names, the end after them, and some of the rest.
    let bytes: usize = NAMES.iter().map(|name| 6 + name.len()).sum();
    let bits = (0..8 * (bytes + 8)).chain((8 * (bytes + 8)..8 * BLOCK_BYTES).step_by(397));
    let mut refused = 0;
    for bit in bits {
        let (mut fs, directory) = mounted(&device, block, bit);
        for name in NAMES {
            if let Ok(ino) = fs.lookup(directory, name) {
                let _ = fs.inode(ino);
                let _ = fs.read(ino, 0, &mut [0; 100]);
            }
        }
        let entries = fs.list(directory).unwrap_or_default();
        let moved = entries.first().map(|entry| fs.rename((directory, &entry.name), (ROOT, b"moved"), true, 1));
        refused += u32::from(matches!(moved, Some(Err(FsError::Corrupt { .. }))));
        let last = entries.last().map(|entry| fs.rename((ROOT, b"directory"), (directory, &entry.name), true, 1));
        assert!(last.is_none_or(|done| done.is_err()), "bit {bit}: a directory does not go into itself");
        for entry in entries {
            let gone = match entry.kind {
                Kind::Directory => fs.remove_directory(directory, &entry.name, 1),
                _ => fs.unlink(directory, &entry.name, 1),
            };
            refused += u32::from(matches!(gone, Err(FsError::Corrupt { .. })));
            assert_ne!(gone, Err(FsError::Frozen), "bit {bit}");
        }
        assert_eq!(fs.sync(), Ok(()), "bit {bit}: nothing is frozen");
        assert!(fs.lookup(ROOT, b"directory").is_ok(), "bit {bit}");
        let _ = fs.check();
        FileSystem::mount(fs.into_device(), Config::default()).expect("all else is whole");
    }
    assert!(refused > 100, "{refused}");
}
