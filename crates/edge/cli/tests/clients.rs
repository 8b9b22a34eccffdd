//! Other people's programs against `flashyard serve`, on a Unix socket.

use flashyard_conformance::has_program;
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
            .stdout(Stdio::null())
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
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
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
