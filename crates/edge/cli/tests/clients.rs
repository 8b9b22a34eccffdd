//! Other people's programs against `flashyard serve`, on a Unix socket.

use flashyard_conformance::has_program;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with the test.
struct Server {
    child: Child,
    nbd: String,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let socket = directory.path().join("nbd");
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/live/scenario.toml");
        let child = Command::new(env!("CARGO_BIN_EXE_flashyard"))
            .arg("serve")
            .arg(scenario)
            .args([
                "--set",
                "jbof.drives=3",
                "--set",
                "jbof.busy_drives=1",
                "--pace",
                "off",
                "--seconds",
                "120",
                "--nbd",
            ])
            .arg(format!("unix:{}", socket.display()))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody serves at {}", socket.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, nbd: format!("nbd+unix:///drive-0?socket={}", socket.display()), _directory: directory }
    }

    /// Ends the server in order, and returns its report.
    fn end(&mut self) -> String {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success() && self.child.wait().expect("it ends").success());
        let mut report = String::new();
        let said = self.child.stdout.as_mut().expect("it was asked for");
        said.read_to_string(&mut report).expect("the report is text");
        report
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `program`; `None` when it is not installed.
fn client(program: &str, arguments: &[&str]) -> Option<String> {
    if !has_program(program, "it was not tried against an enclosure that serves") {
        return None;
    }
    let output = Command::new(program).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}{complained}");
    Some(said)
}

#[test]
fn fio_verifies_what_it_wrote_over_nbd() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("there is room");
    let uri = format!("--uri={}", server.nbd);
    let state = format!("--aux-path={}", directory.path().display());
    let job =
        ["--name=verify", "--ioengine=nbd", &uri, &state, "--rw=randwrite", "--bsrange=4k-64k", "--blockalign=4k"];
    let rest = ["--iodepth=16", "--size=24m", "--verify=crc32c", "--fsync=32", "--trim_percentage=0", "--minimal"];
    if let Some(said) = client("fio", &[&job[..], &rest[..]].concat()) {
        let errors = said.lines().last().and_then(|line| line.split(';').nth(4)).expect("terse output has the error");
        assert_eq!(errors, "0", "{said}");
    }
}

#[test]
fn tools_of_qemu_and_libnbd_copy_compare_and_discard() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("there is room");
    let image = directory.path().join("image");
    let bytes: Vec<u8> = (0..8u32 << 20).map(|byte| (byte ^ byte >> 9) as u8).collect();
    std::fs::write(&image, &bytes).expect("there is room");
    let path = image.to_str().expect("a name in Unicode");
    if client("nbdcopy", &[path, &server.nbd]).is_some() {
        let back = directory.path().join("back");
        let back_path = back.to_str().expect("a name in Unicode");
        client("nbdcopy", &[&server.nbd, back_path]);
        let found = std::fs::read(&back).expect("it was copied");
        assert!(found[..bytes.len()] == bytes[..], "the image has changed on its way");
        assert!(found[bytes.len()..].iter().all(|&byte| byte == 0), "a new drive holds zeros");
    }
    let commands = [
        ["-c", "write -P 0x5a 16M 1M"],
        ["-c", "read -P 0x5a 16M 1M"],
        ["-c", "discard 16M 512k"],
        ["-c", "read -P 0 16M 512k"],
        ["-c", "write -z 16M 1M"],
        ["-c", "read -P 0 16M 1M"],
        ["-c", "flush"],
    ];
    let arguments: Vec<&str> = ["-f", "raw"].into_iter().chain(commands.into_iter().flatten()).collect();
    if let Some(said) = client("qemu-io", &[&arguments[..], &[&server.nbd]].concat()) {
        assert!(!said.contains("Pattern verification failed"), "{said}");
    }
    client("qemu-img", &["bench", "-f", "raw", "-c", "2000", "-d", "16", "-s", "4096", "-t", "none", &server.nbd]);
}

