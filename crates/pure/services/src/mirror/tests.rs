//! The contract of services, with legs that fail and end, and how a mirror chooses its legs.

use super::*;
use flashyard_blk::{Payload, Volume, VolumeRequest};
use flashyard_service::Over;
use flashyard_service::contract::{ModelVolume, Plan, Trouble, block_of, check, check_seeds};
use flashyard_units::{SimSpan, VolumeId};

#[test]
fn the_contract_holds_with_legs_that_fail_and_end() {
    for legs in [2, 3] {
        check_seeds(400, || Mirrored::new(legs, 4096));
    }
}

#[test]
fn the_contract_holds_with_a_record_on_legs_that_fail_and_end() {
    let limits = VolumeLimits::new(4096, false);
    let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: 64, limits, protected: false };
    for (legs, regions, alike) in [(2, 5, true), (3, 500, false)] {
        let room = IntentRoom { id: 1, regions, clean_after: SimSpan::from_ms(1), alike, blank: 0 };
        check_seeds(300, || Mirrored::recorded(legs, &leg, room).expect("there is room"));
    }
}

#[test]
fn without_one_of_its_legs_a_mirror_goes_on() {
    for leg in 0..2 {
        let trouble = Trouble { gone: Some((leg, 200)), ..Trouble::default() };
        let seen = check(Mirrored::new(2, 4096), Plan { trouble, ..Plan::new(3) }).expect("the contract holds");
        assert_eq!((seen.carried_out, seen.failed), (400, 0), "leg {leg}");
    }
}

fn one(operation: Operation, first: u64) -> VolumeRequest {
    VolumeRequest { volume: VolumeId::new(0), operation, first, count: 1, source: 0 }
}

type Pair = Over<Mirrored, ModelVolume>;

/// Writes a number to each of the first blocks, seven at a time.
fn write_all(volume: &mut Pair, blocks: u64, stamp: u64, now: &mut SimTime) {
    let mut ended = Vec::new();
    for block in 0..blocks {
        let payload = Payload::Bytes(block_of(block + stamp).to_vec());
        volume.submit(*now, block, &one(Operation::Write, block), payload).expect("it takes it");
        while block % 7 == 0 && (ended.len() as u64) <= block || block + 1 == blocks && (ended.len() as u64) < blocks {
            *now = volume.advance(*now + SimSpan::from_secs(1), &mut ended).expect("it goes on");
        }
    }
    assert!(ended.iter().all(|done| done.result.is_ok()));
}

/// The number that a block has.
fn read_one(volume: &mut Pair, block: u64, now: &mut SimTime) -> Vec<u8> {
    volume.submit(*now, block, &one(Operation::Read, block), Payload::None).expect("it takes it");
    let mut ended = Vec::new();
    while ended.is_empty() {
        *now = volume.advance(*now + SimSpan::from_secs(1), &mut ended).expect("it goes on");
    }
    assert_eq!(ended[0].result, Ok(()), "block {block}");
    ended.remove(0).bytes
}

#[test]
fn a_leg_that_is_replaced_is_rebuilt_while_others_serve_and_has_all_of_it() {
    let blocks = 200;
    for seed in 0..20 {
        let plan = Plan { leg_blocks: blocks, ..Plan::new(seed) };
        let legs = (0..2).map(|leg| ModelVolume::new(leg, plan)).collect();
        let mut volume = Over::new(VolumeId::new(0), Mirrored::new(2, blocks), legs);
        let mut now = SimTime::ZERO;
        write_all(&mut volume, blocks, 1000, &mut now);
        let replaced = (seed % 2) as usize;
        volume.legs_mut()[replaced] = ModelVolume::new(replaced, plan);
        volume.service_mut().replace(Leg(replaced as u8));
        assert_eq!(volume.service().rebuild(), Some(Rebuild { left: 200, all: 400 }));
        // A part is written again while the rest is rebuilt.
        write_all(&mut volume, 50, 5000, &mut now);
        let mut ended = Vec::new();
        while volume.service().rebuild().is_some_and(|rebuild| rebuild.left > 0) {
            now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
        }
        // The other leg ends: the copy alone has everything.
        volume.legs_mut()[1 - replaced].end_now();
        for block in 0..blocks {
            let stamp: u64 = if block < 50 { 5000 } else { 1000 };
            let found = read_one(&mut volume, block, &mut now);
            assert_eq!(found, block_of(block + stamp), "block {block}, seed {seed}");
        }
    }
}

