//! A server that ran out of descriptors lets clients in again once there are some, and connections leave none behind.

mod crowd;
mod small;

use crowd::{PATIENCE, Served, dial, initialize_request, nbd, nvme, serve};
use flashyard_live::{EngineAccess, Limits, Tempo};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Descriptors of the server whose clients want more.
const DESCRIPTORS: u32 = 48;

/// Connections in a row. `FLASHYARD_TEST_CONNECTIONS=500000` takes some minutes.
fn connections_in_a_row() -> u32 {
    std::env::var("FLASHYARD_TEST_CONNECTIONS").map_or(3000, |count| count.parse().expect("a number"))
}

fn say(line: &str) {
    let line = format!("@{line}\n");
    std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush()).expect("the parent listens");
}

/// Descriptors and resident bytes of this process.
fn taken() -> (usize, u64) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("this is Linux").count();
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("there is such a line");
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    (descriptors, kilobytes << 10)
}

#[test]
#[ignore = "the process that the tests beside it start"]
fn a_process_that_serves_until_its_parent_is_done() {
    if std::env::var("FLASHYARD_TEST_SERVED").is_err() {
        return;
    }
    serve(Limits::default(), Tempo::Off, |served: Served| {
        say(&format!("{} {}", served.nvme, served.nbd));
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if line == "taken" {
                let held = || {
                    let look = |engine: &mut EngineAccess<'_>| {
                        let bytes = engine.in_flight_bytes();
                        (engine.connections(), bytes, engine.session().world().in_flight())
                    };
                    served.handle.call(look).expect("it serves")
                };
                let begun = Instant::now();
                while held() != (0, 0, 0) {
                    let held = held();
                    assert!(begun.elapsed() < PATIENCE, "connections, bytes and requests that are left: {held:?}");
                    std::thread::sleep(Duration::from_millis(5));
                }
                let (descriptors, resident) = taken();
                say(&format!("{descriptors} {resident}"));
            }
        }
    });
}

/// The process beside, with a limit of descriptors.
struct Server {
    child: std::process::Child,
    said: Box<dyn Iterator<Item = String>>,
}

impl Server {
    fn start(descriptors: u32) -> (Self, SocketAddr, SocketAddr) {
        let limited = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_process_that_serves_until_its_parent_is_done", "--ignored", "--nocapture"])
            .env("FLASHYARD_TEST_SERVED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let mut said = Box::new(lines.filter_map(|line| line.split_once('@').map(|(_, said)| said.to_owned())));
        let line = said.next().expect("it says where it listens");
        let (nvme, nbd) = line.split_once(' ').expect("two addresses");
        let (nvme, nbd) = (nvme.parse().expect("an address"), nbd.parse().expect("an address"));
        (Self { child, said }, nvme, nbd)
    }

    /// Descriptors and bytes that it has once no client is connected.
    fn taken(&mut self) -> (usize, u64) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "taken").expect("it listens");
        let said = self.said.next().expect("it answers");
        let (descriptors, resident) = said.split_once(' ').expect("two numbers");
        (descriptors.parse().expect("a number"), resident.parse().expect("a number"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn clients_are_let_in_again_after_descriptors_ran_out() {
    for over_nbd in [false, true] {
        let (mut server, to_nvme, to_nbd) = Server::start(DESCRIPTORS);
        let address = if over_nbd { to_nbd } else { to_nvme };
        let before = server.taken();
        // More than it has descriptors for, and fewer than wait in a backlog.
        let crowd: Vec<_> = (0..DESCRIPTORS + 20).map(|_| dial(address)).collect();
        // The last one that it could take was taken; what waits stays where it is.
        let mut first = &crowd[0];
        if over_nbd {
            std::io::Read::read_exact(&mut first, &mut [0; 18]).expect("the first ones are greeted");
        } else {
            first.write_all(&initialize_request()).expect("the server listens");
            std::io::Read::read_exact(&mut first, &mut [0; 128]).expect("the first ones are answered");
        }
        std::thread::sleep(Duration::from_millis(500));
        drop(crowd);
        let client = if over_nbd { nbd(address) } else { nvme(address) };
        drop(client);
        assert_eq!(server.taken().0, before.0, "in less than {PATIENCE:?}, and nothing is left behind");
    }
}

#[test]
fn connections_in_a_row_leave_nothing_behind() {
    let (mut server, to_nvme, to_nbd) = Server::start(1024);
    let connections = connections_in_a_row();
    let crowd = |count: u32| {
        for number in 0..count {
            match number % 6 {
                0 => drop(nbd(to_nbd)),
                1 => drop(nvme(to_nvme)),
                2 => drop(dial(to_nbd)),
                3 => dial(to_nvme).write_all(&initialize_request()).expect("the server listens"),
                4 => dial(to_nvme).write_all(&initialize_request()[..50]).expect("the server listens"),
                _ => nbd(to_nbd).write_all(&crowd::request(0, 1, 0, 1 << 20)).expect("the server listens"),
            }
        }
    };
    crowd(1000);
    let before = server.taken();
    crowd(connections);
    let after = server.taken();
    println!("{connections} connections: {before:?} descriptors and bytes, then {after:?}");
    assert_eq!(after.0, before.0);
    assert!(after.1 < before.1 + (8 << 20), "{before:?}, then {after:?}");
}
