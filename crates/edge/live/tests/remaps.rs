//! Remaps of an enclosure that keeps its bytes in a directory: a slot has its old owner or its new one, however the process
//! ends.

mod small;

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_kernel::Rng;
use flashyard_live::{ChannelFront, Client, Engine, Payload, SetUp, Tempo, stamped};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use small::{enclosure_of, exported, scenario, while_serving};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIRECTORY: &str = "FLASHYARD_TEST_REMAPS";
const FILLED: &str = "0.9";
/// Slots that move between here and the same place [`AWAY`] further up.
const MOVED: u64 = 200;
/// In another translation page.
const AWAY: u64 = 3000;
/// First slot that other writes touch, so that garbage collection moves everything.
const OTHERS: u64 = 8000;

/// Serves from `directory`, and ends in order when `work` does.
fn serve(directory: &Path, work: impl FnOnce(Client) + Send) {
    let SetUp { world, media, .. } = enclosure_of(&scenario(FILLED), Some(directory)).expect("the directory is free");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect();
    engine.add_front(Box::new(front));
    while_serving(engine, || work(client));
}

fn read(client: &mut Client, drive: VolumeId, first: u64) -> Vec<u8> {
    let parts = (first..first + MOVED).step_by(25);
    parts.flat_map(|first| client.read(drive, first, 25).expect("the drive is there")).collect()
}

/// Where each slot that moves is: up there or not. It is in one place, whole, and the other one holds nothing.
fn places(client: &mut Client, drive: VolumeId) -> Vec<bool> {
    let (here, there) = (read(client, drive, 0), read(client, drive, AWAY));
    let zeros = [0; 4096];
    let pairs = here.chunks(4096).zip(there.chunks(4096));
    (0..)
        .zip(pairs)
        .map(|(slot, (here, there))| {
            let (held, other) = if here == zeros { (there, here) } else { (here, there) };
            assert!(held == stamped(drive, slot, 7), "drive {drive}: slot {slot} is lost");
            assert!(other == zeros, "drive {drive}: slot {slot} is in two places");
            held.as_ptr() == there.as_ptr()
        })
        .collect()
}

/// Writes the slots in their first place.
fn prepare(mut client: Client) {
    for drive in exported() {
        for first in (0..MOVED).step_by(25) {
            let bytes = (first..first + 25).flat_map(|slot| stamped(drive, slot, 7)).collect();
            client.write(drive, first, bytes).expect("the drive is there");
        }
        client.call(drive, Operation::Trim, AWAY, MOVED as u32, Payload::None).expect("the drive is there");
    }
}

/// Moves ranges of slots up and down among other writes, until it is killed.
fn work(mut client: Client, seed: u64) {
    let mut places: Vec<Vec<bool>> = exported().into_iter().map(|drive| places(&mut client, drive)).collect();
    let mut rng = Rng::named(seed, "remaps");
    println!("@works");
    std::io::stdout().flush().expect("the parent listens");
    for number in 0.. {
        let drive = VolumeId::new(rng.below(4) as u16);
        let count = 1 + rng.below(40);
        let first = rng.below(MOVED - count);
        let up = rng.below(2) == 0;
        let (to, from) = if up { (first + AWAY, first) } else { (first, first + AWAY) };
        // Those that are there already stay: their source holds nothing.
        client.remap(drive, to, from, count as u32).expect("the drive is there");
        places[drive.index()][first as usize..(first + count) as usize].fill(up);
        for _ in 0..6 {
            let slot = OTHERS + rng.below(4000);
            let write = Operation::Write;
            let request = VolumeRequest { volume: drive, operation: write, first: slot, count: 8, source: 0 };
            client.submit(number, request, Payload::Zeros).expect("it serves");
            assert_eq!(client.next(Duration::from_secs(30)).expect("it serves").result, Ok(()));
        }
        if number % 200 == 199 {
            assert_eq!(self::places(&mut client, drive), places[drive.index()], "drive {drive}");
        }
    }
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_while_it_remaps() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve(Path::new(&directory), |client| work(client, std::process::id().into()));
}

#[test]
fn a_remapped_slot_is_in_one_place_after_the_process_was_killed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    serve(directory.path(), prepare);
    let mut rng = Rng::named(std::process::id().into(), "kills");
    for life in 0..6 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_process_to_be_killed_while_it_remaps", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let works = lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("@works"));
        std::thread::sleep(Duration::from_micros(1000 + rng.below(400_000)));
        let ended = child.try_wait().expect("it is ours");
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        assert!(works && ended.is_none(), "life {life}: {ended:?}");
    }
    serve(directory.path(), |mut client| {
        for drive in exported() {
            let up = places(&mut client, drive).into_iter().filter(|&up| up).count();
            println!("drive {drive}: {up} of {MOVED} slots are up there");
        }
    });
}