#[test]
fn a_drive_of_small_blocks_takes_parts_of_its_units_from_tools() {
    let mut server = Server::start_with(&["--set", "serve.block=512 B"]);
    // The neighbours of each write lie in the same unit of 4 KiB.
    let commands = [
        "write -P 0x5a 16M 4k",
        "write -P 0x11 16778240 512",
        "read -P 0x5a 16M 1024",
        "read -P 0x11 16778240 512",
        "read -P 0x5a 16778752 2560",
        "write -P 0x22 16780800 1024",
        "read -P 0x22 16780800 1024",
        "discard 16777728 512",
        "read -P 0 16777728 512",
        "read -P 0x5a 16M 512",
        "write -z 16778240 512",
        "read -P 0 16778240 512",
        "flush",
    ];
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    if let Some(said) = client("qemu-io", &[&["-f", "raw"], &arguments[..], &[&server.nbd]].concat()) {
        assert!(!said.contains("Pattern verification failed") && !said.contains("failed:"), "{said}");
    }
    if let Some(said) = client("nbdinfo", &[&server.nbd]) {
        assert!(said.contains("block_size_minimum: 512") && said.contains("block_size_preferred: 4096"), "{said}");
    }
    let directory = tempfile::tempdir().expect("there is room");
    let image = directory.path().join("image");
    // Not a whole number of units.
    let bytes: Vec<u8> = (0..(1_u32 << 20) + 512).map(|byte| (byte ^ byte >> 9) as u8).collect();
    std::fs::write(&image, &bytes).expect("there is room");
    if client("nbdcopy", &[image.to_str().expect("a name in Unicode"), &server.nbd]).is_some() {
        let back = directory.path().join("back");
        client("nbdcopy", &[&server.nbd, back.to_str().expect("a name in Unicode")]);
        let found = std::fs::read(&back).expect("it was copied");
        assert!(found[..bytes.len()] == bytes[..], "the image has changed on its way");
    }
    server.end();
}

#[test]
fn tools_see_the_map_of_a_drive_and_move_what_is_there() {
    let directory = tempfile::tempdir().expect("there is room");
    let place = |name: &str| directory.path().join(name).to_str().expect("a name in Unicode").to_owned();
    let journal = place("journal");
    let mut server = Server::start_with(&["--journal", &journal]);
    let uri = server.nbd.clone();
    let commands = ["write -P 0x5a 16M 1M", "discard 16512k 128k", "write -P 0x77 64M 64k", "flush"];
    let arguments: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    if client("qemu-io", &[&["-f", "raw"], &arguments[..], &[&uri]].concat()).is_none() {
        return;
    }
    const MIB: u64 = 1 << 20;
    let hole = 16 * MIB + (128 << 10);
    let data = [(16 * MIB, 128 << 10), (hole + (128 << 10), MIB - (256 << 10)), (64 * MIB, 64 << 10)];
    if let Some(said) = client("nbdinfo", &["--map", &uri]) {
        let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let found: Vec<_> =
            rows.iter().filter(|row| row[2] == "0").map(|row| (number(row[0]), number(row[1]))).collect();
        assert_eq!(found, data, "{said}");
        assert!(rows.iter().all(|row| ["0", "3"].contains(&row[2])), "{said}");
    }
    if let Some(said) = client("qemu-img", &["map", "--output=json", "-f", "raw", &uri]) {
        let full = said.lines().filter(|line| line.contains("\"data\": true")).count();
        assert_eq!(full, data.len(), "{said}");
        assert!(said.contains(&format!("\"start\": {}, \"length\": {}", data[1].0, data[1].1)), "{said}");
    }
    let (copied, converted) = (place("copied"), place("converted"));
    let mut copies = 0;
    if client("nbdcopy", &["--request-size=65536", &uri, &copied]).is_some() {
        copies += 1;
        let found = std::fs::read(&copied).expect("it was copied");
        let byte = |at: u64| found[at as usize];
        let ends =
            data.map(|(first, bytes)| [byte(first - 1), byte(first), byte(first + bytes - 1), byte(first + bytes)]);
        assert_eq!(ends, [[0, 0x5a, 0x5a, 0], [0, 0x5a, 0x5a, 0], [0, 0x77, 0x77, 0]]);
    }
    if client("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, &converted]).is_some() {
        copies += 1;
        client("qemu-img", &["compare", "-f", "raw", "-F", "raw", &converted, &uri]);
        copies += 1;
    }
    let report = server.end();
    let words = report.lines().find(|line| line.starts_with("answered")).expect("a line of requests");
    let read_mib: f64 = words.split(['(', ' ']).nth(4).and_then(|word| word.parse().ok()).expect("MiB that were read");
    let there_mib = data.iter().map(|(_, bytes)| bytes).sum::<u64>() as f64 / MIB as f64;
    assert!(
        copies > 0 && read_mib <= f64::from(copies) * there_mib + 0.5,
        "{copies} copies of {there_mib} MiB: {report}"
    );

    // Queries of the map are in no journal, and need not be.
    let digest = |said: &str| said.lines().find(|line| line.starts_with("digest")).map(str::to_owned);
    let repeated =
        Command::new(env!("CARGO_BIN_EXE_flashyard")).args(["replay", &journal]).output().expect("it starts");
    let repeated = String::from_utf8_lossy(&repeated.stdout).into_owned();
    assert_eq!(digest(&repeated), digest(&report), "{report}{repeated}");
    assert!(digest(&report).is_some());
}

