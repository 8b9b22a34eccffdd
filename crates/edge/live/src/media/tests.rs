//! An enclosure whose bytes lie on a disk that fills up.

use crate::{ChannelFront, Client, Engine, Payload, SetUp, Shape, Tempo, set_up, stamped};
use flashyard_blk::{Operation, VolumeError};
use flashyard_kernel::Rng;
use flashyard_scenario::{NoFiles, Scenario, resolve, serve_world, shapes};
use flashyard_served::Session;
use flashyard_units::{DriveId, VolumeId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Small drives that collect garbage soon.
fn scenario() -> Scenario {
    let text = include_str!("../../../../../scenarios/faults/scenario.toml");
    let settings = ["drive.filled=0.0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"];
    resolve(text, "faults", &settings.map(str::to_owned), &NoFiles).expect("the scenario is whole").scenario
}

/// Serves drive 0 from `directory` while `work` works, with what its disk has left.
fn serve<R: Send>(directory: &Path, work: impl FnOnce(Client, super::room::Room) -> R + Send) -> R {
    let scenario = scenario();
    let shapes = shapes(&scenario).expect("the scenario is whole");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let SetUp { world, media, .. } =
        set_up(Some(directory), &shapes, |contents| serve_world(&scenario, &NoFiles, contents))
            .expect("the directory is free");
    let room = media.drive(DriveId::new(0)).room().clone();
    let mut engine = Engine::new(Session::new(world, None), media, &[VOLUME], Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect();
    engine.add_front(Box::new(front));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(client, room)));
            done.store(true, Ordering::Relaxed);
            result
        });
        engine.run(|_| done.load(Ordering::Relaxed)).expect("a full disk does not end it");
        let result = work.join().expect("panics are caught");
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Blocks of a write.
const BLOCKS: u64 = 8;

/// The volume served.
const VOLUME: VolumeId = VolumeId::new(0);

/// Versions that blocks may hold, 0 for zeros. A write that fails leaves a block as it was, or is there.
type Known = BTreeMap<u64, Vec<u64>>;

/// Writes and deallocates at random; returns how many writes failed.
fn write(client: &mut Client, rng: &mut Rng, known: &mut Known, writes: u64) -> u64 {
    let slots = u64::from(shapes(&scenario()).expect("the scenario is whole")[0].1);
    let mut failed = 0;
    for _ in 0..writes {
        let first = rng.below(slots / 2 / BLOCKS) * BLOCKS;
        if rng.below(20) == 0 {
            client.call(VOLUME, Operation::Trim, first, BLOCKS as u32, Payload::None).expect("it needs no room");
            known.extend((first..first + BLOCKS).map(|slot| (slot, vec![0])));
            continue;
        }
        let version = 1 + rng.below(1 << 40);
        let bytes = (first..first + BLOCKS).flat_map(|slot| stamped(VOLUME, slot, version)).collect();
        let is_kept = match client.write(VOLUME, first, bytes) {
            Ok(()) => true,
            Err(VolumeError::NoRoom) => false,
            Err(error) => panic!("{error}"),
        };
        failed += u64::from(!is_kept);
        for slot in first..first + BLOCKS {
            let versions = known.entry(slot).or_insert_with(|| vec![0]);
            if is_kept {
                versions.clear();
            }
            versions.push(version);
        }
    }
    failed
}

/// Compares all blocks, and knows then what each of them holds.
fn compare(client: &mut Client, known: &mut Known) {
    for (&slot, versions) in known {
        let bytes = client.read(VOLUME, slot, 1).expect("nothing is lost");
        let holds = |&version: &u64| match version {
            0 => bytes.iter().all(|&byte| byte == 0),
            version => bytes == stamped(VOLUME, slot, version),
        };
        let found = versions.iter().copied().find(holds);
        *versions = vec![found.unwrap_or_else(|| panic!("slot {slot} holds none of {versions:?}"))];
    }
}

#[test]
fn a_full_disk_fails_writes_and_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut known = Known::new();
    let mut rng = Rng::named(1, "full disk");
    serve(directory.path(), |mut client, room| {
        assert_eq!(write(&mut client, &mut rng, &mut known, 200), 0, "there is room");
        room.set_left(directory.path(), 6 << 20);
        // Garbage is collected meanwhile: the flash is written twice over, and little of it has room on the disk.
        let failed = write(&mut client, &mut rng, &mut known, 3_000);
        println!("{failed} of 3000 writes failed");
        assert!(failed > 1_000, "it fills up");
        compare(&mut client, &mut known);
        // Contents once found stay: no block falls back to what it held before.
        compare(&mut client, &mut known);
        room.set_left(directory.path(), 1 << 30);
        assert_eq!(write(&mut client, &mut rng, &mut known, 200), 0, "there is room again");
        compare(&mut client, &mut known);
        room.set_left(directory.path(), 3 << 20);
        assert!(write(&mut client, &mut rng, &mut known, 800) > 0);
        compare(&mut client, &mut known);
    });
    // It is so after a restart, and with what was left of the last one.
    for _ in 0..2 {
        serve(directory.path(), |mut client, room| {
            compare(&mut client, &mut known);
            room.set_left(directory.path(), 4 << 20);
            let failed = write(&mut client, &mut rng, &mut known, 800);
            println!("{failed} of 800 writes failed after a restart");
            compare(&mut client, &mut known);
        });
    }
}

