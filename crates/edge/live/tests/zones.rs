//! A zoned drive over NVMe/TCP of the loopback: its translation layer, several hosts at once, lost power, kills.

mod hosted;
mod small;

use flashyard_live::{Host, Reader, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::zone::{Receive, SendAction, ZoneDescriptor, ZoneState};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_nvmf::target::ZoneShape;
use flashyard_served::Control;
use flashyard_units::DriveId;
use hosted::NQN;
use small::scenario_with;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

const SHAPE: ZoneShape = ZoneShape { zone_blocks: 2048, capacity_blocks: 1500, open_max: 3, active_max: 6 };
const ZONE: u64 = SHAPE.zone_blocks;
const BLOCK: usize = 4096;
/// Blocks of a read of what outlived a kill.
const PART: usize = 250;
const DIRECTORY: &str = "FLASHYARD_TEST_ZONES";
const SEED: &str = "FLASHYARD_TEST_ZONES_SEED";

fn serve<R: Send>(directory: Option<&Path>, client: impl FnOnce(SocketAddr, flashyard_live::Handle) -> R + Send) -> R {
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve_zoned(&scenario, directory, Tempo::Off, Some(SHAPE), client).1
}

fn try_host(address: SocketAddr, number: u8) -> Option<Host> {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:{number}"), NQN);
    (config.host_id, config.all_command_sets) = ([number; 16], true);
    Host::connect(address, config, Duration::from_secs(30)).ok()
}

fn host(address: SocketAddr, number: u8) -> Host {
    try_host(address, number).expect("the target lets everybody in")
}

fn command(host: &mut Host, command: NvmCommand, data: Vec<u8>) -> (Status, u64) {
    let done = host.command(1, command, data, 0).expect("an answer");
    (done.status.code(), done.result)
}

/// Blocks that say which they are.
fn stamped(host: u8, from: u64, blocks: u64) -> Vec<u8> {
    let block = |number: u64| [number.to_le_bytes(), [host; 8]].concat().repeat(BLOCK / 16);
    (from..from + blocks).flat_map(block).collect()
}

fn write(host: &mut Host, lba: u64, data: Vec<u8>) -> Status {
    let range = BlockRange { lba, blocks: (data.len() / BLOCK) as u32 };
    command(host, NvmCommand::Write { range, fua: false }, data).0
}

fn append(host: &mut Host, zone: u64, data: Vec<u8>) -> (Status, u64) {
    let range = BlockRange { lba: zone * ZONE, blocks: (data.len() / BLOCK) as u32 };
    command(host, NvmCommand::ZoneAppend { range, fua: false }, data)
}

fn send(host: &mut Host, zone: u64, action: SendAction, all: bool) -> Status {
    command(host, NvmCommand::ZoneManagementSend { first: zone * ZONE, action, all }, Vec::new()).0
}

fn read(host: &mut Host, lba: u64, blocks: u32) -> Vec<u8> {
    let command = NvmCommand::Read { range: BlockRange { lba, blocks }, fua: false };
    let done = host.command(1, command, Vec::new(), blocks * BLOCK as u32).expect("an answer");
    assert_eq!(done.status, Status::SUCCESS);
    done.data
}

/// State of each zone, and blocks up to its write pointer where it has one.
fn zones(host: &mut Host) -> Vec<(u8, u64)> {
    let count = host.controller().namespaces[0].blocks / ZONE;
    let len_bytes = 64 * (count + 1);
    let receive = Receive { action: Receive::REPORT, filter: 0, is_partial: true, len_bytes };
    let command = NvmCommand::ZoneManagementReceive { first: 0, receive };
    let done = host.command(1, command, Vec::new(), len_bytes as u32).expect("an answer");
    assert_eq!((done.status, u64::from(done.data[0])), (Status::SUCCESS, count));
    let zones = done.data[64..].chunks_exact(64).filter_map(|bytes| ZoneDescriptor::read_from_bytes(bytes).ok());
    let pointer = |zone: &ZoneDescriptor| zone.pointer.get().checked_sub(zone.first.get()).filter(|&at| at <= ZONE);
    zones.map(|zone| (zone.state >> 4, pointer(&zone).unwrap_or(0))).collect()
}

const EMPTY: (u8, u64) = (ZoneState::Empty as u8, 0);
const FULL: (u8, u64) = (ZoneState::Full as u8, 0);

fn closed(written: u64) -> (u8, u64) {
    (ZoneState::Closed as u8, written)
}

/// Blocks of the drive that are mapped.
fn mapped(handle: &flashyard_live::Handle) -> u64 {
    let gauges = handle.call(|engine| engine.gauges(Reader::Operator)).expect("it serves");
    gauges.drives[0].health.mapped_slots
}

#[test]
fn a_reset_deallocates_the_blocks_of_its_zone_in_the_translation_layer() {
    serve(None, |address, handle| {
        let mut host = host(address, 1);
        assert_eq!(write(&mut host, 0, stamped(1, 0, 100)), Status::SUCCESS);
        assert_eq!(append(&mut host, 1, stamped(1, 500, 20)), (Status::SUCCESS, ZONE));
        assert_eq!(append(&mut host, 1, stamped(1, 520, 20)), (Status::SUCCESS, ZONE + 20));
        assert_eq!(mapped(&handle), 140);
        assert!(read(&mut host, ZONE, 41) == [stamped(1, 500, 40), vec![0; BLOCK]].concat());
        assert_eq!(send(&mut host, 0, SendAction::Reset, false), Status::SUCCESS);
        assert_eq!((mapped(&handle), read(&mut host, 0, 100) == vec![0; 100 * BLOCK]), (40, true));
        assert_eq!(write(&mut host, 0, stamped(1, 7, 1)), Status::SUCCESS);
        // A finish writes one block, and a full zone is reset like any other.
        assert_eq!(send(&mut host, 1, SendAction::Finish, false), Status::SUCCESS);
        assert_eq!((mapped(&handle), write(&mut host, ZONE + 40, stamped(1, 0, 1))), (42, Status::ZONE_FULL));
        assert_eq!(send(&mut host, 0, SendAction::Reset, true), Status::SUCCESS);
        assert_eq!((mapped(&handle), zones(&mut host)[..2] == [EMPTY; 2]), (0, true));
    });
}

/// Data of four blocks comes with its command, so that commands are taken in in the order in which they are sent.
#[test]
fn a_reset_among_writes_leaves_what_was_written_behind_it_and_nothing_else() {
    serve(None, |address, handle| {
        let mut host = host(address, 1);
        for round in 1..40_u64 {
            let append = |host: &mut Host, number: u64| {
                let range = BlockRange { lba: 0, blocks: 4 };
                let data = stamped(1, round * 1000 + number * 4, 4);
                host.send(1, NvmCommand::ZoneAppend { range, fua: false }, data, 0).expect("it serves");
            };
            (0..20).for_each(|number| append(&mut host, number));
            let reset = NvmCommand::ZoneManagementSend { first: 0, action: SendAction::Reset, all: false };
            host.send(1, reset, Vec::new(), 0).expect("it serves");
            (20..30).for_each(|number| append(&mut host, number));
            let ended = host.ended(31).expect("it serves");
            assert!(ended.iter().all(|done| done.status.is_success()), "{ended:?}");
            assert!(read(&mut host, 0, 80) == [stamped(1, round * 1000 + 80, 40), vec![0; 40 * BLOCK]].concat());
            assert_eq!(mapped(&handle), 40);
            assert_eq!(send(&mut host, 0, SendAction::Reset, false), Status::SUCCESS);
        }
    });
}

#[test]
fn appends_of_several_hosts_at_once_get_places_of_their_own() {
    const HOSTS: u8 = 4;
    const DEPTH: usize = 16;
    serve(None, |address, _| {
        let mut hosts: Vec<Host> = (0..HOSTS).map(|number| host(address, number + 1)).collect();
        let mut places: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); hosts.len()];
        let range = BlockRange { lba: 2 * ZONE, blocks: 2 };
        for round in 0..8_u64 {
            for turn in 0..DEPTH as u64 {
                for (number, host) in (1..).zip(&mut hosts) {
                    let data = stamped(number, (round * DEPTH as u64 + turn) * 2, 2);
                    host.send(1, NvmCommand::ZoneAppend { range, fua: false }, data, 0).expect("it serves");
                }
            }
            for (host, places) in hosts.iter_mut().zip(&mut places) {
                for done in host.ended(DEPTH).expect("it serves") {
                    assert_eq!(done.status, Status::SUCCESS);
                    assert!(places.insert(done.result), "place {} twice", done.result);
                }
            }
        }
        let written = u64::from(HOSTS) * 8 * DEPTH as u64 * 2;
        assert_eq!(zones(&mut hosts[0])[2], (ZoneState::ImplicitlyOpen as u8, written));
        // Each block says which host has written it, and as the how manieth of its own.
        let mut found: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); hosts.len()];
        let mut numbers = BTreeSet::new();
        for lba in (0..written).step_by(2).map(|at| 2 * ZONE + at) {
            let data = read(&mut hosts[0], lba, 2);
            let number = u64::from_le_bytes(data[..8].try_into().expect("eight bytes"));
            assert!(data == stamped(data[8], number, 2), "block {lba}");
            assert!(numbers.insert((data[8], number)), "append {number} of host {} twice", data[8]);
            found[usize::from(data[8]) - 1].insert(lba);
        }
        assert_eq!(found, places);
    });
}

