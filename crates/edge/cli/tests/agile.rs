//! Space that servers lend each other: mirrors of borrowed pieces over lenders that come, leave and are killed.

mod common;

use common::*;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
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

    fn interrupt(&self) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill is there").success());
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
         piece = \"16 MiB\"\nlease = \"3 s\"\npost_every = \"1 s\"\n",
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
