//! Features that hosts expect of a drive, over NVMe/TCP of the loopback.

mod hosted;
mod small;

use flashyard_live::{Host, Tempo};
use flashyard_nvme::Status;
use flashyard_nvme::admin::cns;
use flashyard_nvme::identify::IdentifyNamespace;
use flashyard_nvme::nvm::{BlockRange, DsmRange, NvmCommand};
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
