//! Drives whose write cache is volatile: a power cut takes what was not flushed, and the bytes that are served follow.

mod crowd;
mod hosted;
mod small;

use flashyard_blk::{Operation, VolumeRequest};
use flashyard_faults::{Action, Extent, OperationId, Oracle};
use flashyard_kernel::Rng;
use flashyard_live::{
    BlockFormat, ChannelFront, Client, Engine, Handle, Host, Nbd, NbdAddress, Payload, Remote, SetUp, Tempo,
    set_format, stamped,
};
use flashyard_nvme::Status;
use flashyard_nvme::admin::cns;
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_scenario::Scenario;
use flashyard_served::{Control, Session};
use flashyard_units::{DriveId, SimTime, VolumeId};
use small::{enclosure_of, scenario_with, while_serving};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

const DRIVE: DriveId = DriveId::new(0);
const VOLUME: VolumeId = VolumeId::new(0);
/// Blocks that the oracle hears of.
const WATCHED: u64 = 1500;
const PATIENCE: Duration = Duration::from_secs(60);

fn scenario() -> Scenario {
    scenario_with(&["drive.power_loss_protection=false", "designs=[\"shrunk\"]", "drive.filled=0.9"])
}

/// Serves drive 0 while `work` works, from a directory if there is one.
fn serve<R: Send>(directory: Option<&Path>, work: impl FnOnce(Client, Handle) -> R + Send) -> R {
    let SetUp { world, media, .. } = enclosure_of(&scenario(), directory).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &[VOLUME], Tempo::Off).expect("there is a poll");
    let mut front = ChannelFront::new(engine.waker());
    let client = front.connect();
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    while_serving(engine, || work(client, handle)).1
}

fn control(handle: &Handle, control: Control) {
    handle.call(move |engine| engine.control(control)).expect("it serves").expect("it is prepared for it");
}

/// Version that a block holds: written all over it, whole and for this block, or 0 for zeros.
fn version_of(block: u64, bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8..16]);
    let version = u64::from_le_bytes(word) >> 8;
    assert!(bytes == stamped(VOLUME, block, version), "block {block} holds something else");
    version
}

/// A client, and the oracle that hears what it sees.
#[derive(Clone)]
struct Seen {
    oracle: Oracle,
    now: u64,
    next: u64,
    /// Sent and not answered.
    under_way: BTreeMap<u64, Extent>,
    flushes: u32,
    /// Blocks that a power cut has taken back to an older version.
    reverted: u32,
    /// The newest version that was acknowledged of each block.
    newest: BTreeMap<u64, u64>,
}

impl Seen {
    fn new() -> Self {
        let mut oracle = Oracle::new(&[WATCHED]);
        oracle.make_volatile(0);
        let (under_way, newest) = (BTreeMap::new(), BTreeMap::new());
        Self { oracle, now: 0, next: 1, under_way, flushes: 0, reverted: 0, newest }
    }

    fn time(&mut self) -> SimTime {
        self.now += 1;
        SimTime::from_ps(self.now)
    }

    /// Sends a write or a deallocation of watched blocks that nothing under way meets.
    fn send(&mut self, client: &Client, rng: &mut Rng) {
        let count = 1 + rng.below(8);
        let range = if rng.below(2) == 0 { 60 } else { WATCHED - count };
        let first = rng.below(range);
        let meets = |other: &Extent| first < other.first + u64::from(other.count) && other.first < first + count;
        if self.under_way.values().any(meets) {
            return;
        }
        let number = self.next;
        self.next += 1;
        let trims = rng.below(12) == 0;
        let (operation, action, payload) = if trims {
            (Operation::Trim, Action::Trim, Payload::None)
        } else {
            let bytes = (first..first + count).flat_map(|block| stamped(VOLUME, block, number)).collect();
            (Operation::Write, Action::Write(number), Payload::Bytes(bytes))
        };
        let extent = Extent { drive: 0, first, count: count as u32 };
        let at = self.time();
        self.oracle.issue(at, OperationId(number as u32), action, extent);
        self.under_way.insert(number, extent);
        self.newest.extend((first..first + count).map(|block| (block, if trims { 0 } else { number })));
        let request = VolumeRequest { volume: VOLUME, operation, first, count: count as u32, source: 0 };
        client.submit(number, request, payload).expect("it serves");
    }

