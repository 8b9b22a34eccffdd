//! Blocks that a host has made uncorrectable: reads of any client fail until they are written, also after restarts and kills and
//! once garbage collection has moved them.

mod crowd;
mod hosted;
mod small;

use crowd::{PATIENCE, Served, nbd, read, request, serve};
use flashyard_kernel::Rng;
use flashyard_live::{BlockFormat, Handle, Host, Limits, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::cns;
use flashyard_nvme::identify::IdentifyController;
use flashyard_nvme::log::{ErrorEntry, SmartLog, page};
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use hosted::{Child, Shape};
use small::scenario_with;
use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const OK: Status = Status::SUCCESS;
const UNREAD: Status = Status::UNRECOVERED_READ;
const BYTES: usize = 4096;

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", hosted::NQN);
    Host::connect(address, config, PATIENCE).expect("the target lets everybody in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn run(host: &mut Host, command: NvmCommand, data: Vec<u8>) -> Status {
    host.command(1, command, data, 0).expect("an answer").status.code()
}

fn spoil(host: &mut Host, range: BlockRange) -> Status {
    run(host, NvmCommand::WriteUncorrectable { range }, Vec::new())
}

fn write(host: &mut Host, range: BlockRange, byte: u8) -> Status {
    run(host, NvmCommand::Write { range, fua: false }, vec![byte; range.blocks as usize * BYTES])
}

fn look(host: &mut Host, range: BlockRange) -> (Status, Vec<u8>) {
    let command = NvmCommand::Read { range, fua: false };
    let done = host.command(1, command, Vec::new(), range.blocks * BYTES as u32).expect("an answer");
    (done.status.code(), done.data)
}

/// The newest entry of the error log.
fn last_error(host: &mut Host) -> (u64, Status) {
    let log = host.log_page(page::ERROR, size_of::<ErrorEntry>() as u32).expect("there is a log");
    let entry = ErrorEntry::read_from_bytes(&log).expect("whole");
    (entry.lba.get(), Status::from_bits(entry.status.get() >> 1).code())
}

/// A drive that holds nothing, and is so small that garbage is collected soon.
const SMALL: [&str; 3] = ["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"];

fn serve_one<R: Send>(block: u32, directory: Option<&Path>, client: impl FnOnce(SocketAddr) -> R + Send) -> R {
    let shape = Shape::formatted(BlockFormat::plain(block));
    let served = |address, _: Handle| client(address);
    hosted::serve_shaped(shape, &scenario_with(&SMALL), directory, Tempo::Off, served).1
}

#[test]
fn uncorrectable_blocks_fail_until_they_are_written() {
    serve_one(4096, None, |address| {
        let mut host = host(address);
        let identify = host.identify(cns::CONTROLLER, 0).expect("there is a controller");
        let identify = IdentifyController::read_from_bytes(&identify).expect("whole");
        assert_ne!(identify.nvm_optional.get() & IdentifyController::WRITE_UNCORRECTABLE, 0);
        assert_eq!(write(&mut host, range(0, 16), 7), OK);
        assert_eq!(spoil(&mut host, range(5, 2)), OK);
        assert_eq!(spoil(&mut host, range(100, 1)), OK, "one that held nothing");
        assert_eq!(look(&mut host, range(5, 1)).0, UNREAD);
        assert_eq!(last_error(&mut host), (5, UNREAD));
        assert_eq!(look(&mut host, range(3, 8)).0, UNREAD);
        assert_eq!((last_error(&mut host).0, look(&mut host, range(100, 1)).0), (5, UNREAD));
        assert_eq!([look(&mut host, range(0, 5)), look(&mut host, range(7, 9))].map(|it| it.0), [OK; 2]);
        assert_eq!(run(&mut host, NvmCommand::Verify { range: range(6, 1), fua: false }, Vec::new()), UNREAD);
        let compare = NvmCommand::Compare { range: range(6, 1), fua: false };
        assert_eq!(run(&mut host, compare, vec![7; BYTES]), UNREAD);
        let copy = NvmCommand::Copy { first: 40, ranges: 1, format: 0, protection: 0, fua: false };
        assert_eq!(run(&mut host, copy, CopyRange::new(range(4, 3)).as_bytes().to_vec()), UNREAD);
        let smart = host.log_page(page::SMART, 512).expect("there is a log");
        let smart = SmartLog::read_from_bytes(&smart).expect("whole");
        println!("{} media errors", u128::from_le_bytes(smart.media_errors));
        // Each way to write one, and a deallocation, which leaves a block that holds nothing.
        assert_eq!(write(&mut host, range(5, 1), 9), OK);
        assert_eq!(look(&mut host, range(5, 1)), (OK, vec![9; BYTES]));
        let zeroes = NvmCommand::WriteZeroes { range: range(6, 1), deallocate: false, fua: false };
        assert_eq!(run(&mut host, zeroes, Vec::new()), OK);
        assert_eq!(look(&mut host, range(6, 1)), (OK, vec![0; BYTES]));
        let deallocate =
            NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
        assert_eq!(run(&mut host, deallocate, DsmRange::new(range(100, 1)).as_bytes().to_vec()), OK);
        assert_eq!(look(&mut host, range(100, 1)), (OK, vec![0; BYTES]));
        assert_eq!(spoil(&mut host, range(u64::MAX - 1, 1)), Status::LBA_OUT_OF_RANGE);
    });
    // The mark is of a unit, of which a small block is a part.
    serve_one(512, None, |address| {
        let mut host = host(address);
        let identify = host.identify(cns::CONTROLLER, 0).expect("there is a controller");
        let identify = IdentifyController::read_from_bytes(&identify).expect("whole");
        assert_eq!(identify.nvm_optional.get() & IdentifyController::WRITE_UNCORRECTABLE, 0);
        assert_eq!(spoil(&mut host, range(0, 8)), Status::INVALID_OPCODE);
    });
}

#[test]
fn clients_of_other_protocols_get_an_error_of_input_as_well() {
    serve(Limits::default(), Tempo::Off, |Served { nvme, nbd: port, .. }| {
        let mut host = host(nvme);
        assert_eq!(spoil(&mut host, range(9, 1)), OK);
        let mut client = nbd(port);
        let mut over_nbd = |kind: u16, lba: u64| {
            let mut asked = request(kind, 5, lba * BYTES as u64, BYTES as u32);
            asked.extend((kind == 1).then_some([3; BYTES]).into_iter().flatten());
            client.write_all(&asked).expect("the server listens");
            let answer = read(&mut client, 16);
            let error = u32::from_be_bytes(answer[4..8].try_into().expect("four bytes"));
            if kind == 0 && error == 0 {
                read(&mut client, BYTES);
            }
            error
        };
        const EIO: u32 = 5;
        assert_eq!([over_nbd(0, 8), over_nbd(0, 9), over_nbd(0, 10)], [0, EIO, 0]);
        assert_eq!([over_nbd(1, 9), over_nbd(0, 9)], [0, 0]);
        assert_eq!(look(&mut host, range(9, 1)), (OK, vec![3; BYTES]));
    });
}

/// The blocks of a drive as they are to be: of a byte, or uncorrectable.
struct Oracle {
    rng: Rng,
    blocks: Vec<Option<u8>>,
}

impl Oracle {
    const BLOCKS: u64 = 200;

    fn new(seed: u64) -> Self {
        Self { rng: Rng::named(seed, "uncorrectable"), blocks: vec![Some(0); Self::BLOCKS as usize] }
    }

    /// A range, and what it is to be.
    fn draw(&mut self) -> (BlockRange, Option<u8>) {
        let first = self.rng.below(Self::BLOCKS);
        let blocks = 1 + self.rng.below((Self::BLOCKS - first).min(12)) as u32;
        let byte = (self.rng.below(3) > 0).then(|| 1 + self.rng.below(255) as u8);
        (range(first, blocks), byte)
    }

    fn note(&mut self, (range, byte): (BlockRange, Option<u8>)) {
        self.blocks[range.lba as usize..][..range.blocks as usize].fill(byte);
    }

    /// Compares all blocks; those of `unsure` may be as they were or as the last command was to make them.
    fn check(&mut self, host: &mut Host, unsure: Option<(BlockRange, Option<u8>)>) {
        for lba in 0..Self::BLOCKS {
            let (status, data) = look(host, range(lba, 1));
            let found = match status {
                OK => {
                    assert!(data.iter().all(|&byte| byte == data[0]), "block {lba} is torn");
                    Some(data[0])
                }
                status => {
                    assert_eq!(status, UNREAD, "block {lba}");
                    None
                }
            };
            let is_asked = |range: BlockRange| (range.lba..range.lba + u64::from(range.blocks)).contains(&lba);
            let later = unsure.filter(|&(range, _)| is_asked(range)).map(|(_, byte)| byte);
            let expected = self.blocks[lba as usize];
            assert!(found == expected || Some(found) == later, "block {lba}: {found:?}, {expected:?} or {later:?}");
            self.blocks[lba as usize] = found;
        }
    }
}

fn ask(host: &mut Host, (range, byte): (BlockRange, Option<u8>)) -> Status {
    match byte {
        Some(byte) => write(host, range, byte),
        None => spoil(host, range),
    }
}

#[test]
fn uncorrectable_blocks_outlive_restarts_and_garbage_collection() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut oracle = Oracle::new(8);
    for _ in 0..3 {
        oracle = serve_one(4096, Some(directory.path()), |address| {
            let mut host = host(address);
            oracle.check(&mut host, None);
            // Blocks beside them are written until flash is erased.
            for round in 0..160_u64 {
                let command = oracle.draw();
                assert_eq!(ask(&mut host, command), OK);
                oracle.note(command);
                let other = range(Oracle::BLOCKS + round * 64 % 1024, 64);
                assert_eq!(write(&mut host, other, round as u8), OK);
            }
            oracle.check(&mut host, None);
            oracle
        });
    }
    let lost = oracle.blocks.iter().filter(|block| block.is_none()).count();
    assert!(lost > 20, "{lost} blocks were uncorrectable at the end");
}

