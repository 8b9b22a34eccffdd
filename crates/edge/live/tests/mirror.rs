//! A mirror of two unlike drives behind the live server: real bytes lie on both drives, and outlive each of them.

mod small;

use flashyard_live::{ChannelFront, Client, Engine, Handle, Load, Remote, SetUp, Shape, Tempo, run_load, set_up};
use flashyard_mirror::{LiveMirror, MirrorConfig, MirrorError, ReadPolicy};
use flashyard_scenario::{NoFiles, live};
use flashyard_served::{Control, JournalHeader, Presence, Served, Session, read_journal, replay};
use flashyard_ssd::Overwrites;
use flashyard_units::{DriveId, SimSpan, VolumeId};
use small::{Shared, scenario, while_serving};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;

const VOLUME: VolumeId = VolumeId::new(0);

/// A drive of `scenarios/faults`, and one of nine tenths of its size with one core.
fn config() -> MirrorConfig {
    let enclosure = live(&scenario("0.0"), &NoFiles, None).expect("its enclosure can serve");
    let first = *enclosure.config(DriveId::new(0));
    let mut second = first;
    second.ftl.logical_slots = first.ftl.logical_slots / 10 * 9;
    second.cores = 1;
    MirrorConfig {
        drives: [first, second],
        overwrites: [Overwrites::default(); 2],
        policy: ReadPolicy::ShorterQueue,
        submit_latency: SimSpan::from_us(2),
        complete_latency: SimSpan::from_us(2),
        resync_depth: 8,
    }
}

fn mirror(data: Option<&Path>) -> SetUp {
    let config = config();
    let world = LiveMirror::new(config, 5, None).expect("it can be built");
    let shapes = [0, 1].map(|drive: u16| Shape {
        layout: world.layout(DriveId::new(drive)),
        logical_slots: config.drives[usize::from(drive)].ftl.logical_slots,
    });
    let world = |contents: Option<&[_]>| Ok(Box::new(LiveMirror::new(config, 5, contents)?) as Box<dyn Served>);
    set_up::<MirrorError>(data, &shapes, world).unwrap_or_else(|error| panic!("{error}"))
}

fn load(requests: u64, seed: u64) -> Load {
    Load { blocks: 3_000, requests, depth: 16, blocks_max: 8, reads: 0.5, seed, patience: SimSpan::from_ms(60_000) }
}

/// Pulls one drive after the other and puts it back, until `done`; returns how often it was away, and how often both were.
fn pull_and_put_back(handle: &Handle, done: &AtomicBool) -> (u32, u32) {
    let (mut pulls, mut both) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        let drive = DriveId::new((pulls % 2) as u16);
        let control = |control| handle.call(move |engine| engine.control(control)).is_ok_and(|done| done.is_ok());
        if !control(Control::Pull { drive }) {
            break;
        }
        pulls += 1;
        std::thread::sleep(Duration::from_millis(2));
        if pulls % 8 == 0 {
            control(Control::PowerOff);
            both += u32::from(
                handle.call(|engine| engine.session().world().presence(DriveId::new(1))) == Ok(Presence::NoPower),
            );
            control(Control::PowerOn);
        }
        control(Control::Insert { drive });
        std::thread::sleep(Duration::from_millis(1));
    }
    (pulls, both)
}