    /// Waits for an answer.
    fn hear(&mut self, client: &Client) {
        let answer = client.next(PATIENCE).expect("it serves");
        assert_eq!(answer.result, Ok(()));
        self.under_way.remove(&answer.token).expect("it was asked");
        let at = self.time();
        self.oracle.acknowledged(at, OperationId(answer.token as u32)).unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    fn flush(&mut self, client: &mut Client) {
        let at = self.time();
        let issued = self.oracle.flush(at);
        client.call(VOLUME, Operation::Flush, 0, 0, Payload::None).expect("it serves");
        let at = self.time();
        self.oracle.flushed(at, 0, issued);
        self.flushes += 1;
    }

    /// Works for a while; leaves some requests under way.
    fn work(&mut self, client: &mut Client, rng: &mut Rng) {
        for _ in 0..40 + rng.below(80) {
            while self.under_way.len() < 8 {
                self.send(client, rng);
            }
            self.hear(client);
            if rng.below(60) == 0 {
                while !self.under_way.is_empty() {
                    self.hear(client);
                }
                self.flush(client);
            }
        }
    }

    /// The power is cut. Answers to what is under way may have been on their way: that cannot be known.
    fn cut(&mut self, handle: &Handle) {
        control(handle, Control::Pull { drive: DRIVE });
        let at = self.time();
        self.oracle.power_lost(at, 0);
        for number in std::mem::take(&mut self.under_way).into_keys() {
            let at = self.time();
            self.oracle.failed(at, OperationId(number as u32)).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }

    /// Takes the answers to what was under way when the power went, all of which come.
    fn drain(&mut self, client: &Client, answers: usize) {
        (0..answers).for_each(|_| assert_eq!(client.next(PATIENCE).expect("it serves").result, Ok(())));
        let at = self.time();
        self.oracle.settle(at, 0);
    }

    /// Reads all watched blocks.
    fn check(&mut self, client: &mut Client) {
        const BLOCKS: u64 = 25;
        for first in (0..WATCHED).step_by(BLOCKS as usize) {
            let number = OperationId(0);
            let at = self.time();
            self.oracle.issue(at, number, Action::Read, Extent { drive: 0, first, count: BLOCKS as u32 });
            let bytes = client.read(VOLUME, first, BLOCKS as u32).expect("nothing is lost");
            let found: Vec<_> =
                (first..).zip(bytes.chunks(4096)).map(|(block, bytes)| version_of(block, bytes)).collect();
            for (block, &version) in (first..).zip(&found) {
                self.reverted +=
                    u32::from(self.newest.get(&block).is_some_and(|&newest| newest > version && version > 0));
            }
            let at = self.time();
            self.oracle.returned(at, number, &found).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
}

#[test]
fn a_power_cut_leaves_each_block_one_of_its_versions_since_the_last_flush() {
    let seed = 1;
    let mut rng = Rng::named(seed, "volatile");
    println!("seed {seed}");
    let mut seen = Seen::new();
    serve(None, |mut client, handle| {
        for _cut in 0..40 {
            seen.work(&mut client, &mut rng);
            let answers = seen.under_way.len();
            seen.cut(&handle);
            control(&handle, Control::Insert { drive: DRIVE });
            seen.drain(&client, answers);
            seen.check(&mut client);
            // For good.
            seen.check(&mut client);
        }
    });
    println!("{} flushes, {} reverted, {:?}", seen.flushes, seen.reverted, seen.oracle.counters());
    assert!(seen.flushes > 15 && seen.reverted > 100, "{} {}", seen.flushes, seen.reverted);
}

/// Copies a directory as it is at this moment: a process that is killed now would leave it so.
fn image(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    for entry in std::fs::read_dir(directory).expect("it is there") {
        let entry = entry.expect("it can be read");
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("there is room");
    }
    copy
}

#[test]
fn what_a_power_cut_has_left_outlasts_the_process() {
    let seed = 2;
    let mut rng = Rng::named(seed, "volatile");
    println!("seed {seed}");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut seen = Seen::new();
    for _process in 0..4 {
        serve(Some(directory.path()), |mut client, handle| {
            seen.check(&mut client);
            seen.work(&mut client, &mut rng);
            let answers = seen.under_way.len();
            seen.cut(&handle);
            // A process that was killed without power has what the next one has that gets it back.
            let copy = image(directory.path());
            let mut other = seen.clone();
            serve(Some(copy.path()), |mut client, _| other.check(&mut client));
            control(&handle, Control::Insert { drive: DRIVE });
            seen.drain(&client, answers);
            seen.check(&mut client);
        });
    }
    assert!(seen.reverted > 5, "{}", seen.reverted);
}

/// A host of the drive, which looks at its flash before it takes commands.
fn host_of(address: SocketAddr) -> Host {
    let begun = Instant::now();
    loop {
        let config = InitiatorConfig::new("nqn.2026-11.org.example:host", hosted::NQN);
        match Host::connect(address, config, PATIENCE) {
            Ok(host) => return host,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_host_loses_a_write_and_not_a_forced_or_flushed_one() {
    let scenario = scenario_with(&["drive.power_loss_protection=false", "designs=[\"shrunk\"]", "drive.filled=0"]);
    // Without a clock, too, time passes in which the drive gets ready, though no host can ask it for anything before.
    hosted::serve(&scenario, None, Tempo::Off, |address, handle| {
        let block = |byte: u8| vec![byte; 4096];
        let range = |lba| BlockRange { lba, blocks: 1 };
        let mut host = host_of(address);
        let mut run = |command, data| {
            assert_eq!(host.command(1, command, data, 0).expect("an answer").status, Status::SUCCESS);
        };
        run(NvmCommand::Write { range: range(0), fua: false }, block(1));
        run(NvmCommand::Write { range: range(1), fua: false }, block(1));
        run(NvmCommand::Flush, Vec::new());
        run(NvmCommand::Write { range: range(0), fua: false }, block(2));
        run(NvmCommand::Write { range: range(2), fua: true }, block(3));
        run(NvmCommand::Write { range: range(1), fua: false }, block(4));
        control(&handle, Control::Pull { drive: DRIVE });
        control(&handle, Control::Insert { drive: DRIVE });
        let mut host = host_of(address);
        let mut read = |lba| {
            let command = NvmCommand::Read { range: range(lba), fua: false };
            host.command(1, command, Vec::new(), 4096).expect("an answer").data
        };
        // The forced write has flushed what came before it; the last write is gone.
        assert_eq!((read(0), read(1), read(2)), (block(2), block(1), block(3)));
    });
}

#[test]
fn a_trim_over_nbd_with_forced_unit_access_outlasts_a_power_cut() {
    let SetUp { world, media, .. } = enclosure_of(&scenario(), None).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &[VOLUME], Tempo::Off).expect("there is a poll");
    // A trim of a part of a unit is a write of zeros for the drive, which a cut takes where nothing flushes it.
    set_format(&mut engine, VOLUME, BlockFormat::plain(512)).expect("there are such blocks");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let volumes = [("drive-0".to_owned(), engine.volumes()[0])];
    let front = Nbd::new(&NbdAddress::Tcp(any), &volumes).expect("the loopback can be listened on");
    let &NbdAddress::Tcp(address) = front.address() else { panic!("a port of TCP was asked for") };
    engine.add_front(Box::new(front));
    let (remote, handle) = Remote::new(engine.waker());
    engine.add_hook(Box::new(remote));
    const BYTES: u32 = 3 * 512;
    let forced = |kind| {
        let mut request = crowd::request(kind, 5, 512, BYTES);
        request[5] = 1;
        request
    };
    let ask = |socket: &mut TcpStream, asked: &[u8]| {
        socket.write_all(asked).expect("the server listens");
        assert_eq!(crowd::read(socket, 16)[4..8], [0; 4]);
    };
    while_serving(engine, || {
        let mut client = crowd::nbd(address);
        ask(&mut client, &[forced(1), vec![7; BYTES as usize]].concat());
        ask(&mut client, &forced(4));
        control(&handle, Control::Pull { drive: DRIVE });
        control(&handle, Control::Insert { drive: DRIVE });
        crowd::until("the export is back", || {
            let mut probe = crowd::dial(address);
            crowd::read(&mut probe, 18);
            let said = [&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 7], b"drive-0"].concat();
            probe.write_all(&said).is_ok() && std::io::Read::read_exact(&mut probe, &mut [0; 10]).is_ok()
        });
        let mut client = crowd::nbd(address);
        ask(&mut client, &crowd::request(0, 6, 512, BYTES));
        assert!(crowd::read(&mut client, BYTES as usize) == [0; BYTES as usize], "what was trimmed is there again");
    });
}

#[test]
fn a_cut_takes_blocks_from_what_a_namespace_has_in_use_as_well() {
    let scenario = scenario_with(&["drive.power_loss_protection=false", "designs=[\"shrunk\"]", "drive.filled=0"]);
    let shape = hosted::Shape::divided(&[40, 40], None);
    hosted::serve_shaped(shape, &scenario, None, Tempo::Off, |address, handle| {
        let write = |host: &mut Host, lba, fua| {
            let command = NvmCommand::Write { range: BlockRange { lba, blocks: 1 }, fua };
            assert_eq!(host.command(2, command, vec![7; 4096], 0).expect("an answer").status, Status::SUCCESS);
        };
        // The number may be half a second old.
        let await_in_use = |host: &mut Host, blocks: u64| {
            crowd::until("so many blocks are in use", || {
                let data = host.identify(cns::NAMESPACE, 2).expect("there is such a namespace");
                IdentifyNamespace::read_from_bytes(&data).expect("it is whole").used_blocks.get() == blocks
            });
        };
        let mut host = host_of(address);
        write(&mut host, 0, true);
        write(&mut host, 1, false);
        await_in_use(&mut host, 2);
        control(&handle, Control::Pull { drive: DRIVE });
        control(&handle, Control::Insert { drive: DRIVE });
        let mut host = host_of(address);
        await_in_use(&mut host, 1);
        write(&mut host, 1, true);
        await_in_use(&mut host, 2);
    });
}

#[test]
fn what_was_written_before_a_shutdown_of_a_controller_outlasts_a_power_cut() {
    let scenario = scenario_with(&["drive.power_loss_protection=false", "designs=[\"shrunk\"]", "drive.filled=0"]);
    hosted::serve(&scenario, None, Tempo::Off, |address, handle| {
        let config = || InitiatorConfig::new("nqn.2026-11.org.example:host", hosted::NQN);
        let mut host = Host::connect(address, config(), PATIENCE).expect("the target lets everybody in");
        let range = BlockRange { lba: 0, blocks: 1 };
        let write = NvmCommand::Write { range, fua: false };
        assert_eq!(host.command(1, write, vec![7; 4096], 0).expect("an answer").status, Status::SUCCESS);
        let mut admin = crowd::nvme(address);
        let mut property = |kind: u8, offset: u8, value: u32| {
            let mut entry = [0; 64];
            (entry[0], entry[1], entry[4], entry[44]) = (0x7F, 0x40, kind, offset);
            entry[48..52].copy_from_slice(&value.to_le_bytes());
            admin.write_all(&crowd::capsule(entry, &[])).expect("the server listens");
            let answer = crowd::read(&mut admin, 24);
            assert_eq!(answer[22..24], [0, 0], "{answer:x?}");
            answer[8]
        };
        property(0, 0x14, 0x0046_4001);
        crowd::until("the controller is shut down", || property(4, 0x1C, 0) >> 2 & 3 == 2);
        control(&handle, Control::Pull { drive: DRIVE });
        control(&handle, Control::Insert { drive: DRIVE });
        let mut again = None;
        crowd::until("a host is let in", || {
            again = Host::connect(address, config(), PATIENCE).ok();
            again.is_some()
        });
        let read = NvmCommand::Read { range, fua: false };
        let done = again.expect("it was waited for").command(1, read, Vec::new(), 4096).expect("an answer");
        assert_eq!(done.data, [7; 4096]);
    });
}