#[test]
fn zones_of_a_drive_that_comes_back_are_those_of_what_it_holds() {
    // Without a clock an idle enclosure does not come as far as its drive's return.
    let scenario = scenario_with(&["drive.filled=0"]);
    hosted::serve_zoned(&scenario, None, Tempo::Scaled(1.0), Some(SHAPE), |address, handle| {
        let mut first = host(address, 1);
        assert_eq!(send(&mut first, 0, SendAction::Open, false), Status::SUCCESS);
        assert_eq!(append(&mut first, 1, stamped(1, 0, 9)).0, Status::SUCCESS);
        assert_eq!(send(&mut first, 2, SendAction::Finish, false), Status::SUCCESS);
        assert_eq!(zones(&mut first)[0], (ZoneState::ExplicitlyOpen as u8, 0));
        let control = |control| handle.call(move |engine| engine.control(control)).expect("it serves");
        let drive = DriveId::new(0);
        control(Control::Pull { drive }).expect("it is there");
        control(Control::Insert { drive }).expect("it is away");
        let begun = Instant::now();
        let mut again = loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "the drive does not come back");
            std::thread::sleep(Duration::from_millis(10));
            if let Some(host) = try_host(address, 2) {
                break host;
            }
        };
        assert_eq!(zones(&mut again)[..4], [EMPTY, closed(9), FULL, EMPTY]);
        assert!(read(&mut again, ZONE, 9) == stamped(1, 0, 9));
    });
}