#[test]
fn a_journal_that_cannot_be_written_ends_without_its_box() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let scenario = scenario();
    let shapes = shapes(&scenario).expect("the scenario is whole");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let SetUp { world, media, .. } =
        set_up(None, &shapes, |contents| serve_world(&scenario, &NoFiles, contents)).expect("in memory");
    let header = flashyard_served::JournalHeader { seed: 1, scenario: String::new(), contents: None };
    let session = Session::new(world, Some(&header));
    let mut engine = Engine::new(session, media, &[VOLUME], Tempo::Off).expect("there is a poll");
    engine.set_journal(Box::new(Full));
    let mut front = ChannelFront::new(engine.waker());
    let mut client = front.connect();
    engine.add_front(Box::new(front));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..10 {
                client.write(VOLUME, 0, stamped(VOLUME, 0, version)).expect("it is served");
                assert_eq!(client.read(VOLUME, 0, 1).expect("it is served"), stamped(VOLUME, 0, version));
            }
            done.store(true, Ordering::Relaxed);
        });
        let error = engine.run(|_| done.load(Ordering::Relaxed)).expect_err("the journal is not whole");
        assert!(matches!(error, crate::EngineError::Journal(_)), "{error}");
    });
}

mod taken_back {
    //! Slots that a power cut has taken back are written again without an erase.

    use super::*;
    use crate::media::drive::{keep_metadata, metadata_of, write_with};
    use crate::media::scrub::scrub_all_dead;
    use crate::media::tuples::{Tuples, UNWRITTEN};
    use crate::media::{DriveMedia, Media};
    use flashyard_flash::Slot;
    use flashyard_ftl::Stream;
    use flashyard_ssd::Movement;
    use std::collections::BTreeSet;

    const DRIVE: DriveId = DriveId::new(0);

    fn media(directory: &Path) -> Media {
        let scenario = scenario();
        let shapes = shapes(&scenario).expect("the scenario is whole");
        let shapes: Vec<_> =
            shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
        let SetUp { media, .. } =
            set_up(Some(directory), &shapes, |contents| serve_world(&scenario, &NoFiles, contents))
                .expect("the directory is free");
        media
    }

    /// Opens a superblock that was never used; returns its first slot.
    fn open(media: &mut Media, superblock: u32) -> Slot {
        let opened = Movement::Opened { superblock, stream: Stream::Host, single_level: false };
        media.follow(DRIVE, &opened, || None).expect("it is there");
        media.drive(DRIVE).layout().slot(superblock, 0)
    }

    fn write(media: &mut Media, logical: u32, (slot, before): (Slot, Slot), byte: u8) -> bool {
        let bytes = [byte; 4096];
        let written = Movement::Written { tag: 0, place: 0, logical, slot, before };
        media.follow(DRIVE, &written, || Some(&bytes)).expect("it is there")
    }

    fn holds(drive: &DriveMedia, slot: Slot, byte: u8) -> bool {
        drive.is_whole(slot) && drive.slot(slot) == [byte; 4096]
    }