#[test]
fn a_leg_that_is_attached_has_everything_soon() {
    let blocks = 100;
    let plan = Plan { leg_blocks: blocks + 2 * 5, ..Plan::new(3) };
    let limits = VolumeLimits::new(plan.leg_blocks, false);
    let info = VolumeInfo { id: VolumeId::new(0), block_bytes: 64, limits, protected: false };
    let room = IntentRoom { id: 1, regions: 100, clean_after: SimSpan::from_ms(1), alike: true, blank: 0 };
    for recorded in [false, true] {
        let mirror = if recorded { Mirrored::recorded(1, &info, room) } else { Some(Mirrored::new(1, blocks)) };
        let mut volume = Over::new(VolumeId::new(0), mirror.expect("there is room"), vec![ModelVolume::new(0, plan)]);
        let mut now = SimTime::ZERO;
        write_all(&mut volume, blocks, 1000, &mut now);
        volume.add_leg(ModelVolume::new(1, plan));
        volume.tell(|mirror, now, out| {
            assert!(mirror.attach());
            mirror.wake(now, out);
        });
        let mut ended = Vec::new();
        while volume.service().rebuild().is_some_and(|rebuild| rebuild.left > 0) {
            now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
        }
        volume.legs_mut()[0].end_now();
        for block in 0..blocks {
            assert_eq!(read_one(&mut volume, block, &mut now), block_of(block + 1000), "block {block}");
        }
    }
}

#[test]
fn reads_go_to_the_shorter_queue() {
    let mut mirror = Mirrored::new(2, 4096);
    let mut out = Orders::default();
    for id in 0..6 {
        let (operation, first) = (Operation::Read, u64::from(id) * 100);
        let request = Request { id, operation, first, count: 1, durable: false, source: 0 };
        mirror.submit(SimTime::ZERO, &request, &mut out);
    }
    let legs: Vec<u8> = out.orders.iter().map(|order| order.leg.0).collect();
    assert_eq!(legs, [0, 1, 0, 1, 0, 1]);
}

/// Carries out the orders of a mirror whose legs hold zeros until it has started; those of `absent` legs end with them.
fn settle(mirror: &mut Mirrored, absent: &[u8], out: &mut Orders) {
    let now = SimTime::ZERO;
    loop {
        let orders = std::mem::take(&mut out.orders);
        out.clear();
        if orders.is_empty() {
            return;
        }
        for order in orders {
            if mirror.has_started() != Ok(false) {
                return;
            }
            let is_gone = absent.contains(&order.leg.0);
            if !is_gone && matches!(order.data, Data::Own { .. }) && order.operation == Operation::Read {
                mirror.received(order.id, &vec![0; order.count as usize * 4096]);
            }
            let result = if is_gone { Err(Failure::Gone) } else { Ok(()) };
            mirror.completed(now, order.id, result, out);
        }
    }
}

#[test]
fn a_leg_that_holds_nothing_is_no_source_and_need_not_be_there() {
    let limits = VolumeLimits::new(4096, false);
    let leg = VolumeInfo { id: VolumeId::new(0), block_bytes: 4096, limits, protected: false };
    for (blank, absent, alike, expected) in [
        (0b000, &[][..], false, Ok(Some(Leg(0)))),
        (0b001, &[], false, Ok(Some(Leg(1)))),
        (0b101, &[0], false, Ok(Some(Leg(1)))),
        (0b111, &[0], false, Ok(Some(Leg(1)))),
        (0b111, &[0, 1], true, Ok(Some(Leg(2)))),
        (0b001, &[1], false, Err(Failure::Failed)),
    ] {
        let room = IntentRoom { blank, ..IntentRoom::usual(1, alike) };
        let mut mirror = Mirrored::recorded(3, &leg, room).expect("there is room");
        let mut out = Orders::default();
        mirror.start(SimTime::ZERO, &[leg; 3], &mut out);
        settle(&mut mirror, absent, &mut out);
        let found = mirror.has_started().map(|has| has.then(|| mirror.source(7)).flatten());
        assert_eq!(found, expected, "{blank:b}, without {absent:?}");
    }
}
