//! Features that hosts expect of a drive, over NVMe/TCP of the loopback.

mod hosted;
mod small;

use flashyard_live::{Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::cns;
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::nvm::{BlockRange, CopyRange, DsmRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use hosted::NQN;
use small::scenario_with;
use std::net::SocketAddr;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
    Host::connect(address, config, Duration::from_secs(10)).expect("the target lets everybody in")
}

fn run(host: &mut Host, command: NvmCommand, data: Vec<u8>) {
    let status = host.command(1, command, data, 0).expect("an answer").status;
    assert_eq!(status, Status::SUCCESS, "{command:?}");
}

fn write(host: &mut Host, lba: u64, blocks: u32) {
    let data = vec![lba as u8 | 1; blocks as usize * 4096];
    run(host, NvmCommand::Write { range: BlockRange { lba, blocks }, fua: false }, data);
}

fn deallocate(host: &mut Host, range: BlockRange) {
    let command =
        NvmCommand::DatasetManagement { ranges: 1, deallocate: true, integral_read: false, integral_write: false };
    run(host, command, DsmRange::new(range).as_bytes().to_vec());
}

/// A Copy to `first`, and its data.
fn copy(first: u64, sources: &[BlockRange], fua: bool) -> (NvmCommand, Vec<u8>) {
    let command = NvmCommand::Copy { first, ranges: sources.len() as u16, format: 0, protection: 0, fua };
    (command, sources.iter().flat_map(|&source| CopyRange::new(source).as_bytes().to_vec()).collect())
}

fn read(host: &mut Host, lba: u64, blocks: u32) -> Vec<u8> {
    let command = NvmCommand::Read { range: BlockRange { lba, blocks }, fua: false };
    let done = host.command(1, command, Vec::new(), blocks * 4096).expect("an answer");
    assert_eq!(done.status, Status::SUCCESS);
    done.data
}

/// Bytes that differ from block to block and within one.
fn pattern(lba: u64, blocks: u32) -> Vec<u8> {
    (0..u64::from(blocks) * 4096).map(|at| ((lba + at / 4096) * 31 + at % 4096 / 3) as u8).collect()
}

fn write_pattern(host: &mut Host, lba: u64, blocks: u32) {
    run(host, NvmCommand::Write { range: BlockRange { lba, blocks }, fua: false }, pattern(lba, blocks));
}

fn namespace(host: &mut Host) -> IdentifyNamespace {
    let data = host.identify(cns::NAMESPACE, 1).expect("there is a namespace");
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

/// Looks until the drive has `used` blocks in use: a host that looks twice sees it as it is.
fn await_used(host: &mut Host, used: u64) -> IdentifyNamespace {
    loop {
        let found = namespace(host);
        if found.used_blocks.get() == used {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn utilization_follows_writes_and_deallocations_and_hints_are_the_geometry_of_the_flash() {
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve(&scenario, None, Tempo::Off, |address, _| {
        let mut host = host(address);
        let told = await_used(&mut host, 0);
        assert_eq!(told.features, IdentifyNamespace::THIN | IdentifyNamespace::HINTS);
        let granularity = u32::from(told.write_granularity.get()) + 1;
        let optimal = u32::from(told.write_optimal.get()) + 1;
        assert!(granularity > 1 && optimal > granularity && optimal.is_multiple_of(granularity), "{told:?}");
        write(&mut host, 10, 20);
        await_used(&mut host, 20);
        write(&mut host, 20, 20);
        await_used(&mut host, 30);
        deallocate(&mut host, BlockRange { lba: 0, blocks: 15 });
        await_used(&mut host, 25);
        run(
            &mut host,
            NvmCommand::WriteZeroes { range: BlockRange { lba: 39, blocks: 2 }, deallocate: true, fua: false },
            Vec::new(),
        );
        await_used(&mut host, 24);
    });
}

#[test]
fn a_drive_copies_ranges_and_no_data_comes_to_the_host() {
    let scenario = scenario_with(&["drive.filled=0"]);
    let (report, ()) = hosted::serve(&scenario, None, Tempo::Off, |address, _| {
        let mut host = host(address);
        write_pattern(&mut host, 100, 256);
        write_pattern(&mut host, 700, 3);
        let range = |lba, blocks| BlockRange { lba, blocks };
        // As long as a range may be, one that holds nothing, a short one, and one that the first has just written.
        let (command, data) = copy(1000, &[range(100, 256), range(3000, 2), range(701, 2), range(1001, 1)], true);
        run(&mut host, command, data);
        let copied = [pattern(100, 256), vec![0; 2 * 4096], pattern(701, 2), pattern(101, 1)].concat();
        assert!([read(&mut host, 1000, 256), read(&mut host, 1256, 5)].concat() == copied);
        // A range that overlaps its destination is read whole before it is written.
        let (command, data) = copy(104, &[range(100, 20)], false);
        run(&mut host, command, data);
        assert!(read(&mut host, 100, 24) == [pattern(100, 4), pattern(100, 20)].concat());
    });
    // The reads and writes of the host, and one of each for each range; drives are protected, so that nothing is flushed.
    assert_eq!(report.requests[..4], [3 + 5, 2 + 5, 0, 0]);
}

#[test]
fn a_copy_that_is_aborted_stops_and_the_host_is_told_the_truth() {
    const COMMANDS: u16 = 40;
    const BLOCKS: u64 = 4 * 16;
    // Slow enough that most of them are in their midst when the host changes its mind.
    hosted::serve(&scenario_with(&["drive.filled=0"]), None, Tempo::Scaled(0.01), |address, _| {
        let mut host = host(address);
        write_pattern(&mut host, 0, 64);
        let sources = [0, 16, 32, 48].map(|lba| BlockRange { lba, blocks: 16 });
        for number in 1..=u64::from(COMMANDS) {
            let (command, data) = copy(number * BLOCKS, &sources, false);
            host.send(1, command, data, 0).expect("it is taken");
        }
        // Identifiers are given in turn, the lowest free one last.
        let said = (0..COMMANDS).filter(|&id| host.abort(id).expect("an answer")).count();
        let ended = host.ended(usize::from(COMMANDS)).expect("all of them end");
        let aborted: Vec<_> = ended.iter().filter(|done| done.status.code() == Status::ABORT_REQUESTED).collect();
        assert!(ended.iter().all(|done| done.status.is_success() || done.status.code() == Status::ABORT_REQUESTED));
        println!("{} of {COMMANDS} were aborted", aborted.len());
        assert_eq!(said, aborted.len());
        assert!(said > 0, "all were done before");
        // Whole ranges in their order are there, at least those that the completions say.
        let whole = pattern(0, 64);
        let found: usize = (1..=u64::from(COMMANDS))
            .map(|number| {
                let found = read(&mut host, number * BLOCKS, 64);
                let ranges = found.chunks(16 * 4096).zip(whole.chunks(16 * 4096));
                let copied = ranges.take_while(|(found, whole)| found == whole).count();
                assert!(found[copied * 16 * 4096..].iter().all(|&byte| byte == 0), "of {number}");
                copied
            })
            .sum();
        let told: u64 = ended.iter().map(|done| if done.status.is_success() { 4 } else { done.result }).sum();
        assert_eq!(found as u64, told);
    });
}

#[test]
fn a_host_that_leaves_in_the_midst_of_copies_leaves_what_was_written() {
    hosted::serve(&scenario_with(&["drive.filled=0"]), None, Tempo::Scaled(0.01), |address, _| {
        let mut leaving = host(address);
        write_pattern(&mut leaving, 0, 64);
        let sources = [0, 16, 32, 48].map(|lba| BlockRange { lba, blocks: 16 });
        for number in 1..=20 {
            let (command, data) = copy(number * 64, &sources, false);
            leaving.send(1, command, data, 0).expect("it is taken");
        }
        leaving.ended(1).expect("some of them end");
        drop(leaving);
        // Connections are heard once everything of the host that left has come to an end.
        let mut host = host(address);
        let look = |host: &mut Host| (1..=20).flat_map(|number| read(host, number * 64, 64)).collect::<Vec<u8>>();
        let found = look(&mut host);
        let whole = pattern(0, 64);
        let blocks = found.chunks(4096).zip(whole.chunks(4096).cycle());
        assert!(blocks.clone().all(|(found, whole)| found == whole || found == [0; 4096]));
        assert!(blocks.clone().any(|(found, whole)| found == whole), "one copy had ended");
        assert!(look(&mut host) == found, "nothing is written behind it");
    });
}