#[test]
fn a_host_that_resets_zones_and_leaves_keeps_no_other_host_out() {
    let scenario = scenario_with(&["drive.filled=0"]);
    // Slow enough that a reset is under way for seconds.
    hosted::serve_zoned(&scenario, None, Tempo::Scaled(0.05), Some(SHAPE), |address, handle| {
        let mut first = host(address, 1);
        assert_eq!(write(&mut first, 7 * ZONE, stamped(1, 0, 3)), Status::SUCCESS);
        for zone in 0..8 {
            assert_eq!(send(&mut first, zone, SendAction::Finish, false), Status::SUCCESS);
        }
        let reset = NvmCommand::ZoneManagementSend { first: 0, action: SendAction::Reset, all: true };
        first.send(1, reset, Vec::new(), 0).expect("it serves");
        // The report comes behind it: the reset has begun.
        assert_eq!(zones(&mut first)[..8], [EMPTY; 8]);
        drop(first);
        let mut other = host(address, 2);
        assert!(mapped(&handle) > 0, "the reset is over, or was waited for");
        // A read of such a zone does not show what is being reset.
        assert!(read(&mut other, 7 * ZONE, 3) == vec![0; 3 * BLOCK]);
        // A write of such a zone waits, and is not lost.
        first = host(address, 1);
        let again = NvmCommand::ZoneManagementSend { first: 0, action: SendAction::Reset, all: false };
        assert_eq!(send(&mut first, 0, SendAction::Finish, false), Status::SUCCESS);
        first.send(1, again, Vec::new(), 0).expect("it serves");
        assert_eq!(zones(&mut first)[0], EMPTY);
        drop(first);
        assert_eq!(write(&mut other, 0, stamped(2, 0, 3)), Status::SUCCESS);
        assert_eq!(mapped(&handle), 3);
        assert!(read(&mut other, 0, 4) == [stamped(2, 0, 3), vec![0; BLOCK]].concat());
    });
}

/// A command to the drive, with its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    zone: u64,
    /// Blocks to append; none is a finish, and none with `resets` a reset.
    blocks: u64,
    resets: bool,
}

/// Steps that follow from a seed.
fn steps(seed: u64) -> impl Iterator<Item = Step> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [zone, kind, blocks] = [state >> 33, state >> 40, state >> 47];
        let is_append = kind % 8 < 6;
        Step { zone: zone % 5, blocks: if is_append { 1 + blocks % 250 } else { 0 }, resets: kind % 8 == 7 }
    })
}

