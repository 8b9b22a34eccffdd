//! NVMe/TCP within TLS 1.3, over sockets of the loopback.

mod small;

use flashyard_live::{
    Engine, Host, HostError, HostLoad, Limits, NvmeTcp, Pattern, SetUp, Tempo, TlsError, run_host_load,
};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_nvmf::target::{self, Hosts, Namespace, Subsystem, TargetConfig};
use flashyard_nvmf::tls::{Hash, TlsKey};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use small::{enclosure_of, scenario, while_serving};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const NQN: &str = "nqn.2026-11.io.flashyard:drive-0";
const ALICE: &str = "nqn.2026-11.org.example:alice";
const BOB: &str = "nqn.2026-11.org.example:bob";
const PATIENCE: Duration = Duration::from_secs(10);

/// A key of these bytes.
fn key(byte: u8, hash: Hash) -> TlsKey {
    TlsKey::new(&vec![byte; hash.len_bytes()], Some(hash)).expect("it is as long as a digest")
}

/// Where a target listens: in clear text and within TLS.
#[derive(Clone, Copy)]
struct Served {
    plain: SocketAddr,
    tls: SocketAddr,
}

/// Serves a drive to Alice, whose cipher suite has SHA-256, and to Bob with SHA-384, while `client` works.
fn serve<R: Send>(limits: Limits, client: impl FnOnce(Served) -> R + Send) -> R {
    let SetUp { world, media, .. } = enclosure_of(&scenario("0"), None).expect("its enclosure can serve");
    let mut engine =
        Engine::new(Session::new(world, None), media, &[VolumeId::new(0)], Tempo::Off).expect("there is a poll");
    engine.set_limits(limits);
    let mut subsystem = Subsystem::new(NQN, "FY0000", vec![Namespace::new(1, engine.volumes()[0].limits.blocks, 12)]);
    let host = |nqn, tls_key| target::Host { tls_key: Some(tls_key), ..target::Host::new(nqn) };
    subsystem.hosts = Hosts::Listed(vec![host(ALICE, key(1, Hash::Sha256)), host(BOB, key(2, Hash::Sha384))]);
    let config = TargetConfig { subsystems: vec![subsystem], ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::with_tls(&[any], &[any], config, vec![VolumeId::new(0)], 3000).expect("there are ports");
    let addresses: Vec<SocketAddr> = front.addresses().collect();
    engine.add_front(Box::new(front));
    let served = Served { plain: addresses[0], tls: addresses[1] };
    while_serving(engine, || client(served)).1
}

fn connect(address: SocketAddr, name: &str, tls_key: Option<TlsKey>, queues: u16) -> Result<Host, HostError> {
    let config = InitiatorConfig { tls_key, io_queues: queues, ..InitiatorConfig::new(name, NQN) };
    Host::connect(address, config, PATIENCE)
}

fn refused(address: SocketAddr, name: &str, tls_key: Option<TlsKey>) -> HostError {
    connect(address, name, tls_key, 1).err().expect("it is not let in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

#[test]
fn a_host_with_its_key_writes_and_reads_by_either_cipher_suite() {
    serve(Limits::default(), |served| {
        for (name, key) in [(ALICE, key(1, Hash::Sha256)), (BOB, key(2, Hash::Sha384))] {
            let mut host = connect(served.tls, name, Some(key), 2).expect("it is let in");
            // From one block, which goes with its command, to more than a socket holds.
            for blocks in [1, 7, 256] {
                let pattern: Vec<u8> = (0..blocks * 4096).map(|at| (at / 4096 * 31 + at % 4096 / 3) as u8).collect();
                let write = NvmCommand::Write { range: range(64, blocks), fua: false };
                assert!(host.command(1, write, pattern.clone(), 0).expect("an answer").status.is_success());
                let read = NvmCommand::Read { range: range(64, blocks), fua: false };
                let found = host.command(1, read, Vec::new(), blocks * 4096).expect("an answer");
                assert!(found.status.is_success() && found.data == pattern, "{name}, {blocks} blocks");
            }
        }
    });
}

#[test]
fn a_load_of_several_queues_is_served_whole_beside_hosts_in_clear_text() {
    serve(Limits::default(), |served| {
        let mut plain = connect(served.plain, ALICE, None, 1).expect("plain ports are as ever");
        let mut host = connect(served.tls, ALICE, Some(key(1, Hash::Sha256)), 2).expect("it is let in");
        let load = HostLoad {
            request_bytes: 16_384,
            depth: 64,
            reads: 0.5,
            pattern: Pattern::Random,
            span: Duration::from_millis(300),
            ramp: Duration::from_millis(50),
            seed: 3,
        };
        let seen = run_host_load(&mut host, &load).expect("it is served");
        println!("{:.0} requests/s, {:.1} us at the median", seen.iops(), seen.latency.percentile_us(0.5));
        assert!(seen.failed == 0 && seen.requests > 0);
        assert!(plain.command(1, NvmCommand::Flush, Vec::new(), 0).expect("an answer").status.is_success());
    });
}

#[test]
fn a_key_that_is_wrong_and_a_host_that_is_not_known_are_refused_alike() {
    serve(Limits::default(), |served| {
        let wrong = refused(served.tls, ALICE, Some(key(9, Hash::Sha256)));
        let unknown = refused(served.tls, "nqn.2026-11.org.example:eve", Some(key(1, Hash::Sha256)));
        let other = refused(served.tls, BOB, Some(key(1, Hash::Sha256)));
        for refusal in [wrong, unknown, other] {
            assert!(matches!(refusal, HostError::Tls(TlsError::Refused)), "{refusal:?}");
        }
        connect(served.tls, ALICE, Some(key(1, Hash::Sha256)), 1).expect("others are let in as ever");
    });
}

#[test]
fn a_host_that_speaks_the_other_language_of_a_port_is_told_at_once() {
    serve(Limits::default(), |served| {
        let clear = refused(served.tls, ALICE, None);
        assert!(matches!(clear, HostError::Lost(_)), "{clear:?}");
        let secured = refused(served.plain, ALICE, Some(key(1, Hash::Sha256)));
        assert!(matches!(secured, HostError::Tls(TlsError::NoTls)), "{secured:?}");
    });
}

/// Whether the other side closes the connection within the patience of a test.
fn is_closed(socket: &mut TcpStream) -> bool {
    socket.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
    let mut rest = Vec::new();
    match socket.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_handshake_that_does_not_go_on_ends_and_keeps_no_other_host_out() {
    let limits = Limits { set_up: Duration::from_millis(300), ..Limits::default() };
    serve(limits, |served| {
        // Nothing at all, half a header, and a header whose record does not come.
        let beginnings: [&[u8]; 3] = [&[], &[22, 3], &[22, 3, 1, 2, 0, 1, 0, 1, 0xFC]];
        let mut waiting: Vec<TcpStream> = beginnings
            .iter()
            .map(|beginning| {
                let mut socket = TcpStream::connect(served.tls).expect("it listens");
                socket.write_all(beginning).expect("it is taken");
                socket
            })
            .collect();
        connect(served.tls, ALICE, Some(key(1, Hash::Sha256)), 1).expect("others are let in meanwhile");
        assert!(waiting.iter_mut().all(is_closed));
    });
}

#[test]
fn a_client_that_speaks_nonsense_is_closed() {
    // Bytes that may still become a message have their time.
    serve(Limits { set_up: Duration::from_millis(300), ..Limits::default() }, |served| {
        for nonsense in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 0, 4, 1, 0, 0, 0], &[22; 4096], &[21, 3, 3, 0, 2, 2, 0]]
        {
            let mut socket = TcpStream::connect(served.tls).expect("it listens");
            socket.write_all(nonsense).expect("it is taken");
            assert!(is_closed(&mut socket), "{:?}", &nonsense[..4]);
        }
    });
}
