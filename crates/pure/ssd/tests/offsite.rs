//! A drive that borrows mapping memory, under random commands, losses, returns and power cuts: acknowledged data is
//! there, whatever happens to lenders.

use crate::small::borrowing;
use crate::small::crashing::World;
use flashyard_kernel::Rng;
use flashyard_ssd::{LoanId, Operation, SegmentState};
use flashyard_units::{ByteRate, DriveId};

const LENDERS: u16 = 2;
/// Two of one lender, one of another.
const LOANS: [LoanId; 3] = [
    LoanId { lender: DriveId::new(0), offer: 0 },
    LoanId { lender: DriveId::new(0), offer: 1 },
    LoanId { lender: DriveId::new(1), offer: 0 },
];

fn is_lost(world: &World, loan: LoanId) -> bool {
    world.drive.data.segments_of(loan).any(|(_, state)| state == SegmentState::Lost)
}

fn recover_all(world: &mut World) {
    for loan in LOANS {
        if is_lost(world, loan) {
            world.act(|drive, now, out| drive.data.recover_segments(now, loan, out));
        }
    }
}

/// One step; when nothing happens any more because memory is lost, the owner notices.
fn step(world: &mut World) {
    if !world.step() {
        assert!(LOANS.iter().any(|&loan| is_lost(world, loan)), "stuck: {}", world.drive.data.describe());
        recover_all(world);
    }
}

fn attach_all(world: &mut World) {
    for loan in LOANS {
        if world.drive.data.segments_of(loan).next().is_none() {
            world.drive.data.attach_segments(loan, &[10, 20]);
        }
    }
}

/// Cuts the power, perhaps again while segments are being recovered.
fn cut(world: &mut World, rng: &mut Rng) {
    loop {
        world.cut();
        world.restore();
        if rng.below(3) > 0 {
            return;
        }
        (0..rng.below(6)).for_each(|_| {
            world.step();
        });
    }
}

/// Lets something happen, once in `calm` / 22 calls.
fn disturb(world: &mut World, rng: &mut Rng, calm: u64) {
    let lender = rng.below(u64::from(LENDERS)) as u16;
    let loan = LOANS[rng.below(LOANS.len() as u64) as usize];
    match rng.below(calm) {
        0 => cut(world, rng),
        1..=3 => world.drive.data.lose_segments(DriveId::new(lender)),
        4..=6 => recover_all(world),
        7..=9 => world.act(|drive, now, out| drive.data.return_segments(now, loan, out)),
        10..=20 if world.drive.is_ready() => attach_all(world),
        21 => {
            let pages = 1 + rng.below(3) as u32;
            world.act(|drive, now, out| drive.data.set_local_pages(now, pages, out));
        }
        _ => {}
    }
}

fn exercise(world: &mut World, rng: &mut Rng, commands: u32, calm: u64) {
    for _ in 0..commands {
        disturb(world, rng, calm);
        while world.commands.len() > 16 || !world.drive.is_ready() {
            step(world);
        }
        world.issue_random(rng);
    }
}

fn finish(world: &mut World) {
    while !world.commands.is_empty() || !world.drive.is_ready() {
        step(world);
    }
    recover_all(world);
    world.check_all();
}

#[test]
fn acknowledged_data_survives_losses_returns_and_power_cuts_at_random() {
    let (mut flushes, mut replays, mut waits, mut parked, mut returned) = (0, 0, 0, 0, 0);
    for seed in 0..24 {
        println!("seed {seed}");
        let mut rng = Rng::named(seed, "offsite");
        let rate = ByteRate::from_mb([16_000, 5, 1][seed as usize % 3]);
        let mut world = World::new(borrowing(seed % 4 != 3, 1 + seed as u32 % 3, rate), seed);
        attach_all(&mut world);
        exercise(&mut world, &mut rng, 4000, [400, 8000][seed as usize / 12]);
        finish(&mut world);
        let counters = world.drive.data.offsite_counters();
        assert_eq!(counters.wrong_entries, 0);
        flushes += counters.flushes;
        replays += counters.replays;
        waits += counters.waits;
        parked += counters.parked;
        returned += world.returned.len();
    }
    println!("{flushes} flushes, {replays} replays, {waits} waits, {parked} parked, {returned} returns");
    assert!(flushes > 500 && replays > 100 && waits > 100 && parked > 50 && returned > 100);
}

/// A drive whose offsite pages have changed, with commands under way.
fn busy_world(seed: u64) -> (World, Rng) {
    let mut rng = Rng::named(seed, "offsite");
    let mut world = World::new(borrowing(seed.is_multiple_of(2), 2, ByteRate::from_mb(30)), seed);
    attach_all(&mut world);
    for _ in 0..700 {
        while world.commands.len() > 16 {
            step(&mut world);
        }
        world.issue_random(&mut rng);
    }
    (world, rng)
}

