//! Directories that keep bytes: nothing acknowledged is lost, however the process ends.

mod small;

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_faults::{Action, Extent, OperationId, Oracle};
use flashyard_kernel::Rng;
use flashyard_live::{ChannelFront, Client, Engine, MediaError, Payload, SetUp, SetUpError, Tempo, stamped};
use flashyard_scenario::shapes;
use flashyard_served::Session;
use flashyard_units::{SimTime, VolumeId};
use small::{enclosure_of, exported, scenario};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DIRECTORY: &str = "FLASHYARD_TEST_DIRECTORY";
const NEXT: &str = "FLASHYARD_TEST_NEXT";
const FILLED: &str = "0.97";

/// Slots of each drive whose every change the oracle hears of.
const WATCHED: u64 = 300;

/// Serves from `directory`, and ends in order when `work` does.
fn serve(directory: &Path, work: impl FnOnce(Client) + Send) {
    let SetUp { world, media, recovered } =
        enclosure_of(&scenario(FILLED), Some(directory)).expect("the directory is free");
    println!("@found {recovered:?}");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect();
    engine.add_front(Box::new(front));
    let done = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over = Arc::clone(&done);
        scope.spawn(move || {
            // Also when the work panics.
            let _over = Over(over);
            work(client);
        });
        engine.run(|_| done.load(Ordering::Relaxed)).expect("nothing is in the way");
    });
}

/// Ends the engine when it goes away.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process that does not outlive the test.
struct Served(Child);

impl Served {
    fn kill(&mut self) {
        // Killed already is killed as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Version that a slot holds: written all over it, whole and for this slot, or 0 for zeros.
fn version_of(drive: VolumeId, slot: u64, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8..16]);
    let version = u64::from_le_bytes(word) >> 8;
    assert!(bytes == stamped(drive, slot, version), "drive {drive} slot {slot} holds something else");
    version
}

/// Contents of the watched slots of a drive, as the parent hears them.
fn watched(client: &mut Client, drive: VolumeId) -> String {
    // The enclosure resets a drive that takes longer than some milliseconds: requests are small.
    let found = (0..WATCHED).step_by(25).flat_map(|first| {
        let bytes = client.read(drive, first, 25).expect("the drive is there");
        (first..)
            .zip(bytes.chunks(4096))
            .map(|(slot, bytes)| version_of(drive, slot, bytes).to_string())
            .collect::<Vec<_>>()
    });
    format!("@found {drive} {}", found.collect::<Vec<_>>().join(","))
}

fn say(line: &str) {
    // One write a line: whatever the process has been told, its parent knows.
    let line = format!("{line}\n");
    std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush()).expect("the parent listens");
}

/// Reads all watched slots, then writes until it is killed.
fn work(mut client: Client, first: u64) {
    for drive in exported() {
        say(&watched(&mut client, drive));
        let slots = shapes(&scenario(FILLED)).expect("the scenario is whole")[drive.index()].1;
        for slot in (WATCHED..slots.into()).step_by(4001) {
            version_of(drive, slot, &client.read(drive, slot, 1).expect("the drive is there"));
        }
    }
    let slots = u64::from(shapes(&scenario(FILLED)).expect("the scenario is whole")[0].1);
    let mut rng = Rng::named(first, "restarts");
    let mut under_way: BTreeMap<u64, (VolumeId, u64, u64)> = BTreeMap::new();
    let mut number = first;
    loop {
        while under_way.len() < 24 {
            let drive = VolumeId::new(rng.below(4) as u16);
            let count = 1 + rng.below(8);
            let watched = rng.below(3) == 0;
            let first = if watched { rng.below(WATCHED - count) } else { WATCHED + rng.below(slots - WATCHED - count) };
            let meets =
                |other: &(VolumeId, u64, u64)| other.0 == drive && first < other.1 + other.2 && other.1 < first + count;
            if under_way.values().any(meets) {
                continue;
            }
            number += 1;
            let trims = watched && rng.below(8) == 0;
            let (operation, payload) = if trims {
                (Operation::Trim, Payload::None)
            } else {
                let bytes = (first..first + count).flat_map(|slot| stamped(drive, slot, number)).collect();
                (Operation::Write, Payload::Bytes(bytes))
            };
            if watched {
                say(&format!("@{} {number} {drive} {first} {count}", if trims { "trim" } else { "write" }));
            }
            under_way.insert(number, (drive, first, count));
            client
                .submit(
                    number,
                    VolumeRequest { volume: drive, operation, first, count: count as u32, source: 0 },
                    payload,
                )
                .expect("it serves");
        }
        let reply = client.next(Duration::from_secs(30)).expect("it serves");
        assert_eq!(reply.result, Ok(()));
        let (_, first, _) = under_way.remove(&reply.token).expect("it was asked");
        if first < WATCHED {
            say(&format!("@done {}", reply.token));
        }
    }
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    let next = std::env::var(NEXT).ok().and_then(|next| next.parse().ok()).unwrap_or(0);
    serve(Path::new(&directory), |client| work(client, next));
}

