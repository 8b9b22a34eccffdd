//! Compare and Write as one command of a served drive: whatever other hosts, and clients that are no hosts, do to the blocks meanwhile.

mod crowd;
mod hosted;
mod small;

use crowd::{PATIENCE, Served, nbd, read, request, serve, until};
use flashyard_kernel::Rng;
use flashyard_live::{BlockFormat, Host, Limits, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::identify::IdentifyController;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::{Data, InitiatorConfig};
use flashyard_served::Control;
use flashyard_units::DriveId;
use hosted::Shape;
use small::scenario_with;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

const DRIVE: DriveId = DriveId::new(0);
const OK: Status = Status::SUCCESS;
const UNEQUAL: [Status; 2] = [Status::COMPARE_FAILURE, Status::ABORTED_FUSED_FAILED];

fn host(address: SocketAddr, number: u8) -> Host {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:{number}"), hosted::NQN);
    config.host_id = [number; 16];
    Host::connect(address, config, PATIENCE).expect("the target lets everybody in")
}

/// Puts `new` in the place of `expected`, if that is there.
fn swap(host: &mut Host, range: BlockRange, expected: Vec<u8>, new: Vec<u8>) -> [Status; 2] {
    let compare = NvmCommand::Compare { range, fua: false }.encode(0, 1);
    let write = NvmCommand::Write { range, fua: false }.encode(0, 1);
    let done = host.fused((compare, Data::ToController(expected)), (write, Data::ToController(new)));
    done.expect("two answers").map(|done| done.status.code())
}

fn look(host: &mut Host, range: BlockRange, block_bytes: u32) -> Vec<u8> {
    let done = host.command(1, NvmCommand::Read { range, fua: false }, Vec::new(), range.blocks * block_bytes);
    let done = done.expect("an answer");
    assert_eq!(done.status, OK);
    done.data
}

#[test]
fn blocks_of_every_size_are_written_where_they_are_as_expected() {
    const SEED: u64 = 12;
    println!("seed {SEED}");
    for block_bytes in [4096, 512] {
        let shape = Shape::formatted(BlockFormat::plain(block_bytes));
        let scenario = scenario_with(&["drive.filled=0"]);
        hosted::serve_shaped(shape, &scenario, None, Tempo::Off, |address, _| {
            let mut host = host(address, 1);
            let identify = host.identify(flashyard_nvme::admin::cns::CONTROLLER, 0).expect("there is a controller");
            let identify = IdentifyController::read_from_bytes(&identify).expect("whole");
            assert_eq!(identify.fused.get(), IdentifyController::COMPARE_AND_WRITE);
            let mut rng = Rng::named(SEED, "fused");
            let size = block_bytes as usize;
            let mut held = vec![0; 64 * size];
            let (mut written, mut refused) = (0, 0);
            for number in 1..300_u32 {
                let lba = rng.below(60);
                let range = BlockRange { lba, blocks: 1 + rng.below((64 - lba).min(20)) as u32 };
                let place = lba as usize * size..(lba as usize + range.blocks as usize) * size;
                let mut expected = held[place.clone()].to_vec();
                let is_equal = rng.below(3) > 0;
                if !is_equal {
                    let at = rng.below(expected.len() as u64) as usize;
                    expected[at] ^= 1;
                }
                let new: Vec<u8> = number.to_le_bytes().repeat(expected.len() / 4);
                let done = swap(&mut host, range, expected, new.clone());
                if is_equal {
                    assert_eq!(done, [OK; 2], "number {number}");
                    held[place].copy_from_slice(&new);
                    written += 1;
                } else {
                    assert_eq!(done, UNEQUAL, "number {number}");
                    refused += 1;
                }
            }
            assert!(written > 100 && refused > 50, "{written} written, {refused} refused");
            assert_eq!(look(&mut host, BlockRange { lba: 0, blocks: 64 }, block_bytes), held);
        });
    }
}

/// Three blocks, as two hosts and a client of NBD share them: a stamp of the client, and a counter of the hosts, in each.
const SHARED: BlockRange = BlockRange { lba: 7, blocks: 3 };

fn block(stamp: u32, count: u32) -> Vec<u8> {
    let mut block = [stamp.to_le_bytes(), count.to_le_bytes()].concat();
    block.resize(4096, 0xEE);
    block
}

fn parse(block: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
    (word(0), word(4))
}

/// Counts up as far as it gets until there are no more stamps, and in some rounds behind; the stamps under which it has counted.
fn count_up(served: &Served, number: u8, is_over: &AtomicBool) -> Vec<u32> {
    let mut host = host(served.nvme, number);
    let mut counted = Vec::new();
    let (begun, mut left) = (Instant::now(), 120);
    while left > 0 && begun.elapsed() < PATIENCE {
        left -= u32::from(is_over.load(Ordering::Relaxed));
        let found = look(&mut host, SHARED, 4096);
        let (stamp, count) = parse(&found);
        let done = swap(&mut host, SHARED, found, block(stamp, count + 1).repeat(3));
        match done {
            [OK, OK] => counted.push(stamp),
            other => assert_eq!(other, UNEQUAL),
        }
    }
    counted
}

#[test]
fn nothing_comes_between_the_two_from_other_hosts_or_clients_of_other_protocols() {
    serve(Limits::default(), Tempo::Off, |served| {
        let stamps = 150_u32;
        let mut client = nbd(served.nbd);
        let mut over_nbd = |kind: u16, data: &[u8]| {
            let mut asked = request(kind, 5, SHARED.lba * 4096, 3 * 4096);
            asked.extend_from_slice(data);
            client.write_all(&asked).expect("the server listens");
            let answer = read(&mut client, 16);
            assert_eq!(answer[4..8], [0; 4]);
            if kind == 0 { read(&mut client, 3 * 4096) } else { Vec::new() }
        };
        over_nbd(1, &block(0, 0).repeat(3));
        let is_over = AtomicBool::new(false);
        let counted = std::thread::scope(|scope| {
            let (served, is_over) = (&served, &is_over);
            let hosts = [1, 2].map(|number| scope.spawn(move || count_up(served, number, is_over)));
            for stamp in 1..=stamps {
                over_nbd(1, &block(stamp, 0).repeat(3));
                // The hosts keep the stamp that they have found: one that is older has come behind this write and undone it.
                for found in over_nbd(0, &[]).chunks(4096) {
                    assert_eq!(parse(found).0, stamp);
                }
            }
            is_over.store(true, Ordering::Relaxed);
            hosts.map(|host| host.join().expect("no panic")).concat()
        });
        let found = over_nbd(0, &[]);
        let last = counted.iter().filter(|&&stamp| stamp == stamps).count() as u32;
        assert_eq!(found, block(stamps, last).repeat(3), "each count was once, and none is lost");
        println!("{} were written, {last} of them behind the last stamp", counted.len());
        assert!(counted.len() > 100 && last > 10, "{} {last}", counted.len());
    });
}

#[test]
fn a_drive_that_is_pulled_in_between_keeps_its_blocks_from_no_client_afterwards() {
    // Without a clock no time would pass in which the drive gets ready.
    serve(Limits::default(), Tempo::Scaled(1.0), |served| {
        let control = |control| {
            let done = served.handle.call(move |engine| engine.control(control)).expect("it serves");
            done.expect("the drive is there to be pulled");
        };
        let range = BlockRange { lba: 0, blocks: 8 };
        let mut rng = Rng::named(3, "pulls");
        for _ in 0..4 {
            let mut leaves = join(&served, 1);
            let swaps = std::thread::spawn(move || {
                let entry = |command: NvmCommand| command.encode(0, 1);
                for byte in 0_u8.. {
                    let compare = entry(NvmCommand::Compare { range, fua: false });
                    let write = entry(NvmCommand::Write { range, fua: false });
                    let data = |byte| Data::ToController(vec![byte; 8 * 4096]);
                    if leaves.fused((compare, data(byte)), (write, data(byte + 1))).is_err() || byte > 250 {
                        break;
                    }
                }
            });
            std::thread::sleep(Duration::from_micros(1000 + rng.below(20_000)));
            control(Control::Pull { drive: DRIVE });
            swaps.join().expect("it ends with the connection");
            control(Control::Insert { drive: DRIVE });
            let mut stays = join(&served, 2);
            let found = look(&mut stays, range, 4096);
            assert!(found.chunks(4096).all(|block| block.iter().all(|byte| *byte == block[0])));
            assert_eq!(swap(&mut stays, range, found, vec![0; 8 * 4096]), [OK; 2]);
            let mut client = nbd(served.nbd);
            let mut asked = request(1, 5, 0, 4096);
            asked.extend([0; 4096]);
            client.write_all(&asked).expect("the server listens");
            assert_eq!(read(&mut client, 16)[4..8], [0; 4]);
        }
    });
}

/// Connects, as soon as the drive is there.
fn join(served: &Served, number: u8) -> Host {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:{number}"), hosted::NQN);
    config.host_id = [number; 16];
    let mut host = None;
    until("a host is let in", || {
        host = Host::connect(served.nvme, config.clone(), PATIENCE).ok();
        host.is_some()
    });
    host.expect("it was waited for")
}
