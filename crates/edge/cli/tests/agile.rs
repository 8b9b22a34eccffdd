//! Space that servers lend each other: mirrors of borrowed pieces over lenders that come, leave and are killed.

mod common;

use common::*;
use flashyard_blk::Blocking;
use flashyard_live::RemoteNamespace;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Blocks of a piece of 16 MiB that clients see below the record of a mirror.
const BLOCKS: u64 = 16 * 256 - 2;

/// A program that does not outlive its test, and listens at an address.
struct Program {
    child: Option<Child>,
    address: SocketAddr,
}

impl Program {
    fn start(command: &mut Command, address: SocketAddr) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut program = Self { child: Some(child), address };
        wait_until("it listens", || {
            let ended = program.child.as_mut().expect("it runs").try_wait().expect("it is ours");
            assert!(ended.is_none(), "{:?}", program.child.take().map(Child::wait_with_output));
            TcpStream::connect(address).is_ok()
        });
        program
    }

    fn kill(mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it is ours");
        child.wait().expect("it was killed");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill is there").success());
    }

    fn interrupt(&self) {
        self.signal("-INT");
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().expect("it runs").try_wait().expect("it is ours").is_some()
    }

    fn output(mut self) -> Output {
        self.child.take().expect("it runs").wait_with_output().expect("it ends")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(90), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn board() -> Program {
    let address = free_address();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    Program::start(command.args(["billboard", "--listen", &address.to_string(), "--seconds", "240"]), address)
}

/// A server that lends `mib` in pieces of 16 MiB.
fn lender(folder: &Path, name: &str, board: &Program, mib: u32) -> Program {
    let address = free_address();
    let text = format!(
        "server = \"{name}\"\n[lend]\nboard = \"{}\"\nlisten = \"{address}\"\nfile = \"{name}.lent\"\nsize = \"{mib} MiB\"\n\
         piece = \"16 MiB\"\nlease = \"6 s\"\npost_every = \"1 s\"\n",
        board.address
    );
    Program::start(&mut program(folder, &format!("{name}.toml"), &text, &["--seconds", "240"]), address)
}

/// A server with a volume `v`, a mirror of two borrowed pieces.
fn consumer(folder: &Path, name: &str, board: &Program) -> Server {
    let leg = format!("{{ borrow = \"16 MiB\", board = \"{}\", choice = \"first\" }}", board.address);
    let text = format!("server = \"{name}\"\n[[volume]]\nname = \"v\"\nservice = \"mirror\"\nlegs = [{leg}, {leg}]\n");
    let socket = folder.join(format!("{name}.ctl")).display().to_string();
    Server::start_with(folder, &format!("{name}.toml"), &text, &["--control", &socket])
}

/// The status of a consumer's volume.
fn status(folder: &Path, name: &str) -> Value {
    let output = ctl(&folder.join(format!("{name}.ctl")).display().to_string(), &["status", "--json"]);
    serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()["volumes"][0].clone()
}

/// The lenders of the legs that answer, and whether all copies are made.
fn lenders(folder: &Path, name: &str) -> (Vec<String>, bool) {
    let status = status(folder, name);
    let lender = |leg: &Value| {
        let name = leg["name"].as_str().filter(|_| leg["state"] == "ready")?;
        Some(name.strip_prefix(PREFIX)?.split('.').next()?.to_owned())
    };
    let legs = status["tree"]["below"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<String> = legs.iter().filter_map(lender).collect();
    found.sort();
    (found, status["rebuild"]["left_blocks"] == 0)
}

fn wait_for(folder: &Path, name: &str, wanted: &[&str]) {
    wait_until(&format!("{name} on {wanted:?}: {:?}", lenders(folder, name)), || {
        let (found, is_copied) = lenders(folder, name);
        found == wanted && is_copied
    });
}

/// Takes a leg out, once the record of the mirror has all copies.
fn detach(socket: &str, leg: &str) {
    wait_until("the leg can be missed", || ctl(socket, &["detach", "v", leg]).status.success());
}

/// One line to a server, and its answer.
fn exchange(address: SocketAddr, line: &str) -> Value {
    let mut stream = TcpStream::connect(address).expect("it listens");
    writeln!(stream, "{line}").expect("it reads");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("it answers");
    serde_json::from_str(&answer).expect("it is JSON")
}

/// MiB that a server has posted, if it has.
fn posted(board: &Program, server: &str) -> Option<u64> {
    let answer = exchange(board.address, "{\"command\":\"read\"}");
    let posts = answer["posts"].as_array().expect("it lists").clone();
    posts.iter().find(|post| post["server"] == server).and_then(|post| post["free_mib"].as_u64())
}

#[test]
fn a_mirror_of_borrowed_pieces_holds_what_is_written() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let lenders_there = ["a", "b"].map(|name| lender(folder.path(), name, &board, 64));
    let consumer = consumer(folder.path(), "c", &board);
    let mut volume = consumer.volume("v");
    for first in (0..BLOCKS - 64).step_by(64) {
        volume.write(first, &stamped(first, 64, 1)).expect("it is there");
    }
    volume.flush().expect("both are there");
    wait_for(folder.path(), "c", &["a", "b"]);
    for first in (0..BLOCKS - 64).step_by(64) {
        assert!(read(&mut volume, first, 64) == Ok(stamped(first, 64, 1)), "block {first}");
    }
    wait_until("the lenders post what is left", || ["a", "b"].iter().all(|name| posted(&board, name) == Some(48)));
    drop(volume);
    let output = consumer.interrupt();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Everything was given back at once, and is zeros.
    wait_until("all is free again", || ["a", "b"].iter().all(|name| posted(&board, name) == Some(64)));
    for lender in lenders_there {
        lender.interrupt();
        let output = lender.output();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let file = std::fs::read(folder.path().join("a.lent")).expect("it was made");
    assert!(file[1 << 20..].iter().all(|&byte| byte == 0));
    assert_eq!(posted(&board, "a"), None, "it has left");
}

/// Between two requests of the load: it lasts for as long as leases do, and tests beside it want the processors too.
const PAUSE: Duration = Duration::from_millis(1);

/// Writes and reads through a volume, checks every block, and does `act` meanwhile. No request may fail.
fn under_load(server: &Server, act: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let (mut volume, mut version) = (server.volume("v"), 0_u8);
            while !stop.load(Ordering::Relaxed) || version < 2 {
                version = version % 250 + 1;
                for first in (0..BLOCKS - 32).step_by(32) {
                    volume.write(first, &stamped(first, 32, version)).expect("no write fails");
                    std::thread::sleep(PAUSE);
                }
                for first in (0..BLOCKS - 32).step_by(32) {
                    let found = read(&mut volume, first, 32);
                    // Bytes of 32 blocks are no message.
                    assert!(found == Ok(stamped(first, 32, version)), "block {first}: {:?}", found.err());
                    std::thread::sleep(PAUSE);
                }
            }
            version
        });
        act();
        stop.store(true, Ordering::Relaxed);
        load.join().expect("every answer was right")
    });
    // All of it once more, from what is there now.
    let mut volume = server.volume("v");
    for first in (0..BLOCKS - 32).step_by(32) {
        assert!(read(&mut volume, first, 32) == Ok(stamped(first, 32, rounds)), "block {first} at the end");
    }
}