/// Observations of clients over all runs of the enclosure.
struct Seen {
    oracle: Oracle,
    now: u64,
    under_way: Vec<OperationId>,
    /// The last number used.
    last: u64,
    reads: u32,
    done: u64,
}

impl Seen {
    fn time(&mut self) -> SimTime {
        self.now += 1;
        SimTime::from_ps(self.now)
    }

    fn hear(&mut self, line: &str) {
        let Some(words) = line.strip_prefix('@') else { return };
        let words: Vec<&str> = words.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        let at = self.time();
        match words[0] {
            "write" | "trim" => {
                let id = OperationId(number(1) as u32);
                self.last = number(1);
                let action = if words[0] == "write" { Action::Write(number(1)) } else { Action::Trim };
                let extent = Extent { drive: number(2) as u32, first: number(3), count: number(4) as u32 };
                self.oracle.issue(at, id, action, extent);
                self.under_way.push(id);
            }
            "done" => {
                let id = OperationId(number(1) as u32);
                self.under_way.retain(|other| *other != id);
                self.oracle.acknowledged(at, id).unwrap_or_else(|violation| panic!("{violation}"));
                self.done += 1;
            }
            "found" if words[1].parse::<u64>().is_ok() => {
                let stamps: Vec<u64> = words[2].split(',').map(|word| word.parse().expect("a number")).collect();
                let extent = Extent { drive: number(1) as u32, first: 0, count: WATCHED as u32 };
                self.oracle.issue(at, OperationId(0), Action::Read, extent);
                let at = self.time();
                self.oracle.returned(at, OperationId(0), &stamps).unwrap_or_else(|violation| panic!("{violation}"));
                self.reads += 1;
            }
            _ => println!("{line}"),
        }
    }

    /// The process has ended: what was under way may have happened, or may not.
    fn killed(&mut self) {
        for id in std::mem::take(&mut self.under_way) {
            let at = self.time();
            self.oracle.failed(at, id).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }
}

#[test]
fn whatever_was_acknowledged_is_there_after_the_process_was_killed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut seen =
        Seen { oracle: Oracle::new(&[WATCHED; 4]), now: 0, under_way: Vec::new(), last: 0, reads: 0, done: 0 };
    let mut rng = Rng::named(1, "kills");
    for _life in 0..8 {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_process_to_be_killed", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(NEXT, (seen.last + 1000).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        // Until it writes, and then for a while that is different each time.
        let mut child = Served(child);
        let mut writes = false;
        while !writes {
            let line = lines.next().expect("it goes on until it is killed").expect("it speaks");
            seen.hear(&line);
            writes = line.starts_with("@write");
        }
        let span = Duration::from_micros(rng.below(300_000));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(span);
                child.kill();
            });
            lines.map_while(Result::ok).for_each(|line| seen.hear(&line));
        });
        seen.killed();
    }
    let counters = seen.oracle.counters();
    println!("{} changes acknowledged, {counters:?}", seen.done);
    assert!(seen.reads >= 8 * 4 && seen.done > 100, "{} {}", seen.reads, seen.done);
    // The last life reads once more and ends in order.
    serve(directory.path(), |mut client| {
        for drive in exported() {
            seen.hear(&watched(&mut client, drive));
        }
    });
    assert!(directory.path().join("clean").exists());
}

#[test]
fn a_directory_is_for_one_process_and_one_box() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = Some(directory.path());
    let first = enclosure_of(&scenario("0.5"), path).expect("a new directory");
    let second = enclosure_of(&scenario("0.5"), path).err().expect("it is in use");
    assert!(matches!(second, SetUpError::Media(MediaError::Locked { .. })), "{second}");
    assert!(second.to_string().contains("another process serves from this directory"), "{second}");
    drop(first);
    let mut other = scenario("0.5");
    other.drive.blocks_per_plane = 300;
    let refused = enclosure_of(&other, path).err().expect("other drives");
    assert!(refused.to_string().contains("this directory keeps drive 0: ") && refused.to_string().contains("300"));
    let again = enclosure_of(&scenario("0.5"), path).expect("it is free again");
    let report = again.recovered.expect("it was made before");
    assert!(!report.clean && report.slots > 100_000 && report.torn + report.damaged == 0, "{report:?}");
}
