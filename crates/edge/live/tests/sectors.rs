//! Drives with blocks of 512 bytes over NVMe/TCP of the loopback: parts of the units of 4 KiB that they map.

mod hosted;
mod small;

use flashyard_kernel::Rng;
use flashyard_live::{Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::cns;
use flashyard_nvme::identify::{IdentifyNamespace, LbaFormat};
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvmf::initiator::{Completion, InitiatorConfig};
use hosted::{Child, NQN};
use small::scenario_with;
use std::net::SocketAddr;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const BLOCK: usize = 512;
const UNIT: u64 = 8;

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
    Host::connect(address, config, Duration::from_secs(10)).expect("the target lets everybody in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn ask(host: &mut Host, command: NvmCommand, data: Vec<u8>) -> Completion {
    host.command(1, command, data, 0).expect("an answer")
}

fn run(host: &mut Host, command: NvmCommand, data: Vec<u8>) {
    assert_eq!(ask(host, command, data).status, Status::SUCCESS, "{command:?}");
}

fn write(host: &mut Host, lba: u64, data: Vec<u8>) {
    let range = range(lba, (data.len() / BLOCK) as u32);
    run(host, NvmCommand::Write { range, fua: false }, data);
}

fn read(host: &mut Host, lba: u64, blocks: u32) -> Vec<u8> {
    let command = NvmCommand::Read { range: range(lba, blocks), fua: false };
    let done = host.command(1, command, Vec::new(), blocks * BLOCK as u32).expect("an answer");
    assert_eq!(done.status, Status::SUCCESS);
    done.data
}

fn zeroes(range: BlockRange, deallocate: bool) -> NvmCommand {
    NvmCommand::WriteZeroes { range, deallocate, fua: false }
}

const DEALLOCATE: NvmCommand =
    NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };

fn identify(host: &mut Host) -> IdentifyNamespace {
    let data = host.identify(cns::NAMESPACE, 1).expect("there is a namespace");
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

#[test]
fn a_host_is_told_that_blocks_are_parts_of_units() {
    let scenario = scenario_with(&["drive.filled=0"]);
    let shape = |block_bytes: u32| {
        hosted::serve_blocks(block_bytes, &scenario, None, Tempo::Off, |address, _| identify(&mut host(address))).1
    };
    let (units, blocks) = (shape(4096), shape(512));
    assert_eq!(blocks.size_blocks.get(), units.size_blocks.get() * UNIT);
    assert_eq!((units.block_bytes(), blocks.block_bytes()), (Some(4096), Some(512)));
    for told in [&units, &blocks] {
        let formats: Vec<_> = told.lba_formats.iter().map(|format| (format.data_log2, format.performance)).collect();
        assert_eq!(told.formats, 3);
        let sizes = [(12, LbaFormat::BEST), (9, LbaFormat::GOOD)];
        assert_eq!((&formats[..2], &formats[2..4], formats[4]), (&sizes[..], &sizes[..], (0, 0)));
    }
    let hints = |told: &IdentifyNamespace| {
        let fields = [told.write_alignment, told.deallocate_granularity, told.deallocate_alignment];
        (fields.map(|field| u32::from(field.get()) + 1), u32::from(told.write_granularity.get()) + 1)
    };
    let (aligned, granularity) = hints(&units);
    assert_eq!(aligned, [1; 3]);
    assert_eq!(hints(&blocks), ([8; 3], granularity * 8));
    // Linux takes the atomic unit over a power failure for the physical block.
    let atomic = |told: &IdentifyNamespace| [told.atomic_write, told.atomic_write_power_fail, told.atomic_boundary];
    assert_eq!((units.features & IdentifyNamespace::ATOMICS, atomic(&units).map(|field| field.get())), (0, [0; 3]));
    assert_ne!(blocks.features & IdentifyNamespace::ATOMICS, 0);
    assert_eq!(atomic(&blocks).map(|field| field.get()), [7; 3]);
}

/// One block of a writer's: which block, whose, and how often it was written.
fn stamp(lba: u64, version: u32) -> Vec<u8> {
    [&lba.to_le_bytes()[..], &version.to_le_bytes()].concat().into_iter().cycle().take(BLOCK).collect()
}

/// The longest range of one write; ranges cross units.
const LONGEST: u32 = 5;
/// Blocks that writers change, and how often each writer goes over its own.
const BLOCKS: u64 = 10 * UNIT;
const ROUNDS: u32 = 30;

/// Writes the blocks of one of two writers, those with this remainder, again and again with all of them under way together.
fn overwrite(address: SocketAddr, remainder: u64) {
    let mut host = host(address);
    for version in 1..=ROUNDS {
        let own = (0..BLOCKS).filter(|lba| lba % 2 == remainder);
        let mut sent = 0;
        for lba in own {
            let command = NvmCommand::Write { range: range(lba, 1), fua: false };
            host.send(1, command, stamp(lba, version), 0).expect("it is taken");
            sent += 1;
        }
        let ended = host.ended(sent).expect("all of them end");
        assert!(ended.iter().all(|done| done.status.is_success()));
        // Acknowledged blocks are there, whatever the neighbours are doing.
        let found = read(&mut host, 0, BLOCKS as u32);
        for (lba, block) in (0..).zip(found.chunks(BLOCK)).filter(|(lba, _)| lba % 2 == remainder) {
            assert!(block == stamp(lba, version), "block {lba} in round {version}");
        }
    }
}

#[test]
fn two_hosts_that_write_neighbours_at_once_never_lose_a_block() {
    for tempo in [Tempo::Off, Tempo::Scaled(1.0)] {
        let scenario = scenario_with(&["drive.filled=0"]);
        let (report, ()) = hosted::serve_blocks(512, &scenario, None, tempo, |address, _| {
            let writers = [0, 1].map(|remainder| std::thread::spawn(move || overwrite(address, remainder)));
            writers.into_iter().for_each(|writer| writer.join().expect("it has found its blocks"));
            let found = read(&mut host(address), 0, BLOCKS as u32);
            assert!(found == (0..BLOCKS).flat_map(|lba| stamp(lba, ROUNDS)).collect::<Vec<_>>());
        });
        // A read before a write is not a request of a client.
        let writes = u64::from(ROUNDS) * BLOCKS;
        assert_eq!(report.requests[..4], [2 * u64::from(ROUNDS) + 1, writes, 0, 0]);
        assert_eq!(report.bytes[1], writes * BLOCK as u64);
    }
}

#[test]
fn commands_of_any_range_do_to_blocks_what_they_say_and_nothing_to_their_neighbours() {
    const SPAN: u64 = 12 * UNIT;
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve_blocks(512, &scenario, None, Tempo::Off, |address, _| {
        let mut host = host(address);
        let mut rng = Rng::named(1, "sectors");
        let mut known = vec![0; SPAN as usize * BLOCK];
        for version in 1..600 {
            let blocks = 1 + rng.below(20);
            let lba = rng.below(SPAN - blocks);
            let at = lba as usize * BLOCK..(lba + blocks) as usize * BLOCK;
            let target = range(lba, blocks as u32);
            match rng.below(7) {
                0 => run(&mut host, DEALLOCATE, DsmRange::new(target).as_bytes().to_vec()),
                1 => run(&mut host, zeroes(target, true), Vec::new()),
                2 => run(&mut host, zeroes(target, false), Vec::new()),
                3 => {
                    let from = rng.below(SPAN - blocks);
                    let source = CopyRange::new(range(from, blocks as u32)).as_bytes().to_vec();
                    run(
                        &mut host,
                        NvmCommand::Copy { first: lba, ranges: 1, format: 0, protection: 0, fua: false },
                        source,
                    );
                    known.copy_within(from as usize * BLOCK..(from + blocks) as usize * BLOCK, at.start);
                    continue;
                }
                4 => {
                    let compare = NvmCommand::Compare { range: target, fua: false };
                    run(&mut host, compare, known[at.clone()].to_vec());
                    let mut other = known[at].to_vec();
                    *other.last_mut().expect("a block") ^= 1;
                    assert_eq!(ask(&mut host, compare, other).status.code(), Status::COMPARE_FAILURE);
                    run(&mut host, NvmCommand::Verify { range: target, fua: false }, Vec::new());
                    continue;
                }
                _ => {
                    let data: Vec<u8> = (lba..lba + blocks).flat_map(|lba| stamp(lba, version)).collect();
                    write(&mut host, lba, data.clone());
                    known[at].copy_from_slice(&data);
                    continue;
                }
            }
            known[at].fill(0);
        }
        assert!(read(&mut host, 0, SPAN as u32) == known);
        for lba in 0..SPAN - u64::from(LONGEST) {
            let blocks = 1 + rng.below(LONGEST.into()) as u32;
            let at = lba as usize * BLOCK;
            assert!(read(&mut host, lba, blocks) == known[at..at + blocks as usize * BLOCK], "{blocks} from {lba}");
        }
        let last = identify(&mut host).size_blocks.get() - 1;
        write(&mut host, last, stamp(last, 1));
        assert!(read(&mut host, last - 1, 2) == [vec![0; BLOCK], stamp(last, 1)].concat());
        let beyond = NvmCommand::Write { range: range(last, 2), fua: false };
        assert_eq!(ask(&mut host, beyond, vec![0; 2 * BLOCK]).status.code(), Status::LBA_OUT_OF_RANGE);
    });
}

#[test]
fn utilization_counts_blocks_of_units_that_hold_something() {
    hosted::serve_blocks(512, &scenario_with(&["drive.filled=0"]), None, Tempo::Off, |address, _| {
        let mut host = host(address);
        let used = |host: &mut Host, wanted: u64| {
            while identify(host).used_blocks.get() != wanted {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        used(&mut host, 0);
        write(&mut host, 3, vec![1; 2 * BLOCK]);
        used(&mut host, UNIT);
        write(&mut host, 7, vec![1; 2 * BLOCK]);
        used(&mut host, 2 * UNIT);
        // Of the second unit it deallocates a part only, which becomes zeros.
        run(&mut host, DEALLOCATE, DsmRange::new(range(0, 9)).as_bytes().to_vec());
        used(&mut host, UNIT);
        assert!(read(&mut host, 0, 16) == [0; 16 * BLOCK]);
    });
}

#[test]
#[ignore = "the process that the test below kills"]
fn a_server_to_be_killed() {
    hosted::be_killed(
        &scenario_with(&["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]),
        512,
        Tempo::Off,
    );
}

/// Version of a block that is whole: 0 for one that was never written.
fn version_of(lba: u64, block: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&block[8..12]);
    let version = u32::from_le_bytes(word);
    assert!(block == stamp(lba, version) || block == [0; BLOCK], "block {lba} is torn");
    version
}

/// Overwrites blocks with rising versions, single ones and neighbours that lie in two units, until the server is gone; notes what is
/// acknowledged.
fn overwrite_until_the_end(host: &mut Host, acknowledged: &mut [u32], from: u32, seed: u64) {
    let mut rng = Rng::named(seed, "sectors killed");
    for version in from.. {
        let mut places: Vec<u64> = Vec::new();
        while places.len() < 12 {
            let lba = rng.below(BLOCKS / 2) * 2;
            if !places.contains(&lba) {
                places.push(lba);
            }
        }
        for &lba in &places {
            // Two blocks from an odd one on are of two units now and then.
            let lba = (lba + 1) % BLOCKS;
            let blocks = if lba + 1 < BLOCKS { 2 } else { 1 };
            let data = (lba..lba + blocks).flat_map(|lba| stamp(lba, version)).collect();
            let command = NvmCommand::Write { range: range(lba, blocks as u32), fua: false };
            if host.send(1, command, data, 0).is_err() {
                return;
            }
        }
        let Ok(ended) = host.ended(places.len()) else { return };
        assert!(ended.iter().all(|done| done.status.is_success()));
        for lba in places {
            let lba = (lba + 1) % BLOCKS;
            acknowledged[lba as usize] = version;
            if lba + 1 < BLOCKS {
                acknowledged[lba as usize + 1] = version;
            }
        }
    }
}

#[test]
fn acknowledged_blocks_and_their_neighbours_are_whole_after_the_server_was_killed() {
    const LIVES: u32 = 4;
    let directory = tempfile::tempdir().expect("there is room");
    let mut acknowledged = vec![0; BLOCKS as usize];
    let mut rng = Rng::named(7, "kills of sectors");
    for life in 0..=LIVES {
        let mut child = Child::start(directory.path());
        let mut host = host(child.address);
        let found = read(&mut host, 0, BLOCKS as u32);
        for (lba, block) in (0..).zip(found.chunks(BLOCK)) {
            let version = version_of(lba, block);
            assert!(version >= acknowledged[lba as usize], "block {lba}: {version} of {}", acknowledged[lba as usize]);
        }
        if life == LIVES {
            break;
        }
        let span = Duration::from_micros(200_000 + rng.below(400_000));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(span);
                child.kill();
            });
            overwrite_until_the_end(&mut host, &mut acknowledged, 1 + life * 1_000_000, life.into());
        });
    }
    assert!(acknowledged.iter().filter(|&&version| version > 0).count() > BLOCKS as usize / 2);
}
