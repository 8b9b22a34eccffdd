//! `flashyard serve` with `service = "array"`: kills amid writes, legs that are lost, replaced, strange or out of order, and what clients read then.

mod common;

use common::*;
use flashyard_blk::Blocking;
use flashyard_live::RemoteNamespace;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Legs of unlike sizes, in MiB.
const SIZES: [u32; 5] = [12, 10, 10, 8, 6];

fn leg(name: &str, mib: u32) -> String {
    format!("{{ file = \"{name}\", size = \"{mib} MiB\" }}")
}

/// Five files `a` to `e` as an array.
fn files(keys: &str) -> String {
    let legs: Vec<String> = ["a", "b", "c", "d", "e"].iter().zip(SIZES).map(|(name, mib)| leg(name, mib)).collect();
    description(keys, &legs)
}

fn description(keys: &str, legs: &[String]) -> String {
    format!("[[volume]]\nname = \"v\"\nservice = \"array\"\n{keys}\nlegs = [{}]\n", legs.join(", "))
}

const RAID_6: &str = "stripe = 4\nparity = 2\nchunk = \"16 KiB\"\nslots = 8";

struct Served {
    server: Server,
    socket: String,
}

impl Served {
    fn start(folder: &Path, text: &str) -> Self {
        let socket = folder.join("ctl").display().to_string();
        let server = Server::start_with(folder, "v.toml", text, &["--control", &socket]);
        let begun = Instant::now();
        // It listens there a little later than for its clients.
        while !ctl(&socket, &["status"]).status.success() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it has no control socket");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { server, socket }
    }

    fn volume(&self) -> Blocking<RemoteNamespace> {
        self.server.volume("v")
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        ctl(&self.socket, arguments)
    }

