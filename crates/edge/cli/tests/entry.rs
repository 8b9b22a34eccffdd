//! Access to a program that serves: its addresses, its lists of hosts, the page and its token, as a user meets them.

use flashyard_nvme::admin::{AdminCommand, GetLogPage};
use flashyard_nvme::log::page;
use flashyard_nvme::text::{DISCOVERY_NQN, unpadded};
use flashyard_nvmf::initiator::{Connection, Data, Effects, InitiatorConfig};
use flashyard_units::SimTime;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const HOST: &str = "nqn.2026-01.test:host";

fn flashyard() -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.current_dir(root);
    command
}

fn run(arguments: &[&str]) -> Output {
    flashyard().args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(arguments: &[&str], part: &str) {
    let output = run(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(error.contains(part), "{part:?} is missing in: {error}");
}

/// A server of two drives that ends with the test.
struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    control: PathBuf,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let control = directory.path().join("control");
        // By the clock: without one, a drive that is put back starts only while a client waits.
        let small = ["--set", "jbof.drives=2", "--set", "jbof.busy_drives=1", "--pace", "real", "--seconds", "120"];
        let mut child = flashyard()
            .args(["serve", "scenarios/live/scenario.toml"])
            .args(small)
            .arg("--control")
            .arg(&control)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, lines, control, _directory: directory }
    }

    /// Text that the server prints behind `beginning`.
    fn says(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).expect("it is text") > 0,
                "it ended without a word of {beginning:?}"
            );
            if let Some(rest) = line.trim_end().strip_prefix(beginning) {
                return rest.to_owned();
            }
        }
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        let begun = Instant::now();
        while !self.control.exists() {
            assert!(begun.elapsed() < PATIENCE, "it listens to nobody");
            std::thread::sleep(Duration::from_millis(20));
        }
        flashyard().arg("ctl").arg(&self.control).args(arguments).output().expect("the program starts")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body of an answer of HTTP.