#[test]
fn a_lender_that_is_killed_is_replaced_by_a_third_one_under_load() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let a = lender(folder.path(), "a", &board, 64);
    let b = lender(folder.path(), "b", &board, 64);
    let consumer = consumer(folder.path(), "s", &board);
    let _c = lender(folder.path(), "c", &board, 64);
    wait_for(folder.path(), "s", &["a", "b"]);
    under_load(&consumer, || {
        b.kill();
        wait_for(folder.path(), "s", &["a", "c"]);
    });
    // The copy counts: the other one may go as well.
    let _d = lender(folder.path(), "d", &board, 64);
    under_load(&consumer, || {
        a.kill();
        wait_for(folder.path(), "s", &["c", "d"]);
    });
    let output = consumer.interrupt();
    assert!(output.status.success() && text(&output.stdout).contains("; 0 failed"), "{output:?}");
}

#[test]
fn a_lender_that_leaves_ends_after_its_data_has_moved_and_no_request_fails() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let mut a = lender(folder.path(), "a", &board, 64);
    let mut b = lender(folder.path(), "b", &board, 64);
    let consumer = consumer(folder.path(), "s", &board);
    let mut others = Vec::new();
    wait_for(folder.path(), "s", &["a", "b"]);
    under_load(&consumer, || {
        // There is nowhere to go: it waits, longer than a lease.
        b.interrupt();
        wait_until("its post is withdrawn", || posted(&board, "b").is_none());
        std::thread::sleep(Duration::from_secs(8));
        assert!(!b.has_ended() && lenders(folder.path(), "s").0 == ["a", "b"]);
        others.push(lender(folder.path(), "c", &board, 64));
        wait_until("it has ended", || b.has_ended());
        wait_for(folder.path(), "s", &["a", "c"]);
        let output = b.output();
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains("waits for consumers to move what they have here"), "{output:?}");
        // And once more: the place of the one that has left is taken.
        others.push(lender(folder.path(), "d", &board, 64));
        a.interrupt();
        wait_until("it has ended", || a.has_ended());
        wait_for(folder.path(), "s", &["c", "d"]);
        assert!(a.output().status.success());
        let legs = status(folder.path(), "s")["tree"]["below"].as_array().map(Vec::len);
        assert_eq!(legs, Some(3), "two, and one place to move");
    });
    let output = consumer.interrupt();
    assert!(output.status.success() && text(&output.stdout).contains("; 0 failed"), "{output:?}");
}

