//! State that a served drive keeps over a restart of its server, in order or by a kill: the counters of its health log,
//! the rule by which superblocks are retired, its degraded mode.

mod hosted;
mod small;

use flashyard_live::{Handle, Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::feature::id;
use flashyard_nvme::log::{CapacityLog, SmartLog, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_scenario::Scenario;
use flashyard_served::Control;
use flashyard_units::DriveId;
use hosted::{NQN, age};
use small::scenario_with;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DIRECTORY: &str = "FLASHYARD_TEST_KEPT";
/// Blocks of a command.
const BLOCKS: u32 = 32;
/// Once in so long the engine puts on record what drives have counted, and tells hosts.
const PERIOD: Duration = Duration::from_millis(500);

/// Small drives that are made for 300 erases, and whose reads are given up after five retries.
fn scenario() -> Scenario {
    scenario_with(&[
        "drive.read_retries_max=5",
        "drive.filled=0.5",
        "drive.blocks_per_plane=64",
        "drive.over_provisioning=0.25",
        "drive.wear.endurance=300",
        "drive.allocation=wear-focusing",
    ])
}

fn serve<R: Send>(directory: &Path, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> R {
    hosted::serve(&scenario(), Some(directory), Tempo::Off, client).1
}

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
    Host::connect(address, config, Duration::from_secs(10)).expect("the target lets everybody in")
}

fn command(host: &mut Host, command: NvmCommand, data: Vec<u8>, data_bytes: u32) -> Status {
    host.command(1, command, data, data_bytes).expect("an answer").status.code()
}

fn read(host: &mut Host, lba: u64, blocks: u32) -> Status {
    command(host, NvmCommand::Read { range: BlockRange { lba, blocks }, fua: false }, Vec::new(), blocks * 4096)
}

fn write(host: &mut Host, lba: u64) -> Status {
    let data = vec![lba as u8; BLOCKS as usize * 4096];
    command(host, NvmCommand::Write { range: BlockRange { lba, blocks: BLOCKS }, fua: false }, data, 0)
}

/// Counters of a health log, which never fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    data_read: u128,
    data_written: u128,
    reads: u128,
    writes: u128,
    power_cycles: u128,
    unsafe_shutdowns: u128,
    media_errors: u128,
    error_entries: u128,
}

/// Lets a period of the engine pass, by its own clock: what was counted until now is on record then, and told.
fn let_a_period_pass(handle: &Handle) {
    let elapsed = || handle.call(|engine| engine.elapsed()).expect("it serves");
    let begun = elapsed();
    while elapsed() <= begun + PERIOD {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The health log as it is now.
fn counters(host: &mut Host, handle: &Handle) -> Counters {
    let_a_period_pass(handle);
    let bytes = host.log_page(page::SMART, 512).expect("there is such a page");
    let smart = SmartLog::decode(&bytes).expect("it is whole");
    let number = u128::from_le_bytes;
    Counters {
        data_read: number(smart.data_read),
        data_written: number(smart.data_written),
        reads: number(smart.reads),
        writes: number(smart.writes),
        power_cycles: number(smart.power_cycles),
        unsafe_shutdowns: number(smart.unsafe_shutdowns),
        media_errors: number(smart.media_errors),
        error_entries: number(smart.error_entries),
    }
}

/// The page of capacity once it says what is expected.
fn capacity(host: &mut Host, expected: impl Fn(&CapacityLog) -> bool) -> CapacityLog {
    let begun = Instant::now();
    loop {
        let bytes = host.log_page(page::CAPACITY, CapacityLog::BYTES as u32).expect("there is such a page");
        let capacity = CapacityLog::decode(&bytes).expect("it is whole");
        if expected(&capacity) {
            return capacity;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{capacity:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads, writes, and reads that fail.
fn live(host: &mut Host, handle: &Handle, rounds: u64) {
    for number in 0..rounds {
        assert_eq!(write(host, number * u64::from(BLOCKS)), Status::SUCCESS);
        assert_eq!(read(host, number * u64::from(BLOCKS), BLOCKS), Status::SUCCESS);
    }
    let rate = |raw_bit_error_rate| {
        let control = Control::Age { drive: DriveId::new(0), raw_bit_error_rate };
        handle.call(move |engine| engine.control(control)).expect("it serves").expect("it is a rate");
    };
    rate(0.5);
    assert_eq!(read(host, 0, BLOCKS), Status::UNRECOVERED_READ);
    rate(0.0);
}

fn say(line: &str) {
    let line = format!("@{line}\n");
    std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush()).expect("the parent listens");
}

/// Runs the test `name` of this program over `directory` until it says that it is done, and kills it.
fn killed(name: &str, directory: &Path) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    // The runner's own words may stand before it on the line.
    let said = lines.find_map(|line| line.split_once('@').map(|(_, said)| said.to_owned()));
    let ended = child.try_wait().expect("it is ours");
    child.kill().and_then(|()| child.wait()).expect("it is ours");
    assert!(ended.is_none(), "{ended:?}");
    said.expect("it speaks before it is killed")
}

fn wait_to_be_killed() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_when_its_drive_has_counted() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve(Path::new(&directory), |address, handle| {
        let mut host = host(address);
        live(&mut host, &handle, 20);
        let Counters { reads, writes, media_errors, error_entries, .. } = counters(&mut host, &handle);
        say(&format!("{reads} {writes} {media_errors} {error_entries}"));
        wait_to_be_killed();
    });
}

#[test]
fn the_counters_of_a_drive_go_on_after_a_restart_and_a_kill_which_is_an_unsafe_shutdown() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = serve(directory.path(), |address, handle| {
        let mut host = host(address);
        let new = counters(&mut host, &handle);
        assert_eq!((new.reads, new.writes, new.power_cycles, new.unsafe_shutdowns), (0, 0, 1, 0), "{new:?}");
        live(&mut host, &handle, 10);
        counters(&mut host, &handle)
    });
    println!("{first:?}");
    assert_eq!((first.reads, first.writes, first.error_entries), (11, 10, 1));
    assert!(first.media_errors > 0 && first.data_read > 0 && first.data_written > 0, "{first:?}");
    let second = serve(directory.path(), |address, handle| counters(&mut host(address), &handle));
    assert_eq!(second, Counters { power_cycles: 2, ..first });
    let said = killed("a_process_to_be_killed_when_its_drive_has_counted", directory.path());
    let said: Vec<u128> = said.split(' ').map(|word| word.parse().expect("a number")).collect();
    assert_eq!((said[0], said[1], said[3]), (11 + 21, 10 + 20, 2), "it went on from there");
    let after = serve(directory.path(), |address, handle| counters(&mut host(address), &handle));
    println!("{after:?}");
    assert_eq!([after.reads, after.writes, after.media_errors, after.error_entries].to_vec(), said);
    assert!(after.media_errors > first.media_errors && after.data_written > first.data_written, "{after:?}");
    assert_eq!((after.power_cycles, after.unsafe_shutdowns), (4, 1));
    let last = serve(directory.path(), |address, handle| counters(&mut host(address), &handle));
    assert_eq!(last, Counters { power_cycles: 5, ..after });
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_when_its_drive_is_pulled() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve(Path::new(&directory), |_, handle| {
        handle
            .call(|engine| engine.control(Control::Pull { drive: DriveId::new(0) }))
            .expect("it serves")
            .expect("it is protected");
        let_a_period_pass(&handle);
        say("pulled");
        wait_to_be_killed();
    });
}

#[test]
fn a_drive_that_is_pulled_has_no_power_to_lose_when_its_server_is_killed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    killed("a_process_to_be_killed_when_its_drive_is_pulled", directory.path());
    let found = serve(directory.path(), |address, handle| counters(&mut host(address), &handle));
    assert_eq!((found.power_cycles, found.unsafe_shutdowns), (2, 1), "the pull, and the start after it");
}

#[test]
fn entries_of_the_error_log_are_counted_over_all_controllers_of_a_drive() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    serve(directory.path(), |address, handle| {
        let fail = |host: &mut Host| {
            let compare = NvmCommand::Compare { range: BlockRange { lba: 0, blocks: 1 }, fua: false };
            assert_eq!(command(host, compare, vec![1; 4096], 0), Status::COMPARE_FAILURE);
        };
        let mut first = host(address);
        fail(&mut first);
        fail(&mut first);
        drop(first);
        let mut second = host(address);
        fail(&mut second);
        assert_eq!(counters(&mut second, &handle).error_entries, 3);
    });
    serve(directory.path(), |address, handle| assert_eq!(counters(&mut host(address), &handle).error_entries, 3));
}

#[test]
fn a_torn_record_gives_way_to_the_one_before_and_two_of_them_to_none() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let before = serve(directory.path(), |address, handle| {
        let mut host = host(address);
        live(&mut host, &handle, 5);
        counters(&mut host, &handle)
    });
    let tear = |at: u64| {
        let band = OpenOptions::new().write(true).open(directory.path().join("drive-0.band")).expect("it is there");
        band.write_all_at(&[0xA5; 40], at).expect("it can be written");
    };
    let again = || serve(directory.path(), |address, handle| counters(&mut host(address), &handle));
    // Whichever of the two is the younger: the end has just written it, and half a second before the other one.
    tear(1024 + 60);
    let found = again();
    assert_eq!((found.reads, found.writes, found.error_entries), (before.reads, before.writes, 1));
    assert_eq!(found.power_cycles, 2);
    tear(2048 + 60);
    assert_eq!(again(), Counters { power_cycles: 3, ..found });
    tear(1024 + 60);
    tear(2048 + 60);
    let forgotten = again();
    assert_eq!(
        (forgotten.reads, forgotten.writes, forgotten.power_cycles),
        (0, 0, 1),
        "what is not known is not made up"
    );
    assert_eq!(again().power_cycles, 2);
}

