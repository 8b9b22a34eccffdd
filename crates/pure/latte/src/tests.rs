//! The service against the contract of volumes, under small ends that fill, fail and end.

use crate::config::Bug;
use crate::{CachePolicy, Config, Counters, Latte, Learning, Rule};
use flashyard_blk::{Operation, Payload, Volume, VolumeRequest};
use flashyard_cache::PolicyKind;
use flashyard_service::Over;
use flashyard_service::contract::{Breach, ModelVolume, Plan, block_of, check, check_seeds};
use flashyard_units::{SimSpan, SimTime, VolumeId};

/// A LATTE over 24 blocks whose front end is smaller than they are.
fn small(rule: Rule, log_slots: u32, cache_slots: u32) -> Config {
    let flush_age = SimSpan::from_ms(1);
    Config { rule, log_slots, cache_slots, flush_age, ..Config::halves(24, 24) }
}

#[test]
fn the_contract_holds_under_every_rule() {
    let (check_every, training) = (SimSpan::from_ms(2), SimSpan::from_us(100));
    let learned = Rule::Learned(Learning { seed: 1, check_every, training });
    for rule in [Rule::Front, Rule::Back, Rule::Shortest, Rule::Split(6, 4), learned] {
        for (log_slots, cache_slots) in [(64, 16), (16, 4), (8, 1), (9, 24)] {
            for promotes in [true, false] {
                check_seeds(60, || Latte::new(Config { promotes, ..small(rule, log_slots, cache_slots) }));
            }
        }
    }
}

#[test]
fn the_contract_holds_under_every_policy_of_the_cache() {
    for kind in PolicyKind::ALL {
        let policy = CachePolicy::Apart(kind);
        for (log_slots, cache_slots) in [(16, 4), (8, 1), (9, 24)] {
            check_seeds(60, || Latte::new(Config { policy, ..small(Rule::Split(6, 4), log_slots, cache_slots) }));
        }
    }
}

#[test]
fn policies_differ_in_what_they_keep() {
    // A loop over more blocks than the cache holds, beside two that are read all the time.
    let hits = |policy| {
        let legs = (0..2).map(|leg| ModelVolume::new(leg, Plan::new(1))).collect();
        let latte = Latte::new(Config { policy, ..small(Rule::Back, 4, 8) });
        let mut volume = Over::new(VolumeId::new(0), latte, legs);
        let (mut now, mut ended) = (SimTime::ZERO, Vec::new());
        for token in 0..3000_u64 {
            let first = if token % 3 == 0 { token / 3 % 2 } else { 2 + token * 2 / 3 % 7 };
            let request =
                VolumeRequest { volume: VolumeId::new(0), operation: Operation::Read, first, count: 1, source: 0 };
            volume.submit(now, token, &request, Payload::None).expect("it takes it");
            now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
        }
        volume.service().counters().hits
    };
    let found: std::collections::BTreeSet<u64> =
        PolicyKind::ALL.into_iter().map(|kind| hits(CachePolicy::Apart(kind))).collect();
    assert!(found.len() >= 4, "eight policies, and these counts of hits: {found:?}");
    // It remembers what left, and lets that in at the first miss: a loop a little longer than the cache hits nothing.
    let in_map = hits(CachePolicy::InMap);
    assert!((990..=1000).contains(&in_map), "the two hot blocks: {in_map}");
}

#[test]
fn planted_mistakes_are_found() {
    let config = small(Rule::Split(5, 5), 16, 4);
    for bug in [Bug::MapBeforeBackEnd, Bug::PromotionOfAnyVersion, Bug::SlotsWithoutPins] {
        let is_found = |seed: u64| {
            let mut latte = Latte::new(config);
            latte.plant(bug);
            matches!(check(latte, Plan::new(seed)), Err(Breach::Version { .. }))
        };
        let found = (0..2000).find(|&seed| is_found(seed));
        assert!(found.is_some(), "{bug:?} is not found in 2,000 runs");
    }
}

