//! `flashyard serve` with `service = "atomic"`: a server that is killed in the midst of writes leaves each of them whole or not there.

use flashyard_blk::Blocking;
use flashyard_live::RemoteNamespace;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// Blocks of a write, and clients that write at once, each to blocks of its own.
const BLOCKS: u64 = 37;
const CLIENTS: u64 = 4;
/// Ranges that a client writes in turn.
const RANGES: u64 = 5;

/// A server that does not outlive its test.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(folder: &Path, text: &str) -> Self {
        Self::start_with(folder, text, &[])
    }

    fn start_with(folder: &Path, text: &str, more: &[&str]) -> Self {
        let path = folder.join("volumes.toml");
        std::fs::write(&path, text).expect("there is room");
        let address =
            TcpListener::bind("127.0.0.1:0").expect("the loopback has ports").local_addr().expect("it is bound");
        let child = Command::new(env!("CARGO_BIN_EXE_flashyard"))
            .arg("serve")
            .arg(path)
            .args(["--listen", &address.to_string(), "--seconds", "120"])
            .args(more)
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut server = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait().expect("it is ours");
            assert!(ended.is_none() && begun.elapsed() < Duration::from_secs(60), "it does not listen: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it was killed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(address: SocketAddr) -> Blocking<RemoteNamespace> {
    let nqn = "nqn.2026-11.io.flashyard:v";
    Blocking::new(RemoteNamespace::connect(address, "nqn.2026-01.test:host", nqn, Some(1)).expect("it is served"))
}

/// A block that tells its number and its version.
fn block(number: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        vec![0; BLOCK]
    } else {
        [number.to_le_bytes(), version.to_le_bytes()].concat().repeat(BLOCK / 16)
    }
}

/// First block of a range of a client. Ranges of one client meet: each has some blocks of the one before.
fn first(client: u64, range: u64) -> u64 {
    client * 400 + range * (BLOCKS - 5)
}

/// Writes until the server has ended; returns the version that had no answer. `answers` counts those that had one.
fn write_until_it_ends(mut volume: Blocking<RemoteNamespace>, client: u64, from: u64, answers: &AtomicU64) -> u64 {
    for version in from.. {
        let at = first(client, version % RANGES);
        let bytes: Vec<u8> = (at..at + BLOCKS).flat_map(|number| block(number, version)).collect();
        let flushes = version.is_multiple_of(7);
        let written = volume.write(at, &bytes).and_then(|()| if flushes { volume.flush() } else { Ok(()) });
        if written.is_err() {
            return version;
        }
        answers.fetch_add(1, Ordering::Relaxed);
    }
    unreachable!("versions do not end")
}

/// Checks that the volume has the writes of a client before `version`, and that one whole or not.
fn check(volume: &mut Blocking<RemoteNamespace>, client: u64, version: u64) {
    let blocks = first(0, RANGES - 1) + BLOCKS;
    let mut bytes = vec![0; blocks as usize * BLOCK];
    volume.read(first(client, 0), &mut bytes).expect("it is there");
    let expected = |last: u64| -> Vec<u8> {
        let mut versions = vec![0; blocks as usize];
        // No block is older than the last round of ranges.
        for version in last.saturating_sub(RANGES).max(1)..=last {
            let at = first(0, version % RANGES) as usize;
            versions[at..at + BLOCKS as usize].fill(version);
        }
        (first(client, 0)..).zip(versions).flat_map(|(number, version)| block(number, version)).collect()
    };
    let found: Vec<_> =
        bytes.chunks(BLOCK).map(|block| u64::from_le_bytes(*block[8..].first_chunk().expect("8 bytes"))).collect();
    assert!(
        bytes == expected(version) || bytes == expected(version - 1),
        "client {client} had no answer to write {version}, and blocks have {found:?}"
    );
}