/// The zones as the steps leave them: the blocks written, with the number of the step that wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Zone {
    blocks: Vec<(u64, u64)>,
    is_full: bool,
}

impl Zone {
    fn apply(&mut self, number: u64, step: Step) {
        let room = SHAPE.capacity_blocks - self.blocks.len() as u64;
        match step {
            Step { resets: true, .. } => *self = Self::default(),
            Step { blocks: 0, .. } => self.is_full = true,
            Step { blocks, .. } if !self.is_full && blocks <= room => {
                self.blocks.extend((0..blocks).map(|at| (number, at)));
                self.is_full = blocks == room;
            }
            _ => {}
        }
    }

    fn told(&self) -> (u8, u64) {
        match self.blocks.len() as u64 {
            _ if self.is_full => FULL,
            0 => EMPTY,
            written => closed(written),
        }
    }
}

fn carry_out(host: &mut Host, number: u64, step: Step) -> Status {
    match step {
        Step { zone, resets: true, .. } => send(host, zone, SendAction::Reset, false),
        Step { zone, blocks: 0, .. } => send(host, zone, SendAction::Finish, false),
        Step { zone, blocks, .. } => append(host, zone, stamped(number as u8, number << 16, blocks)).0,
    }
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_among_its_zones() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).expect("and this");
    serve(Some(Path::new(&directory)), |address, _| {
        let mut host = host(address, 1);
        assert_eq!(send(&mut host, 0, SendAction::Reset, true), Status::SUCCESS);
        for (number, step) in (1..).zip(steps(seed)) {
            let status = carry_out(&mut host, number, step);
            println!("@{number} {}", status.bits());
            std::io::stdout().flush().expect("the test listens");
        }
    });
}

/// Runs the process above until it has told of `count` steps, and kills it. Returns how many it has told of.
fn killed(directory: &Path, seed: u64, count: u64) -> u64 {
    let program = std::env::current_exe().expect("it runs");
    let arguments = ["--exact", "a_process_to_be_killed_among_its_zones", "--ignored", "--nocapture"];
    let mut process = Command::new(program)
        .args(arguments)
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can run once more");
    let mut told = 0;
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let mut note = |line: String| {
        // The harness may put its own words in front.
        if let Some(number) = line.split('@').nth(1).and_then(|said| said.split(' ').next()?.parse().ok()) {
            told = number;
        }
        told
    };
    while let Some(Ok(line)) = lines.next() {
        if note(line) >= count {
            break;
        }
    }
    process.kill().expect("it runs");
    lines.map_while(Result::ok).for_each(|line| {
        note(line);
    });
    process.wait().expect("it has ended");
    told
}

#[test]
fn zones_outlive_a_kill_with_every_acknowledged_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (seed, count) in [(11, 3), (12, 40), (13, 90), (14, 150), (15, 77)] {
        let told = killed(directory.path(), seed, count);
        assert!(told >= count, "the process has ended after {told} steps");
        let mut expected = vec![Zone::default(); 6];
        let mut numbered = (1..).zip(steps(seed));
        for (number, step) in numbered.by_ref().take(told as usize) {
            expected[step.zone as usize].apply(number, step);
        }
        // The step under way was not acknowledged: it may be done, in part, or not at all.
        let (number, under_way) = numbered.next().expect("steps do not end");
        serve(Some(directory.path()), |address, _| {
            let mut host = host(address, 1);
            let told = zones(&mut host);
            for (zone, before) in (0_u64..).zip(&expected) {
                let is_under_way = zone == under_way.zone;
                let mut after = before.clone();
                if is_under_way {
                    after.apply(number, under_way);
                }
                let found = told[zone as usize];
                let between = found.0 == closed(1).0 && (before.told().1..=after.told().1).contains(&found.1);
                let is_one = found == before.told() || found == after.told() || is_under_way && between;
                assert!(is_one, "seed {seed}, zone {zone}: {found:?}, {:?} and {:?}", before.told(), after.told());
                for (part, blocks) in (0_u64..).zip(before.blocks.chunks(PART)) {
                    let found = read(&mut host, zone * ZONE + part * PART as u64, blocks.len() as u32);
                    for (block, &(step, place)) in found.chunks_exact(BLOCK).zip(blocks) {
                        let is_reset = is_under_way && under_way.resets && block == [0; BLOCK];
                        let is_it = block == stamped(step as u8, (step << 16) + place, 1);
                        assert!(is_reset || is_it, "seed {seed}, zone {zone}, step {step}, block {place}");
                    }
                }
            }
        });
    }
}