/// A message of a consumer about an agreement.
fn message(kind: &str, consumer: &str, number: u32) -> String {
    format!(
        "{{\"message\":\"{kind}\",\"consumer\":\"{consumer}\",\"incarnation\":1,\"number\":{number},\"mib\":16,\
         \"asked_ns\":0,\"lease_ms\":6000}}"
    )
}

/// Connects to the subsystem that a lender has confirmed.
fn connect(confirm: &Value) -> Result<Blocking<RemoteNamespace>, String> {
    let address = confirm["address"].as_str().and_then(|address| address.parse().ok()).expect("it is one");
    let nqn = confirm["nqn"].as_str().expect("it has a name");
    let namespace = RemoteNamespace::connect(address, "nqn.2026-01.test:host", nqn, Some(1));
    namespace.map(Blocking::new).map_err(|error| error.to_string())
}

#[test]
fn a_late_consumer_is_fenced_and_the_next_one_reads_zeros() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    // One piece, so that the next consumer gets the same.
    let lender = lender(folder.path(), "a", &board, 16);
    wait_until("it posts", || posted(&board, "a") == Some(16));
    let first = exchange(lender.address, &message("ask", "x", 1));
    assert_eq!(first["message"], "confirm", "{first}");
    let mut volume = connect(&first).expect("it is served");
    volume.write(0_u64, &stamped(0, 500, 7)).expect("it is there");
    assert_eq!(read(&mut volume, 0, 500), Ok(stamped(0, 500, 7)));
    let refused = exchange(lender.address, &message("ask", "y", 1));
    assert_eq!(refused["message"], "refuse");
    assert!(refused["why"].as_str().is_some_and(|why| why.contains("16 MiB are not free: 0 MiB are")), "{refused}");
    wait_until("its post says so", || posted(&board, "a") == Some(0));
    // It does not renew its lease, and is connected still.
    wait_until("the piece is free again", || posted(&board, "a") == Some(16));
    let second = exchange(lender.address, &message("ask", "y", 2));
    assert_eq!(second["message"], "confirm", "{second}");
    assert!(second["nqn"].as_str().is_some_and(|nqn| nqn.ends_with(":a.lent.y.00000001.2")), "{second}");
    let mut next = connect(&second).expect("it is served");
    assert_eq!(read(&mut next, 0, 500), Ok(vec![0; 500 * BLOCK]), "it was zeroed");
    next.write(0_u64, &stamped(0, 500, 8)).expect("it is there");
    assert!(volume.write(0_u64, &stamped(0, 500, 9)).is_err(), "the late one is cut off");
    let mut late = second.clone();
    late["nqn"] = first["nqn"].clone();
    for old in [&first, &late] {
        assert!(connect(old).is_err(), "its name is served no more");
    }
    assert_eq!(read(&mut next, 0, 500), Ok(stamped(0, 500, 8)));
    // Given back, it is free without waiting for the lease; a question that was late makes no new agreement.
    assert_eq!(exchange(lender.address, &message("release", "y", 2))["message"], "released");
    wait_until("the piece is free again", || posted(&board, "a") == Some(16));
    assert_eq!(exchange(lender.address, &message("ask", "y", 2))["message"], "refuse");
    // Nor does a question mean anything that comes behind the release of its agreement, over another connection.
    assert_eq!(exchange(lender.address, &message("release", "w", 1))["message"], "released");
    assert_eq!(exchange(lender.address, &message("ask", "w", 1))["message"], "refuse");
    for (line, expected) in [
        ("{", "no line of JSON"),
        ("{\"message\":\"lend\"}", "\"message\" is \"lend\""),
        (
            "{\"message\":\"leaving\",\"consumer\":\"x\",\"incarnation\":1,\"number\":1}",
            "a consumer says ask or release",
        ),
    ] {
        let answer = exchange(lender.address, line);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(expected)), "{line}: {answer}");
    }
    assert_eq!(
        exchange(lender.address, &message("ask", "z", 1).replace("6000", "7000"))["message"],
        "refuse",
        "too long"
    );
}