    fn done(&self, arguments: &[&str]) {
        let output = self.ctl(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    }

    fn shown(&self) -> String {
        text(&self.ctl(&["status"]).stdout)
    }

    /// Waits until the status says something.
    fn wait_for(&self, words: &str) {
        self.wait_until(|shown| shown.contains(words));
    }

    fn wait_until(&self, is_there: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_there(&self.shown()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Blocks of a write.
const RUN: u64 = 37;

/// First block of a write of a client: writes of one client meet, those of two do not.
fn first(client: u64, number: u64) -> u64 {
    client * 600 + number * 23 % 500
}

/// Blocks of a client: the version that was answered last, and the one that had no answer.
struct Expected {
    versions: Vec<u8>,
    open: Option<(u64, u8)>,
}

impl Expected {
    fn new() -> Self {
        Self { versions: vec![0; 600], open: None }
    }

    /// Writes until it fails or is told to stop.
    fn write(&mut self, volume: &mut Blocking<RemoteNamespace>, client: u64, stop: &AtomicBool, answers: &AtomicU64) {
        for number in 1.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let (at, version) = (first(client, number), (number % 250) as u8 + 1);
            if volume.write(at, &stamped(at, RUN, version)).is_err() {
                self.open = Some((at, version));
                return;
            }
            let from = (at - client * 600) as usize;
            self.versions[from..from + RUN as usize].fill(version);
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks every block, and takes what a write without an answer has left as what is there.
    fn check(&mut self, volume: &mut Blocking<RemoteNamespace>, client: u64) {
        let begin = client * 600;
        let bytes = read(volume, begin, 600).expect("it is there");
        let open = self.open.take();
        for (number, (found, version)) in (begin..).zip(bytes.chunks(BLOCK).zip(&mut self.versions)) {
            let of = |version: u8| if version == 0 { vec![0; BLOCK] } else { stamped(number, 1, version) };
            if found == of(*version) {
                continue;
            }
            let newer = open.filter(|(at, _)| (*at..at + RUN).contains(&number)).map(|(_, version)| version);
            let other = (0..=251).find(|&other| found == of(other));
            assert!(
                newer.is_some_and(|newer| found == of(newer)),
                "block {number} is {other:?}, and neither {version} nor {newer:?}"
            );
            *version = newer.unwrap_or(0);
        }
    }
}

/// Clients write until the server is killed.
fn write_and_kill(served: Served, expected: &mut [Expected], writes: u64) {
    let (stop, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (client, expected) in (0..).zip(expected) {
            let (mut volume, stop, answers) = (served.volume(), &stop, &answers);
            scope.spawn(move || expected.write(&mut volume, client, stop, answers));
        }
        let begun = Instant::now();
        while answers.load(Ordering::Relaxed) < writes {
            assert!(begun.elapsed() < Duration::from_secs(60), "writes have no answers");
            std::thread::sleep(Duration::from_millis(1));
        }
        served.server.kill();
    });
}

#[test]
fn a_server_that_is_killed_amid_writes_loses_none_that_was_answered_and_leaves_no_wrong_parity() {
    let of_five = |journal: &str| format!("stripe = 3\nchunk = \"16 KiB\"\njournal = \"{journal}\"\nslots = 8");
    for keys in [RAID_6.to_owned(), of_five("partial-parity"), of_five("none")] {
        let folder = tempfile::tempdir().expect("there is room");
        let text_of_it = files(&keys);
        let mut expected: Vec<Expected> = (0..4).map(|_| Expected::new()).collect();
        for round in 0..3 {
            let served = Served::start(folder.path(), &text_of_it);
            let mut volume = served.volume();
            (0..).zip(&mut expected).for_each(|(client, expected)| expected.check(&mut volume, client));
            served.done(&["set", "v", "scrub", "1"]);
            served.wait_until(|shown| shown.contains("all 5 legs are whole") && !shown.contains("scrub at"));
            // Without a journal the scrub may have had something to mend.
            let shown = served.shown();
            assert!(!shown.contains("repaired") || keys.contains("none"), "{shown}");
            write_and_kill(served, &mut expected, 30 + 10 * round);
        }
        let served = Served::start(folder.path(), &text_of_it);
        served.wait_until(|shown| shown.contains("all 5 legs are whole") && !shown.contains("scrub at"));
        served.done(&["detach", "v", "1"]);
        let mut volume = served.volume();
        // Blocks that are made of parity are those that were written.
        (0..).zip(&mut expected).for_each(|(client, expected)| expected.check(&mut volume, client));
    }
}

/// Five legs, two of which are fast, whose chunks move.
fn moving(keys: &str) -> String {
    let keys = format!("stripe = 3\nparity = 1\nchunk = \"16 KiB\"\nslots = 8\nmoves = true\n{keys}");
    let of = |(name, (mib, speed)): (&str, (u32, u32))| {
        format!("{{ file = \"{name}\", size = \"{mib} MiB\", speed = {speed} }}")
    };
    let sizes = [(12, 48), (10, 48), (10, 333), (10, 333), (12, 48)];
    description(&keys, &["a", "b", "c", "d", "e"].into_iter().zip(sizes).map(of).collect::<Vec<_>>())
}

/// Chunks moved, as the status says.
fn moved(served: &Served) -> u64 {
    let status: serde_json::Value = serde_json::from_slice(&served.ctl(&["status", "--json"]).stdout).expect("JSON");
    status["volumes"][0]["moved_chunks"].as_u64().expect("its chunks move")
}

#[test]
fn chunks_move_while_a_server_is_killed_and_a_leg_is_lost() {
    let folder = tempfile::tempdir().expect("there is room");
    let fast = "move_interval = \"5 ms\"\nmove_sample = 1\nmove_pause = \"0 ms\"";
    let mut expected: Vec<Expected> = (0..2).map(|_| Expected::new()).collect();
    let mut all = 0;
    for round in 0..4 {
        let served = Served::start(folder.path(), &moving(fast));
        let mut volume = served.volume();
        (0..).zip(&mut expected).for_each(|(client, expected)| expected.check(&mut volume, client));
        // One client asks for few chunks: they are hot, and others are not.
        let begun = Instant::now();
        while moved(&served) < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", served.shown());
            for at in 0..40 {
                read(&mut volume, 1205 + 4 * at * (1 + round), 1).expect("it is there");
            }
        }
        all += moved(&served);
        write_and_kill(served, &mut expected, 60 + 40 * round);
    }
    let served = Served::start(folder.path(), &moving(fast));
    served.wait_for("s0 array: all 5 legs are whole");
    served.done(&["set", "v", "moves", "0"]);
    served.wait_for("moves are off");
    served.done(&["detach", "v", "2"]);
    served.wait_for("degraded, 4 of 5 legs are whole");
    let mut volume = served.volume();
    // Chunks that have moved are found, and those of the leg that is lost are made of the others.
    (0..).zip(&mut expected).for_each(|(client, expected)| expected.check(&mut volume, client));
    assert!(all >= 80);
    assert!(served.server.interrupt().status.success());
    let said = refused(folder.path(), &moving(fast).replace("moves = true", "").replace("move_", "# move_"));
    assert!(said.contains("the array was made with moves = true, and the file says false"), "{said}");
}

#[test]
fn legs_are_lost_replaced_and_rebuilt_while_clients_write_and_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let far = |mib: u32| {
        let text_of_it = format!("[[volume]]\nname = \"far\"\nback = {{ memory = \"{mib} MiB\" }}\n");
        Server::start(folder.path(), &format!("far-{mib}.toml"), &text_of_it)
    };
    let far = [far(10), far(8)];
    let [one, other] = [0, 1].map(|number: usize| format!("{{ {} }}", far[number].leg("far")));
    let legs = [leg("a", 12), one, "{ memory = \"10 MiB\" }".to_owned(), other, leg("e", 6)];
    let served = Served::start(folder.path(), &description(RAID_6, &legs));
    let (stop, answers) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut expected: Vec<Expected> = (0..3).map(|_| Expected::new()).collect();
    std::thread::scope(|scope| {
        for (client, expected) in (0..).zip(&mut expected) {
            let (mut volume, stop, answers) = (served.volume(), &stop, &answers);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let some = AtomicBool::new(false);
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            std::thread::sleep(Duration::from_millis(60));
                            some.store(true, Ordering::Relaxed);
                        });
                        expected.write(&mut volume, client, &some, answers);
                    });
                    assert!(expected.open.is_none(), "no write fails");
                    expected.check(&mut volume, client);
                }
            });
        }
        let wait = || std::thread::sleep(Duration::from_millis(200));
        wait();
        // Targets that are killed: both parities are used.
        for (lost, server) in (1..).zip(far) {
            server.kill();
            served.wait_for(&format!("degraded, {} of 5 legs are whole", 5 - lost));
            wait();
        }
        wait();
        let said = text(&served.ctl(&["detach", "v", "0"]).stderr);
        assert!(said.contains("no array makes up for them now"), "{said}");
        let said = text(&served.ctl(&["replace", "v", "1", "file = \"small\", size = \"6 MiB\""]).stderr);
        assert!(said.contains("has 1536 blocks, and the leg has 2560"), "{said}");
        // A rebuild that takes its time.
        served.done(&["set", "v", "pause_us", "2000"]);
        served.done(&["replace", "v", "1", "file = \"new\", size = \"11 MiB\""]);
        served.wait_for("rebuilt up to stripe");
        wait();
        served.done(&["set", "v", "pause_us", "0"]);
        served.wait_for("degraded, 4 of 5 legs are whole");
        served.done(&["replace", "v", "3", "memory = \"8 MiB\""]);
        served.wait_for("s0 array: all 5 legs are whole");
        served.done(&["detach", "v", "0"]);
        wait();
        // The leg comes back with what it had, which does not count.
        served.done(&["replace", "v", "0", "file = \"a\", size = \"12 MiB\""]);
        served.wait_for("s0 array: all 5 legs are whole");
        wait();
        stop.store(true, Ordering::Relaxed);
    });
    let status: serde_json::Value = serde_json::from_slice(&served.ctl(&["status", "--json"]).stdout).expect("JSON");
    assert_eq!(
        (&status["volumes"][0]["failed"], &status["volumes"][0]["tree"]["below"][1]["note"]),
        (&0.into(), &"whole".into())
    );
    assert!(answers.load(Ordering::Relaxed) > 100);
}

