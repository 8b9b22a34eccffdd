//! A drive that begins in a drawn steady state is served from a directory: what was drawn reads as zeros, what clients write
//! stays while garbage collection moves it, and a restart finds both.

mod hosted;
mod small;

use flashyard_live::{Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use hosted::NQN;
use small::scenario_with;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Blocks of a command.
const BLOCKS: u32 = 16;
/// Commands that clients write, each over the blocks of an earlier one: 96 MiB on a drive of 54.
const WRITES: u64 = 1500;
/// Places that are written; as many others are not.
const PLACES: u64 = 100;

fn serve(directory: &Path, client: impl FnOnce(&mut Host) + Send) {
    let scenario = scenario_with(&[
        "drive.drawn=true",
        "drive.filled=1.0",
        "drive.blocks_per_plane=64",
        "drive.over_provisioning=0.25",
    ]);
    let connect = |address: SocketAddr, _| {
        let config = InitiatorConfig::new("nqn.2026-11.org.example:host", NQN);
        client(&mut Host::connect(address, config, Duration::from_secs(10)).expect("everybody may connect"));
    };
    hosted::serve(&scenario, Some(directory), Tempo::Off, connect);
}

fn range(place: u64) -> BlockRange {
    BlockRange { lba: place * u64::from(BLOCKS), blocks: BLOCKS }
}

/// Writes blocks of this byte at the place.
fn write(host: &mut Host, place: u64, byte: u8) {
    let data = vec![byte; BLOCKS as usize * 4096];
    let written = host.command(1, NvmCommand::Write { range: range(place), fua: false }, data, 0);
    assert_eq!(written.expect("an answer").status, Status::SUCCESS);
}

/// Each place has what was written last, and the others have zeros.
fn check(host: &mut Host) {
    for place in 0..2 * PLACES {
        let last = (0..WRITES).rev().find(|number| number % PLACES == place);
        let expected = last.map_or(0, |number| (number % 251) as u8);
        let read = NvmCommand::Read { range: range(place), fua: false };
        let read = host.command(1, read, Vec::new(), BLOCKS * 4096).expect("an answer");
        assert_eq!(read.status, Status::SUCCESS, "place {place}");
        assert!(read.data.iter().all(|&byte| byte == expected), "place {place} has no blocks of {expected}");
    }
}

#[test]
fn a_drawn_drive_keeps_bytes_and_is_found_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    serve(directory.path(), |host| {
        (0..WRITES).for_each(|number| write(host, number % PLACES, (number % 251) as u8));
        check(host);
    });
    serve(directory.path(), check);
}