#[test]
fn without_its_billboard_the_rack_goes_on() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let _lenders = ["a", "b"].map(|name| lender(folder.path(), name, &board, 64));
    let consumer = consumer(folder.path(), "s", &board);
    wait_for(folder.path(), "s", &["a", "b"]);
    under_load(&consumer, || {
        board.kill();
        // Longer than two leases.
        std::thread::sleep(Duration::from_secs(14));
        assert_eq!(lenders(folder.path(), "s").0, ["a", "b"]);
    });
    assert!(consumer.interrupt().status.success());
}

#[test]
fn space_of_a_consumer_that_is_killed_comes_back_with_its_lease_and_that_of_a_lender_at_its_next_start() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let [a, b] = ["a", "b"].map(|name| lender(folder.path(), name, &board, 32));
    let one = consumer(folder.path(), "s", &board);
    let mut volume = one.volume("v");
    volume.write(0_u64, &stamped(0, 500, 9)).expect("it is there");
    volume.flush().expect("both are there");
    b.kill();
    one.kill();
    let lent = |name: &str| std::fs::read(folder.path().join(name)).expect("it was made").split_off(1 << 20);
    wait_until("the lease has ended", || posted(&board, "a") == Some(32));
    assert!(lent("a.lent").iter().all(|&byte| byte == 0), "it was zeroed before it was posted");
    assert!(lent("b.lent").iter().any(|&byte| byte != 0), "it was killed first");
    // A server of the same name has another address now, which the billboard takes when the old post has ended.
    let _b = lender(folder.path(), "b", &board, 32);
    assert!(lent("b.lent").iter().all(|&byte| byte == 0));
    wait_until("it posts", || posted(&board, "b") == Some(32));
    let other = consumer(folder.path(), "t", &board);
    assert_eq!(read(&mut other.volume("v"), 0, 500), Ok(vec![0; 500 * BLOCK]));
    drop(a);
}

#[test]
fn a_lender_that_hangs_is_given_up_with_its_lease() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let [_a, b] = ["a", "b"].map(|name| lender(folder.path(), name, &board, 64));
    let consumer = consumer(folder.path(), "s", &board);
    let _c = lender(folder.path(), "c", &board, 64);
    wait_for(folder.path(), "s", &["a", "b"]);
    under_load(&consumer, || {
        b.signal("-STOP");
        wait_for(folder.path(), "s", &["a", "c"]);
        b.signal("-CONT");
        wait_until("it has everything back", || posted(&board, "b") == Some(64));
    });
    let output = consumer.interrupt();
    assert!(output.status.success() && text(&output.stdout).contains("; 0 failed"), "{output:?}");
}