fn http(address: &str, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let length = body.len();
    write!(stream, "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    (head.split(' ').nth(1).expect("a status").parse().expect("a number"), body.to_owned())
}

/// The state of a drive as the page sees it, once it is that.
fn wait_for_state(address: &str, drive: usize, expected: &str) {
    let begun = Instant::now();
    loop {
        let (status, body) = http(address, "GET /snapshot HTTP/1.1", "");
        let snapshot: Value = if status == 200 { serde_json::from_str(&body).expect("it is JSON") } else { json!({}) };
        if snapshot["drives"][drive]["state"] == expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "drive {drive} is not {expected}: {snapshot}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_page_shows_a_pulled_drive_as_away_and_puts_it_back_for_whoever_has_the_token() {
    let mut server = Server::start(&["--dash", "127.0.0.1:0"]);
    let url = server.says("dashboard: ");
    let (address, token) =
        url.strip_prefix("http://").and_then(|url| url.split_once("/#token=")).expect("it has a token");
    wait_for_state(address, 1, "ready");
    let command = |token: &str, body: &Value| {
        let head = format!("POST /control HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}");
        http(address, &head, &body.to_string()).0
    };
    let pull = json!({ "command": "pull", "drive": "drive-1" });
    assert_eq!(command("0123456789abcdef0123456789abcdef", &pull), 401);
    assert_eq!(http(address, "POST /control HTTP/1.1\r\nContent-Type: application/json", &pull.to_string()).0, 401);
    assert_eq!(command(token, &pull), 202);
    wait_for_state(address, 1, "away");
    wait_for_state(address, 0, "ready");
    let status: Value = serde_json::from_slice(&server.ctl(&["status"]).stdout).unwrap_or_default();
    if let Some(drives) = status["drives"].as_array() {
        assert_eq!(drives[1]["state"], "pulled out");
    }
    let again = server.ctl(&["pull", "1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("drive 1 is pulled out already"), "{}", text(&again.stderr));
    assert_eq!(command(token, &json!({ "command": "insert", "drive": "drive-1" })), 202);
    wait_for_state(address, 1, "ready");
}

#[test]
fn a_port_that_is_not_there_is_an_error_that_names_those_that_are() {
    let mut server = Server::start(&["--listen", "127.0.0.1:0"]);
    let port = server.says("NVMe/TCP on ").split(": ").next().expect("an address").to_owned();
    let output = server.ctl(&["port", "127.0.0.1:9", "off"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!("127.0.0.1:9 is no port of this server, give {port}");
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
    assert!(server.ctl(&["port", &port, "off"]).status.success());
    assert!(server.ctl(&["port", &port, "on"]).status.success());
}

#[test]
fn a_listed_host_gets_in_with_its_secret_from_a_file_and_nobody_else_does() {
    let directory = tempfile::tempdir().expect("there is room");
    let place = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("there is room");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        path.to_str().expect("a name in Unicode").to_owned()
    };
    let hosts = place("hosts", &format!("{HOST} {SECRET}\n"));
    let key = place("key", &format!("{SECRET}\n"));
    // Two servers of one scenario on one machine: the second one's drives have names of their own.
    let names = "nqn.2026-01.test:second-";
    let mut server = Server::start(&["--listen", "127.0.0.1:0", "--hosts", &hosts, "--nqn", names]);
    let line = server.says("NVMe/TCP on ");
    let (address, drives) = line.split_once(": ").expect("address and drives");
    assert_eq!(drives, format!("{names}0 to 1"));
    let drive = format!("{names}0");
    let load = ["load", address, &drive, "--depth", "8", "--seconds", "0.2", "--host-nqn", HOST, "--json"];
    let output = run(&[&load[..], &["--secret-file", &key]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&seen["depth"], &seen["failed"]), (&json!(8), &json!(0)));
    assert!(seen["iops"].as_f64().is_some_and(|iops| iops > 0.0), "{seen}");
    refused(&load, "the controller asks for a proof of identity, and no secret is configured");
    refused(&["load", address, &drive], "this host is not one of those that may connect (Connect Invalid Host)");
    refused(&["load", address, "nqn.none"], "no subsystem has that name there (Connect Invalid Parameters)");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    refused(&[&load[..], &["--secret-file", &key]].concat(), "its mode 644 lets other users at them; chmod 600 ");
    // A key on the command line stands in the list of processes: there is no such flag.
    refused(&[&load[..], &["--secret", SECRET]].concat(), "--secret-file");
}

#[test]
fn an_address_where_nobody_listens_is_named_once_with_one_cause() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let output = run(&["load", &free.to_string(), "nqn.x"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!("error: nqn.x: {free}: no connection: Connection refused (os error 111)\n");
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn the_depth_of_a_load_is_what_the_queues_hold() {
    let mut server = Server::start(&["--listen", "127.0.0.1:0"]);
    let line = server.says("NVMe/TCP on ");
    let address = line.split(": ").next().expect("an address");
    let load = ["load", address, "nqn.2026-11.io.flashyard:drive-0", "--seconds", "0.1", "--depth", "4000"];
    let output = run(&load);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("1023 requests in flight: the controller's queues hold no more"));
    refused(&["load", address, "nqn.x", "--seconds", "0"], "give more than 0 seconds");
}

#[test]
fn addresses_that_other_machines_reach_are_refused_before_anything_is_served() {
    let serve = |arguments: &[&str], part: &str| {
        refused(&[&["serve", "scenarios/live/scenario.toml", "--seconds", "0"], arguments].concat(), part);
    };
    for flag in ["--listen", "--nbd", "--dash"] {
        serve(&[flag, "0.0.0.0:0"], "; or say --insecure");
        serve(&[flag, "0.0.0.0:0"], "--hosts");
    }
    let open = run(&["serve", "scenarios/live/scenario.toml", "--seconds", "0", "--listen", "0.0.0.0:0", "--insecure"]);
    assert!(open.status.success(), "{}", text(&open.stderr));
    assert!(text(&open.stderr).contains("any host may read and write the drives"), "{}", text(&open.stderr));
}

/// Moves bytes between a host and its socket until `over`.
fn talk(
    stream: &mut TcpStream,
    host: &mut Connection,
    effects: &mut Effects,
    over: impl Fn(&Connection, &Effects) -> bool,
) {
    let mut buffer = vec![0; 65_536];
    while !over(host, effects) {
        let bytes: Vec<u8> = effects.output.slices().flatten().copied().collect();
        stream.write_all(&bytes).expect("the server reads");
        effects.output.advance(bytes.len());
        let count = stream.read(&mut buffer).expect("the server answers");
        assert!(count > 0, "the server has closed the connection");
        host.receive(&buffer[..count], effects);
        assert_eq!(effects.failure, None);
    }
}

/// The discovery log, as it is for a host.
fn discovery_log(address: &str, host: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens there");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut effects = Effects::default();
    let config = InitiatorConfig::new(host, DISCOVERY_NQN);
    let mut host = Connection::admin(config, SimTime::ZERO, &mut effects);
    talk(&mut stream, &mut host, &mut effects, |host, _| host.is_ready());
    let get = GetLogPage { page: page::DISCOVERY, len_bytes: 4096, ..GetLogPage::default() };
    let entry = AdminCommand::GetLogPage(get).encode(0);
    host.submit_entry(1, entry, Data::ToHost(4096), &mut effects).expect("the queue has room");
    talk(&mut stream, &mut host, &mut effects, |_, effects| !effects.completions.is_empty());
    effects.completions.remove(0).data
}

#[test]
fn hosts_see_and_use_the_drives_of_their_sections() {
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("hosts");
    let path = file.to_str().expect("a name in Unicode");
    std::fs::write(&file, format!("[drive-1]\n{HOST}\n[*]\nnqn.2026-01.test:all\n")).expect("there is room");
    let mut server = Server::start(&["--listen", "127.0.0.1:0", "--hosts", path, "--nqn", "nqn.2026-01.test:"]);
    let line = server.says("NVMe/TCP on ");
    let address = line.split(": ").next().expect("an address");
    let seen = |host: &str| {
        let log = discovery_log(address, host);
        let names = log[2048..].chunks(1024).map(|entry| unpadded(&entry[256..512]));
        names.take(usize::from(log[8]) - 1).collect::<Vec<_>>()
    };
    assert_eq!(seen("nqn.2026-01.test:all"), ["nqn.2026-01.test:0", "nqn.2026-01.test:1"]);
    assert_eq!(seen(HOST), ["nqn.2026-01.test:1"]);
    assert_eq!(seen("nqn.2026-01.test:other"), [""; 0]);
    let load = |drive: &'static str| ["load", address, drive, "--seconds", "0.1", "--host-nqn", HOST];
    let output = run(&load("nqn.2026-01.test:1"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    refused(&load("nqn.2026-01.test:0"), "Connect Invalid Host");
    std::fs::write(&file, "[drive-1 drive-99]\nnqn.a\n").expect("there is room");
    let serve = ["serve", "scenarios/live/scenario.toml", "--seconds", "0", "--listen", "127.0.0.1:0", "--hosts", path];
    refused(&serve, "hosts:1:10: drive-99 is not served; there are drive-0, drive-1, … drive-");
}

#[test]
fn discovery_at_every_address_names_the_one_by_which_the_host_came() {
    let mut server = Server::start(&["--listen", "0.0.0.0:0", "--insecure"]);
    let line = server.says("NVMe/TCP on 0.0.0.0:");
    let port: u16 = line.split(": ").next().and_then(|port| port.parse().ok()).expect("a port");
    // All of 127.0.0.0/8 is this machine.
    let log = discovery_log(&format!("127.0.0.2:{port}"), HOST);
    // This discovery and two drives, with the requirements at byte 3 and the address at byte 512 of each entry.
    assert_eq!(log[8], 3);
    for entry in log[1024..].chunks(1024) {
        assert_eq!((entry[3], unpadded(&entry[512..768]).as_str()), (0, "127.0.0.2"));
    }
}