/// Serves a file of volumes that is wrong, and returns what is said.
fn refused(folder: &Path, text_of_it: &str) -> String {
    let path = folder.join("wrong.toml");
    std::fs::write(&path, text_of_it).expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    let address = free_address().to_string();
    let output =
        command.arg("serve").arg(path).args(["--seconds", "0", "--listen", &address]).output().expect("it starts");
    assert!(!output.status.success(), "{text_of_it}");
    text(&output.stderr)
}

#[test]
fn old_legs_are_found_again_and_wrong_ones_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let served = Served::start(folder.path(), &files(RAID_6));
    let blocks = 2000;
    let mut volume = served.volume();
    (0..blocks).step_by(100).for_each(|first| volume.write(first, &stamped(first, 100, 7)).expect("it is there"));
    let said = text(&served.ctl(&["add", "v", "s0", "service = \"mirror\", legs = [{ memory = \"80 MiB\" }]"]).stderr);
    assert!(said.contains("above an array only") || said.contains("there would be"), "{said}");
    assert!(served.server.interrupt().status.success());
    let other = description(RAID_6, &["A", "B", "C", "D", "E"].map(|name| leg(name, 6)));
    assert!(Served::start(folder.path(), &other).server.interrupt().status.success());
    std::fs::write(folder.path().join("letter"), vec![b'x'; 12 << 20]).expect("there is room");
    let good = files(RAID_6);
    let of = |names: &[(&str, u32)]| {
        description(RAID_6, &names.iter().map(|(name, mib)| leg(name, *mib)).collect::<Vec<_>>())
    };
    let changed = |from: &str, to: &str| good.replace(from, to);
    let nested = format!("{{ service = \"array\", legs = [{}, {}, {}] }}", leg("x", 16), leg("y", 16), leg("z", 16));
    let above =
        |leg: &str| format!("[[volume]]\nname = \"v\"\nservice = \"atomic\"\nlog = \"1 MiB\"\nlegs = [{leg}]\n");
    for (text_of_it, expected) in [
        (
            of(&[("b", 10), ("a", 12), ("c", 10), ("d", 8), ("e", 6)]),
            "is leg 1 of its array: give the legs in that order",
        ),
        (of(&[("a", 12), ("b", 10), ("c", 10), ("d", 8), ("E", 6)]), "E is of another array than leg 0"),
        (of(&[("letter", 12), ("b", 10), ("c", 10), ("d", 8), ("e", 6)]), "letter holds something else"),
        (of(&[("a", 12), ("b", 10), ("c", 10), ("d", 8)]), "is of an array of 5 legs, not 4"),
        (
            of(&[("a", 12), ("b", 10), ("c", 10), ("d", 8), ("short", 4)]),
            "short: it has 1024 blocks, the array needs 1536",
        ),
        (
            of(&[("p", 12), ("q", 10), ("r", 10), ("d", 8), ("e", 6)]),
            "3 of 5 legs are missing, blank or older than the others, and parity makes up for 2: legs 0 (",
        ),
        (changed("stripe = 4", "stripe = 5"), "the array was made with stripe = 4, and the file says 5"),
        (changed("parity = 2", "parity = 1"), "the array was made with parity = 2, and the file says 1"),
        (changed("16 KiB", "32 KiB"), "the array was made with chunk = \"16 KiB\", and the file says \"32 KiB\""),
        (changed("slots = 8", "slots = 9"), "slots = 8, and the file says 9"),
        (changed("slots = 8", "slots = 8\njournal = \"none\""), "journal = \"whole\", and the file says \"none\""),
        (changed("size = \"12 MiB\"", "size = \"12 MiB\", speed = 9"), "other speeds of its legs"),
        (changed("stripe = 4", "stripe = 4\ncolour = 1"), "unknown field `colour`"),
        (above(&nested.replace("16 MiB", "6 MiB")), "the journal of 32 slots takes"),
        (
            above(&nested.replace("legs", "slots = 2, legs").replace("file = \"", "file = \"second-")),
            "above an array only stripe, spill-over and priority",
        ),
    ] {
        let said = refused(folder.path(), &text_of_it);
        assert!(said.contains(expected), "{text_of_it}: {said}");
    }
    // One leg is not there, and another one is blank: it starts, and the blank one is rebuilt.
    std::fs::rename(folder.path().join("a"), folder.path().join("kept")).expect("it is there");
    std::fs::rename(folder.path().join("d"), folder.path().join("d-kept")).expect("it is there");
    let served = Served::start(folder.path(), &good.replace("\"a\", size = \"12 MiB\"", "\"a\""));
    served.wait_for("degraded, 4 of 5 legs are whole");
    let shown = served.shown();
    assert!(shown.contains("does not exist") && shown.contains("missing"), "{shown}");
    let mut volume = served.volume();
    let mut check = |version: u8| {
        for first in (0..blocks).step_by(100) {
            assert!(read(&mut volume, first, 100) == Ok(stamped(first, 100, version)), "block {first}");
        }
    };
    check(7);
    served.done(&["replace", "v", "0", "file = \"kept\""]);
    served.wait_for("s0 array: all 5 legs are whole");
    served.done(&["detach", "v", "1"]);
    served.wait_for("degraded, 4 of 5 legs are whole");
    served.done(&["detach", "v", "2"]);
    check(7);
}