#[test]
fn a_client_reads_what_it_wrote_whichever_drive_is_pulled_and_the_journal_repeats_it() {
    let SetUp { world, media, .. } = mirror(None);
    let header = JournalHeader { seed: 5, scenario: String::new(), contents: None };
    let session = Session::new(world, Some(&header));
    let journal = Shared::default();
    let mut engine = Engine::new(session, media, &[VOLUME], Tempo::Off).expect("there is a poll");
    engine.set_journal(Box::new(journal.clone()));
    let mut front = ChannelFront::new(engine.waker());
    let mut volume = front.connect().volume(engine.volumes()[0]);
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    let done = AtomicBool::new(false);
    let done = &done;
    let (report, (seen, (pulls, both))) = while_serving(engine, move || {
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || pull_and_put_back(&handle, done));
            let seen = run_load(&mut volume, &load(30_000, 3), || false).expect("every request is answered");
            done.store(true, Ordering::Relaxed);
            (seen, watch.join().expect("pulling goes on"))
        })
    });
    assert_eq!((seen.answered, seen.dropped, seen.wrong), (30_000, 0, Vec::new()));
    assert!(pulls > 8 && both > 0, "{pulls} {both}");
    let bytes = journal.0.lock().expect("no thread panicked").clone();
    let (_, records) = read_journal(&bytes).expect("it was just written");
    let mut again = LiveMirror::new(config(), 5, None).expect("it can be built");
    let replayed = replay(&mut again, records, |_| {}).expect("the journal is whole");
    assert_eq!((replayed.digest, replayed.differs_at, replayed.complete), (report.digest, None, true));
}

/// Blocks of the life of a kept mirror.
const BLOCKS: u64 = 200;

fn pattern(block: u64, version: u8) -> Vec<u8> {
    [block as u8, (block >> 8) as u8, version, 1].repeat(1024)
}

fn write(client: &mut Client, blocks: std::ops::Range<u64>, version: u8) {
    for block in blocks {
        client.write(VOLUME, block, pattern(block, version)).expect("a drive is there");
    }
}

fn control(handle: &Handle, control: Control) {
    handle.call(move |engine| engine.control(control)).expect("it serves").expect("it can be done");
}

/// Lets time pass by reads until `drive` has been written `slots` slots since the world began.
fn wait_for_copies(handle: &Handle, client: &mut Client, drive: DriveId, slots: u64) {
    let written = || {
        handle.call(move |engine| {
            let world = engine.session().world();
            world.health(drive, world.now()).host_slots
        })
    };
    while written().expect("it serves") < slots {
        client.read(VOLUME, BLOCKS, 1).expect("a drive is there");
    }
}

/// Compares all blocks on one drive: the other one is pulled meanwhile.
fn compare_on(handle: &Handle, client: &mut Client, drive: u16) {
    let other = DriveId::new(1 - drive);
    control(handle, Control::Pull { drive: other });
    for block in 0..BLOCKS {
        let version = if block < 50 { 2 } else { 1 };
        assert!(client.read(VOLUME, block, 1).expect("a drive is there") == pattern(block, version), "{drive} {block}");
    }
    control(handle, Control::Insert { drive: other });
}

fn while_kept<R: Send>(directory: &Path, act: impl FnOnce(&Handle, &mut Client) -> R + Send) -> R {
    let SetUp { world, media, .. } = mirror(Some(directory));
    let mut engine = Engine::new(Session::new(world, None), media, &[VOLUME], Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let mut client = front.connect();
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    while_serving(engine, move || act(&handle, &mut client)).1
}

#[test]
fn either_drive_holds_everything_once_copied_and_after_a_restart() {
    let directory = tempfile::tempdir().expect("there is a place");
    let kept = directory.path().join("mirror");
    let [first, second] = [0, 1].map(DriveId::new);
    while_kept(&kept, |handle, client| {
        write(client, 0..BLOCKS, 1);
        control(handle, Control::Pull { drive: first });
        write(client, 0..50, 2);
        let asked = |block| handle.call(move |engine| engine.session().world().place(VOLUME, block));
        let asked = |block| asked(block).expect("it serves").map(|(drive, slot)| (drive, slot.is_some()));
        assert_eq!(asked(0), Some((second, true)));
        assert_eq!(asked(BLOCKS), Some((second, false)), "it was never written");
        control(handle, Control::Insert { drive: first });
        wait_for_copies(handle, client, first, BLOCKS + 50);
        assert_eq!(asked(0), Some((first, true)));
        compare_on(handle, client, 0);
        compare_on(handle, client, 1);
    });
    while_kept(&kept, |handle, client| {
        // Nothing tells what was stale in the life before: the second drive gets everything again.
        wait_for_copies(handle, client, second, BLOCKS);
        compare_on(handle, client, 1);
        compare_on(handle, client, 0);
    });
}
