//! `flashyard ctl` on volumes that serve: services come and leave, legs of mirrors too, and every block stays where it is.

mod common;

use common::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Blocks of the volume, and of a write.
const BLOCKS: u64 = 32 * 256;
const RUN: u64 = 64;

/// The error of a command that is refused, or nothing.
fn refused(socket: &str, arguments: &[&str]) -> String {
    text(&ctl(socket, arguments).stderr)
}

fn done(socket: &str, arguments: &[&str]) {
    let output = ctl(socket, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
}

/// Waits until all copies are made.
fn wait_for_copies(socket: &str) {
    let begun = Instant::now();
    loop {
        let output = ctl(socket, &["status", "--json"]);
        // A server listens there a little later than for its clients.
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if status["volumes"][0]["rebuild"]["left_blocks"] == 0 {
            // Legs learn of it a little later.
            return std::thread::sleep(Duration::from_millis(300));
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn services_come_and_leave_under_load_and_every_block_stays() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"v\"\nback = { file = \"a\", size = \"32 MiB\" }\n";
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    let (stop, mut volume) = (AtomicBool::new(false), server.volume("v"));
    for first in (0..BLOCKS).step_by(256) {
        volume.write(first, &stamped(first, 256, 1)).expect("it is there");
    }
    let (written, stamp) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let (mut volume, mut written, mut stamp) = (server.volume("v"), 0_u64, 1);
            while !stop.load(Ordering::Relaxed) {
                stamp = stamp % 250 + 1;
                for first in (0..BLOCKS).step_by(256) {
                    volume.write(first, &stamped(first, RUN, stamp)).expect("it is there");
                    assert!(read(&mut volume, first, RUN as usize) == Ok(stamped(first, RUN, stamp)), "block {first}");
                    let rest = read(&mut volume, first + RUN, 100);
                    assert!(rest == Ok(stamped(first + RUN, 100, 1)), "block {first} after {written} writes");
                    written += 1;
                }
            }
            (written, stamp)
        });
        let other = "{ memory = \"32 MiB\" }";
        for (place, keys, expected) in [
            ("s7", "service = \"priority\"".to_owned(), "no such place"),
            ("x", "service = \"priority\"".to_owned(), "is no place"),
            ("0", format!("service = \"stripe\", legs = [{other}]"), "stripe would lay blocks out in another way"),
            (
                "0",
                "service = \"mirror\", legs = [{ memory = \"16 MiB\" }]".to_owned(),
                "there would be 4096 blocks, and there are 8192",
            ),
            ("0", format!("service = \"mirror\", record = true, legs = [{other}]"), "there would be 8190 blocks"),
            ("0", "service = \"cache\", legs = [{ memory = \"1 MiB\" }]".to_owned(), "give 8 MiB or more"),
            ("0", "memory = \"1 MiB\"".to_owned(), "legs go with service"),
            ("0", "service = \"cache\"".to_owned(), "1 legs, give 2"),
        ] {
            let said = refused(&socket, &["add", "v", place, &keys]);
            assert!(said.contains(expected), "{keys}: {said}");
        }
        done(&socket, &["add", "v", "0", &format!("service = \"mirror\", legs = [{other}]")]);
        wait_for_copies(&socket);
        let shown = text(&ctl(&socket, &["status"]).stdout);
        assert!(shown.contains("mirror\n") && shown.contains("1 memory: ready"), "{shown}");
        done(&socket, &["add", "v", "s0", "service = \"priority\""]);
        done(&socket, &["add", "v", "s0", "service = \"cache\", legs = [{ memory = \"8 MiB\" }]"]);
        let shown = text(&ctl(&socket, &["status"]).stdout);
        assert!(shown.contains("s0 cache\n"), "{shown}");
        // The file is left: what was written since is in memory only.
        done(&socket, &["detach", "v", "0"]);
        assert!(refused(&socket, &["detach", "v", "1"]).contains("no mirror has the blocks of leg 1"));
        let mirror = |shown: &str| {
            let line = shown.lines().find(|line| line.ends_with(" mirror")).expect("it is shown");
            line.split_whitespace().next().expect("its number").to_owned()
        };
        let shown = text(&ctl(&socket, &["status"]).stdout);
        done(&socket, &["attach", "v", &mirror(&shown), "file = \"b\", size = \"32 MiB\""]);
        wait_for_copies(&socket);
        done(&socket, &["remove", "v", "s0"]);
        done(&socket, &["detach", "v", "1"]);
        let shown = text(&ctl(&socket, &["status"]).stdout);
        done(&socket, &["remove", "v", &mirror(&shown)]);
        done(&socket, &["remove", "v", "s0"]);
        let shown = text(&ctl(&socket, &["status"]).stdout);
        assert!(shown.contains("b: ready") && !shown.contains("mirror") && !shown.contains("priority"), "{shown}");
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        load.join().expect("every read was right")
    });
    assert!(written > 30, "{written} writes");
    volume.flush().expect("it is there");
    server.interrupt();
    let file = std::fs::read(folder.path().join("b")).expect("it was made");
    assert!(file[..RUN as usize * BLOCK] == stamped(0, RUN, stamp), "what the load wrote");
    assert!(file[RUN as usize * BLOCK..256 * BLOCK] == stamped(RUN, 256 - RUN, 1), "what was there before");
}

