//! Format NVM and Sanitize over NVMe/TCP of the loopback: what is left of data, and what a restart finds.

mod hosted;
mod small;

use flashyard_live::{EngineAccess, Hook, Host, Limits, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Format, Sanitize, cns};
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::log::{SanitizeLog, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvme::reservation::{AcquireAction, Keys, RegisterAction, ReservationCommand, ReservationKind};
use flashyard_nvmf::initiator::{Data, InitiatorConfig};
use hosted::{Child, NQN, Shape};
use small::scenario_with;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const OK: Status = Status::SUCCESS;
/// Bytes that no file of a drive holds by chance.
const SECRET: &[u8] = b"this must not be found afterwards";

fn host_of(address: SocketAddr, number: u8) -> Host {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:host-{number}"), NQN);
    config.host_id = [number; 16];
    Host::connect(address, config, Duration::from_secs(30)).expect("the target lets everybody in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

/// Writes a block of the drive's size whose every line is the secret.
fn write_secret(host: &mut Host, lba: u64, block_bytes: usize) -> Status {
    let data = SECRET.iter().copied().cycle().take(block_bytes).collect();
    host.command(1, NvmCommand::Write { range: range(lba, 1), fua: false }, data, 0).expect("an answer").status.code()
}

fn read(host: &mut Host, lba: u64, bytes: u32) -> (Status, Vec<u8>) {
    let read = NvmCommand::Read { range: range(lba, 1), fua: false };
    let done = host.command(1, read, Vec::new(), bytes).expect("an answer");
    (done.status.code(), done.data)
}

fn admin(host: &mut Host, command: AdminCommand) -> Status {
    host.admin(command).expect("an answer").status.code()
}

fn format(format: u8, secure_erase: u8) -> AdminCommand {
    AdminCommand::Format(Format { nsid: 1, format, secure_erase, ..Format::default() })
}

const SANITIZE: AdminCommand = AdminCommand::Sanitize(Sanitize {
    action: Sanitize::BLOCK_ERASE,
    unrestricted_exit: true,
    passes: 0,
    inverts: false,
    no_deallocate: false,
    pattern: 0,
});

fn namespace(host: &mut Host) -> IdentifyNamespace {
    let data = host.identify(cns::NAMESPACE, 1).expect("there is a namespace");
    IdentifyNamespace::read_from_bytes(&data).expect("it is whole")
}

fn log(host: &mut Host) -> SanitizeLog {
    let data = host.log_page(page::SANITIZE, SanitizeLog::BYTES as u32).expect("there is the page");
    SanitizeLog::read_from_bytes(&data).expect("it is whole")
}

/// Waits for the end of a sanitize and returns its status.
fn await_end(host: &mut Host) -> u16 {
    loop {
        let told = log(host);
        if told.status.get() != SanitizeLog::UNDER_WAY {
            assert_eq!(told.progress.get(), u16::MAX);
            return told.status.get();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether any file of the directory holds the secret.
fn is_found(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("it is there").any(|entry| {
        let bytes = std::fs::read(entry.expect("it is there").path()).expect("it is a file");
        // A block of the secret holds it many times, and most pages of a file are holes.
        let pages = bytes.chunks(512).filter(|page| *page != &[0; 512][..page.len()]);
        pages.flat_map(|page| page.windows(SECRET.len())).any(|window| window == SECRET)
    })
}

/// Pages of garbage collection and of old copies: blocks are written twice.
fn fill_with_secrets(host: &mut Host, block_bytes: usize) {
    for lba in (0..64).chain(0..32) {
        assert_eq!(write_secret(host, lba * 5, block_bytes), OK);
    }
}

#[test]
fn a_format_changes_blocks_for_all_hosts_and_leaves_nothing_and_a_restart_finds_its_blocks() {
    let scenario = scenario_with(&["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]);
    let directory = tempfile::tempdir().expect("there is room");
    let path = Some(directory.path());
    let blocks = hosted::serve(&scenario, path, Tempo::Off, |address, _| {
        let (mut first, mut second) = (host_of(address, 1), host_of(address, 2));
        let before = namespace(&mut second);
        fill_with_secrets(&mut first, 4096);
        assert!(is_found(directory.path()));
        assert_eq!(admin(&mut first, format(1, Format::USER_DATA_ERASE)), OK);
        assert!(!is_found(directory.path()));
        let after = namespace(&mut second);
        assert_eq!((before.block_bytes(), after.block_bytes(), after.format), (Some(4096), Some(512), 1));
        assert_eq!(after.size_blocks.get(), before.size_blocks.get() * 8);
        assert_eq!((after.used_blocks.get(), after.format_progress), (0, 0x80));
        assert_eq!(second.log_page(page::CHANGED_NAMESPACES, 8).expect("there is the page")[..4], [1, 0, 0, 0]);
        assert_eq!(read(&mut second, 8 * 5, 512), (OK, vec![0; 512]));
        // The last of the small blocks, and a part of a unit.
        assert_eq!(write_secret(&mut second, after.size_blocks.get() - 1, 512), OK);
        assert_eq!(read(&mut first, after.size_blocks.get() - 1, 512).1[..SECRET.len()], *SECRET);
        after.size_blocks.get()
    })
    .1;
    // The scenario says 4 KiB, and the drive knows better.
    hosted::serve(&scenario, path, Tempo::Off, |address, _| {
        let mut host = host_of(address, 1);
        let found = namespace(&mut host);
        assert_eq!((found.block_bytes(), found.size_blocks.get()), (Some(512), blocks));
        assert_eq!(read(&mut host, blocks - 1, 512).1[..SECRET.len()], *SECRET);
        // Without a secure erase data is out of reach all the same.
        assert_eq!(admin(&mut host, format(0, Format::NO_SECURE_ERASE)), OK);
        assert_eq!(namespace(&mut host).block_bytes(), Some(4096));
        assert_eq!(read(&mut host, blocks / 8 - 1, 4096), (OK, vec![0; 4096]));
        assert_eq!(write_secret(&mut host, 0, 4096), OK);
    });
}

#[test]
fn a_reservation_of_another_host_is_in_the_way_of_both() {
    hosted::serve(&scenario_with(&["drive.filled=0"]), None, Tempo::Off, |address, _| {
        let (mut holder, mut other) = (host_of(address, 1), host_of(address, 2));
        let mut reserve = |command: ReservationCommand, keys: Keys| {
            let keys = keys.as_bytes()[..command.keys_bytes()].to_vec();
            let done = holder.entry(command.encode(0, 1), Data::ToController(keys)).expect("an answer");
            assert_eq!(done.status, OK, "{command:?}");
        };
        let action = RegisterAction::Register;
        reserve(ReservationCommand::Register { action, ignores_key: false, persistence: 0 }, Keys::new(0, 7));
        let (action, kind) = (AcquireAction::Acquire, ReservationKind::WriteExclusive);
        reserve(ReservationCommand::Acquire { action, ignores_key: false, kind }, Keys::new(7, 0));
        assert_eq!(admin(&mut other, format(1, 0)), Status::RESERVATION_CONFLICT);
        assert_eq!(admin(&mut other, SANITIZE), Status::RESERVATION_CONFLICT);
        assert_eq!(namespace(&mut other).block_bytes(), Some(4096));
        assert_eq!(admin(&mut holder, format(1, 0)), OK);
        assert_eq!(namespace(&mut other).block_bytes(), Some(512));
    });
}

#[test]
fn a_sanitize_leaves_no_byte_of_old_data_in_any_file() {
    let scenario = scenario_with(&["drive.filled=0.3", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]);
    let directory = tempfile::tempdir().expect("there is room");
    hosted::serve(&scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host_of(address, 1);
        fill_with_secrets(&mut host, 4096);
        assert!(is_found(directory.path()));
        assert_eq!(log(&mut host).status.get(), SanitizeLog::NEVER);
        assert_eq!(admin(&mut host, SANITIZE), OK);
        assert_eq!(await_end(&mut host), SanitizeLog::DONE);
        assert!(!is_found(directory.path()));
        assert_eq!(namespace(&mut host).used_blocks.get(), 0);
        assert_eq!(read(&mut host, 5, 4096), (OK, vec![0; 4096]));
        // The drive goes on in the superblocks that it had begun.
        fill_with_secrets(&mut host, 4096);
        assert_eq!(read(&mut host, 5, 4096).1[..SECRET.len()], *SECRET);
    });
    hosted::serve(&scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host_of(address, 1);
        assert_eq!(log(&mut host).status.get(), SanitizeLog::DONE);
        assert_eq!(read(&mut host, 5, 4096).1[..SECRET.len()], *SECRET);
        assert_eq!(read(&mut host, 6, 4096), (OK, vec![0; 4096]));
    });
}

/// A file, and places in it.
#[derive(Default)]
struct Blocks {
    file: Option<File>,
    places: Vec<u64>,
}

/// Looks at some blocks of a drive's file in each turn of the engine, which does nothing else meanwhile.
#[derive(Clone, Default)]
struct Watch {
    /// Empty before it begins.
    blocks: Arc<Mutex<Blocks>>,
    /// How many of them were found to hold the secret.
    found: Arc<Mutex<BTreeSet<usize>>>,
}

impl Hook for Watch {
    fn turn(&mut self, _engine: &mut EngineAccess<'_>) {
        if let Blocks { file: Some(file), places } = &*self.blocks.lock().expect("no thread panicked") {
            let holds = |place: &&u64| {
                let mut bytes = [0; SECRET.len()];
                file.read_exact_at(&mut bytes, **place).is_ok() && bytes == SECRET
            };
            self.found.lock().expect("no thread panicked").insert(places.iter().filter(holds).count());
        }
    }
}

impl Watch {
    /// Begins to look at every 40th block that holds the secret; returns how many those are.
    fn begin(&self, directory: &Path) -> usize {
        let path = directory.join("drive-0.payload");
        let bytes = std::fs::read(&path).expect("it is there");
        let blocks = (0_u64..).zip(bytes.chunks(4096)).filter(|(_, block)| block.starts_with(SECRET));
        let places: Vec<u64> = blocks.step_by(40).map(|(number, _)| number * 4096).collect();
        let count = places.len();
        let file = Some(File::open(path).expect("it is there"));
        *self.blocks.lock().expect("no thread panicked") = Blocks { file, places };
        count
    }
}

/// Formats a drive with namespaces of these sizes. Returns how many of its secrets were left, of so many, in turns of the engine.
fn left_over_turns(sizes: &[u64]) -> (BTreeSet<usize>, usize) {
    let scenario = scenario_with(&["drive.filled=0", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]);
    let directory = tempfile::tempdir().expect("there is room");
    let watch = Watch::default();
    let shape = Shape::divided(sizes, None).watched(Box::new(watch.clone()));
    let of_all = hosted::serve_shaped(shape, &scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host_of(address, 1);
        (0..3000).for_each(|lba| assert_eq!(write_secret(&mut host, lba, 4096), OK));
        let of_all = watch.begin(directory.path());
        assert_eq!(admin(&mut host, format(0, Format::USER_DATA_ERASE)), OK);
        of_all
    });
    assert!(!is_found(directory.path()));
    let found = watch.found.lock().expect("no thread panicked").clone();
    (found, of_all.1)
}

#[test]
fn bytes_are_destroyed_in_steps_and_others_have_their_turn_between_two() {
    for sizes in [&[4096, 4096][..], &[]] {
        let (found, of_all) = left_over_turns(sizes);
        assert!(of_all > 50 && found.contains(&of_all) && found.contains(&0), "{found:?} of {of_all}");
        let steps: Vec<usize> = found.into_iter().collect();
        let largest = steps.windows(2).map(|pair| pair[1] - pair[0]).max().expect("there are two");
        assert!(largest <= of_all / 3, "{steps:?}");
    }
}

/// Drives of so many blocks are sanitized for seconds at this pace.
const SLOW: Tempo = Tempo::Scaled(0.002);

#[test]
#[ignore = "the process that the test below kills"]
fn a_server_to_be_killed() {
    hosted::be_killed(
        &scenario_with(&["drive.filled=0.9", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]),
        4096,
        SLOW,
    );
}

#[test]
fn a_sanitize_refuses_commands_meanwhile_and_goes_on_after_a_kill_in_its_midst() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut child = Child::start(directory.path());
    let mut host = host_of(child.address, 1);
    assert_eq!(write_secret(&mut host, 3, 4096), OK);
    assert_eq!(admin(&mut host, SANITIZE), OK);
    assert_eq!(read(&mut host, 3, 4096).0, Status::SANITIZE_IN_PROGRESS);
    assert_eq!(write_secret(&mut host, 4, 4096), Status::SANITIZE_IN_PROGRESS);
    assert_eq!(admin(&mut host, format(1, 0)), Status::SANITIZE_IN_PROGRESS);
    while log(&mut host).progress.get() == 0 {}
    let told = log(&mut host);
    assert_eq!((told.status.get(), told.command.get()), (SanitizeLog::UNDER_WAY, 0b1010), "it was too fast");
    child.kill();
    assert!(is_found(directory.path()), "bytes are destroyed at the end");
    let scenario = scenario_with(&["drive.filled=0.9", "drive.blocks_per_plane=64", "drive.over_provisioning=0.25"]);
    hosted::serve(&scenario, Some(directory.path()), Tempo::Off, |address, _| {
        let mut host = host_of(address, 1);
        assert_eq!(await_end(&mut host), SanitizeLog::DONE);
        assert!(!is_found(directory.path()));
        assert_eq!(namespace(&mut host).used_blocks.get(), 0);
        assert_eq!(read(&mut host, 3, 4096), (OK, vec![0; 4096]));
    });
}

#[test]
fn a_command_that_waits_for_room_while_its_namespace_is_formatted_does_not_reach_the_new_blocks() {
    const FEW: Limits = Limits { connections: 100, in_flight_bytes: 4 << 20, set_up: Duration::from_secs(10) };
    let shape = Shape::divided(&[], None).within(FEW);
    hosted::serve_shaped(shape, &scenario_with(&["drive.filled=0"]), None, Tempo::Off, |address, _| {
        let (mut slow, mut other) = (host_of(address, 1), host_of(address, 2));
        // It takes no answers: more than its socket and the server hold for it, and then blocks 1000 to 1999 of 4 KiB.
        let (read_range, reads) = (range(0, 64), 100);
        for _ in 0..reads {
            let command = NvmCommand::Read { range: read_range, fua: false };
            slow.send(1, command, Vec::new(), 64 * 4096).expect("it is sent");
        }
        let zeroes = NvmCommand::WriteZeroes { range: range(1000, 1000), deallocate: false, fua: false };
        slow.send(1, zeroes, Vec::new(), 0).expect("it is sent");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(admin(&mut other, format(1, 0)), OK);
        let ended = slow.ended(reads + 1).expect("each is answered");
        let refused = ended.iter().filter(|done| done.status.code() == Status::INVALID_NAMESPACE).count();
        assert!(refused > 1, "some reads have waited until the blocks were others, and the zeroes behind them");
        // Zeroes that were written would be mapped. Figures are half a second old at most.
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(namespace(&mut other).used_blocks.get(), 0);
    });
}
