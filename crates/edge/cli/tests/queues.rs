//! `flashyard queues`: two programs that share queue pairs, guests that are wrong or die, every byte compared.

use flashyard_nvme::Status;
use flashyard_shared_queues::Guest;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let socket = folder.join("queues");
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
        command.args(["queues", "serve"]).arg(&socket).args(["--memory", "16MiB", "--seconds", "60"]).args(more);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let begun = Instant::now();
        while !socket.exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, socket }
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
        command.args(["queues", "bench"]).arg(&self.socket).args(["--seconds", "0.3", "--json"]).args(arguments);
        command.output().expect("it starts")
    }

    /// A guest, once there is room for it.
    fn guest(&self, entries: u32) -> Guest {
        let begun = Instant::now();
        loop {
            match Guest::connect(&self.socket, entries, 1 << 20) {
                Ok(guest) => return guest,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_guest_reads_every_byte_that_it_wrote_whatever_the_server_does_between() {
    for more in [&[][..], &["--services", "3"], &["--kicked"], &["--far-access", "5000", "--fetch", "1"]] {
        let folder = tempfile::tempdir().expect("there is room");
        let server = Server::start(folder.path(), more);
        for arguments in [["--depth", "32", "--blocks", "3"], ["--depth", "1", "--blocks", "1"]] {
            let output = server.bench(&[&arguments[..], &["--reads", "60", "--verify"]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{more:?}: {said}");
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            assert!(found["iops"].as_f64().is_some_and(|rate| rate > 0.0) && found["verified"] == true, "{found}");
        }
    }
}

#[test]
fn a_guest_that_writes_anything_or_dies_hurts_nobody() {
    let folder = tempfile::tempdir().expect("there is room");
    let server = Server::start(folder.path(), &["--guests", "2"]);
    let mut good = server.guest(8);
    good.set_data(0, &[7; 4096]);
    good.write(3, 1, 0, 0).expect("the server is there");
    assert_eq!(good.wait().expect("it is there").status, Status::SUCCESS);
    {
        let mut wrong = server.guest(16);
        // A third one is refused in words.
        let error = Guest::connect(&server.socket, 8, 4096).err().expect("there is no room");
        assert!(error.to_string().contains("2 guests are there already"), "{error}");
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..200 {
            let entry = std::array::from_fn(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            });
            wrong.submit_entry(&entry).expect("the server is there");
            assert!(!wrong.wait().expect("it is there").status.is_success());
        }
        // Blocks of the other guest are not its own, and addresses beyond its data are nobody's.
        let beyond = wrong.blocks();
        for (lba, at, expected) in [
            (beyond, 0, Status::LBA_OUT_OF_RANGE),
            (0, 1 << 20, Status::INVALID_SGL_OFFSET),
            (0, u64::MAX, Status::INVALID_SGL_OFFSET),
        ] {
            wrong.read(lba, 1, 1, at).expect("the server is there");
            assert_eq!(wrong.wait().expect("it is there").status, expected);
        }
        wrong.ring(u32::MAX);
    }
    // It has gone, and its place is free again.
    let mut next = server.guest(8);
    for guest in [&mut good, &mut next] {
        guest.read(3, 1, 5, 8192).expect("the server is there");
        assert_eq!(guest.wait().expect("it is there").status, Status::SUCCESS);
    }
    let mut found = [0; 4096];
    good.data(8192, &mut found);
    assert_eq!(found, [7; 4096]);
    next.data(8192, &mut found);
    assert_eq!(found, [0; 4096], "another guest's part of the drive");
}

#[test]
fn a_wrong_number_is_one_clear_error() {
    let folder = tempfile::tempdir().expect("there is room");
    for (arguments, expected) in [
        (&["serve", "s", "--guests", "0"][..], "--guests is 0, give 1 to 256"),
        (&["serve", "s", "--fetch", "65"], "--fetch is 65, give 1 to 64"),
        (&["serve", "s", "--memory", "1"], "blocks of the drive is 0"),
        (&["bench", "s"], "s"),
        (&["bench", "s", "--depth", "0"], "--depth is 0, give 1 to 4096"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
        let output = command.arg("queues").args(arguments).current_dir(folder.path()).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
}
