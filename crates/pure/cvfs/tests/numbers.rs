//! Numbers of inodes and nodes that run out: what needs another one is refused, and nothing changes.

use flashyard_cvfs::{
    BLOCK_BYTES, Config, Entry, FileSystem, Format, FsError, Kind, MemoryDevice, NewInode, ROOT, Usage,
};

type Fs = FileSystem<MemoryDevice>;

/// Pages that an inode points to itself.
const DIRECT: u64 = 981;

/// A volume with empty files in a directory, as many as there can be; the directory.
fn filled(mut fs: Fs) -> (Fs, u32, Vec<u32>) {
    let directory = fs.create(ROOT, b"files", NewInode::of(Kind::Directory, 0o755), 0).expect("there is room");
    let mut files = Vec::new();
    let refused = loop {
        match fs.create(directory, format!("{}", files.len()).as_bytes(), NewInode::of(Kind::File, 0o644), 0) {
            Ok(ino) => files.push(ino),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, FsError::NoSpace);
    fs.sync().expect("memory does not fail");
    (fs, directory, files)
}

fn volume(blocks: u32) -> Fs {
    let format = Format { segment_blocks: 16, id: 5 };
    FileSystem::format(MemoryDevice::new(blocks), format, Config::default(), 0).expect("it has room")
}

/// All that a refused operation must leave as it was.
fn state(fs: &mut Fs, directory: u32) -> (Usage, Vec<Entry>, Vec<(u64, u64)>) {
    fs.sync().expect("nothing is frozen");
    let entries = fs.list(directory).expect("it is there");
    let sizes = entries.iter().map(|entry| fs.inode(entry.ino).map(|inode| (inode.size, inode.pages)));
    let sizes = sizes.collect::<Result<_, _>>().expect("they are there");
    (fs.usage(), entries, sizes)
}

fn assert_sound(fs: &mut Fs) {
    let usage = fs.usage();
    assert!(usage.nodes <= usage.nodes_max, "{usage:?}");
    assert!(usage.used + 50 < usage.capacity, "there is space, only no number: {usage:?}");
    let report = fs.check().expect("memory does not fail");
    assert!(report.is_clean(), "{:?}", report.problems);
}

#[test]
fn a_page_that_needs_a_node_when_there_is_none_is_refused() {
    for first in [DIRECT, DIRECT - 2] {
        let (mut fs, directory, files) = filled(volume(2000));
        let (mut done, mut refused) = (0, 0);
        for &ino in files.iter().take(12) {
            let before = state(&mut fs, directory);
            match fs.write(ino, first * BLOCK_BYTES as u64, &[1; 4 * BLOCK_BYTES], 0) {
                Ok(written) => done += usize::from(written == 4 * BLOCK_BYTES),
                Err(error) => {
                    assert_eq!(error, FsError::NoSpace);
                    refused += 1;
                    assert_eq!(state(&mut fs, directory), before, "page {first} of inode {ino}");
                }
            }
            assert_sound(&mut fs);
        }
        assert!(done > 0 && refused > 0, "{done} written, {refused} refused");
        fs.unlink(directory, b"0", 0).expect("nothing is frozen");
        fs.write(files[11], first * BLOCK_BYTES as u64, &[1; 4 * BLOCK_BYTES], 0).expect("there are numbers again");
        assert_sound(&mut fs);
    }
}

#[test]
fn a_name_that_needs_a_node_when_there_is_none_is_refused() {
    let mut fs = volume(6000);
    let links = fs.create(ROOT, b"links", NewInode::of(Kind::Directory, 0o755), 0).expect("there is room");
    let file = fs.create(ROOT, b"file", NewInode::of(Kind::File, 0o644), 0).expect("there is room");
    // Fifteen names of this length fill a page.
    for number in 0..DIRECT * 15 {
        fs.link(file, links, format!("{number:0>255}").as_bytes(), 0).expect("there is room");
    }
    assert_eq!(fs.inode(links).expect("it is there").size, DIRECT * BLOCK_BYTES as u64);
    let (mut fs, directory, files) = filled(fs);
    // The last numbers.
    let taken = files.iter().take_while(|&&ino| fs.write(ino, DIRECT * BLOCK_BYTES as u64, &[1], 0).is_ok()).count();
    assert!((1..12).contains(&taken), "{taken}");
    let before = (state(&mut fs, directory), fs.list(links).expect("it is there"));
    let to = format!("{:y>255}", "");
    assert_eq!(fs.rename((directory, b"8"), (links, to.as_bytes()), true, 0), Err(FsError::NoSpace));
    assert_eq!(fs.link(files[8], links, to.as_bytes(), 0), Err(FsError::NoSpace));
    assert_eq!((state(&mut fs, directory), fs.list(links).expect("it is there")), before);
    assert_sound(&mut fs);
}
