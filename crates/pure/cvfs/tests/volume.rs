//! A volume without crashes: large files, little space, changes of size, discards.

use flashyard_blk::Blocking;
use flashyard_cvfs::crash::CrashWorld;
use flashyard_cvfs::{
    BLOCK_BYTES, Config, DeviceCosts, DiscardPolicy, FILE_BYTES_MAX, FileSystem, Format, FsError, Kind, MemoryDevice,
    Method, NewInode, ROOT, Traffic, blocks_of_file, overwrite,
};
use flashyard_faults::{Case, FaultPlan, World};
use flashyard_units::{SimSpan, SimTime};
use proptest::prelude::*;

fn volume(blocks: u32, segment_blocks: u32, config: Config) -> FileSystem<MemoryDevice> {
    FileSystem::format(MemoryDevice::new(blocks), Format { segment_blocks, id: 9 }, config, 0)
        .expect("a volume that works")
}

fn file(fs: &mut FileSystem<MemoryDevice>, name: &str) -> u32 {
    fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0).expect("a volume that works")
}

fn pattern(ino: u32, page: u64, round: u64) -> Vec<u8> {
    let word = (u64::from(ino) << 40 | page << 8 | round).to_le_bytes();
    word.repeat(512)
}

fn assert_clean(fs: &mut FileSystem<MemoryDevice>) {
    let report = fs.check().expect("a volume that works");
    assert!(report.is_clean(), "{:?}", report.problems);
}

fn remount(fs: FileSystem<MemoryDevice>) -> FileSystem<MemoryDevice> {
    FileSystem::mount(fs.into_device(), Config::default()).expect("a volume that works")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_volume_is_the_tree_that_was_made(seed in any::<u64>(), operations in 1_u32..400, blocks in 300_u32..1500) {
        let world = CrashWorld { blocks, operations };
        let outcome = world.run(&Case { seed, size: None, plan: FaultPlan::NONE });
        prop_assert_eq!(outcome.violation, None);
    }
}

#[test]
fn a_sparse_file_of_terabytes_costs_its_pages() {
    let mut fs = volume(4096, 64, Config::default());
    let ino = file(&mut fs, "large");
    let places = [0, 4_000_000, 5_000_000_000, 3 << 40, FILE_BYTES_MAX - 5000];
    for (index, &at) in places.iter().enumerate() {
        fs.write(ino, at, &[index as u8 + 1; 5000], 0).unwrap();
    }
    assert_eq!(fs.write(ino, FILE_BYTES_MAX - 1, &[1, 2], 0), Err(FsError::FileTooLarge));
    let mut fs = remount({
        fs.sync().unwrap();
        fs
    });
    assert_eq!(fs.inode(ino).unwrap().size, FILE_BYTES_MAX);
    assert!(fs.usage().used < 40, "{:?}", fs.usage());
    for (index, &at) in places.iter().enumerate() {
        let mut bytes = vec![0xee; 5000];
        assert_eq!(fs.read(ino, at, &mut bytes), Ok(5000));
        assert!(bytes.iter().all(|&byte| byte == index as u8 + 1));
    }
    let mut hole = vec![0xee; 10_000];
    fs.read(ino, 1 << 40, &mut hole).unwrap();
    assert!(hole.iter().all(|&byte| byte == 0));
    fs.truncate(ino, 4_000_100, 1).unwrap();
    assert_clean(&mut fs);
    fs.truncate(ino, 1 << 40, 1).unwrap();
    let mut tail = vec![0xee; 5000];
    fs.read(ino, 4_000_000, &mut tail).unwrap();
    assert!(tail[..100].iter().all(|&byte| byte == 2) && tail[100..].iter().all(|&byte| byte == 0));
    assert_clean(&mut fs);
}

