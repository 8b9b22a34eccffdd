//! NVMe/TCP within TLS as a user meets it, and with the client of OpenSSL.

#[path = "common/mod.rs"]
mod common;

use common::{free_address, text};
use flashyard_conformance::has_program;
use flashyard_nvmf::tls::TlsKey;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

const DRIVE: &str = "nqn.2026-11.io.flashyard:drive-0";
const HOST: &str = "nqn.2026-11.org.example:host";

fn flashyard(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashyard")).args(arguments).output().expect("the program starts")
}

/// A key that the program makes.
fn new_key(hash: &str) -> String {
    let made = flashyard(&["tls-key", "--hash", hash]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    text(&made.stdout).trim().to_owned()
}

fn private(folder: &Path, name: &str, contents: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, contents).expect("there is room");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    path
}

/// A server that does not outlive its test.
struct Served {
    child: Child,
    log: Option<ChildStderr>,
    address: SocketAddr,
}

impl Served {
    /// Serves to the hosts of a file, within TLS.
    fn start(hosts: &Path) -> Self {
        let address = free_address();
        let mut child = Command::new(env!("CARGO_BIN_EXE_flashyard"))
            .args([
                "serve",
                "live",
                "--pace",
                "off",
                "--seconds",
                "120",
                "--listen-tls",
                &address.to_string(),
                "--hosts",
            ])
            .arg(hosts)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let expected = format!("NVMe/TCP over TLS 1.3 on {address}: ");
        assert!(lines.any(|line| line.starts_with(&expected)), "it does not listen");
        // Its report at the end finds a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let log = child.stderr.take();
        Self { child, log, address }
    }

    /// Everything that it has logged, once it has ended.
    fn end(mut self) -> String {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
        let mut log = String::new();
        self.log.take().expect("it is read once").read_to_string(&mut log).expect("it is text");
        log
    }

    /// A load of the shortest kind by a host with this key.
    fn load(&self, host: &str, key: &Path) -> Output {
        let (address, key) = (self.address.to_string(), key.to_str().expect("a name in Unicode"));
        flashyard(&[
            "load",
            &address,
            DRIVE,
            "--host-nqn",
            host,
            "--tls-key-file",
            key,
            "--seconds",
            "0.1",
            "--depth",
            "4",
        ])
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_host_with_the_key_of_its_line_is_served_and_the_log_says_why_others_are_not() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for hash in ["sha-256", "sha-384"] {
        let (right, wrong) = (new_key(hash), new_key(hash));
        let hosts = private(folder.path(), "hosts", &format!("{HOST} {right}\n"));
        let key = private(folder.path(), "key", &right);
        let other = private(folder.path(), "other", &wrong);
        let served = Served::start(&hosts);
        let seen = served.load(HOST, &key);
        assert!(seen.status.success() && text(&seen.stdout).contains("0 failed"), "{}", text(&seen.stderr));
        for (host, key) in [(HOST, &other), ("nqn.2026-11.org.example:eve", &key)] {
            let refused = served.load(host, key);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{said}");
            assert!(said.contains("the other side does not take the key of TLS"), "{said}");
        }
        let clear = flashyard(&["load", &served.address.to_string(), DRIVE, "--host-nqn", HOST, "--seconds", "0.1"]);
        assert_eq!(clear.status.code(), Some(2), "{}", text(&clear.stderr));
        let log = served.end();
        let refusals: Vec<&str> = log.lines().filter(|line| line.contains("is refused: ")).collect();
        let said = |number: usize, part: &str| assert!(refusals[number].contains(part), "{part:?}: {log}");
        assert_eq!(refusals.len(), 3, "{log}");
        said(0, "the key for the identity");
        said(0, HOST);
        said(1, "no key is known for the identity");
        said(1, "nqn.2026-11.org.example:eve");
        said(2, "the other side does not speak TLS");
        for secret in [&right, &wrong] {
            let encoded = secret.split(':').nth(2).expect("its third field");
            assert!(!log.contains(&encoded[..16]), "a key is in the log");
        }
    }
}

#[test]
fn ports_of_tls_without_keys_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let refused = |arguments: &[&str], part: &str| {
        let output = flashyard(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    };
    refused(&["serve", "live", "--listen-tls", "127.0.0.1:0"], "--hosts <FILE>");
    let names = private(folder.path(), "names", &format!("{HOST}\n"));
    let names = names.to_str().expect("a name in Unicode");
    refused(&["serve", "live", "--listen-tls", "127.0.0.1:0", "--hosts", names], "no host of --hosts");
    let open = folder.path().join("open");
    std::fs::write(&open, format!("{HOST} {}\n", new_key("sha-256"))).expect("there is room");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let open = open.to_str().expect("a name in Unicode");
    refused(
        &["serve", "live", "--listen-tls", "127.0.0.1:0", "--hosts", open],
        "its mode 644 lets other users at them",
    );
}

/// An ICReq without digests (TCP Transport 1.0, section 3.6.2.2).
fn initialize_request() -> Vec<u8> {
    let mut bytes = vec![0; 128];
    (bytes[2], bytes[4]) = (128, 128);
    bytes
}

#[test]
fn the_client_of_openssl_agrees_on_a_key_and_is_answered_within_tls() {
    if !has_program("openssl", "that another library of TLS agrees with ours") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    // Its option for keys knows of SHA-256 only.
    let key = new_key("sha-256");
    let hosts = private(folder.path(), "hosts", &format!("{HOST} {key}\n"));
    let served = Served::start(&hosts);
    let shared = key.parse::<TlsKey>().expect("it is a key").keys_for(HOST, DRIVE);
    for shared in &shared {
        let secret: String = shared.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let reply = s_client(served.address, &shared.identity, &secret);
        assert_eq!(reply.first(), Some(&1), "an ICResp for {}", shared.identity);
        let wrong: String = secret.chars().rev().collect();
        assert!(s_client(served.address, &shared.identity, &wrong).is_empty(), "a wrong key");
    }
    let log = served.end();
    assert_eq!(log.matches("is refused: the key for the identity").count(), shared.len(), "{log}");
}

/// The answer of a target to an ICReq that the client of OpenSSL sends within TLS; nothing where they do not agree.
fn s_client(address: SocketAddr, identity: &str, secret: &str) -> Vec<u8> {
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string(), "-tls1_3"])
        .args(["-psk_identity", identity, "-psk", secret, "-quiet", "-no_ign_eof"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is there");
    let mut input = client.stdin.take().expect("it is piped");
    // A client that was refused reads nothing any more.
    let _ = input.write_all(&initialize_request());
    let _ = input.flush();
    let mut reply = vec![0; 128];
    let read = client.stdout.take().expect("it is piped").read_exact(&mut reply);
    drop(input);
    let _ = client.kill();
    let _ = client.wait();
    if read.is_ok() { reply } else { Vec::new() }
}
