//! Namespaces of a drive as exports of NBD, while hosts of NVMe/TCP create and delete them.

mod crowd;
mod dividing;
mod hosted;
mod small;

use crowd::{dial, is_closed, read, request};
use dividing::{attach, create, delete, host_of};
use flashyard_live::{Engine, Nbd, NbdAddress, NvmeTcp, SetUp, Tempo, divide};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use small::{enclosure_of, scenario, while_serving};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

const BLOCK: u64 = 4096;

/// Drive 0 with namespaces of so many blocks, over NVMe/TCP and NBD, while `clients` works.
fn serve<R: Send>(sizes: &[u64], clients: impl FnOnce(SocketAddr, SocketAddr) -> R + Send) -> R {
    let drive = VolumeId::new(0);
    let SetUp { world, media, .. } = enclosure_of(&scenario("0"), None).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &[drive], Tempo::Off).expect("there is a poll");
    divide(&mut engine, drive, sizes).expect("the drive has room");
    let volume = engine.fronts_mut().drives()[0];
    let subsystem = Subsystem::new(hosted::NQN, "FY0000", vec![Namespace::new(1, volume.limits.blocks, 12)]);
    let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, vec![drive], 300).expect("the loopback can be listened on");
    let nvme = front.addresses().next().expect("one was asked for");
    let nbd =
        Nbd::new(&NbdAddress::Tcp(any), &[("drive-0".to_owned(), volume)]).expect("the loopback can be listened on");
    let &NbdAddress::Tcp(nbd_address) = nbd.address() else { panic!("a port of TCP was asked for") };
    engine.add_front(Box::new(front));
    engine.add_front(Box::new(nbd));
    while_serving(engine, || clients(nvme, nbd_address)).1
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// The reply to an option: its kind, and its data.
fn reply(socket: &mut TcpStream) -> (u32, Vec<u8>) {
    let header = read(socket, 20);
    let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
    (number(12), read(socket, number(16) as usize))
}

fn haggle(address: SocketAddr) -> TcpStream {
    let mut socket = dial(address);
    read(&mut socket, 18);
    socket.write_all(&[0, 0, 0, 3]).expect("the server listens");
    socket
}

/// The names of all exports.
fn exports(address: SocketAddr) -> Vec<String> {
    let mut socket = haggle(address);
    socket.write_all(&option(3, &[])).expect("the server listens");
    let mut names = Vec::new();
    loop {
        match reply(&mut socket) {
            (2, data) => names.push(String::from_utf8_lossy(&data[4..]).into_owned()),
            (kind, _) => {
                assert_eq!(kind, 1, "the list ends with an acknowledgement");
                return names;
            }
        }
    }
}

/// A client of an export, and the bytes of that; the kind of the reply if it is refused.
fn client(address: SocketAddr, name: &str) -> Result<(TcpStream, u64), u32> {
    let mut socket = haggle(address);
    let go = [&(name.len() as u32).to_be_bytes(), name.as_bytes(), &[0, 0]].concat();
    socket.write_all(&option(7, &go)).expect("the server listens");
    let mut bytes = 0;
    loop {
        match reply(&mut socket) {
            (3, data) if data[..2] == [0, 0] => {
                bytes = u64::from_be_bytes(data[2..10].try_into().expect("eight bytes"));
            }
            (3, _) => {}
            (1, _) => return Ok((socket, bytes)),
            (kind, _) => return Err(kind),
        }
    }
}

/// Carries a request out without data of its answer; the error.
fn ask(socket: &mut TcpStream, asked: &[u8]) -> u32 {
    socket.write_all(asked).expect("the server listens");
    u32::from_be_bytes(read(socket, 16)[4..8].try_into().expect("four bytes"))
}

fn block(byte: u8) -> Vec<u8> {
    vec![byte; BLOCK as usize]
}

/// Writes block `at` of an export; the error.
fn write(socket: &mut TcpStream, at: u64, byte: u8) -> u32 {
    ask(socket, &[request(1, 1, at * BLOCK, BLOCK as u32), block(byte)].concat())
}

/// Reads block `at` of an export.
fn read_block(socket: &mut TcpStream, at: u64) -> Vec<u8> {
    assert_eq!(ask(socket, &request(0, 2, at * BLOCK, BLOCK as u32)), 0);
    read(socket, BLOCK as usize)
}

#[test]
fn each_namespace_is_an_export_of_its_size_with_bytes_of_its_own() {
    serve(&[10, 20], |nvme, nbd| {
        assert_eq!(exports(nbd), ["drive-0", "drive-0/2"]);
        let (mut first, first_bytes) = client(nbd, "drive-0").expect("it is served");
        let (mut second, second_bytes) = client(nbd, "drive-0/2").expect("it is served");
        assert_eq!((first_bytes, second_bytes), (10 * BLOCK, 20 * BLOCK));
        assert_eq!((write(&mut first, 9, 1), write(&mut second, 9, 2)), (0, 0));
        assert_eq!((read_block(&mut first, 9), read_block(&mut second, 9)), (block(1), block(2)));
        const INVALID: u32 = 22;
        assert_eq!(ask(&mut first, &request(0, 3, 10 * BLOCK, BLOCK as u32)), INVALID, "that is behind its end");

        let mut host = host_of(nvme, 1);
        let command = NvmCommand::Read { range: BlockRange { lba: 9, blocks: 1 }, fua: false };
        for (nsid, byte) in [(1, 1), (2, 2)] {
            let done = host.command(nsid, command, Vec::new(), BLOCK as u32).expect("an answer");
            assert_eq!((done.status.code(), done.data), (Status::SUCCESS, block(byte)));
        }
    });
}

#[test]
fn exports_come_and_go_with_their_namespaces() {
    serve(&[10], |nvme, nbd| {
        const UNKNOWN: u32 = 1 << 31 | 6;
        let (mut first, _) = client(nbd, "drive-0").expect("it is served");
        assert_eq!(client(nbd, "drive-0/2").err(), Some(UNKNOWN));
        let mut host = host_of(nvme, 1);
        assert_eq!(create(&mut host, 30, 0, false), (Status::SUCCESS, 2));
        assert_eq!(exports(nbd), ["drive-0", "drive-0/2"], "an export needs no host");
        assert_eq!(attach(&mut host, 2), Status::SUCCESS);

        let (mut second, bytes) = client(nbd, "drive-0/2").expect("it is served");
        assert_eq!((bytes, write(&mut second, 29, 7), read_block(&mut second, 29)), (30 * BLOCK, 0, block(7)));
        assert_eq!(delete(&mut host, 2), Status::SUCCESS);
        assert!(is_closed(&mut second), "its namespace is gone");
        assert_eq!((exports(nbd), client(nbd, "drive-0/2").err()), (vec!["drive-0".to_owned()], Some(UNKNOWN)));
        assert_eq!(write(&mut first, 0, 3), 0, "other clients go on");

        // A namespace in the place of the deleted one shows nothing of it.
        assert_eq!(create(&mut host, 30, 0, false), (Status::SUCCESS, 2));
        let (mut second, _) = client(nbd, "drive-0/2").expect("it is served");
        assert_eq!(read_block(&mut second, 29), block(0));
    });
}
