use super::*;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Rng;
use flashyard_service::contract::{BLOCK_BYTES, block_of, check_seeds, stamp_of};
use flashyard_service::{Leg, Request, Service};
use flashyard_services::crash::machine::Machine;
use flashyard_units::SimSpan;
use flashyard_units::VolumeId;

fn legs(blocks: &[u64]) -> Vec<VolumeInfo> {
    let info = |&blocks: &u64| VolumeInfo {
        id: VolumeId::new(0),
        block_bytes: BLOCK_BYTES,
        limits: VolumeLimits::new(blocks, false),
        protected: false,
    };
    blocks.iter().map(info).collect()
}

fn config(legs: usize, width: u8, parities: u8, chunk_blocks: u32) -> ArrayConfig {
    let speeds = (0..legs as u64).map(|leg| 1 + leg % 2).collect();
    ArrayConfig {
        id: 5,
        width,
        parities,
        chunk_blocks,
        journal: Journal::Whole,
        slots: 3,
        aggregates: true,
        speeds,
        pause: SimSpan::from_us(20),
        reserved: 0,
        moves: None,
    }
}

fn array(blocks: &[u64], width: u8, parities: u8, chunk_blocks: u32) -> Array {
    Array::new(config(blocks.len(), width, parities, chunk_blocks), &legs(blocks)).expect("an array")
}

#[test]
fn the_contract_holds_with_legs_that_fail_and_end() {
    for (count, width, parities, chunk_blocks) in [(3, 3, 1, 1), (4, 3, 1, 4), (5, 4, 2, 2), (6, 6, 2, 3)] {
        check_seeds(120, || array(&vec![4096; count], width, parities, chunk_blocks));
    }
}

#[test]
fn the_contract_holds_whatever_the_journal_and_whether_writes_become_one() {
    for (journal, aggregates) in [(Journal::PartialParity, true), (Journal::None, true), (Journal::Whole, false)] {
        let config = ArrayConfig { journal, aggregates, ..config(5, 4, 1, 3) };
        check_seeds(90, || Array::new(config.clone(), &legs(&[900, 700, 700, 400, 300])).expect("an array"));
    }
}

/// An array on three legs that has started.
fn running(width: u8, parities: u8) -> Machine<Array> {
    let blocks = vec![60; usize::from(width) + 1];
    let service = array(&blocks, width, parities, 2);
    let mut machine = Machine::with_legs(service, &blocks, false, Rng::named(3, "legs"));
    run(&mut machine);
    machine
}

/// Lets everything end.
fn run(machine: &mut Machine<Array>) {
    for _ in 0..20_000 {
        if machine.next_time().is_none() {
            return;
        }
        machine.step();
    }
    panic!("it has no end at {:?}", machine.now);
}

fn ask(machine: &mut Machine<Array>, id: u32, operation: Operation, first: u64, count: u32, stamp: u64) {
    let request = Request { id, operation, first, count, durable: false, source: 0 };
    machine.submit(request, vec![block_of(stamp); count as usize]);
}

fn read_all(machine: &mut Machine<Array>) -> Vec<u64> {
    let count = machine.service.blocks() as u32;
    ask(machine, 0, Operation::Read, 0, count, 0);
    run(machine);
    let answer = machine.answers.pop().expect("it is answered");
    assert_eq!(answer.result, Ok(()));
    answer.blocks.iter().map(stamp_of).collect()
}

#[test]
fn writes_that_wait_for_a_stripe_become_one() {
    let mut machine = running(3, 1);
    for id in 0..4 {
        ask(&mut machine, id, Operation::Write, u64::from(id), 1, u64::from(id) + 1);
    }
    run(&mut machine);
    assert_eq!(machine.answers.len(), 4);
    machine.answers.clear();
    assert_eq!(machine.service.counters().aggregated, 2, "the first has the stripe, two join the second");
    assert_eq!(read_all(&mut machine)[..4], [1, 2, 3, 4]);
}

#[test]
fn a_scrub_makes_blocks_readable_again() {
    for (width, parities) in [(3, 1), (4, 2)] {
        let mut machine = running(width, parities);
        let blocks = machine.service.blocks() as u32;
        ask(&mut machine, 0, Operation::Write, 0, blocks, 7);
        run(&mut machine);
        machine.answers.clear();
        let spoiled: Vec<(usize, u64)> = (0..width)
            .map(|role| machine.service.place(u32::from(role), role))
            .map(|(leg, block)| (leg.0.into(), block + 1))
            .collect();
        spoiled.iter().for_each(|&(leg, block)| machine.spoil(leg, block));
        assert!(machine.tell(|array, out| {
            let is_taken = array.set("scrub", 1);
            array.wake(flashyard_units::SimTime::ZERO, out);
            is_taken
        }));
        run(&mut machine);
        assert!(spoiled.iter().all(|&(leg, block)| machine.is_readable(leg, block)), "{width} and {parities}");
        let counters = machine.service.counters();
        assert_eq!((counters.repaired, counters.wrong), (width.into(), 0));
        assert_eq!(counters.scrubbed, machine.service.layout().stripes());
        assert_eq!(read_all(&mut machine), vec![7; blocks as usize]);
    }
}

