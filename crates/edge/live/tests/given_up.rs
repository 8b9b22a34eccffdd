//! Erasures of data of a served drive whose writes were given up: they come to their ends, and nothing comes back.

mod dividing;
mod hosted;
mod small;

use dividing::{attach, create, delete, list};
use flashyard_kernel::Rng;
use flashyard_live::{Handle, Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::{AdminCommand, Format, Sanitize, cns};
use flashyard_nvme::log::{SanitizeLog, page};
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_served::Control;
use flashyard_units::{DriveId, SimSpan};
use hosted::{NQN, Shape};
use small::scenario_with;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

const DRIVE: DriveId = DriveId::new(0);
const OK: Status = Status::SUCCESS;
/// Nothing takes longer but what never ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// Blocks of one write, writes under way at once, and the blocks that they are about in all.
const BLOCKS: u32 = 8;
const DEPTH: u64 = 32;
const WRITTEN: u64 = BLOCKS as u64 * DEPTH;

fn config(number: u8) -> InitiatorConfig {
    let mut config = InitiatorConfig::new(&format!("nqn.2026-11.org.example:host-{number}"), NQN);
    config.host_id = [number; 16];
    config
}

/// Connects, as soon as the drive is there.
fn join(address: SocketAddr, number: u8) -> Host {
    let begun = Instant::now();
    loop {
        match Host::connect(address, config(number), PATIENCE) {
            Ok(host) => return host,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "no host is let in: {error}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn control(handle: &Handle, control: Control) {
    let done = handle.call(move |engine| engine.control(control)).expect("it serves");
    done.expect("the drive is there");
}

/// Attaches a namespace that is not, as one is that was created.
fn find(host: &mut Host, nsid: u32) {
    if list(host, cns::NAMESPACES_ACTIVE) != [nsid] {
        assert_eq!(attach(host, nsid), OK);
    }
}

fn send_writes(host: &mut Host, nsid: u32) {
    for number in 0..DEPTH {
        let range = BlockRange { lba: number * u64::from(BLOCKS), blocks: BLOCKS };
        let data = vec![0x5A; BLOCKS as usize * 4096];
        host.send(nsid, NvmCommand::Write { range, fua: false }, data, 0).expect("it is connected");
    }
}

/// Writes, and returns once some of the writes were answered: the others are under way.
fn begin_writes(host: &mut Host, nsid: u32, rng: &mut Rng) {
    send_writes(host, nsid);
    let answered = host.ended(1 + rng.below(DEPTH - 4) as usize).expect("the drive answers");
    assert!(answered.iter().all(|done| done.status.is_success()));
}

/// Blocks among those that were written that hold anything.
fn held(host: &mut Host, nsid: u32) -> Vec<u64> {
    let mut held = Vec::new();
    for lba in (0..WRITTEN).step_by(BLOCKS as usize) {
        let read = NvmCommand::Read { range: BlockRange { lba, blocks: BLOCKS }, fua: false };
        let done = host.command(nsid, read, Vec::new(), BLOCKS * 4096).expect("an answer");
        assert_eq!((done.status.code(), done.data.len()), (OK, BLOCKS as usize * 4096));
        let blocks = (lba..).zip(done.data.chunks(4096));
        held.extend(blocks.filter(|(_, block)| block.iter().any(|&byte| byte != 0)).map(|(lba, _)| lba));
    }
    held
}

/// Erases all that a namespace holds.
fn format(host: &mut Host, nsid: u32) {
    let format = Format { nsid, secure_erase: Format::USER_DATA_ERASE, ..Format::default() };
    assert_eq!(host.admin(AdminCommand::Format(format)).expect("it ends").status.code(), OK);
}

fn sanitize(host: &mut Host) {
    let command = Sanitize { action: Sanitize::BLOCK_ERASE, unrestricted_exit: true, ..Sanitize::default() };
    assert_eq!(host.admin(AdminCommand::Sanitize(command)).expect("an answer").status.code(), OK);
    let begun = Instant::now();
    loop {
        let data = host.log_page(page::SANITIZE, SanitizeLog::BYTES as u32).expect("there is the page");
        let status = SanitizeLog::read_from_bytes(&data).expect("it is whole").status.get();
        if status != SanitizeLog::UNDER_WAY {
            return assert_eq!(status, SanitizeLog::DONE);
        }
        assert!(begun.elapsed() < PATIENCE, "the sanitize does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Erases all that is held in one of three ways; returns the namespace that is there afterwards.
fn erase(host: &mut Host, nsid: u32, way: usize) -> u32 {
    match way % 3 {
        0 => format(host, nsid),
        1 => sanitize(host),
        _ => {
            assert_eq!(delete(host, nsid), OK);
            let (status, created) = create(host, WRITTEN + 7, 0, false);
            assert_eq!(status, OK);
            find(host, created);
            return created;
        }
    }
    nsid
}

/// Serves a drive of flash that holds nothing, and breaks it under the writes of a client that then leaves; another client erases
/// all data, and looks for it at once and after `later`.
fn erases_behind_writes(seed: u64, later: Duration, breaks: impl Fn(&Handle, &mut Host, u32) + Sync) {
    println!("seed {seed}");
    let mut rng = Rng::named(seed, "given up");
    // Without a clock no time would pass in which the drive gets ready.
    let shape = Shape::divided(&[WRITTEN + 7], None);
    hosted::serve_shaped(shape, &scenario_with(&["drive.filled=0"]), None, Tempo::Scaled(1.0), |address, handle| {
        let mut nsid = 1;
        for round in 0..9 {
            let mut leaves = join(address, 1);
            find(&mut leaves, nsid);
            begin_writes(&mut leaves, nsid, &mut rng);
            breaks(&handle, &mut leaves, nsid);
            drop(leaves);
            let mut host = join(address, 2);
            find(&mut host, nsid);
            if round < 3 {
                // Reads of the later rounds would only wait until the drive goes on.
                println!("round {round}: {} blocks are held", held(&mut host, nsid).len());
            }
            nsid = erase(&mut host, nsid, round);
            assert_eq!(held(&mut host, nsid), [0; 0], "round {round}");
            std::thread::sleep(later);
            assert_eq!(held(&mut host, nsid), [0; 0], "round {round}, later");
        }
    });
}

#[test]
fn erasures_of_a_drive_that_was_pulled_under_writes_end_and_leave_nothing() {
    erases_behind_writes(5, Duration::ZERO, |handle, _, _| {
        control(handle, Control::Pull { drive: DRIVE });
        control(handle, Control::Insert { drive: DRIVE });
    });
}

#[test]
fn erasures_of_a_drive_whose_firmware_hangs_under_writes_end_and_leave_nothing() {
    // The driver sits out the shorter ones, and gives the drive up for the longer.
    for (seed, ms) in [(6, 5), (7, 200)] {
        erases_behind_writes(seed, Duration::from_millis(2 * ms), |handle, leaves, nsid| {
            control(handle, Control::Hang { drive: DRIVE, span: SimSpan::from_ms(ms) });
            send_writes(leaves, nsid);
        });
    }
}
