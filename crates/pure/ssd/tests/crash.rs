//! Power cuts: acknowledged data is there afterwards, other data is there or not, and a read settles which.

use crate::small::crashing::World;
use crate::small::{config, striped};
use flashyard_kernel::Rng;
use flashyard_ssd::{BlockedReads, CommandSpec, DriveConfig, Operation};
use flashyard_units::ByteRate;

/// Runs `commands` random commands with up to 16 in flight; `disturb` may act before each.
fn run(world: &mut World, rng: &mut Rng, commands: u32, mut disturb: impl FnMut(&mut World, &mut Rng)) {
    for _ in 0..commands {
        disturb(world, rng);
        while world.commands.len() > 16 || !world.drive.is_ready() {
            assert!(world.step(), "stuck: {}", world.drive.data.describe());
        }
        world.issue_random(rng);
    }
}

#[test]
fn acknowledged_writes_survive_power_cuts_at_random() {
    let mut torn = 0;
    for seed in 0..14 {
        println!("seed {seed}");
        let mut rng = Rng::named(seed, "crash");
        let limit = Some(ByteRate::from_mb(10));
        let config = match seed % 7 {
            6 => DriveConfig { mapping_unit: 4, program_rate: limit, ..config(true, 0, 1, true) },
            5 => DriveConfig { mapping_unit: 2, program_rate: limit, ..config(false, 0, u32::MAX, true) },
            4 if seed > 6 => DriveConfig { read_cache_slots: 64, read_ahead_slots: 16, ..config(true, 0, 1, true) },
            4 => striped(config(true, 0, u32::MAX, true), true, BlockedReads::Rebuild),
            0 => config(true, 0, u32::MAX, true),
            1 => config(false, 0, u32::MAX, true),
            2 => config(true, 2, 1, true),
            _ => config(false, 0, 1, true),
        };
        let mut world = World::new(config, seed);
        run(&mut world, &mut rng, 4000, |world, rng| {
            if rng.below(100) == 0 {
                (0..rng.below(30)).for_each(|_| {
                    world.step();
                });
                world.cut();
                world.restore();
            }
        });
        world.check_all();
        assert!(world.drive.data.ftl.counters().erased_superblocks > 10, "reclaim was hardly exercised");
        torn += world.torn;
    }
    assert!(torn > 10, "only {torn} writes were torn");
}

#[test]
fn a_short_run_survives_a_power_cut_at_every_event() {
    let mut cut_at = 0;
    loop {
        let mut rng = Rng::named(5, "crash");
        let mut world = World::new(config(false, 0, 1, true), 5);
        // Garbage collection has begun when the part that is cut begins.
        run(&mut world, &mut rng, 250, |_, _| {});
        (0..16).for_each(|_| world.issue_random(&mut rng));
        if !(0..cut_at).all(|_| world.step()) {
            break;
        }
        world.cut();
        world.restore();
        run(&mut world, &mut rng, 30, |_, _| {});
        world.check_all();
        cut_at += 1;
    }
    assert!(cut_at > 30, "only {cut_at} events were cut at");
}

#[test]
fn a_translation_from_before_a_power_cut_is_void() {
    let mut rng = Rng::named(9, "crash");
    let mut world = World::new(config(true, 0, u32::MAX, true), 9);
    run(&mut world, &mut rng, 2000, |_, _| {});
    world.drain();
    let read = |tag| CommandSpec { tag, operation: Operation::Read, first: 40, count: 8, source: 0, stamp: 0 };
    let used = world.drive.data.translate(&read(0)).expect("the whole map is in memory");
    let dropped = world.drive.data.translate(&read(0)).expect("the whole map is in memory");
    world.cut();
    assert!(world.drive.data.translate(&read(0)).is_none(), "there is no power");
    world.restore();
    world.act(|drive, now, out| drive.data.drop_translation(now, dropped, out));
    // It is looked up again, so it sees data written since.
    world.issue(Operation::Write, 40, 8);
    world.drain();
    world.execute_translated(Operation::Read, 40, 8, used);
    world.check_all();
}

#[test]
fn what_a_read_has_found_when_power_is_cut_is_told_to_nobody() {
    let mut world = World::new(config(true, 0, u32::MAX, true), 1);
    world.issue(Operation::Write, 0, 4);
    world.drain();
    let read = |tag| CommandSpec { tag, operation: Operation::Read, first: 0, count: 4, source: 0, stamp: 0 };
    world.act(|drive, now, out| {
        drive.execute(now, read(100), out);
        assert_eq!(drive.data.take_stamps_read().len(), 4);
        drive.execute(now, read(101), out);
        drive.power_cut(now);
        assert_eq!(drive.data.take_stamps_read(), []);
    });
}
