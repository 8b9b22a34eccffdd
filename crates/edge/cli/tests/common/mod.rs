//! Servers of volumes for tests, and what their clients write.
#![allow(dead_code, reason = "each test program uses its part")]

use flashyard_blk::{Blocking, VolumeError};
use flashyard_live::RemoteNamespace;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const BLOCK: usize = 4096;
pub(crate) const PREFIX: &str = "nqn.2026-11.io.flashyard:";

/// A server that does not outlive its test.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: SocketAddr,
}

/// A port that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    listener.local_addr().expect("it is bound")
}

pub(crate) fn program(folder: &Path, name: &str, text: &str, more: &[&str]) -> Command {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("there is room");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.arg("serve").arg(path).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(crate) fn start(folder: &Path, name: &str, text: &str) -> Self {
        Self::start_with(folder, name, text, &[])
    }

    pub(crate) fn start_with(folder: &Path, name: &str, text: &str, more: &[&str]) -> Self {
        let address = free_address();
        let mut command = program(folder, name, text, &["--listen", &address.to_string(), "--seconds", "120"]);
        let child = command.args(more).spawn().expect("the program starts");
        let mut server = Self { child: Some(child), address };
        let begun = Instant::now();
        // A socket may get the very port that it asks for, and is then connected with itself.
        let listens =
            || TcpStream::connect(address).is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != address));
        while !listens() {
            let ended = server.child.as_mut().expect("it runs").try_wait().expect("it is ours");
            assert!(ended.is_none(), "{:?}", server.child.take().map(Child::wait_with_output));
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn volume(&self, name: &str) -> Blocking<RemoteNamespace> {
        let nqn = format!("{PREFIX}{name}");
        let namespace = RemoteNamespace::connect(self.address, "nqn.2026-01.test:host", &nqn, Some(1));
        Blocking::new(namespace.expect("the volume is served"))
    }

    /// The connection of a leg to this server.
    pub(crate) fn leg(&self, name: &str) -> String {
        format!("nvme_tcp = \"{}\", nqn = \"{PREFIX}{name}\", namespace = 1", self.address)
    }

    /// Ends it at once, as a loss of power of its process.
    pub(crate) fn kill(mut self) -> String {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it is ours");
        text(&child.wait_with_output().expect("it was killed").stderr)
    }

    pub(crate) fn interrupt(mut self) -> Output {
        let child = self.child.take().expect("it runs");
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes that tell their block and version.
pub(crate) fn stamped(first: u64, count: u64, version: u8) -> Vec<u8> {
    let block =
        |block: u64| (0..BLOCK).map(move |at| (at as u8).wrapping_mul(7) ^ (block as u8).wrapping_mul(31) ^ version);
    (first..first + count).flat_map(block).collect()
}

pub(crate) fn read(volume: &mut Blocking<RemoteNamespace>, first: u64, count: usize) -> Result<Vec<u8>, VolumeError> {
    let mut bytes = vec![0; count * BLOCK];
    volume.read(first, &mut bytes).map(|()| bytes)
}

/// `flashyard ctl` at a socket.
pub(crate) fn ctl(socket: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashyard")).arg("ctl").arg(socket).args(arguments).output().expect("it starts")
}