#[test]
fn arrays_stand_below_services_that_keep_no_blocks() {
    let folder = tempfile::tempdir().expect("there is room");
    let half = |name: &str| {
        let legs = ["0", "1", "2"].map(|number| leg(&format!("{name}{number}"), 16)).join(", ");
        format!("{{ service = \"array\", slots = 4, legs = [{legs}] }}")
    };
    let text_of_it = format!("[[volume]]\nname = \"v\"\nservice = \"stripe\"\nlegs = [{}, {}]\n", half("a"), half("b"));
    let served = Served::start(folder.path(), &text_of_it);
    let mut volume = served.volume();
    for first in (0..1000).step_by(250) {
        volume.write(first, &stamped(first, 250, 3)).expect("it is there");
    }
    served.wait_for("all 3 legs are whole");
    served.done(&["detach", "v", "1"]);
    served.done(&["detach", "v", "5"]);
    served.done(&["add", "v", "s0", "service = \"priority\""]);
    assert_eq!(read(&mut volume, 0, 1000), Ok(stamped(0, 1000, 3)));
    served.wait_for("degraded, 2 of 3");
    let said = text(&served.ctl(&["detach", "v", "0"]).stderr);
    assert!(said.contains("no array makes up"), "{said}");
}

#[test]
fn fio_verifies_an_array_over_nbd() {
    if !flashyard_conformance::has_program("fio", "it was not tried against an array") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("nbd").display().to_string();
    for (journal, parity) in [("whole", 2), ("partial-parity", 1), ("none", 1)] {
        let stripe = 2 + parity;
        let keys =
            format!("stripe = {stripe}\nparity = {parity}\nchunk = \"64 KiB\"\njournal = \"{journal}\"\nslots = 8");
        let legs = ["a", "b", "c", "d", "e"].map(|name| leg(&format!("{name}-{journal}"), 48));
        let served = Server::start_with(
            folder.path(),
            "v.toml",
            &description(&keys, &legs),
            &["--nbd", &format!("unix:{socket}")],
        );
        let output = Command::new("fio")
            .args(["--name=verify", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-1m", "--blockalign=4k"])
            .args(["--iodepth=16", "--size=40m", "--verify=crc32c", "--fsync=32", "--minimal"])
            .arg(format!("--uri=nbd+unix:///v?socket={socket}"))
            .arg(format!("--aux-path={}", folder.path().display()))
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = said.lines().last().and_then(|line| line.split(';').nth(4)).expect("terse output has the error");
        assert_eq!(errors, "0", "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(served.interrupt().status.success());
    }
}

#[test]
fn a_leg_whose_first_block_was_made_zeros_is_rebuilt_whatever_else_it_holds() {
    let folder = tempfile::tempdir().expect("there is room");
    let served = Served::start(folder.path(), &files(RAID_6));
    let mut volume = served.volume();
    let blocks = 2000;
    (0..blocks).step_by(100).for_each(|first| volume.write(first, &stamped(first, 100, 7)).expect("it is there"));
    drop(volume);
    assert!(served.server.interrupt().status.success());
    // As the message advises for storage that is to be used again; behind it lie other bytes, and the record of the members.
    let path = folder.path().join("b");
    let mut bytes = std::fs::read(&path).expect("it was made");
    bytes[..BLOCK].fill(0);
    bytes[2 * BLOCK..].fill(0xee);
    std::fs::write(&path, bytes).expect("there is room");
    let served = Served::start(folder.path(), &files(RAID_6));
    let mut volume = served.volume();
    let mut check = || {
        for first in (0..blocks).step_by(100) {
            assert!(read(&mut volume, first, 100) == Ok(stamped(first, 100, 7)), "block {first}");
        }
    };
    check();
    served.wait_for("s0 array: all 5 legs are whole");
    check();
}