#[test]
fn a_server_that_is_killed_leaves_writes_whole_or_not_there() {
    let folder = tempfile::tempdir().expect("there is room");
    // A log that is full all the time, and one that is not.
    for (log, file) in [("1 MiB", "small"), ("16 MiB", "large")] {
        // Chunks in two files, of which one is slower: without the service a kill tears writes.
        let half = |name: &str, latency: u32| {
            format!("{{ file = \"{file}-{name}\", size = \"16 MiB\", latency = \"{latency} ms\" }}")
        };
        let stripe = format!("service = \"stripe\", chunk = \"16 KiB\", legs = [{}, {}]", half("a", 1), half("b", 3));
        let text =
            format!("[[volume]]\nname = \"v\"\nservice = \"atomic\"\nlog = \"{log}\"\nlegs = [{{ {stripe} }}]\n");
        let mut versions = vec![1; CLIENTS as usize];
        for round in 0..5 {
            let mut server = Server::start(folder.path(), &text);
            let mut volume = connect(server.address);
            for (client, version) in (0..).zip(&versions) {
                check(&mut volume, client, *version);
            }
            let answers: Vec<_> = versions.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
            let clients: Vec<_> = (0..)
                .zip(versions.iter().zip(&answers))
                // The one without an answer is written again.
                .map(|(client, (&version, answers))| {
                    let (volume, answers) = (connect(server.address), Arc::clone(answers));
                    std::thread::spawn(move || write_until_it_ends(volume, client, version, &answers))
                })
                .collect();
            let begun = Instant::now();
            while answers.iter().any(|answers| answers.load(Ordering::Relaxed) < 3 + 2 * round) {
                assert!(begun.elapsed() < Duration::from_secs(60), "writes have no answers: {answers:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
            server.kill();
            versions = clients.into_iter().map(|client| client.join().expect("it ends")).collect();
        }
    }
}

#[test]
fn a_log_without_room_or_above_nothing_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let memory = "{ memory = \"16 MiB\" }";
    for (rest, expected) in [
        (format!("service = \"atomic\"\nlog = \"16 MiB\"\nlegs = [{memory}]"), "no room for a log of 4096"),
        (format!("service = \"atomic\"\nlog = \"4 KiB\"\nlegs = [{memory}]"), "64 KiB or more"),
        (format!("service = \"atomic\"\nlegs = [{memory}, {memory}]"), "2 legs, give 1"),
        (format!("service = \"mirror\"\nlog = \"1 MiB\"\nlegs = [{memory}, {memory}]"), "log goes with"),
    ] {
        let path = folder.path().join("wrong.toml");
        std::fs::write(&path, format!("[[volume]]\nname = \"v\"\n{rest}\n")).expect("there is room");
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
        let output = command.arg("serve").arg(path).args(["--seconds", "0"]).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{rest}: {said}");
    }
}

#[test]
fn fio_verifies_atomic_writes_over_nbd() {
    if !flashyard_conformance::has_program("fio", "it was not tried against atomic writes") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("nbd");
    let leg = "{ file = \"disk\", size = \"64 MiB\" }";
    let text = format!("[[volume]]\nname = \"v\"\nservice = \"atomic\"\nlog = \"4 MiB\"\nlegs = [{leg}]\n");
    let _server = Server::start_with(folder.path(), &text, &["--nbd", &format!("unix:{}", socket.display())]);
    let output = Command::new("fio")
        .args(["--name=verify", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-2m", "--blockalign=4k"])
        .args(["--iodepth=16", "--size=40m", "--verify=crc32c", "--fsync=32", "--minimal"])
        .arg(format!("--uri=nbd+unix:///v?socket={}", socket.display()))
        .arg(format!("--aux-path={}", folder.path().display()))
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = said.lines().last().and_then(|line| line.split(';').nth(4)).expect("terse output has the error");
    assert_eq!(errors, "0", "{said}{}", String::from_utf8_lossy(&output.stderr));
}
