//! The small enclosure of `scenarios/faults`, served to hosts over sockets of the loopback.

mod small;

use flashyard_live::{Engine, Host, HostLoad, Nbd, NbdAddress, NvmeTcp, Pattern, Report, SetUp, Tempo, run_host_load};
use flashyard_nvme::Status;
use flashyard_nvme::nvm::{BlockRange, NvmCommand};
use flashyard_nvmf::initiator::InitiatorConfig;
use flashyard_nvmf::target::{Namespace, Subsystem, TargetConfig};
use flashyard_served::Session;
use flashyard_units::VolumeId;
use small::{enclosure_of, exported, scenario, while_serving};
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

fn nqn(drive: VolumeId) -> String {
    format!("nqn.2026-11.io.flashyard:drive-{drive}")
}

/// Serves the enclosure over NVMe/TCP and NBD while `clients` works.
fn serve<R: Send>(tempo: Tempo, clients: impl FnOnce(SocketAddr, SocketAddr) -> R + Send) -> (Report, R) {
    let scenario = scenario("0.5");
    let SetUp { world, media, .. } = enclosure_of(&scenario, None).expect("its enclosure can serve");
    let mut engine = Engine::new(Session::new(world, None), media, &exported(), tempo).expect("there is a poll");
    let volumes = engine.volumes().to_vec();
    let subsystem = |drive: VolumeId| {
        let namespace = Namespace::new(1, volumes[drive.index()].limits.blocks, 12);
        let mut subsystem = Subsystem::new(&nqn(drive), &format!("FY{:04}", drive.get()), vec![namespace]);
        subsystem.has_remap = drive.get() != 3;
        subsystem
    };
    let config =
        TargetConfig { subsystems: exported().into_iter().map(subsystem).collect(), ..TargetConfig::default() };
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let front = NvmeTcp::new(&[any], config, exported(), 3000).expect("the loopback can be listened on");
    let nvme = front.addresses().next().expect("one was asked for");
    let named: Vec<_> = volumes.iter().map(|&volume| (format!("drive-{}", volume.id), volume)).collect();
    let nbd = Nbd::new(&NbdAddress::Tcp(any), &named).expect("the loopback can be listened on");
    let &NbdAddress::Tcp(nbd_address) = nbd.address() else { panic!("a port of TCP was asked for") };
    engine.add_front(Box::new(front));
    engine.add_front(Box::new(nbd));
    while_serving(engine, || clients(nvme, nbd_address))
}

fn host(address: SocketAddr, drive: u16, queues: u16) -> Host {
    let config = InitiatorConfig {
        io_queues: queues,
        ..InitiatorConfig::new("nqn.2026-11.org.example:host", &nqn(VolumeId::new(drive)))
    };
    Host::connect(address, config, PATIENCE).expect("the target lets everybody in")
}

fn range(lba: u64, blocks: u32) -> BlockRange {
    BlockRange { lba, blocks }
}

#[test]
fn a_host_moves_blocks_without_copying_them_where_the_drive_announces_that() {
    serve(Tempo::Off, |address, _| {
        let mut host = host(address, 1, 1);
        assert!(host.controller().remaps);
        let blocks = host.controller().namespaces[0].blocks;
        let pattern: Vec<u8> = (0..8 * 4096u32).map(|byte| (byte / 4096 + byte) as u8 | 1).collect();
        let mut status = |command, data| host.command(1, command, data, 0).expect("an answer").status.code();
        assert_eq!(status(NvmCommand::Write { range: range(64, 8), fua: false }, pattern.clone()), Status::SUCCESS);
        let remap = |first, blocks, source| NvmCommand::Remap { range: range(first, blocks), source };
        assert_eq!(status(remap(72, 8, 64), Vec::new()), Status::SUCCESS);
        // A range that holds nothing any more leaves its counterpart as it is.
        assert_eq!(status(remap(72, 8, 64), Vec::new()), Status::SUCCESS);
        assert_eq!(status(remap(blocks - 4, 8, 64), Vec::new()), Status::LBA_OUT_OF_RANGE);
        assert_eq!(status(remap(64, 8, blocks - 4), Vec::new()), Status::LBA_OUT_OF_RANGE);
        assert_eq!(status(remap(64, 8, u64::MAX), Vec::new()), Status::LBA_OUT_OF_RANGE);
        assert_eq!(status(remap(64, 8, 71), Vec::new()), Status::INVALID_FIELD);
        let read = NvmCommand::Read { range: range(64, 16), fua: false };
        let found = host.command(1, read, Vec::new(), 65_536).expect("an answer").data;
        assert!(found[..32_768].iter().all(|&byte| byte == 0) && found[32_768..] == pattern);
        let mut other = self::host(address, 3, 1);
        assert!(!other.controller().remaps);
        let refused = other.command(1, remap(72, 8, 64), Vec::new(), 0).expect("an answer").status;
        assert_eq!(refused.code(), Status::INVALID_OPCODE);
    });
}