    #[test]
    fn what_had_no_room_before_a_power_cut_takes_nothing_along() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut media = media(directory.path());
        let (old, new) = (open(&mut media, 40), open(&mut media, 41));
        assert!(write(&mut media, 3, (old, Slot::NONE), 1));
        media.drive(DRIVE).room().set_left(directory.path(), 0);
        assert!(!write(&mut media, 3, (new, old), 2), "there is no room");
        media.follow(DRIVE, &Movement::Reverted { logical: 3, before: new, slot: old }, || None).expect("it is there");
        let of_block = |media: &Media| match media.drive(DRIVE).band.get(old.get()) {
            crate::media::band::Found::Whole(record) => record.logical,
            found => panic!("{found:?}"),
        };
        assert_eq!(of_block(&media), 3, "the block is current, also for the next start");
        assert!(holds(media.drive(DRIVE), old, 1));
        // The slot is written again, and leads to its own bytes.
        media.drive(DRIVE).room().set_left(directory.path(), 1 << 30);
        assert!(write(&mut media, 9, (new, Slot::NONE), 4));
        assert!(holds(media.drive(DRIVE), new, 4) && holds(media.drive(DRIVE), old, 1));
        // So is one that garbage collection writes.
        let other = open(&mut media, 42);
        media.drive(DRIVE).room().set_left(directory.path(), 0);
        assert!(!write(&mut media, 3, (other, old), 5));
        media
            .follow(DRIVE, &Movement::Reverted { logical: 3, before: other, slot: old }, || None)
            .expect("it is there");
        media.drive(DRIVE).room().set_left(directory.path(), 1 << 30);
        media.follow(DRIVE, &Movement::Moved { logical: 9, from: new, to: other }, || None).expect("there is room");
        assert!(holds(media.drive(DRIVE), other, 4));
    }

    #[test]
    fn plain_blocks_do_not_take_over_metadata_of_what_a_power_cut_has_taken() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut media = media(directory.path());
        let slot = open(&mut media, 40);
        let drive = &mut media.drives_mut()[0];
        let layout = *drive.layout();
        let mapping = crate::media::mapping::Mapping::memory(Tuples::bytes(&layout)).expect("there is memory");
        keep_metadata(drive, Tuples::new(mapping, layout));
        assert!(write_with(drive, (3, slot, Slot::NONE), Some(&[1; 4096]), &[5; 64]));
        assert_eq!(metadata_of(drive, slot), [5; 64]);
        for payload in [Some(&[2; 4096]), None] {
            assert!(drive.write(8, slot, Slot::NONE, payload.map(|bytes| &bytes[..])));
            assert!(drive.is_whole(slot) && metadata_of(drive, slot) == UNWRITTEN);
            assert!(write_with(drive, (3, slot, Slot::NONE), Some(&[1; 4096]), &[5; 64]));
        }
    }

    #[test]
    fn erased_bytes_are_left_in_no_slot_that_is_nothing_of_a_block() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut media = media(directory.path());
        let first = open(&mut media, 40);
        let slot = |place: u32| Slot::new(first.get() + place);
        for place in 0..4 {
            assert!(write(&mut media, place, (slot(place), Slot::NONE), 7));
        }
        // One was overwritten, one was lost and then deallocated, one has a damaged record, and one is current.
        assert!(write(&mut media, 0, (slot(4), slot(0)), 8));
        media.follow(DRIVE, &Movement::Lost { logical: 1, slot: slot(1) }, || None).expect("it is there");
        media.follow(DRIVE, &Movement::Trimmed { logical: 1, before: slot(1) }, || None).expect("it is there");
        let drive = &mut media.drives_mut()[0];
        drive.band.tear(slot(2).get());
        scrub_all_dead(drive, &BTreeSet::from([])).expect("nothing is in the way");
        let left = |place: u32| drive.payload.run(slot(place), 1)[0];
        assert_eq!([0, 1, 2, 3, 4].map(left), [0, 0, 0, 7, 8]);
        assert!(!drive.is_whole(slot(1)) && !drive.is_whole(slot(2)), "errors stay errors");
    }
}

#[test]
fn a_new_directory_has_nothing_of_drives_before() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let scenario = scenario();
    let shapes = shapes(&scenario).expect("the scenario is whole");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let make = || set_up(Some(directory.path()), &shapes, |contents| serve_world(&scenario, &NoFiles, contents));
    let left = ["metadata", "namespaces", "reservations", "self-tests"]
        .map(|kind| directory.path().join(format!("drive-0.{kind}")));
    for path in &left {
        std::fs::write(path, "of another drive").expect("it can be written");
        let refused = make().err().expect("it may be a directory of drives").to_string();
        assert!(refused.contains(&*path.file_name().expect("it has one").to_string_lossy()), "{refused}");
        std::fs::remove_file(path).expect("it is there");
    }
    // An attempt to make one that was not finished is nothing that anybody wants to keep.
    left.iter().for_each(|path| std::fs::write(path, "of an attempt").expect("it can be written"));
    std::fs::write(directory.path().join("unfinished"), "").expect("it can be written");
    drop(make().expect("it is made again"));
    assert!(left.iter().all(|path| !path.exists()));
}

#[test]
fn a_record_is_kept_without_waiting_for_the_disk() {
    use super::directory::{DataDirectory, RecordKind};
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kept = DataDirectory::lock(directory.path()).expect("no other process has it");
    let keep = |record: &[u8]| kept.keep_record(DriveId::new(0), RecordKind::Reservations, record);
    keep(b"first").expect("it is kept");
    let path = directory.path().join("drive-0.reservations");
    assert_eq!(std::fs::read(&path).expect("it is there"), b"first");
    // The device takes all writes, and refuses to be synchronized with EINVAL.
    std::os::unix::fs::symlink("/dev/null", directory.path().join("drive-0.new")).expect("the name is free");
    keep(b"second").expect("nothing is waited for");
}
