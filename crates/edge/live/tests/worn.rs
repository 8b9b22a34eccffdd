//! Drives near the end of their lifetime, served to hosts over NVMe/TCP: what fails, what SMART and the error log say
//! of it, and what a restart keeps of an age.

mod hosted;
mod small;

use flashyard_live::{Handle, Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::log::{ErrorEntry, SmartLog, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_scenario::Scenario;
use flashyard_served::Control;
use flashyard_units::DriveId;
use hosted::{NQN, age};
use small::scenario_with;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DIRECTORY: &str = "FLASHYARD_TEST_WORN";
/// Blocks of a command.
const BLOCKS: u32 = 32;

/// Small drives that are made for 300 erases, and whose reads are given up after `retries_max` retries.
fn scenario(retries_max: u32) -> Scenario {
    let retries = format!("drive.read_retries_max={retries_max}");
    scenario_with(&[
        &retries,
        "drive.filled=0.5",
        "drive.blocks_per_plane=64",
        "drive.over_provisioning=0.25",
        "drive.wear.endurance=300",
        "drive.wear.retire_above=0.05",
    ])
}

/// Serves drive 0 over NVMe/TCP while `client` works, from a directory if there is one.
fn serve<R: Send>(directory: Option<&Path>, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> R {
    hosted::serve(&scenario(5), directory, Tempo::Off, client).1
}

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
    Host::connect(address, config, Duration::from_secs(10)).expect("the target lets everybody in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

fn read(host: &mut Host, lba: u64, blocks: u32) -> Status {
    let read = NvmCommand::Read { range: range(lba, blocks), fua: false };
    host.command(1, read, Vec::new(), blocks * 4096).expect("an answer").status
}

fn write(host: &mut Host, lba: u64) -> Status {
    let write = NvmCommand::Write { range: range(lba, BLOCKS), fua: false };
    host.command(1, write, vec![lba as u8; BLOCKS as usize * 4096], 0).expect("an answer").status
}

/// The health log once it says what is expected: it is updated twice a second.
fn smart(host: &mut Host, expected: impl Fn(&SmartLog) -> bool) -> SmartLog {
    let begun = Instant::now();
    loop {
        let bytes = host.log_page(page::SMART, 512).expect("there is such a page");
        let smart = SmartLog::decode(&bytes).expect("it is whole");
        if expected(&smart) {
            return smart;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{smart:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn last_error(host: &mut Host) -> (u64, u16, u64) {
    let bytes = host.log_page(page::ERROR, 64).expect("there is such a page");
    let entry = ErrorEntry::decode(&bytes).expect("it is whole");
    (entry.count.get(), entry.status.get() >> 1, entry.lba.get())
}

fn counter(bytes: [u8; 16]) -> u128 {
    u128::from_le_bytes(bytes)
}

#[test]
fn a_read_that_is_given_up_is_an_unrecovered_read_error_in_smart_and_in_the_error_log() {
    serve(None, |address, handle| {
        let mut host = host(address);
        age(&handle, 0.8);
        assert_eq!(read(&mut host, 64, 8), Status::SUCCESS, "five retries are enough at 240 erases");
        let before = smart(&mut host, |smart| smart.used_percent == 80);
        assert_eq!((counter(before.media_errors), counter(before.error_entries)), (0, 0));
        // Six retries from here on.
        age(&handle, 0.88);
        let failed = read(&mut host, 64, 8);
        assert_eq!(failed, Status::UNRECOVERED_READ.do_not_retry());
        assert_eq!(failed.bits() & 0x7FF, 0x281);
        let after = smart(&mut host, |smart| counter(smart.media_errors) > 0);
        assert_eq!((after.used_percent, counter(after.error_entries)), (88, 1));
        assert_eq!(last_error(&mut host), (1, failed.bits(), 64));
        let compare = NvmCommand::Compare { range: range(64, 1), fua: false };
        let compared = host.command(1, compare, vec![0; 4096], 0).expect("an answer").status;
        let verified = host.command(1, NvmCommand::Verify { range: range(64, 1), fua: false }, Vec::new(), 0);
        assert_eq!([compared.code(), verified.expect("an answer").status.code()], [Status::UNRECOVERED_READ; 2]);
        let blocks = host.controller().namespaces[0].blocks;
        assert_eq!(read(&mut host, blocks - 8, 8), Status::SUCCESS, "what holds nothing needs no flash");
    });
}

#[test]
fn writes_to_a_worn_out_drive_are_write_faults_and_its_media_are_read_only() {
    hosted::serve(&scenario(6), None, Tempo::Off, |address, handle| {
        let mut host = host(address);
        // The last erase before each superblock is retired.
        age(&handle, 266.0 / 300.0);
        let blocks = host.controller().namespaces[0].blocks;
        let mut written = 0;
        let failed = (0..40 * blocks / u64::from(BLOCKS)).find_map(|number| {
            let lba = number * 7919 % (blocks / u64::from(BLOCKS)) * u64::from(BLOCKS);
            let status = write(&mut host, lba);
            written += u64::from(status.is_success());
            (!status.is_success()).then_some((lba, status))
        });
        let (lba, status) = failed.expect("it wears out");
        println!("{written} writes of {BLOCKS} blocks to a drive of {blocks} before the first that failed");
        assert_eq!(status, Status::WRITE_FAULT);
        assert_eq!(status.bits() & 0x7FF, 0x280);
        let worn = smart(&mut host, |smart| smart.critical_warning & SmartLog::WARNING_READ_ONLY != 0);
        assert_ne!(worn.critical_warning & SmartLog::WARNING_SPARE, 0);
        assert_eq!(counter(worn.media_errors), 0, "nothing is lost");
        assert_eq!(last_error(&mut host), (1, status.bits(), lba));
        assert_eq!(write(&mut host, lba), Status::WRITE_FAULT);
        assert_eq!(counter(smart(&mut host, |_| true).error_entries), 2);
        assert_eq!(read(&mut host, lba, BLOCKS), Status::SUCCESS, "reads go on");
    });
}

#[test]
#[ignore = "the process that the test beside it kills"]
fn a_process_to_be_killed_when_its_drive_has_aged() {
    let directory = std::env::var(DIRECTORY).expect("the test beside it says where, and runs this");
    serve(Some(Path::new(&directory)), |address, handle| {
        age(&handle, 0.75);
        let mut host = host(address);
        println!("@aged");
        std::io::stdout().flush().expect("the parent listens");
        let blocks = host.controller().namespaces[0].blocks / u64::from(BLOCKS);
        for number in 0.. {
            assert_eq!(write(&mut host, number * 7919 % blocks * u64::from(BLOCKS)), Status::SUCCESS);
        }
    });
}

#[test]
fn the_age_that_a_drive_was_given_outlives_a_restart_and_a_kill() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = Some(directory.path());
    let used = |percent: u8| {
        serve(path, |address, _| {
            let used = smart(&mut host(address), |smart| smart.used_percent > 0).used_percent;
            assert!((percent..=percent + 1).contains(&used), "{used} %");
        });
    };
    serve(path, |_, handle| age(&handle, 0.5));
    used(50);
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_process_to_be_killed_when_its_drive_has_aged", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let aged = lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("@aged"));
    let ended = child.try_wait().expect("it is ours");
    child.kill().and_then(|()| child.wait()).expect("it is ours");
    assert!(aged && ended.is_none(), "{ended:?}");
    used(75);
    // Nothing that was erased after the age was given has forgotten it either.
    serve(path, |_, handle| age(&handle, 0.1));
    used(10);
}

#[test]
fn what_reclaim_has_lost_is_lost_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lost = serve(Some(directory.path()), |address, handle| {
        let mut host = host(address);
        let blocks = host.controller().namespaces[0].blocks;
        for lba in (0..blocks).step_by(BLOCKS as usize) {
            assert_eq!(write(&mut host, lba), Status::SUCCESS);
        }
        let rate = |raw_bit_error_rate| {
            let control = Control::Age { drive: DriveId::new(0), raw_bit_error_rate };
            handle.call(move |engine| engine.control(control)).expect("it serves").expect("it is a rate");
        };
        rate(0.5);
        // Here and there, so that victims hold something.
        for number in 0..blocks / u64::from(BLOCKS) {
            assert_eq!(write(&mut host, number * 7919 % (blocks - u64::from(BLOCKS))), Status::SUCCESS);
        }
        rate(0.0);
        let failed = |&lba: &u64| read(&mut host, lba, 1).code() == Status::UNRECOVERED_READ;
        (0..blocks).filter(failed).collect::<Vec<_>>()
    });
    println!("{} blocks are lost", lost.len());
    assert!(!lost.is_empty());
    serve(Some(directory.path()), |address, _| {
        let mut host = host(address);
        let blocks = host.controller().namespaces[0].blocks;
        let mut failed = Vec::new();
        for lba in 0..blocks {
            match read(&mut host, lba, 1).code() {
                Status::SUCCESS => {}
                status => {
                    assert_eq!(status, Status::UNRECOVERED_READ);
                    failed.push(lba);
                }
            }
        }
        assert_eq!(failed, lost);
    });
}