/// The answer of a page to a request of a path.
fn fetched(address: std::net::SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the page is served");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn the_page_of_volumes_has_the_tree_with_its_figures() {
    let folder = tempfile::tempdir().expect("there is room");
    let page = free_address();
    let description = "[[volume]]\nname = \"v\"\nservice = \"stripe\"\n\
                       legs = [{ memory = \"8 MiB\" }, { service = \"mirror\", legs = [{ memory = \"8 MiB\" }] }]\n";
    let server = Server::start_with(folder.path(), "v.toml", description, &["--dash", &page.to_string()]);
    let mut volume = server.volume("v");
    volume.write(0_u64, &stamped(0, 64, 1)).expect("it is there");
    let begun = Instant::now();
    let metrics = loop {
        let metrics = fetched(page, "/metrics");
        if metrics.contains("flashyard_volume_requests_total{volume=\"v\",kind=\"write\"} 1\n") {
            break metrics;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    };
    // 64 blocks in chunks of 64 KiB, half of them on each leg.
    let bytes = "flashyard_leg_bytes_total{volume=\"v\",leg=\"0\",name=\"memory\",kind=\"write\"} 131072\n";
    assert!(metrics.starts_with("HTTP/1.1 200 ") && metrics.contains(bytes), "{metrics}");
    let snapshot = fetched(page, "/snapshot");
    let (_, body) = snapshot.split_once("\r\n\r\n").expect("it has a body");
    let status: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
    assert_eq!(status["volumes"][0]["tree"]["below"][1]["service"], "mirror");
    let html = fetched(page, "/");
    assert!(html.contains("<title>Flashyard volumes</title>") && html.contains("frame-ancestors 'none'"));
    let events = {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = std::net::TcpStream::connect(page).expect("the page is served");
        write!(stream, "GET /events HTTP/1.1\r\nHost: {page}\r\n\r\n").expect("it reads");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter(|line| line.starts_with("data: ")).take(2).collect::<Vec<_>>()
    };
    assert!(events[0].starts_with("data: [{") && events[1].starts_with("data: {"), "the past, then what comes");
    assert_eq!(fetched(page, "/control").split_whitespace().nth(1), Some("404"), "it only looks");
}

#[test]
fn a_service_that_lays_blocks_out_stays() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"v\"\nservice = \"atomic\"\nlog = \"1 MiB\"\nlegs = [{ service = \"mirror\", \
                       legs = [{ memory = \"16 MiB\" }] }]\n";
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    let mut volume = server.volume("v");
    volume.write(5_u64, &stamped(5, 20, 1)).expect("it is there");
    for (place, expected) in [
        ("s0", "none of its legs has all blocks"),
        ("s1", "stands on 4094"),
        ("s2", "has no service s2"),
        ("0", "detached"),
    ] {
        let said = refused(&socket, &["remove", "v", place]);
        assert!(said.contains(expected), "{place}: {said}");
    }
    assert!(refused(&socket, &["attach", "v", "s0", "memory = \"16 MiB\""]).contains("no mirror that takes"));
    assert!(refused(&socket, &["attach", "v", "s1", "memory = \"8 MiB\""]).contains("has 2048 blocks"));
    assert_eq!(read(&mut volume, 5, 20), Ok(stamped(5, 20, 1)));
}