#[test]
fn a_short_run_survives_a_power_cut_at_every_event_and_another_in_recovery() {
    let mut cut_at = 0;
    loop {
        let (mut world, mut rng) = busy_world(2 + cut_at % 2);
        if !(0..cut_at / 2).all(|_| world.step()) {
            break;
        }
        world.cut();
        world.restore();
        // The second cut hits every stage of the recovery in turn.
        (0..cut_at % 9).for_each(|_| {
            world.step();
        });
        world.cut();
        world.restore();
        while !world.drive.is_ready() {
            step(&mut world);
        }
        attach_all(&mut world);
        (0..30).for_each(|_| world.issue_random(&mut rng));
        finish(&mut world);
        assert_eq!(world.drive.data.offsite_counters().wrong_entries, 0);
        cut_at += 1;
    }
    assert!(cut_at > 60, "only {cut_at} cuts");
}

#[test]
fn a_look_up_that_needs_lost_memory_waits_until_it_is_recovered() {
    let (mut world, _) = busy_world(2);
    while !world.commands.is_empty() {
        step(&mut world);
    }
    (0..LENDERS).for_each(|lender| world.drive.data.lose_segments(DriveId::new(lender)));
    let offsite = (0..10).filter(|&page| world.drive.data.cache.frame_of(page).is_some());
    let pages: Vec<u32> = offsite.collect();
    assert!(!pages.is_empty());
    pages.iter().for_each(|page| world.issue(Operation::Read, page * 1024, 4));
    world.drain();
    assert_eq!(world.commands.len(), pages.len());
    recover_all(&mut world);
    world.check_all();
    assert_eq!(world.recovered, LOANS);
    assert_eq!(world.drive.data.cache.offsite_capacity(), 0);
}

#[test]
fn a_lender_that_uses_its_memory_while_it_is_borrowed_spoils_the_map() {
    let (mut world, _) = busy_world(4);
    while !world.commands.is_empty() {
        step(&mut world);
    }
    assert!(world.wrong_slots().is_empty());
    world.drive.data.overwrite_segments(LOANS[2]);
    let spoilt = world.wrong_slots().len();
    assert!(spoilt > 10, "only {spoilt} slots show it");
    assert!(world.drive.data.offsite_counters().wrong_entries as usize >= spoilt);
    // The drive goes on, and a slot that is written again is in order.
    world.drive.data.ftl.check();
    (0..10_000 / 8).for_each(|number| {
        world.issue(Operation::Write, number * 8, 8);
        while world.commands.len() > 8 {
            step(&mut world);
        }
    });
    world.check_all();
}

#[test]
fn memory_that_is_given_back_in_time_may_be_used() {
    let (mut world, mut rng) = busy_world(6);
    for loan in LOANS {
        world.act(|drive, now, out| drive.data.return_segments(now, loan, out));
    }
    (0..30).for_each(|_| world.issue_random(&mut rng));
    while world.returned.len() < LOANS.len() {
        step(&mut world);
    }
    LOANS.iter().for_each(|&loan| world.drive.data.overwrite_segments(loan));
    world.check_all();
    assert_eq!(world.drive.data.cache.offsite_capacity(), 0);
}

#[test]
fn one_loan_of_a_lender_ends_and_the_other_goes_on() {
    let (mut world, mut rng) = busy_world(8);
    world.act(|drive, now, out| drive.data.return_segments(now, LOANS[0], out));
    while world.returned.is_empty() {
        step(&mut world);
    }
    assert_eq!(world.returned, [LOANS[0]]);
    assert_eq!(LOANS.map(|loan| world.drive.data.segments_of(loan).count()), [0, 2, 2]);
    world.drive.data.overwrite_segments(LOANS[0]);
    world.act(|drive, now, out| drive.data.recover_segments(now, LOANS[1], out));
    (0..30).for_each(|_| world.issue_random(&mut rng));
    while world.recovered.is_empty() {
        step(&mut world);
    }
    assert_eq!(world.recovered, [LOANS[1]]);
    assert_eq!(LOANS.map(|loan| world.drive.data.segments_of(loan).count()), [0, 0, 2]);
    finish(&mut world);
    assert_eq!(world.drive.data.offsite_counters().wrong_entries, 0);
}

#[test]
fn memory_given_back_after_it_was_lost_is_recovered() {
    let (mut world, mut rng) = busy_world(10);
    // The lender's link is away for a moment; before a failure is reported, the drive gives one of the loans back.
    world.drive.data.lose_segments(LOANS[0].lender);
    world.act(|drive, now, out| drive.data.return_segments(now, LOANS[0], out));
    assert_eq!(world.returned, [LOANS[0]], "nothing has to be copied");
    (0..30).for_each(|_| world.issue_random(&mut rng));
    while world.recovered.is_empty() {
        step(&mut world);
    }
    assert_eq!(world.recovered, [LOANS[0]]);
    assert_eq!(LOANS.map(|loan| world.drive.data.segments_of(loan).count()), [0, 2, 2]);
    finish(&mut world);
    assert_eq!(world.drive.data.offsite_counters().wrong_entries, 0);
}
