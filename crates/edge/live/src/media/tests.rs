//! A box whose bytes lie on a disk that fills up.

use crate::{ChannelFront, Client, ClientError, Engine, SetUp, Shape, Tempo, set_up, stamped};
use flashyard_kernel::Rng;
use flashyard_scenario::{NoFiles, Scenario, resolve};
use flashyard_systems::jbof::Session;
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
    let shapes = scenario.shapes().expect("the scenario is whole");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let SetUp { world, media, .. } =
        set_up(Some(directory), &shapes, |contents| scenario.live(contents)).expect("the directory is free");
    let room = media.drive(0).room().clone();
    let mut engine = Engine::new(Session::new(world, None), media, &[0], Tempo::Off).expect("there is a poll");
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
const BLOCKS: u32 = 8;

/// What was written, by block: `None` for blocks of a write that failed.
type Known = BTreeMap<u32, Option<u64>>;

/// Writes at random; returns how many writes failed.
fn write(client: &mut Client, rng: &mut Rng, known: &mut Known, writes: u64) -> u64 {
    let slots = u64::from(scenario().shapes().expect("the scenario is whole")[0].1);
    let mut failed = 0;
    for _ in 0..writes {
        let first = rng.below(slots / 2 / u64::from(BLOCKS)) as u32 * BLOCKS;
        let version = 1 + rng.below(1 << 40);
        let bytes = (first..first + BLOCKS).flat_map(|slot| stamped(0, slot, version)).collect();
        let is_kept = match client.write(0, first, bytes) {
            Ok(()) => true,
            Err(ClientError::NoRoom) => false,
            Err(error) => panic!("{error}"),
        };
        failed += u64::from(!is_kept);
        known.extend((first..first + BLOCKS).map(|slot| (slot, is_kept.then_some(version))));
    }
    failed
}

/// Compares what was acknowledged; returns how many blocks cannot be read.
fn compare(client: &mut Client, known: &Known) -> u64 {
    let mut unread = 0;
    for (&slot, version) in known {
        match (client.read(0, slot, 1), version) {
            (Ok(bytes), Some(version)) => assert!(bytes == stamped(0, slot, *version), "slot {slot}"),
            // Some of its blocks may have found room.
            (Ok(bytes), None) => assert!(bytes.iter().any(|&byte| byte != 0), "slot {slot} reads as zeros"),
            (Err(ClientError::Unread { slot: at }), None) => {
                assert_eq!(at, slot);
                unread += 1;
            }
            (Err(error), _) => panic!("slot {slot}: {error}"),
        }
    }
    unread
}

#[test]
fn a_full_disk_fails_writes_and_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut known = Known::new();
    let mut rng = Rng::named(1, "full disk");
    let unread = serve(directory.path(), |mut client, room| {
        assert_eq!(write(&mut client, &mut rng, &mut known, 200), 0, "there is room");
        room.set_left(5 << 20);
        // Garbage is collected meanwhile: every superblock of 1 MiB is written several times over.
        let failed = write(&mut client, &mut rng, &mut known, 6_000);
        println!("{failed} of 6000 writes failed");
        assert!(failed > 0, "it fills up");
        let unread = compare(&mut client, &known);
        assert!(unread > 0, "what has no room is an error to its readers");
        room.set_left(1 << 30);
        assert_eq!(write(&mut client, &mut rng, &mut known, 200), 0, "there is room again");
        compare(&mut client, &known)
    });
    // It is so after a restart, whatever was collected since.
    serve(directory.path(), |mut client, room| {
        assert_eq!(compare(&mut client, &known), unread);
        room.set_left(3 << 20);
        write(&mut client, &mut rng, &mut known, 2_000);
        compare(&mut client, &known);
    });
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
    let shapes = scenario.shapes().expect("the scenario is whole");
    let shapes: Vec<_> = shapes.into_iter().map(|(layout, logical_slots)| Shape { layout, logical_slots }).collect();
    let SetUp { world, media, .. } = set_up(None, &shapes, |contents| scenario.live(contents)).expect("in memory");
    let header = flashyard_systems::jbof::JournalHeader { seed: 1, scenario: String::new(), contents: None };
    let session = Session::new(world, Some(&header));
    let mut engine = Engine::new(session, media, &[0], Tempo::Off).expect("there is a poll");
    engine.set_journal(Box::new(Full));
    let mut front = ChannelFront::new(engine.waker());
    let mut client = front.connect();
    engine.add_front(Box::new(front));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..10 {
                client.write(0, 0, stamped(0, 0, version)).expect("it is served");
                assert_eq!(client.read(0, 0, 1).expect("it is served"), stamped(0, 0, version));
            }
            done.store(true, Ordering::Relaxed);
        });
        let error = engine.run(|_| done.load(Ordering::Relaxed)).expect_err("the journal is not whole");
        assert!(matches!(error, crate::EngineError::Journal(_)), "{error}");
    });
}