#[test]
fn a_mirror_with_a_leg_of_its_own_starts_alone_and_is_completed_and_no_server_borrows_from_itself() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let address = free_address();
    let leg = format!("{{ borrow = \"16 MiB\", board = \"{}\" }}", board.address);
    let text_of = |legs: &str| {
        format!(
            "server = \"s\"\n[lend]\nboard = \"{}\"\nlisten = \"{address}\"\nmemory = \"64 MiB\"\npiece = \"16 MiB\"\n\
             [[volume]]\nname = \"v\"\nservice = \"mirror\"\nlegs = [{legs}]\n",
            board.address
        )
    };
    // There is nothing to stand on.
    let output = program(folder.path(), "s.toml", &text_of(&leg), &[]).output().expect("it ends");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("volume v: no server lends 16 MiB"), "{said}");
    let socket = folder.path().join("s.ctl").display().to_string();
    let own = text_of(&format!("{leg}, {{ file = \"own\", size = \"16 MiB\" }}"));
    let server = Server::start_with(folder.path(), "s.toml", &own, &["--control", &socket]);
    wait_until("it lends itself", || posted(&board, "s") == Some(64));
    let mut volume = server.volume("v");
    volume.write(0_u64, &stamped(0, 300, 3)).expect("one leg is there");
    assert_eq!(lenders(folder.path(), "s").0, Vec::<String>::new(), "it does not borrow from itself");
    let a = lender(folder.path(), "a", &board, 64);
    wait_for(folder.path(), "s", &["a"]);
    // A user takes the leg out: it stays out.
    detach(&socket, "0");
    wait_until("it was given back", || posted(&board, "a") == Some(64));
    let keys = &leg[1..leg.len() - 1];
    wait_until("the leg is replaced", || ctl(&socket, &["replace", "v", "0", keys]).status.success());
    wait_for(folder.path(), "s", &["a"]);
    drop(volume);
    let output = server.interrupt();
    assert!(output.status.success(), "{}", text(&output.stderr));
    wait_until("it was given back", || posted(&board, "a") == Some(64));
    // The leg of its own has everything.
    drop(a);
    let server = Server::start_with(folder.path(), "s.toml", &own, &["--control", &socket]);
    assert_eq!(read(&mut server.volume("v"), 0, 300), Ok(stamped(0, 300, 3)));
    let _b = lender(folder.path(), "b", &board, 64);
    wait_for(folder.path(), "s", &["b"]);
    detach(&socket, "1");
    assert_eq!(read(&mut server.volume("v"), 0, 300), Ok(stamped(0, 300, 3)), "from what was borrowed");
}

#[test]
fn a_file_with_data_is_copied_to_a_borrowed_leg_before_it_and_never_the_other_way() {
    let folder = tempfile::tempdir().expect("there is room");
    let board = board();
    let data = stamped(0, 16 * 256, 5);
    std::fs::write(folder.path().join("own"), &data).expect("there is room");
    let _a = lender(folder.path(), "a", &board, 64);
    let leg = format!("{{ borrow = \"16 MiB\", board = \"{}\" }}", board.address);
    let text_of = format!(
        "server = \"s\"\n[[volume]]\nname = \"v\"\nservice = \"mirror\"\nlegs = [{leg}, {{ file = \"own\" }}]\n"
    );
    let socket = folder.path().join("s.ctl").display().to_string();
    let server = Server::start_with(folder.path(), "s.toml", &text_of, &["--control", &socket]);
    wait_for(folder.path(), "s", &["a"]);
    detach(&socket, "1");
    assert!(
        read(&mut server.volume("v"), 0, 500).is_ok_and(|bytes| bytes == data[..500 * BLOCK]),
        "from what was borrowed"
    );
    assert!(server.interrupt().status.success());
    let file = std::fs::read(folder.path().join("own")).expect("it is there");
    assert!(file[..BLOCKS as usize * BLOCK] == data[..BLOCKS as usize * BLOCK]);
}