#[test]
fn a_host_reads_what_it_wrote_compares_it_and_takes_it_away() {
    serve(Tempo::Off, |address, _| {
        let mut host = host(address, 1, 1);
        let pattern: Vec<u8> = (0..16 * 4096u32).map(|byte| (byte / 4096 + byte) as u8).collect();
        let done = host.command(1, NvmCommand::Write { range: range(64, 16), fua: true }, pattern.clone(), 0);
        assert!(done.expect("an answer").status.is_success());
        let read = NvmCommand::Read { range: range(64, 16), fua: false };
        assert!(host.command(1, read, Vec::new(), 65_536).expect("an answer").data == pattern);
        let compare = NvmCommand::Compare { range: range(64, 16), fua: false };
        assert!(host.command(1, compare, pattern.clone(), 0).expect("an answer").status.is_success());
        let mut other = pattern.clone();
        other[65_535] ^= 1;
        let differs = host.command(1, compare, other, 0).expect("an answer");
        assert_eq!(differs.status.code(), Status::COMPARE_FAILURE);
        for (lba, deallocate) in [(65, false), (67, true)] {
            let zero = NvmCommand::WriteZeroes { range: range(lba, 1), deallocate, fua: false };
            assert!(host.command(1, zero, Vec::new(), 0).expect("an answer").status.is_success());
        }
        let data = host.command(1, read, Vec::new(), 65_536).expect("an answer").data;
        for (block, bytes) in data.chunks_exact(4096).enumerate() {
            let expected = if [1, 3].contains(&block) { &[0; 4096][..] } else { &pattern[block * 4096..][..4096] };
            assert!(bytes == expected, "block {block}");
        }
        assert!(host.command(1, NvmCommand::Flush, Vec::new(), 0).expect("an answer").status.is_success());
    });
}

#[test]
fn a_load_of_several_queues_is_served_whole() {
    let (report, seen) = serve(Tempo::Off, |address, _| {
        let mut host = host(address, 0, 2);
        let load = HostLoad {
            request_bytes: 4096,
            depth: 64,
            reads: 0.7,
            pattern: Pattern::Random,
            span: Duration::from_millis(400),
            ramp: Duration::from_millis(50),
            seed: 3,
        };
        run_host_load(&mut host, &load).expect("it is served")
    });
    println!("{report}\n{:.0} requests/s, {:.1} us at the median", seen.iops(), seen.latency.percentile_us(0.5));
    assert_eq!(seen.failed, 0);
    assert!(seen.requests > 0);
    assert!(report.requests.iter().sum::<u64>() >= seen.requests);
}

#[test]
fn a_command_that_waits_is_aborted_and_the_host_is_told_the_truth() {
    const COMMANDS: u16 = 100;
    // Slow enough that the last of them wait when the host changes its mind.
    serve(Tempo::Scaled(0.001), |address, _| {
        let mut host = host(address, 0, 1);
        for command in 0..COMMANDS {
            let write = NvmCommand::Write { range: range(u64::from(command), 1), fua: false };
            host.send(1, write, vec![7; 4096], 0).expect("it is taken");
        }
        let said = (0..COMMANDS).rev().filter(|&id| host.abort(id).expect("an answer")).count();
        let ended = host.ended(usize::from(COMMANDS)).expect("all of them end");
        let aborted = ended.iter().filter(|done| done.status.code() == Status::ABORT_REQUESTED).count();
        assert!(ended.iter().all(|done| done.status.is_success() || done.status.code() == Status::ABORT_REQUESTED));
        println!("{aborted} of {COMMANDS} were aborted");
        assert_eq!(said, aborted);
        assert!(aborted > 0, "none waited");
        let read = NvmCommand::Read { range: range(0, u32::from(COMMANDS)), fua: false };
        let found = host.command(1, read, Vec::new(), u32::from(COMMANDS) * 4096).expect("an answer").data;
        let written = found.chunks(4096).filter(|chunk| chunk.iter().all(|&byte| byte == 7)).count();
        assert_eq!(written, usize::from(COMMANDS) - aborted, "what was aborted is not written");
    });
}

#[test]
fn a_name_that_is_not_served_is_refused() {
    serve(Tempo::Off, |address, _| {
        let config = InitiatorConfig::new("nqn.2026-11.org.example:host", &nqn(VolumeId::new(9)));
        let refused = Host::connect(address, config, PATIENCE).err().expect("there is no such drive");
        assert!(refused.to_string().starts_with("connect failed"), "{refused}");
    });
}

#[test]
fn a_host_that_leaves_with_requests_under_way_is_let_in_again_and_nothing_old_comes_after() {
    for tempo in [Tempo::Off, Tempo::Scaled(1.0)] {
        serve(tempo, |address, _| {
            for round in 1..20u8 {
                let mut leaving = host(address, 0, 1);
                for block in 0..100 {
                    let write = NvmCommand::Write { range: range(block % 8, 1), fua: false };
                    leaving.send(1, write, vec![round; 4096], 0).expect("it is taken");
                }
                drop(leaving);
                let mut next = host(address, 0, 1);
                for block in 0..8 {
                    let write = NvmCommand::Write { range: range(block, 1), fua: false };
                    let done = next.command(1, write, vec![100 + round; 4096], 0).expect("an answer");
                    assert!(done.status.is_success());
                }
                std::thread::sleep(Duration::from_millis(2));
                for block in 0..8 {
                    let read = NvmCommand::Read { range: range(block, 1), fua: false };
                    let found = next.command(1, read, Vec::new(), 4096).expect("an answer").data;
                    assert!(found == [100 + round; 4096], "round {round}, block {block}: {}", found[0]);
                }
            }
        });
    }
}