#[test]
fn legs_of_a_mirror_are_alike_after_a_kill_amid_writes() {
    let folder = tempfile::tempdir().expect("there is room");
    let description = "[[volume]]\nname = \"v\"\nservice = \"mirror\"\n\
                       legs = [{ file = \"a\", size = \"32 MiB\" }, { file = \"b\", size = \"32 MiB\" }]\n";
    let socket = folder.path().join("ctl").display().to_string();
    for round in 0..3_u8 {
        let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
        std::thread::scope(|scope| {
            for client in 0..4_u64 {
                let mut volume = server.volume("v");
                scope.spawn(move || {
                    for number in 0..u64::MAX {
                        let first = (number * 4 + client) * 37 % (BLOCKS - 50);
                        if volume.write(first, &stamped(first, 40, number as u8)).is_err() {
                            break;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(300 + 70 * u64::from(round)));
            server.kill();
        });
        let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
        wait_for_copies(&socket);
        server.interrupt();
        let leg = |name: &str| std::fs::read(folder.path().join(name)).expect("it was made");
        let (a, b) = (leg("a"), leg("b"));
        let data = (BLOCKS as usize - 2) * BLOCK;
        assert!(a[..data] == b[..data], "round {round}");
        assert!(a[data..] != b[data..], "each has its own record");
    }
}

/// A mirror under versions whose legs of 8 MiB are replaced by larger ones, one after the other.
#[test]
fn a_mirror_keeps_its_size_and_its_records_on_larger_legs() {
    let folder = tempfile::tempdir().expect("there is room");
    let socket = folder.path().join("ctl").display().to_string();
    let of = |legs: &str| {
        format!(
            "[[volume]]\nname = \"v\"\nservice = \"versions\"\nlegs = [{{ service = \"mirror\", legs = [{legs}] }}]\n"
        )
    };
    let small = of("{ file = \"a\", size = \"8 MiB\" }, { file = \"b\", size = \"8 MiB\" }");
    let server = Server::start_with(folder.path(), "v.toml", &small, &["--control", &socket]);
    let mut volume = server.volume("v");
    let blocks = volume.blocks();
    volume.write(0_u64, &stamped(0, 200, 1)).expect("it is there");
    done(&socket, &["take", "v"]);
    for (leg, keys) in [("0", "file = \"A\", size = \"16 MiB\""), ("1", "file = \"B\", size = \"24 MiB\"")] {
        done(&socket, &["replace", "v", leg, keys]);
        wait_for_copies(&socket);
    }
    // One leg misses what the other one has, which is known after the restart.
    done(&socket, &["detach", "v", "0"]);
    volume.write(0_u64, &stamped(0, 200, 2)).expect("it is there");
    volume.flush().expect("it is there");
    drop(volume);
    assert!(server.interrupt().status.success());
    let large = of("{ file = \"A\" }, { file = \"B\" }");
    let server = Server::start_with(folder.path(), "v.toml", &large, &["--control", &socket]);
    let mut volume = server.volume("v");
    assert_eq!(volume.blocks(), blocks);
    assert!(read(&mut volume, 0, 200) == Ok(stamped(0, 200, 2)));
    wait_for_copies(&socket);
    assert!(server.interrupt().status.success());
    // The larger one alone, and a new one beside it, are as large as before.
    let one = of("{ file = \"C\", size = \"24 MiB\" }, { file = \"B\" }");
    let server = Server::start_with(folder.path(), "v.toml", &one, &["--control", &socket]);
    let mut volume = server.volume("v");
    assert_eq!(volume.blocks(), blocks);
    assert!(read(&mut volume, 0, 200) == Ok(stamped(0, 200, 2)));
}

#[test]
fn legs_that_take_less_at_once_come_into_a_mirror_and_stay() {
    let folder = tempfile::tempdir().expect("there is room");
    let lent = |name: &str| format!("[[volume]]\nname = \"{name}\"\nback = {{ memory = \"8 MiB\" }}\n");
    let lender = Server::start(folder.path(), "l.toml", &["x", "y", "z"].map(lent).concat());
    let socket = folder.path().join("ctl").display().to_string();
    let description = "[[volume]]\nname = \"v\"\nservice = \"mirror\"\nrecord = false\n\
                       legs = [{ memory = \"8 MiB\" }, { memory = \"8 MiB\" }]\n";
    let server = Server::start_with(folder.path(), "v.toml", description, &["--control", &socket]);
    done(&socket, &["replace", "v", "1", &lender.leg("x")]);
    wait_for_copies(&socket);
    done(&socket, &["attach", "v", "s0", &lender.leg("y")]);
    wait_for_copies(&socket);
    // A service that comes with remote legs does not stop the server either.
    done(&socket, &["add", "v", "s0", &format!("service = \"mirror\", legs = [{{ {} }}]", lender.leg("z"))]);
    wait_for_copies(&socket);
    let mut volume = server.volume("v");
    for version in 1..4 {
        volume.write(0_u64, &stamped(0, 256, version)).expect("it is there");
        assert!(read(&mut volume, 0, 256) == Ok(stamped(0, 256, version)));
    }
    let shown = text(&ctl(&socket, &["status"]).stdout);
    assert!(!shown.contains("lost") && shown.matches("ready").count() == 4, "{shown}");
}
