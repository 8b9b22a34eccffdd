//! A namespace over NVMe/TCP as a volume: what is asked of it in any order, and what it refuses before it sends it.

mod hosted;
mod small;

use flashyard_blk::{Blocking, Operation, Payload, RequestError, Volume, VolumeError, VolumeRequest};
use flashyard_live::{Load, RemoteNamespace, Tempo, run_load};
use flashyard_units::{SimSpan, SimTime, VolumeId};
use hosted::NQN;
use small::scenario;
use std::net::SocketAddr;

fn connect(address: SocketAddr) -> RemoteNamespace {
    RemoteNamespace::connect(address, "nqn.2026-11.org.example:host", NQN, None).expect("it lets everybody in")
}

#[test]
fn a_remote_namespace_holds_what_the_load_wrote() {
    let (report, found) = hosted::serve(&scenario("0.5"), None, Tempo::Off, |address, _| {
        let load = Load {
            blocks: 4_000,
            requests: 6_000,
            // More than the queue of the host holds.
            depth: 300,
            blocks_max: 12,
            reads: 0.5,
            seed: 11,
            patience: SimSpan::from_ms(30_000),
        };
        run_load(&mut connect(address), &load, || false).expect("every request is answered")
    });
    assert_eq!((found.answered, found.dropped, found.wrong), (6_000, 0, Vec::new()));
    assert!(found.compared > 5_000, "{} blocks", found.compared);
    assert!(report.requests[..3].iter().all(|&requests| requests > 30), "{:?}", report.requests);
}

#[test]
fn a_remote_namespace_refuses_by_its_limits_and_takes_long_ranges_in_parts() {
    hosted::serve(&scenario("0.5"), None, Tempo::Off, |address, _| {
        let mut namespace = connect(address);
        let limits = namespace.info().limits;
        let read = |first, count| VolumeRequest {
            volume: VolumeId::new(0),
            operation: Operation::Read,
            first,
            count,
            source: 0,
        };
        let outside = RequestError::Range { first: limits.blocks, count: 1, blocks: limits.blocks };
        let mut submit = |request| namespace.submit(SimTime::ZERO, 1, &request, Payload::None);
        assert_eq!(submit(read(limits.blocks, 1)), Err(VolumeError::Refused(outside)));
        let (count, request_blocks) = (limits.request_blocks + 1, limits.request_blocks);
        assert_eq!(submit(read(0, count)), Err(RequestError::TooLong { count, request_blocks }.into()));

        let mut namespace = Blocking::new(namespace);
        let bytes: Vec<u8> = (0..3 * request_blocks as usize * 4096).map(|at| (at / 509) as u8).collect();
        namespace.write(5_u64, &bytes).expect("there is room");
        let mut found = vec![0; bytes.len()];
        namespace.read(5_u64, &mut found).expect("the drive is there");
        assert!(found == bytes);
        namespace.call(Operation::Write, 6, 1, 0, Payload::Zeros).expect("there is room");
        namespace.read(5_u64, &mut found).expect("the drive is there");
        assert!(found[..4096] == bytes[..4096] && found[4096..8192] == [0; 4096] && found[8192..] == bytes[8192..]);
    });
}