#[test]
fn a_full_volume_says_so_and_goes_on_when_something_is_deleted() {
    let config = Config { dirty_pages_max: 32, ..Config::default() };
    let mut fs = volume(1200, 16, config);
    for round in 0..5_u64 {
        let mut made = Vec::new();
        let full = loop {
            let name = format!("f{}", made.len());
            let ino = match fs.create(ROOT, name.as_bytes(), NewInode::of(Kind::File, 0o644), 0) {
                Ok(ino) => ino,
                Err(error) => break error,
            };
            made.push((name, ino));
            let bytes: Vec<u8> = (0..5).flat_map(|page| pattern(ino, page, round)).collect();
            if let Err(error) = fs.write(ino, 0, &bytes, 0) {
                break error;
            }
        };
        assert_eq!(full, FsError::NoSpace);
        let usage = fs.usage();
        assert!(usage.used + 10 >= usage.capacity, "{usage:?}");
        // A full volume can still be written over.
        for step in 0..400_u64 {
            let (_, ino) = made[(step * 7 % (made.len() as u64 - 1)) as usize];
            fs.write(ino, step % 5 * 4096, &pattern(ino, step % 5, round), 0).unwrap();
        }
        assert_clean(&mut fs);
        for (name, ino) in &made[..made.len() - 1] {
            let mut bytes = vec![0; 5 * 4096];
            fs.read(*ino, 0, &mut bytes).unwrap();
            let expect: Vec<u8> = (0..5).flat_map(|page| pattern(*ino, page, round)).collect();
            assert!(bytes == expect, "{name} of round {round}");
        }
        for (name, _) in made {
            fs.unlink(ROOT, name.as_bytes(), 0).unwrap();
        }
        fs.sync().unwrap();
        assert_clean(&mut fs);
    }
    // Slack was filled: nothing had to move.
    let counters = fs.counters();
    assert_eq!((counters.segments_cleaned, counters.pages_carried), (0, 0), "{counters:?}");
}

#[test]
fn a_write_that_finds_too_little_space_says_how_much_it_wrote_or_has_changed_nothing() {
    let mut fs = volume(1200, 16, Config::default());
    let (ino, other) = (file(&mut fs, "f"), file(&mut fs, "g"));
    let bytes: Vec<u8> = (0..1200).flat_map(|page| pattern(ino, page, 0)).collect();
    let written = fs.write(ino, 0, &bytes, 0);
    let size = fs.inode(ino).expect("it is there").size;
    assert_eq!(written, Ok(size as usize), "as much as there was space for");
    assert!(size > 0 && size < bytes.len() as u64, "{size}");
    let mut found = vec![0; size as usize];
    assert_eq!(fs.read(ino, 0, &mut found), Ok(found.len()));
    assert!(found == bytes[..found.len()]);
    assert_eq!(fs.write(other, 0, &bytes[..64 * 4096], 0), Err(FsError::NoSpace));
    assert_eq!(fs.inode(other).map(|inode| (inode.size, inode.pages)), Ok((0, 0)));
    assert_clean(&mut fs);
}

#[test]
fn a_name_that_is_too_long_is_told_from_one_that_is_not_there() {
    let mut fs = volume(1200, 16, Config::default());
    assert_eq!(fs.lookup(ROOT, &[b'n'; 255]), Err(FsError::NotFound));
    assert_eq!(fs.lookup(ROOT, &[b'n'; 256]), Err(FsError::BadName));
}

