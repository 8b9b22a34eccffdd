//! The small enclosure of `scenarios/faults` behind both front ends, and clients that speak on bare sockets.

#![allow(dead_code, reason = "each test file uses a part")]

use crate::small::{enclosure_of, exported, scenario, while_serving};
use flashyard_live::{Engine, Handle, Limits, Nbd, NbdAddress, NvmeTcp, Remote, SetUp, Tempo};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Nothing takes longer but what never ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where the enclosure is served.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) nvme: SocketAddr,
    pub(crate) nbd: SocketAddr,
    pub(crate) handle: Handle,
}

/// Serves the enclosure over NVMe/TCP and NBD while `clients` works.
pub(crate) fn serve<R: Send>(limits: Limits, tempo: Tempo, clients: impl FnOnce(Served) -> R + Send) -> R {
    serve_from(None, true, (limits, tempo), clients)
}

/// Serves the enclosure so, from a directory if there is one, to hosts of NVMe/TCP or to none.
pub(crate) fn serve_from<R: Send>(
    directory: Option<&Path>,
    has_hosts: bool,
    (limits, tempo): (Limits, Tempo),
    clients: impl FnOnce(Served) -> R + Send,
) -> R {
    let scenario = scenario("0.5");
    let SetUp { world, media, .. } = enclosure_of(&scenario, directory).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), tempo).expect("there is a poll");
    engine.set_limits(limits);
    let volumes = engine.volumes().to_vec();
    let subsystem = |drive: VolumeId| {
        let namespace = Namespace::new(1, volumes[drive.index()].limits.blocks, 12);
        Subsystem::new(&nqn(drive), &format!("FY{:04}", drive.get()), vec![namespace])
    };
    let config =
        TargetConfig { subsystems: exported().into_iter().map(subsystem).collect(), ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, exported(), 3000).expect("the loopback can be listened on");
    let nvme = front.addresses().next().expect("one was asked for");
    let named: Vec<_> = volumes.iter().map(|&volume| (format!("drive-{}", volume.id), volume)).collect();
    let nbd = Nbd::new(&NbdAddress::Tcp(any), &named).expect("the loopback can be listened on");
    let &NbdAddress::Tcp(nbd_address) = nbd.address() else { panic!("a port of TCP was asked for") };
    if has_hosts {
        engine.add_front(Box::new(front));
    }
    engine.add_front(Box::new(nbd));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    while_serving(engine, || clients(Served { nvme, nbd: nbd_address, handle })).1
}

fn nqn(drive: VolumeId) -> String {
    format!("nqn.2026-11.io.flashyard:drive-{drive}")
}

impl Served {
    /// Connections that the engine has.
    pub(crate) fn connections(&self) -> u32 {
        self.handle.call(|engine| engine.connections()).expect("it serves")
    }

    /// Bytes that clients hold.
    pub(crate) fn in_flight_bytes(&self) -> usize {
        self.handle.call(|engine| engine.in_flight_bytes()).expect("it serves")
    }

    /// Turns of the engine while half a second passes.
    pub(crate) fn turns_of_a_while(&self) -> u64 {
        let turns = || self.handle.call(|engine| engine.turns()).expect("it serves");
        let before = turns();
        std::thread::sleep(Duration::from_millis(500));
        turns() - before
    }

    /// Lets the engine stand still while `act` works.
    pub(crate) fn while_it_stands_still(&self, act: impl FnOnce()) {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        let handle = self.handle.clone();
        let stopped = std::thread::spawn(move || {
            handle.call(move |_| {
                begin.send(()).expect("the test waits");
                // The other end is dropped when it may go on.
                let _ = released.recv();
            })
        });
        begun.recv().expect("the engine has begun to stand still");
        act();
        drop(release);
        stopped.join().expect("no panic").expect("it serves");
    }
}

/// Waits until `is_so`.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A socket with patience.
pub(crate) fn dial(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    socket
}

pub(crate) fn read(socket: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).expect("the server answers");
    bytes
}

/// Whether the server has closed the connection, however it says so; waits for it.
pub(crate) fn is_closed(socket: &mut TcpStream) -> bool {
    loop {
        match socket.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// A client of NBD that has chosen drive 0.
pub(crate) fn nbd(address: SocketAddr) -> TcpStream {
    let mut socket = dial(address);
    assert_eq!(read(&mut socket, 18)[..8], *b"NBDMAGIC");
    let mut said = vec![0, 0, 0, 3];
    said.extend(b"IHAVEOPT");
    said.extend([0, 0, 0, 1, 0, 0, 0, 7]);
    said.extend(b"drive-0");
    socket.write_all(&said).expect("the server listens");
    read(&mut socket, 10);
    socket
}

/// A request of NBD.
pub(crate) fn request(kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The PDU that opens a connection of NVMe/TCP.
pub(crate) fn initialize_request() -> Vec<u8> {
    let mut bytes = vec![0; 128];
    (bytes[2], bytes[4]) = (128, 128);
    bytes
}

/// A capsule with an entry and data.
pub(crate) fn capsule(entry: [u8; 64], data: &[u8]) -> Vec<u8> {
    let length = 72 + data.len() as u32;
    let mut bytes = vec![4, 0, 72, if data.is_empty() { 0 } else { 72 }];
    bytes.extend(length.to_le_bytes());
    bytes.extend(entry);
    bytes.extend(data);
    bytes
}

/// The admin queue of a new controller of drive 0, without keep-alive.
pub(crate) fn nvme(address: SocketAddr) -> TcpStream {
    let mut socket = dial(address);
    socket.write_all(&initialize_request()).expect("the server listens");
    read(&mut socket, 128);
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[4]) = (0x7F, 0x40, 1);
    entry[32..36].copy_from_slice(&1024_u32.to_le_bytes());
    (entry[39], entry[44]) = (0x01, 31);
    let mut data = vec![0; 1024];
    data[0] = 7;
    data[16..18].fill(0xFF);
    data[256..256 + nqn(VolumeId::new(0)).len()].copy_from_slice(nqn(VolumeId::new(0)).as_bytes());
    data[512..533].copy_from_slice(b"nqn.2026-11.org:crowd");
    socket.write_all(&capsule(entry, &data)).expect("the server listens");
    let answer = read(&mut socket, 24);
    assert_eq!(answer[22..24], [0, 0], "Connect is answered with success: {answer:x?}");
    // The controller's configuration: enabled, entries of 64 and 16 bytes.
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[44]) = (0x7F, 0x40, 0x14);
    entry[48..52].copy_from_slice(&0x0046_0001_u32.to_le_bytes());
    socket.write_all(&capsule(entry, &[])).expect("the server listens");
    let answer = read(&mut socket, 24);
    assert_eq!(answer[22..24], [0, 0], "Property Set is answered with success: {answer:x?}");
    socket
}

/// A Get Log Page of `length` bytes of the error log.
pub(crate) fn get_log_page(command_id: u16, length: u32) -> Vec<u8> {
    let mut entry = [0; 64];
    (entry[0], entry[1]) = (0x02, 0x40);
    entry[2..4].copy_from_slice(&command_id.to_le_bytes());
    entry[4..8].fill(0xFF);
    entry[32..36].copy_from_slice(&length.to_le_bytes());
    entry[39] = 0x5A;
    let dwords = length / 4 - 1;
    entry[40] = 1;
    entry[42..44].copy_from_slice(&(dwords as u16).to_le_bytes());
    entry[44..46].copy_from_slice(&((dwords >> 16) as u16).to_le_bytes());
    capsule(entry, &[])
}