/// Counts after 100 writes of all blocks and 500 reads of five.
fn counts(config: Config) -> Counters {
    let plan = Plan::new(3);
    let legs = (0..2).map(|leg| ModelVolume::new(leg, plan)).collect();
    let service = Latte::new(config);
    let volume_id = VolumeId::new(0);
    let mut volume = Over::new(volume_id, service, legs);
    let (mut now, mut ended) = (SimTime::ZERO, Vec::new());
    for token in 0..600_u64 {
        let (operation, payload) = match token % 6 {
            0 => (Operation::Write, Payload::Bytes(block_of(token).to_vec())),
            _ => (Operation::Read, Payload::None),
        };
        // Few blocks are read, so that each is read again soon.
        let first = if operation == Operation::Write { token * 7 % 24 } else { token % 5 };
        let request = VolumeRequest { volume: volume_id, operation, first, count: 1, source: 0 };
        volume.submit(now, token, &request, payload).expect("it takes it");
        now = volume.advance(now + SimSpan::from_ms(10), &mut ended).expect("it goes on");
    }
    *volume.service().counters()
}

#[test]
fn each_part_does_some_of_the_work() {
    let counters = counts(small(Rule::Split(5, 5), 16, 8));
    let Counters { hits, misses, front_writes, back_writes, promotions, flushes, lost, .. } = counters;
    assert!(
        [hits, misses, front_writes, back_writes, promotions, flushes].iter().all(|&count| count > 0),
        "{counters:?}"
    );
    assert_eq!((front_writes + back_writes, hits + misses, lost), (100, 500, 0));
    assert!(hits > misses, "five blocks fit: {counters:?}");
}

#[test]
fn csal_writes_to_the_front_end_alone_and_copies_nothing() {
    let flush_age = SimSpan::from_ms(1);
    let csal = counts(Config { flush_age, ..Config::csal(24, 24) });
    let latte = counts(small(Rule::Split(5, 5), 16, 8));
    assert_eq!((csal.front_writes, csal.back_writes, csal.promotions), (100, 0, 0), "{csal:?}");
    assert!(latte.back_writes > 0 && latte.promotions > 0, "{latte:?}");
}

#[test]
fn a_front_end_as_large_as_its_volume_takes_less_than_twelve_bytes_a_block() {
    let memory = |blocks, front| Latte::new(Config::halves(blocks, front)).memory_bytes();
    // A bit of each block says whether it is lost; sixteen slots share a count of orders.
    let slots = 1 << 20;
    assert_eq!(memory(slots, slots), ((7 << 20) + 1) + (1 << 17) + (4 << 20) + (1 << 17));
    assert!(memory(slots, slots) < 12 << 20);
    assert_eq!(memory(2 << 20, slots), ((7 << 21) + 1) + (1 << 18) + (4 << 20) + (1 << 17));
}

#[test]
fn a_wake_while_a_write_is_under_way_does_not_end_the_flushes_by_age() {
    use flashyard_service::{Orders, Request, Service};
    let mut latte = Latte::new(small(Rule::Front, 16, 4));
    let mut out = Orders::default();
    let request =
        |id| Request { id, operation: Operation::Write, first: id.into(), count: 1, durable: false, source: 0 };
    latte.submit(SimTime::ZERO, &request(0), &mut out);
    let first = out.orders[0].id;
    out.clear();
    latte.wake(SimTime::ZERO + SimSpan::from_ms(1), &mut out);
    assert!(out.orders.is_empty(), "nothing is dirty yet");
    let ended = SimTime::ZERO + SimSpan::from_us(1100);
    latte.completed(ended, first, Ok(()), &mut out);
    let wake_at = out.wake_at.expect("a dirty block is flushed by its age");
    assert_eq!(wake_at, ended + SimSpan::from_ms(1));
    // A second dirty block changes nothing.
    out.clear();
    latte.submit(ended, &request(1), &mut out);
    let second = out.orders[0].id;
    out.clear();
    latte.completed(ended, second, Ok(()), &mut out);
    assert_eq!(out.wake_at, None);
    latte.wake(wake_at, &mut out);
    assert!(!out.orders.is_empty(), "the flush begins");
}