#[test]
#[ignore = "the process of the test beside it"]
fn a_server_to_be_killed() {
    hosted::be_killed(&scenario_with(&SMALL), 4096, Tempo::Off);
}

#[test]
fn a_kill_leaves_blocks_as_they_were_or_as_they_were_to_be() {
    const SEED: u64 = 77;
    println!("seed {SEED}");
    let directory = tempfile::tempdir().expect("there is room");
    let mut oracle = Oracle::new(SEED);
    let mut unsure = None;
    let mut acknowledged = 0;
    for _ in 0..6 {
        let mut child = Child::start(directory.path());
        let mut host = host(child.address);
        oracle.check(&mut host, unsure);
        let wait = Duration::from_millis(20 + oracle.rng.below(100));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            child.kill();
        });
        unsure = loop {
            let command = oracle.draw();
            let (range, byte) = command;
            let (asked, data) = match byte {
                Some(byte) => (NvmCommand::Write { range, fua: false }, vec![byte; range.blocks as usize * BYTES]),
                None => (NvmCommand::WriteUncorrectable { range }, Vec::new()),
            };
            match host.command(1, asked, data, 0) {
                Ok(done) => assert_eq!(done.status, OK),
                Err(_) => break Some(command),
            }
            oracle.note(command);
            acknowledged += 1;
        };
        killer.join().expect("no panic");
    }
    let kinds: BTreeSet<bool> = oracle.blocks.iter().map(Option::is_none).collect();
    println!("{acknowledged} commands were acknowledged");
    assert!(acknowledged > 50 && kinds.len() == 2, "{acknowledged} {kinds:?}");
}
