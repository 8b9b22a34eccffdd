//! Self-tests of a served drive over NVMe/TCP: short and extended ones, what ends them early, and what they find.

mod hosted;
mod small;

use flashyard_live::{BlockFormat, Handle, Host, Tempo};
use flashyard_nvme::admin::{AdminCommand, Format, cns};
use flashyard_nvme::identify::IdentifyController;
use flashyard_nvme::log::{SelfTestLog, SelfTestResult, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::{NSID_ALL, Status};
use flashyard_nvmf::initiator::InitiatorConfig;
use hosted::{Child, Shape};
use small::scenario_with;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

const OK: Status = Status::SUCCESS;
const SETTINGS: [&str; 3] = ["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"];

fn host(address: SocketAddr) -> Host {
    let config = InitiatorConfig::new("nqn.2026-11.org.example:host", hosted::NQN);
    Host::connect(address, config, Duration::from_secs(30)).expect("the target lets everybody in")
}

fn serve<R: Send>(directory: Option<&Path>, client: impl FnOnce(SocketAddr, Handle) -> R + Send) -> R {
    let shape = Shape::formatted(BlockFormat::plain(4096));
    hosted::serve_shaped(shape, &scenario_with(&SETTINGS), directory, Tempo::Off, client).1
}

fn ask(host: &mut Host, nsid: u32, code: u8) -> Status {
    host.admin(AdminCommand::SelfTest { nsid, code }).expect("an answer").status.code()
}

fn log(host: &mut Host) -> SelfTestLog {
    let bytes = host.log_page(page::SELF_TEST, SelfTestLog::BYTES as u32).expect("there is the page");
    SelfTestLog::read_from_bytes(&bytes).expect("whole")
}

/// Waits for the end of the test under way: its result, and how much of it was seen to be done meanwhile.
fn end(host: &mut Host) -> (SelfTestResult, Vec<u8>) {
    let begun = Instant::now();
    let mut seen = Vec::new();
    loop {
        let log = log(host);
        if log.operation == 0 {
            return (log.results[0], seen);
        }
        seen.push(log.completion);
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn spoil(host: &mut Host, lba: u64) {
    let command = NvmCommand::WriteUncorrectable { range: BlockRange { lba, blocks: 1 } };
    assert_eq!(host.command(1, command, Vec::new(), 0).expect("an answer").status, OK);
}

#[test]
fn tests_pass_are_taken_back_and_find_blocks_that_cannot_be_read() {
    serve(None, |address, _| {
        let mut host = host(address);
        let identify = host.identify(cns::CONTROLLER, 0).expect("there is a controller");
        let identify = IdentifyController::read_from_bytes(&identify).expect("whole");
        assert_ne!(identify.admin_optional.get() & IdentifyController::SELF_TEST, 0);
        assert_eq!((identify.self_test_options, identify.self_test_time_min.get()), (1, 1));
        assert_eq!(log(&mut host), SelfTestLog::NEVER);
        assert_eq!(ask(&mut host, 1, SelfTestLog::ABORT), OK, "there is nothing to end");
        assert_eq!((ask(&mut host, 1, 3), ask(&mut host, 9, 1)), (Status::INVALID_FIELD, Status::INVALID_NAMESPACE));
        assert_eq!(ask(&mut host, NSID_ALL, SelfTestLog::SHORT), OK);
        assert_eq!(log(&mut host).operation, SelfTestLog::SHORT);
        assert_eq!(ask(&mut host, 1, SelfTestLog::EXTENDED), Status::SELF_TEST_IN_PROGRESS);
        let (result, seen) = end(&mut host);
        assert_eq!((result.code(), result.outcome(), result.valid), (1, SelfTestResult::PASSED, 0));
        assert!(seen.is_sorted() && seen.len() > 3, "{seen:?}");
        // An extended one, taken back.
        assert_eq!(ask(&mut host, 1, SelfTestLog::EXTENDED), OK);
        assert_eq!(ask(&mut host, 1, SelfTestLog::ABORT), OK);
        let (result, _) = end(&mut host);
        assert_eq!((result.code(), result.outcome()), (2, SelfTestResult::ABORTED_BY_HOST));
        // Blocks that cannot be read are what a short one does not look for.
        spoil(&mut host, 300);
        spoil(&mut host, 299);
        assert_eq!(ask(&mut host, 1, SelfTestLog::SHORT), OK);
        assert_eq!(end(&mut host).0.outcome(), SelfTestResult::PASSED);
        assert_eq!(ask(&mut host, 0, SelfTestLog::EXTENDED), OK, "of the controller alone");
        assert_eq!(end(&mut host).0.outcome(), SelfTestResult::PASSED);
        assert_eq!(ask(&mut host, NSID_ALL, SelfTestLog::EXTENDED), OK);
        let (result, seen) = end(&mut host);
        assert_eq!((result.code(), result.outcome(), result.segment), (2, SelfTestResult::FAILED, 7));
        assert_eq!((result.valid, result.nsid.get(), result.lba.get()), (0xF, 1, 299));
        assert_eq!((result.status_type, result.status_code), (2, 0x81));
        assert!(seen.is_sorted() && seen.iter().any(|&share| (10..90).contains(&share)), "{seen:?}");
        // A format ends it, and lets nothing be left to find.
        assert_eq!(ask(&mut host, 1, SelfTestLog::EXTENDED), OK);
        let format = AdminCommand::Format(Format { nsid: 1, ..Format::default() });
        assert_eq!(host.admin(format).expect("an answer").status, OK);
        let (result, _) = end(&mut host);
        assert_eq!((result.code(), result.outcome()), (2, SelfTestResult::ABORTED_BY_FORMAT));
        assert_eq!(ask(&mut host, 1, SelfTestLog::EXTENDED), OK);
        assert_eq!(end(&mut host).0.outcome(), SelfTestResult::PASSED);
        assert_eq!(log(&mut host).results.map(|result| result.code())[..6], [2, 2, 2, 2, 1, 2]);
    });
}

#[test]
fn a_short_test_ends_with_its_controller_and_an_extended_one_goes_on() {
    serve(None, |address, _| {
        for (code, outcome) in
            [(SelfTestLog::SHORT, SelfTestResult::ABORTED_BY_RESET), (SelfTestLog::EXTENDED, SelfTestResult::PASSED)]
        {
            let mut leaves = host(address);
            assert_eq!(ask(&mut leaves, 1, code), OK);
            drop(leaves);
            let mut stays = host(address);
            let (result, _) = end(&mut stays);
            assert_eq!((result.code(), result.outcome()), (code, outcome));
        }
    });
}

#[test]
#[ignore = "the process of the test beside it"]
fn a_server_to_be_killed() {
    hosted::be_killed(&scenario_with(&SETTINGS), 4096, Tempo::Off);
}

#[test]
fn results_outlive_a_kill_and_an_extended_test_begins_again() {
    let directory = tempfile::tempdir().expect("there is room");
    let killed = |code: Option<u8>| {
        let mut child = Child::start(directory.path());
        let mut host = host(child.address);
        let (result, _) = end(&mut host);
        if let Some(code) = code {
            spoil(&mut host, 77);
            assert_eq!(ask(&mut host, 1, code), OK);
        }
        child.kill();
        result
    };
    assert_eq!(killed(Some(SelfTestLog::SHORT)).outcome(), SelfTestResult::UNUSED);
    let result = killed(Some(SelfTestLog::EXTENDED));
    assert_eq!((result.code(), result.outcome()), (1, SelfTestResult::ABORTED_BY_RESET));
    let result = killed(None);
    assert_eq!((result.code(), result.outcome(), result.lba.get()), (2, SelfTestResult::FAILED, 77));
}