#[test]
fn tools_that_connect_later_see_another_size() {
    let directory = tempfile::tempdir().expect("there is room");
    let place = |name: &str| directory.path().join(name).to_str().expect("a name in Unicode").to_owned();
    let control = place("control");
    let server = Server::start_with(&["--control", &control]);
    let ctl = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
        command.args(["ctl", &control]).args(arguments).output().expect("the program starts")
    };
    let resize = |namespace: &str, size: &str| {
        let output = ctl(&["resize", namespace, size]);
        assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let refused = |arguments: &[&str], words: &str| {
        let output = ctl(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["resize", "drive-0", "900TiB"], "bytes are needed, and no more than 0 are free");
    refused(&["resize", "drive-0/2", "1MiB"], "drive-0/2 keeps its size: there is no namespace 2");
    refused(&["resize", "drive-77", "1MiB"], "there is no drive 77, give 0 to 2");
    refused(&["resize", "box", "1MiB"], "\"box\" is no namespace; give drive-0");
    resize("drive-0", "16MiB");
    refused(&["resize", "drive-0", "16 MiB"], "it has this size already");
    let size = || client("nbdinfo", &["--size", &server.nbd]).map(|said| said.trim().to_owned());
    assert!(size().is_none_or(|size| size == "16777216"), "{:?}", size());

    let bytes: Vec<u8> = (0..16_u32 << 20).map(|byte| (byte ^ byte >> 9) as u8).collect();
    let (image, back) = (place("image"), place("back"));
    std::fs::write(&image, &bytes).expect("there is room");
    if client("nbdcopy", &[&image, &server.nbd]).is_some() {
        resize("drive-0", "24MiB");
        client("nbdcopy", &[&server.nbd, &back]);
        let found = std::fs::read(&back).expect("it was written");
        assert!(found.len() == 24 << 20 && found[..16 << 20] == bytes[..]);
        assert!(found[16 << 20..].iter().all(|&byte| byte == 0));
    } else {
        resize("drive-0", "24MiB");
    }
    let qemu = |commands: &[&str]| client("qemu-io", &[&["-f", "raw"][..], commands, &[server.nbd.as_str()]].concat());
    if let Some(said) =
        qemu(&["-c", "length", "-c", "write -P 7 23M 4k", "-c", "read -P 7 23M 4k", "-c", "read -P 0 20M 4k"])
    {
        assert!(said.starts_with("24 MiB") && !said.contains("failed"), "{said}");
        resize("drive-0", "8MiB");
        resize("drive-0", "24MiB");
        let said = qemu(&["-c", "length", "-c", "read -P 0 23M 4k"]).expect("it was there before");
        assert!(said.starts_with("24 MiB") && !said.contains("failed"), "{said}");
    }
    for (arguments, words) in [
        (&["insert", "1"][..], "drive 1 is in its slot already"),
        (&["link", "1", "up"], "drive 1 has its link already"),
        (&["power-restore"], "all drives have power already"),
    ] {
        let output = ctl(arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}
