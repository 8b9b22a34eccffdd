//! Atomic writes over model volumes. Losses of power are explored in `crash`.

use super::*;
use crate::{Below, Mirrored, Tree};
use flashyard_blk::{Payload, Volume, VolumeRequest};
use flashyard_service::contract::{ModelVolume, Plan, block_of, check, check_seeds};
use flashyard_service::{Over, PassThrough};
use flashyard_units::VolumeId;

#[test]
fn the_contract_holds_with_logs_of_any_size_and_legs_that_fail_and_end() {
    for log in [40, 61, 100, 2000] {
        check_seeds(300, || AtomicWrites::new(log));
    }
}

#[test]
fn the_contract_holds_above_and_below_a_mirror() {
    let leg = |number: u8| Below::Leg(Leg(number));
    check_seeds(100, || {
        let services: Vec<(Box<dyn Service + Send>, Vec<Below>)> = vec![
            (Box::new(AtomicWrites::new(50)), vec![Below::Service(1)]),
            (Box::new(PassThrough), vec![Below::Service(2)]),
            (Box::new(Mirrored::new(2, 4096)), vec![leg(0), leg(1)]),
        ];
        Tree::new(services).expect("it is a tree")
    });
    check_seeds(100, || {
        let services: Vec<(Box<dyn Service + Send>, Vec<Below>)> = vec![
            (Box::new(Mirrored::new(2, 4000)), vec![Below::Service(1), Below::Service(2)]),
            (Box::new(AtomicWrites::new(50)), vec![leg(0)]),
            (Box::new(AtomicWrites::new(60)), vec![leg(1)]),
        ];
        Tree::new(services).expect("it is a tree")
    });
}

#[test]
fn a_full_log_makes_writes_wait_and_nothing_fails() {
    let seen = check(AtomicWrites::new(40), Plan { requests: 4000, ..Plan::new(1) }).expect("the contract holds");
    assert_eq!((seen.carried_out, seen.failed), (4000, 0));
}

/// Carries one request out.
fn ask(
    volume: &mut Over<AtomicWrites, ModelVolume>,
    operation: Operation,
    first: u64,
    count: u32,
    stamp: u64,
) -> Vec<u8> {
    let request = VolumeRequest { volume: VolumeId::new(0), operation, first, count, source: 0 };
    let payload = match operation {
        Operation::Write => Payload::Bytes(block_of(stamp).repeat(count as usize)),
        _ => Payload::None,
    };
    volume.submit(SimTime::ZERO, 1, &request, payload).expect("it takes it");
    let mut ended = Vec::new();
    while ended.is_empty() {
        volume.advance(SimTime::from_ps(u64::MAX / 2), &mut ended).expect("it goes on");
    }
    assert_eq!(ended[0].result, Ok(()));
    ended.remove(0).bytes
}

#[test]
fn what_is_in_the_log_is_there_after_a_start_and_goes_home() {
    let plan = Plan { leg_blocks: 200, ..Plan::new(3) };
    let mut volume = Over::new(VolumeId::new(0), AtomicWrites::new(100), vec![ModelVolume::new(0, plan)]);
    for first in 0..6 {
        ask(&mut volume, Operation::Write, first * 5, 5, first + 1);
    }
    assert_eq!(volume.service().counters().homes, 0, "the log is not half full");
    let leg = volume.legs_mut()[0].clone();
    let mut volume = Over::new(VolumeId::new(0), AtomicWrites::new(100), vec![leg]);
    for first in 0..6 {
        assert_eq!(ask(&mut volume, Operation::Read, first * 5, 5, 0), block_of(first + 1).repeat(5));
    }
    assert_eq!(volume.service().counters().replayed, 6);
    assert!(volume.service().has_recovered());
    // The log has begun again.
    let leg = volume.legs_mut()[0].clone();
    let mut volume = Over::new(VolumeId::new(0), AtomicWrites::new(100), vec![leg]);
    assert_eq!(ask(&mut volume, Operation::Read, 3, 1, 0), block_of(1));
    assert_eq!(volume.service().counters().replayed, 0);
    // Another size of the log does not fit.
    let leg = volume.legs_mut()[0].clone();
    let mut volume = Over::new(VolumeId::new(0), AtomicWrites::new(50), vec![leg]);
    let request = VolumeRequest { volume: VolumeId::new(0), operation: Operation::Read, first: 0, count: 1, source: 0 };
    volume.submit(SimTime::ZERO, 1, &request, Payload::None).expect("it takes it");
    let mut ended = Vec::new();
    volume.advance(SimTime::from_ps(u64::MAX / 2), &mut ended).expect("it goes on");
    assert!(ended[0].result.is_err());
}
