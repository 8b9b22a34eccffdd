//! Any bytes over the records of a data directory, after a clean end and without one: it is opened or refused.
//!
//! What must hold: no panic, and of each drive every logical slot at most once, where something was written.

#![no_main]

use flashyard_flash::{Geometry, Layout};
use flashyard_live::{DataDirectory, Media, Opened, Shape};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

const LOGICAL_SLOTS: u32 = 24;

fn shape() -> Shape {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    Shape { layout: Layout::new(&geometry), logical_slots: LOGICAL_SLOTS }
}

static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("flashyard-fuzz-{}", std::process::id()));
    let Ok(Opened::New(directory)) = DataDirectory::open(&path, &[shape()]) else { panic!("it is new") };
    let empty = vec![flashyard_ftl::SuperblockContents { erases: 0, used: None }; 4];
    Media::create(directory, &[shape()], &[empty]).expect("there is room").close().expect("there is room");
    path
});

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let band = std::fs::OpenOptions::new().write(true).open(PLACE.join("drive-0.band")).expect("it is there");
    // Headers of 32 bytes begin at 4096, records of 24 at 8192.
    let records = &[0_u8; 32 * 24][..];
    band.write_all_at(&[0; 4096], 4096).and_then(|()| band.write_all_at(records, 8192)).expect("there is room");
    let (headers, records) = bytes.split_at(bytes.len().min(128));
    let records = &records[..records.len().min(32 * 24)];
    band.write_all_at(headers, 4096).and_then(|()| band.write_all_at(records, 8192)).expect("there is room");
    let clean = PLACE.join("clean");
    if choice & 1 == 0 {
        std::fs::write(&clean, "").expect("there is room");
    } else {
        let _ = std::fs::remove_file(&clean);
    }
    let Ok(Opened::Kept { contents, .. }) = DataDirectory::open(&PLACE, &[shape()]) else { return };
    let mut places = BTreeSet::new();
    for used in contents[0].iter().filter_map(|superblock| superblock.used.as_ref()) {
        for &(index, logical) in &used.valid {
            assert!(index < used.written && logical < LOGICAL_SLOTS && places.insert(logical));
        }
    }
});