#[test]
fn a_lost_leg_is_rebuilt_stripe_by_stripe() {
    for (width, parities, lost) in [(3_u8, 1_u8, 1_u32), (4, 2, 2)] {
        let mut machine = running(width, parities);
        let blocks = machine.service.blocks() as u32;
        ask(&mut machine, 0, Operation::Write, 0, blocks, 7);
        run(&mut machine);
        machine.answers.clear();
        (0..lost).for_each(|leg| machine.lose(leg));
        assert_eq!(read_all(&mut machine), vec![7; blocks as usize]);
        assert!(machine.service.counters().degraded_reads > 0);
        ask(&mut machine, 0, Operation::Write, 1, 4, 8);
        run(&mut machine);
        machine.answers.clear();
        for leg in 0..lost {
            assert!(machine.put(leg, |_| block_of(99)));
            let now = machine.now;
            assert!(machine.tell(|array, out| {
                let is_taken = array.replaced(Leg(leg as u8));
                array.wake(now, out);
                is_taken
            }));
        }
        run(&mut machine);
        assert_eq!(machine.service.whole(), (1 << (width + 1)) - 1);
        assert!((0..lost).all(|leg| machine.service.can_miss(Leg(leg as u8))));
        let expected: Vec<u64> = (0..blocks).map(|block| if (1..5).contains(&block) { 8 } else { 7 }).collect();
        // Chunks that were rebuilt serve without others.
        let others = u32::from(width)..u32::from(width + parities.min(1));
        others.for_each(|leg| machine.lose(leg));
        assert_eq!(read_all(&mut machine), expected);
    }
}

const MOVES: MovesConfig = MovesConfig {
    map_blocks: 90,
    log_blocks: 5,
    interval: SimSpan::from_us(500),
    sample: 1,
    pause: SimSpan::from_us(10),
    look: SimSpan::from_us(10),
};

#[test]
fn the_contract_holds_while_chunks_move() {
    for (journal, parities) in [(Journal::Whole, 2), (Journal::PartialParity, 1), (Journal::None, 1)] {
        let config = ArrayConfig { journal, moves: Some(MOVES), ..config(6, 2 + parities, parities, 2) };
        check_seeds(90, || Array::new(config.clone(), &legs(&[900, 700, 700, 600, 500, 500])).expect("an array"));
    }
}

/// An array of two fast legs and four slow ones, all of whose blocks hold their numbers.
fn moving(log_blocks: u32) -> (Machine<Array>, ArrayConfig) {
    let moves = MovesConfig { log_blocks, ..MOVES };
    let speeds = vec![9, 1, 1, 1, 1, 9];
    let config = ArrayConfig { speeds, moves: Some(moves), ..config(6, 3, 1, 2) };
    let sizes = [320; 6];
    let service = Array::new(config.clone(), &legs(&sizes)).expect("an array");
    let mut machine = Machine::with_legs(service, &sizes, false, Rng::named(8, "legs"));
    run(&mut machine);
    let blocks = machine.service.blocks() as u32;
    let request = Request { id: 0, operation: Operation::Write, first: 0, count: blocks, durable: false, source: 0 };
    machine.submit(request, (1..=u64::from(blocks)).map(block_of).collect());
    run(&mut machine);
    machine.answers.clear();
    (machine, config)
}

/// A stripe of slow legs only.
fn slow_stripe(machine: &Machine<Array>) -> u32 {
    let is_slow = |role: u8, stripe: u32| !matches!(machine.service.place(stripe, role).0, Leg(0 | 5));
    let mut stripes = 0..machine.service.layout().stripes() as u32;
    stripes.find(|&stripe| (0..3).all(|role| is_slow(role, stripe))).expect("there is one")
}

/// Reads a block again and again.
fn heat(machine: &mut Machine<Array>, block: u64) {
    for _ in 0..300 {
        ask(machine, 1, Operation::Read, block, 1, 0);
        while machine.answers.is_empty() {
            machine.step();
        }
        machine.answers.clear();
    }
    run(machine);
}