/// Writes until some superblocks are retired by the rule; returns how many.
fn retire_some(host: &mut Host) -> u32 {
    let blocks = host.controller().namespaces[0].blocks / 2;
    for number in 0_u64.. {
        assert_eq!(write(host, number * 7919 % (blocks - u64::from(BLOCKS))), Status::SUCCESS);
        if number % 100 == 99 {
            capacity(host, |_| true);
            std::thread::sleep(Duration::from_millis(10));
            let retired = capacity(host, |_| true).retired.get();
            if retired >= 3 {
                return retired;
            }
        }
    }
    unreachable!("numbers do not end")
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_when_its_drive_is_managed() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve(Path::new(&directory), |address, handle| {
        // Three erases before reads need a third retry: sheet cvss §8.1.
        age(&handle, 82.0 / 300.0);
        let mut host = host(address);
        host.set_feature(id::RETIREMENT, [0, 3]).expect("there is enough");
        host.set_feature(id::DEGRADED, [1, 0]).expect("it can be degraded");
        let retired = retire_some(&mut host);
        let_a_period_pass(&handle);
        say(&retired.to_string());
        wait_to_be_killed();
    });
}

#[test]
fn the_rule_of_retirement_and_the_degraded_mode_outlive_a_kill_and_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = killed("a_process_to_be_killed_when_its_drive_is_managed", directory.path());
    let retired: u32 = said.parse().expect("a number");
    println!("{retired} superblocks were retired");
    let found = |host: &mut Host| {
        let capacity = capacity(host, |_| true);
        (capacity.retires_at.get(), capacity.retired.get(), capacity.state.get() & CapacityLog::DEGRADED != 0)
    };
    // After a kill, and after an end in order.
    for _ in 0..2 {
        serve(directory.path(), |address, _| assert_eq!(found(&mut host(address)), (85, retired, true)));
    }
    serve(directory.path(), |address, _| {
        let mut host = host(address);
        let retired = retire_some(&mut host);
        host.set_feature(id::DEGRADED, [0, 0]).expect("it can be left");
        host.set_feature(id::RETIREMENT, [0, 0]).expect("no rule is one");
        capacity(&mut host, |capacity| capacity.retires_at.get() == 0 && capacity.retired.get() >= retired);
    });
    serve(directory.path(), |address, _| {
        let (retires_at, now_retired, degraded) = found(&mut host(address));
        assert_eq!((retires_at, degraded), (0, false));
        assert!(now_retired >= retired, "a superblock that is retired stays so: {now_retired} of {retired}");
    });
}
