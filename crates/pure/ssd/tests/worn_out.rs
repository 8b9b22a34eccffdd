//! A drive that wears out: its writes fail, and nothing waits for ever.

use crate::small::config;
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveEffect, DriveEvent, Operation};
use flashyard_units::SimTime;
use std::collections::BTreeSet;

struct World {
    drive: Drive,
    queue: EventQueue<DriveEvent>,
    now: SimTime,
    under_way: BTreeSet<u32>,
    failed: u64,
    tags: u32,
}

impl World {
    fn follow(&mut self, effects: Vec<DriveEffect>) {
        for effect in effects {
            match effect {
                DriveEffect::Completed { tag, .. } => assert!(self.under_way.remove(&tag), "it completes once"),
                DriveEffect::WriteFailed { tag } => {
                    assert!(self.under_way.contains(&tag), "it fails before it completes");
                    self.failed += 1;
                }
                _ => {}
            }
        }
    }

    fn issue(&mut self, operation: Operation, first: u32, count: u32) {
        self.tags += 1;
        let spec = CommandSpec { tag: self.tags, operation, first, count, source: 0, stamp: u64::from(self.tags) };
        self.under_way.insert(self.tags);
        let mut effects = Vec::new();
        self.drive.execute(self.now, spec, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        self.follow(effects);
    }

    fn step(&mut self) -> bool {
        let Some((time, event)) = self.queue.pop() else { return false };
        self.now = time;
        let mut effects = Vec::new();
        self.drive.handle(time, event, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        self.follow(effects);
        true
    }
}

#[test]
fn writes_to_a_worn_out_drive_fail_and_nothing_waits_for_ever() {
    for (seed, coalesce) in [(1, true), (2, false)] {
        let mut config = config(coalesce, 0, 1, true);
        config.ftl.retire_at = Some(4);
        let drive = Drive::new(config, &[1], seed).expect("the drive is possible");
        let (queue, under_way) = (EventQueue::default(), BTreeSet::new());
        let mut world = World { drive, queue, now: SimTime::ZERO, under_way, failed: 0, tags: 0 };
        let mut rng = Rng::named(seed, "wear");
        while world.failed < 100 {
            assert!(world.tags < 100_000, "it never wears out: {}", world.drive.data.describe());
            while world.under_way.len() > 16 {
                assert!(world.step(), "stuck: {}", world.drive.data.describe());
            }
            let operation = if rng.below(4) == 0 { Operation::Read } else { Operation::Write };
            let count = 1 + rng.below(12) as u32;
            world.issue(operation, rng.below(u64::from(2600 - count)) as u32, count);
        }
        while world.step() {}
        assert!(world.under_way.is_empty(), "stuck: {:?}, {}", world.under_way, world.drive.data.describe());
        assert!(world.drive.data.is_worn_out());
        world.drive.data.ftl.check();
        let failed = world.failed;
        world.issue(Operation::Write, 0, 12);
        world.issue(Operation::Read, 0, 12);
        while world.step() {}
        assert_eq!((world.failed, world.under_way.len()), (failed + 1, 0));
        world.issue(Operation::Trim, 0, 1000);
        while world.step() {}
        assert!(!world.drive.data.is_worn_out(), "nobody has tried since");
    }
}

#[test]
fn a_write_larger_than_the_spare_space_fails_and_the_writes_around_it_do_not() {
    for (seed, coalesce) in [(1, true), (2, false)] {
        let drive = Drive::new(config(coalesce, 0, 1, true), &[1], seed).expect("the drive is possible");
        let (queue, under_way) = (EventQueue::default(), BTreeSet::new());
        let mut world = World { drive, queue, now: SimTime::ZERO, under_way, failed: 0, tags: 0 };
        let mut rng = Rng::named(seed, "long");
        for round in 1..=20 {
            for _ in 0..100 {
                world.issue(Operation::Write, rng.below(2588) as u32, 12);
                world.step();
            }
            world.issue(Operation::Write, 0, 2500);
            while world.step() {}
            assert!(world.under_way.is_empty(), "stuck: {:?}, {}", world.under_way, world.drive.data.describe());
            assert_eq!(world.failed, round, "{}", world.drive.data.describe());
            assert!(!world.drive.data.is_worn_out(), "it takes smaller ones");
            // More than garbage collection keeps free for the host, less than it can free.
            world.issue(Operation::Write, 0, 1300);
            while world.step() {}
            assert_eq!((world.failed, world.under_way.len()), (round, 0), "{}", world.drive.data.describe());
            world.drive.data.ftl.check();
        }
    }
}

#[test]
fn a_write_that_fits_but_for_the_unit_at_its_end_waits_for_nothing_for_ever() {
    let config = DriveConfig { mapping_unit: 4, ..config(true, 0, u32::MAX, true) };
    let drive = Drive::new(config, &[1], 1).expect("the drive is possible");
    let (queue, under_way) = (EventQueue::default(), BTreeSet::new());
    let mut world = World { drive, queue, now: SimTime::ZERO, under_way, failed: 0, tags: 0 };
    let room = world.drive.data.ftl.host_room() as u32;
    for count in room.saturating_sub(40)..room + 8 {
        for first in 0..4 {
            world.issue(Operation::Write, first, count.min(2590));
            while world.step() {}
            assert!(world.under_way.is_empty(), "stuck with {count}: {}", world.drive.data.describe());
        }
    }
    assert!(world.failed > 0);
}

#[test]
fn the_random_choices_of_wear_leveling_follow_the_seed_of_the_drive() {
    let seed = |seed| Drive::new(config(true, 0, 3, true), &[1], seed).expect("it is a drive").data.ftl.config().seed;
    assert_eq!([seed(7), seed(8)], [7, 8]);
}