#[test]
fn a_hot_chunk_moves_to_a_fast_leg_and_stays_there_when_the_array_starts_again() {
    for log_blocks in [1, 50] {
        let (mut machine, config) = moving(log_blocks);
        let stripe = slow_stripe(&machine);
        let block = u64::from(stripe) * 4;
        heat(&mut machine, block);
        let counters = machine.service.counters();
        assert!(counters.moved >= 2 && counters.abandoned == 0, "{counters:?}");
        assert_eq!(machine.service.moved(), Some(counters.moved));
        let places = |machine: &Machine<Array>| -> Vec<(Leg, u64)> {
            let stripes = 0..machine.service.layout().stripes() as u32;
            stripes.flat_map(|stripe| [0, 1, 2].map(|role| machine.service.place(stripe, role))).collect()
        };
        assert!(matches!(machine.service.place(stripe, 0).0, Leg(0 | 5)));
        let before = places(&machine);
        machine.cut_power(Array::new(config, &legs(&[320; 6])).expect("an array"));
        run(&mut machine);
        assert_eq!(places(&machine), before, "the map is loaded");
        let blocks = machine.service.blocks();
        assert_eq!(read_all(&mut machine), (1..=blocks).collect::<Vec<_>>());
    }
}

#[test]
fn nothing_moves_without_all_legs_and_a_rebuilt_leg_has_the_map() {
    let (mut machine, config) = moving(3);
    let stripe = slow_stripe(&machine);
    let lost = machine.service.place(stripe, 1).0;
    machine.lose(lost.0.into());
    let now = machine.now;
    machine.tell(|array, out| array.lost(now, lost, out));
    let moved = machine.service.moved();
    heat(&mut machine, u64::from(stripe) * 4);
    assert_eq!(machine.service.moved(), moved);
    assert!(machine.put(lost.0.into(), |_| block_of(99)));
    let now = machine.now;
    machine.tell(|array, out| {
        assert!(array.replaced(lost));
        array.wake(now, out);
    });
    run(&mut machine);
    assert_eq!(machine.service.whole(), 0b11_1111);
    heat(&mut machine, u64::from(stripe) * 4);
    assert!(machine.service.moved() > moved);
    // It starts with the map of the rebuilt leg, among others.
    let others = (0..6).filter(|&leg| leg != u32::from(lost.0));
    machine.cut_power(Array::new(config, &legs(&[320; 6])).expect("an array"));
    run(&mut machine);
    others.take(1).for_each(|leg| machine.lose(leg));
    let blocks = machine.service.blocks();
    assert_eq!(read_all(&mut machine), (1..=blocks).collect::<Vec<_>>());
}

#[test]
fn moves_are_switched_off_and_on() {
    let (mut machine, _) = moving(9);
    let stripe = slow_stripe(&machine);
    assert!(machine.service.set("moves", 0) && !machine.service.set("moves", 2));
    let moved = machine.service.moved();
    heat(&mut machine, u64::from(stripe) * 4);
    assert_eq!(machine.service.moved(), moved);
    assert!(machine.service.note().is_some_and(|note| note.contains("moves are off")));
    assert!(machine.service.set("moves", 1) && machine.service.set("move_pause_us", 5));
    heat(&mut machine, u64::from(stripe) * 4);
    assert!(machine.service.moved() > moved);
    let mut still = running(3, 1);
    assert!(!still.service.set("moves", 1), "an array without moves has no map on its legs");
    assert_eq!(still.tell(|array, _| array.moved()), None);
}

#[test]
fn shapes_that_make_no_array_are_refused() {
    let refused = |config: ArrayConfig, blocks: &[u64]| Array::new(config, &legs(blocks)).err();
    let blocks = [4096; 4];
    assert_eq!(refused(config(4, 2, 2, 1), &blocks), Some(ArrayError::Shape { width: 2, parities: 2 }));
    assert_eq!(refused(config(3, 3, 1, 1), &blocks), Some(ArrayError::Legs { legs: 4, speeds: 3 }));
    assert_eq!(refused(config(4, 3, 1, 0), &blocks), Some(ArrayError::Chunk(0)));
    let without = ArrayConfig { slots: 0, ..config(4, 3, 1, 1) };
    assert_eq!(refused(without, &blocks), Some(ArrayError::Journal(0)));
    let partial = ArrayConfig { journal: Journal::PartialParity, ..config(4, 4, 2, 1) };
    assert_eq!(refused(partial, &blocks), Some(ArrayError::Journal(3)));
    assert!(matches!(refused(config(4, 3, 1, 1), &[13; 4]), Some(ArrayError::Layout(_))));
    let small = ArrayConfig { moves: Some(MovesConfig { map_blocks: 1, ..MOVES }), ..config(4, 3, 1, 1) };
    assert!(matches!(refused(small, &blocks), Some(ArrayError::Moves { room: 64, .. })));
    let without = ArrayConfig { moves: Some(MovesConfig { log_blocks: 0, ..MOVES }), ..config(4, 3, 1, 1) };
    assert!(matches!(refused(without, &blocks), Some(ArrayError::Moves { .. })));
}