/// A volume that was written over many times: `part` of it is in use, all over the place.
fn aged(blocks: u32, segment_blocks: u32, part: f64) -> (FileSystem<MemoryDevice>, Vec<u32>) {
    let config = Config { discards: DiscardPolicy::Never, dirty_pages_max: 64, ..Config::default() };
    let mut fs = volume(blocks, segment_blocks, config);
    let files: Vec<u32> = (0..8).map(|index| file(&mut fs, &format!("f{index}"))).collect();
    let pages = (f64::from(blocks) * part) as u64 / files.len() as u64;
    // The logs come near the end of the volume, and not around.
    let writes = (f64::from(blocks) * (0.9 - part)) as u64;
    for &ino in &files {
        for page in 0..pages {
            fs.write(ino, page * 4096, &pattern(ino, page, 0), 0).expect("a volume that works");
        }
    }
    for step in 0..writes {
        let ino = files[(step % 8) as usize];
        let page = (step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % pages;
        fs.write(ino, page * 4096, &pattern(ino, page, 0), 0).expect("a volume that works");
    }
    fs.sync().expect("a volume that works");
    (fs, files)
}

fn assert_files(fs: &mut FileSystem<MemoryDevice>, files: &[u32]) {
    for &ino in files {
        for page in 0..fs.inode(ino).expect("a volume that works").size / 4096 {
            let mut bytes = vec![0; 4096];
            fs.read(ino, page * 4096, &mut bytes).expect("a volume that works");
            assert!(bytes == pattern(ino, page, 0), "inode {ino}, page {page}");
        }
    }
}

#[test]
fn shrinking_keeps_files_and_leaves_nothing_above_the_end() {
    for method in [Method::Remap, Method::Relocate] {
        let (mut fs, files) = aged(6000, 32, 0.4);
        let before = fs.usage();
        let shrunk = fs.shrink(before.blocks - 1500, method).unwrap();
        assert!(shrunk.blocks <= before.blocks - 1500 && shrunk.blocks_moved > 300, "{shrunk:?}");
        assert_eq!(fs.usage().blocks, shrunk.blocks);
        assert!((shrunk.blocks..6000).all(|block| !fs.device().is_mapped(block)), "{method:?}");
        assert_files(&mut fs, &files);
        // The new end holds while the volume fills and is cleaned.
        let more = file(&mut fs, "more");
        let full = (0..).find_map(|page| fs.write(more, page * 4096, &pattern(more, page, 0), 0).err());
        assert_eq!(full, Some(FsError::NoSpace));
        assert!((shrunk.blocks..6000).all(|block| !fs.device().is_mapped(block)), "{method:?}");
        assert_clean(&mut fs);
        let mut fs = remount(fs);
        assert_files(&mut fs, &files);
        assert_eq!(fs.grow(6000).unwrap(), before.blocks);
        fs.write(more, 5000 * 4096, &pattern(more, 5000, 0), 0).unwrap();
        assert_clean(&mut fs);
    }
}

#[test]
fn holes_take_capacity_where_it_is_free() {
    let (mut fs, files) = aged(6000, 32, 0.4);
    let before = fs.usage();
    let shrunk = fs.shrink(before.blocks - 1500, Method::Holes).unwrap();
    let after = fs.usage();
    assert_eq!((after.blocks, after.reserved), (before.blocks, shrunk.blocks_given));
    assert!(after.reserved >= 1500 && after.capacity <= before.capacity - 1300, "{after:?}");
    assert_clean(&mut fs);
    let mut fs = remount(fs);
    assert_eq!(fs.usage().reserved, after.reserved);
    let more = file(&mut fs, "more");
    let full = (0..).find_map(|page| fs.write(more, page * 4096, &pattern(more, page, 0), 0).err());
    assert_eq!(full, Some(FsError::NoSpace));
    assert!(fs.usage().used <= after.capacity);
    assert_files(&mut fs, &files);
    assert_clean(&mut fs);
}

#[test]
fn holes_are_whole_free_segments_where_there_are_enough() {
    let mut fs = volume(65_536, 512, Config::default());
    let ino = file(&mut fs, "file");
    for page in 0..1000 {
        fs.write(ino, page * 4096, &pattern(ino, page, 0), 0).unwrap();
    }
    fs.sync().unwrap();
    let (before, checkpoints) = (fs.usage(), fs.counters().checkpoints);
    fs.device_mut().traffic = Traffic::default();
    let shrunk = fs.shrink(before.blocks - 20_000, Method::Holes).unwrap();
    let (after, written) = (fs.usage(), fs.device().traffic.blocks_written);
    assert_eq!(shrunk.blocks_given, 40 * 512);
    assert_eq!((before.segments_free - after.segments_free, fs.counters().checkpoints - checkpoints), (40, 1));
    // Their states, and a checkpoint.
    assert!(written < 20, "{written} blocks");
    assert_clean(&mut fs);
    let mut fs = remount(fs);
    assert_eq!(fs.usage().reserved, after.reserved);
    // They go with the end.
    let shrunk = fs.shrink(before.blocks - 22_000, Method::Remap).unwrap();
    assert_eq!((fs.usage().blocks, fs.usage().reserved), (shrunk.blocks, 0));
    assert_clean(&mut fs);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (mut fs, files) = aged(6000, 32, 0.5);
    let before = fs.usage();
    assert_eq!(
        fs.shrink(before.blocks, Method::Relocate),
        Err(FsError::Invalid("the new size is not smaller by a segment"))
    );
    for method in [Method::Remap, Method::Relocate, Method::Holes] {
        assert_eq!(fs.shrink(3000, method), Err(FsError::NoSpace));
    }
    fs.device_mut().remaps = false;
    assert!(matches!(fs.shrink(5000, Method::Remap), Err(FsError::Device(_))));
    fs.shrink_begin(5000, Method::Relocate).unwrap();
    assert_eq!(fs.shrink_begin(4900, Method::Relocate), Err(FsError::Busy));
    assert!(fs.usage().capacity + 100 < before.capacity, "nothing above the new end is promised any more");
    while fs.shrink_step(100).unwrap().is_none() {}
    assert_files(&mut fs, &files);
}

#[test]
fn a_volume_shrinks_to_the_least_size_that_it_names() {
    let (mut fs, files) = aged(6000, 32, 0.3);
    let least = fs.usage().blocks_min;
    let shrunk = fs.shrink(least, Method::Remap).unwrap();
    assert_eq!(shrunk.blocks, least);
    assert_files(&mut fs, &files);
    assert_clean(&mut fs);
}

#[test]
fn remapping_is_faster_than_copying_and_holes_write_least() {
    // An eighth of the published size: 128 MiB are given back by an aged volume of 640 MiB, a quarter full.
    let mut rows = Vec::new();
    for method in [Method::Remap, Method::Relocate, Method::Holes] {
        let (mut fs, _) = aged(163_840, 512, 0.25);
        fs.device_mut().traffic = Traffic::default();
        let before = fs.usage();
        let shrunk = fs.shrink(before.blocks - 32_768, method).unwrap();
        let traffic = fs.device().traffic;
        let seconds = DeviceCosts::default().seconds(&traffic);
        println!("{method:?}: {} moved, {traffic:?}, {seconds:.4} s", shrunk.blocks_moved);
        rows.push((seconds, traffic));
    }
    let [remap, relocate, holes] = [rows[0], rows[1], rows[2]];
    assert!(remap.0 * 2.0 < relocate.0 && holes.0 * 2.0 < relocate.0, "{rows:?}");
    assert!(remap.1.blocks_written * 2 < relocate.1.blocks_written, "{rows:?}");
    // No data moves: tables and checkpoints are all.
    assert!(holes.1.blocks_read == 0 && holes.1.blocks_written < remap.1.blocks_written, "{rows:?}");
}

#[test]
fn discards_come_when_the_policy_says() {
    for (discards, after_ms, active, told) in [
        (DiscardPolicy::AGGRESSIVE, 60, true, true),
        (DiscardPolicy::IDLE_ONLY, 4_000, false, false),
        (DiscardPolicy::IDLE_ONLY, 6_000, false, true),
        (DiscardPolicy::IDLE_ONLY, 60_000, true, false),
        (DiscardPolicy::Never, 60_000, false, false),
    ] {
        let mut fs = volume(2000, 16, Config { discards, ..Config::default() });
        let ino = file(&mut fs, "name");
        fs.write(ino, 0, &[1; 100 * 4096], 0).unwrap();
        fs.sync().unwrap();
        fs.discard_all().unwrap();
        let (mapped, before) = (fs.device().mapped(), fs.counters().blocks_discarded);
        fs.unlink(ROOT, b"name", 0).unwrap();
        fs.tick(SimTime::ZERO, true).unwrap();
        assert_eq!(fs.counters().blocks_discarded, before, "the last checkpoint still needs them");
        fs.sync().unwrap();
        assert!(fs.usage().discards_pending >= 100);
        let after_ms = if discards == DiscardPolicy::AGGRESSIVE { 10_000 + after_ms } else { after_ms };
        fs.tick(SimTime::ZERO + SimSpan::from_ms(after_ms), active).unwrap();
        // The gap that F2FS would report between its own use and that of the drive.
        assert_eq!(fs.usage().discards_pending < 100, told, "{discards:?}");
        assert_eq!(fs.device().mapped() < mapped, told);
    }
}

#[test]
fn names_follow_the_rules() {
    let mut fs = volume(2000, 16, Config::default());
    let directory = fs.create(ROOT, b"d", NewInode::of(Kind::Directory, 0o755), 0).unwrap();
    let inner = fs.create(directory, b"e", NewInode::of(Kind::Directory, 0o755), 0).unwrap();
    let name = [b'x'; 256];
    for bad in [&b""[..], b".", b"..", b"a/b", b"a\0", &name] {
        assert_eq!(fs.create(ROOT, bad, NewInode::of(Kind::File, 0), 0), Err(FsError::BadName));
    }
    assert_eq!(
        fs.rename((ROOT, b"d"), (inner, b"f"), true, 0),
        Err(FsError::Invalid("a directory cannot go into itself"))
    );
    assert_eq!(fs.remove_directory(ROOT, b"d", 0), Err(FsError::NotEmpty));
    assert_eq!(fs.unlink(ROOT, b"d", 0), Err(FsError::IsDirectory));
    let made: Vec<u32> = (0..1000)
        .map(|number| fs.create(inner, format!("{number:0>200}").as_bytes(), NewInode::of(Kind::File, 0), 0))
        .map_while(Result::ok)
        .collect();
    assert!(made.len() > 500, "{}", made.len());
    let link = fs.symlink(ROOT, b"s", b"d/e", NewInode::of(Kind::Symlink, 0o777), 0);
    if let Ok(link) = link {
        let mut target = [0; 16];
        assert_eq!(fs.read(link, 0, &mut target), Ok(3));
    }
    let mut fs = remount({
        fs.sync().unwrap();
        fs
    });
    assert_eq!(fs.list(inner).unwrap().len(), made.len());
    assert_clean(&mut fs);
}

#[test]
fn a_file_that_is_open_outlives_its_name_and_not_the_mount() {
    let mut fs = volume(2000, 16, Config::default());
    let ino = file(&mut fs, "name");
    fs.write(ino, 0, &pattern(ino, 0, 0), 0).unwrap();
    fs.open(ino).unwrap();
    fs.unlink(ROOT, b"name", 0).unwrap();
    fs.sync().unwrap();
    let mut bytes = vec![0; 4096];
    fs.read(ino, 0, &mut bytes).unwrap();
    assert!(bytes == pattern(ino, 0, 0));
    let mut other = remount(fs);
    assert_eq!(other.inode(ino), Err(FsError::NotFound));
    assert_clean(&mut other);
}

#[test]
fn damage_is_told_and_nothing_panics() {
    let (fs, _) = aged(1500, 16, 0.3);
    let device = fs.into_device();
    for block in 0..600_u32 {
        let mut copy = Blocking::new(device.clone());
        let mut bytes = vec![0; 4096];
        copy.read(block, &mut bytes).unwrap();
        for at in [0, 3, 17, 900, 4093] {
            bytes[at] ^= 0x55;
        }
        copy.write(block, &bytes).unwrap();
        // Either it is found out, or the block was of no consequence to the structure.
        if let Ok(mut fs) = FileSystem::mount(copy.into_volume(), Config::default()) {
            let _ = fs.check();
        }
    }
}

#[test]
fn a_direct_overwrite_stays_where_it_was_and_is_read_back() {
    let mut fs =
        FileSystem::format(MemoryDevice::new(2000), Format { segment_blocks: 16, id: 1 }, Config::default(), 0)
            .expect("the device is large enough");
    let ino = fs.create(ROOT, b"f", NewInode::of(Kind::File, 0o644), 0).expect("there is room");
    fs.write(ino, 0, &vec![1; 20 * BLOCK_BYTES], 0).expect("there is room");
    assert_eq!(overwrite(&mut fs, ino, 0, &[2; BLOCK_BYTES], 0), Ok(0), "it is only in memory");
    fs.sync().expect("the device is sound");
    let mut before = Vec::new();
    blocks_of_file(&mut fs, ino, &mut before).expect("the file is there");
    assert_eq!(overwrite(&mut fs, ino, 3 * BLOCK_BYTES as u64, &[3; 2 * BLOCK_BYTES], 0), Ok(2));
    assert!(!fs.is_dirty(), "no checkpoint is needed");
    let mut after = Vec::new();
    blocks_of_file(&mut fs, ino, &mut after).expect("the file is there");
    assert_eq!((before.len(), &before), (20, &after));
    assert!(overwrite(&mut fs, ino, 20 * BLOCK_BYTES as u64, &[3; BLOCK_BYTES], 0).is_err(), "beyond the end");
    assert!(overwrite(&mut fs, ino, 100, &[3; BLOCK_BYTES], 0).is_err(), "within a page");
    let mut fs = FileSystem::mount(fs.into_device(), Config::default()).expect("it was in order");
    let mut found = vec![0; 20 * BLOCK_BYTES];
    fs.read(ino, 0, &mut found).expect("the file is there");
    let expected = |page: usize| {
        if page == 0 {
            2
        } else if page == 3 || page == 4 {
            3
        } else {
            1
        }
    };
    assert!(
        found.chunks(BLOCK_BYTES).enumerate().all(|(page, bytes)| bytes.iter().all(|&byte| byte == expected(page)))
    );
}