#[test]
fn reads_that_never_end_keep_no_flush_waiting() {
    use flashyard_service::{Orders, Request, Service};
    let mut latte = Latte::new(small(Rule::Front, 16, 4));
    let (mut out, now) = (Orders::default(), SimTime::ZERO);
    let request = |id, operation| Request { id, operation, first: 3, count: 1, durable: false, source: 0 };
    latte.submit(now, &request(0, Operation::Write), &mut out);
    let written = out.orders[0].id;
    latte.completed(now, written, Ok(()), &mut out);
    out.clear();
    // The copy at the front end is being read from here on.
    latte.submit(now, &request(1, Operation::Read), &mut out);
    assert_eq!(out.orders.len(), 1);
    let read = out.orders[0].id;
    out.clear();
    latte.submit(now, &request(2, Operation::Flush), &mut out);
    let mut answered = Vec::new();
    while let Some(order) = out.orders.iter().map(|order| order.id).find(|&id| id != read) {
        let others: Vec<u32> =
            out.orders.iter().map(|order| order.id).filter(|&id| id != order && id != read).collect();
        out.clear();
        latte.completed(now, order, Ok(()), &mut out);
        for other in others {
            latte.completed(now, other, Ok(()), &mut out);
        }
        answered.append(&mut out.answers);
    }
    assert_eq!(answered, [(2, Ok(()))]);
}

#[test]
fn a_warm_cache_has_its_share_of_blocks_in_runs() {
    for (blocks, cache_slots, expected) in [(1024, 768, 768), (1024, 256, 256), (1024, 2048, 1024), (1024, 512, 512)] {
        let mut latte = Latte::new(Config { cache_slots, ..Config::halves(blocks, 64) });
        latte.warm();
        let legs = (0..2).map(|leg| ModelVolume::new(leg, Plan::new(1))).collect();
        let mut volume = Over::new(VolumeId::new(0), latte, legs);
        let mut now = SimTime::ZERO;
        let mut ended = Vec::new();
        for token in 0..u64::from(blocks / 32) {
            let request = VolumeRequest {
                volume: VolumeId::new(0),
                operation: Operation::Read,
                first: token * 32,
                count: 32,
                source: 0,
            };
            volume.submit(now, token, &request, Payload::None).expect("it takes it");
            now = volume.advance(now + SimSpan::from_ms(1), &mut ended).expect("it goes on");
        }
        let counters = volume.service().counters();
        assert_eq!((counters.hits, counters.misses), (expected, u64::from(blocks) - expected));
    }
}

/// Carries out `submitted`'s orders one after the other, reads of the front end without success where `unread` says so; returns the answers, and
/// where reads went. Ends after a hundred steps, if the service never does.
fn carried_out(latte: &mut Latte, out: &mut flashyard_service::Orders, unread: bool) -> (Vec<(u32, bool)>, Vec<u8>) {
    use flashyard_service::{Failure, Service};
    let (mut answers, mut reads, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..100 {
        answers.extend(out.answers.drain(..).map(|(id, result)| (id, result.is_ok())));
        waiting.append(&mut out.orders);
        out.clear();
        let Some(order) = waiting.pop() else { break };
        let is_read = order.operation == Operation::Read;
        if is_read {
            reads.push(order.leg.0);
        }
        let fails = unread && is_read && order.leg.0 == 0;
        let result = if fails { Err(Failure::Unread { block: order.first }) } else { Ok(()) };
        latte.completed(SimTime::ZERO, order.id, result, out);
    }
    (answers, reads)
}

#[test]
fn a_copy_that_cannot_be_read_is_read_at_the_back_end_and_fails_the_flush_that_needs_it() {
    use flashyard_service::{Orders, Request, Service};
    let mut latte = Latte::new(small(Rule::Front, 16, 4));
    let mut out = Orders::default();
    let request = |id, operation| Request { id, operation, first: 3, count: 1, durable: false, source: 0 };
    latte.submit(SimTime::ZERO, &request(0, Operation::Write), &mut out);
    assert_eq!(carried_out(&mut latte, &mut out, false), (vec![(0, true)], vec![]));
    // The newest data is at the front end alone: the client hears that its flush has failed.
    latte.submit(SimTime::ZERO, &request(1, Operation::Flush), &mut out);
    assert_eq!(carried_out(&mut latte, &mut out, true).0, [(1, false)]);
    latte.submit(SimTime::ZERO, &request(2, Operation::Flush), &mut out);
    assert_eq!(carried_out(&mut latte, &mut out, false).0, [(2, true)]);
    // Now the back end has it as well, and the copy is given up.
    latte.submit(SimTime::ZERO, &request(3, Operation::Read), &mut out);
    assert_eq!(carried_out(&mut latte, &mut out, true), (vec![(3, true)], vec![0, 1]));
    latte.submit(SimTime::ZERO, &request(4, Operation::Read), &mut out);
    assert_eq!(carried_out(&mut latte, &mut out, false).0, [(4, true)]);
}
