//! Reads that are given up: they fail, garbage collection keeps slots that it could not read as lost, and new data
//! heals them.

use crate::small::config;
use flashyard_kernel::{EventQueue, Machine, Nested, Rng};
use flashyard_nand::{EccStrength, ErrorRates, RetryRule, WearModel};
use flashyard_ssd::{CommandSpec, Drive, DriveConfig, DriveEffect, DriveEvent, Operation};
use flashyard_units::SimTime;

/// So high that no read succeeds with three retries.
const HOPELESS: f64 = 0.5;

struct World {
    drive: Drive,
    queue: EventQueue<DriveEvent>,
    now: SimTime,
    tags: u32,
}

impl World {
    fn new(config: DriveConfig) -> Self {
        let drive = Drive::new(config, &[1], 7).expect("the drive is possible");
        Self { drive, queue: EventQueue::default(), now: SimTime::ZERO, tags: 0 }
    }

    /// Carries out one command; the slot at which it failed, if it did.
    fn command(&mut self, spec: impl FnOnce(u32) -> CommandSpec) -> Option<u32> {
        self.tags += 1;
        let mut effects = Vec::new();
        let spec = spec(self.tags);
        self.drive.execute(self.now, spec, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        while let Some((time, event)) = self.queue.pop() {
            self.now = time;
            self.drive.handle(time, event, &mut Nested::new(&mut self.queue, |event| event, &mut effects));
        }
        let mut failed = None;
        let mut completed = 0;
        for effect in effects {
            match effect {
                DriveEffect::ReadFailed { tag, slot } => {
                    assert_eq!((tag, completed), (spec.tag, 0), "it fails before it completes");
                    failed = Some(slot);
                }
                DriveEffect::Completed { .. } => completed += 1,
                _ => {}
            }
        }
        assert_eq!(completed, 1);
        failed
    }

    fn issue(&mut self, operation: Operation, first: u32, count: u32) -> Option<u32> {
        self.command(|tag| CommandSpec { tag, operation, first, count, source: 0, stamp: tag.into() })
    }

    fn media_errors(&self) -> u64 {
        self.drive.data.counters().media_errors
    }
}

#[test]
fn a_read_that_needs_more_retries_than_there_are_fails_at_the_slot_that_is_worn() {
    let mut config = config(true, 0, 3, true);
    config.nand.raw_bit_error_rate = 0.0;
    config.nand.read_retries_max = Some(4);
    let (rates, ecc) = (ErrorRates::TLC_2018_AT_300, EccStrength::BITS_50);
    config.nand.wear = Some(WearModel { rates, ecc, rule: RetryRule::Halving, retention_days: 0.0 });
    // Four retries at 150 erases, five at 200: sheet cvss §8.1.
    config.erases = 150;
    let mut world = World::new(config);
    assert_eq!(world.issue(Operation::Read, 100, 40), None);
    assert_eq!(world.media_errors(), 0);
    let layout = *world.drive.data.ftl.layout();
    let of = |world: &World, logical| layout.split(world.drive.data.ftl.lookup(logical)).0;
    let first = (101..140).find(|&logical| of(&world, logical) != of(&world, 100));
    let worn = of(&world, first.unwrap_or(100));
    let counts = (0..layout.superblocks).map(|superblock| if superblock == worn { 200 } else { 150 });
    world.drive.data.ftl.project_erase_counts(&counts.collect::<Vec<_>>());
    assert_eq!(world.issue(Operation::Read, 100, 40), first.or(Some(100)));
    assert!(world.media_errors() > 0);
    config.nand.read_retries_max = Some(5);
    config.erases = 200;
    assert_eq!(World::new(config).issue(Operation::Read, 100, 40), None, "one retry more is enough");
    config.nand.read_retries_max = None;
    config.erases = 300;
    assert_eq!(World::new(config).issue(Operation::Read, 100, 40), None, "as published");
}

#[test]
fn what_reclaim_could_not_read_stays_lost_until_it_is_written_or_trimmed_and_moves_with_a_remap() {
    let mut config = config(true, 0, 3, true);
    config.nand.raw_bit_error_rate = 0.0;
    config.nand.correctable_bit_error_rate = 1e-9;
    config.nand.read_retries_max = Some(3);
    let mut world = World::new(config);
    let mut rng = Rng::named(5, "writes");
    world.drive.data.flash.nand.set_raw_bit_error_rate(HOPELESS);
    while world.drive.data.lost_slots().count() < 20 {
        assert_eq!(world.issue(Operation::Write, rng.below(2000) as u32, 8), None);
    }
    world.drive.data.flash.nand.set_raw_bit_error_rate(0.0);
    let lost: Vec<u32> = world.drive.data.lost_slots().collect();
    let errors = world.media_errors();
    for &slot in &lost {
        assert_eq!(world.issue(Operation::Read, slot, 1), Some(slot));
    }
    assert_eq!(world.media_errors(), errors + lost.len() as u64);
    let (written, trimmed, remapped, beyond) = (lost[0], lost[1], lost[2], 2500);
    world.issue(Operation::Write, written, 1);
    world.issue(Operation::Trim, trimmed, 1);
    world.command(|tag| CommandSpec::remap(tag, beyond, remapped, 1));
    for healed in [written, trimmed, remapped] {
        assert_eq!(world.issue(Operation::Read, healed, 1), None);
    }
    assert_eq!(world.issue(Operation::Read, beyond, 1), Some(beyond));
    // Flash reads well again, but lost data stays lost, wherever garbage collection takes it.
    for _ in 0..600 {
        let first = rng.below(2000 - 8) as u32;
        if lost.iter().all(|slot| !(first..first + 8).contains(slot)) {
            world.issue(Operation::Write, first, 8);
        }
    }
    let still: Vec<u32> = lost[3..].iter().copied().chain([beyond]).collect();
    assert_eq!(world.drive.data.lost_slots().collect::<Vec<_>>(), still);
    // Another lifetime finds the same.
    let contents = world.drive.data.contents();
    let mut world = World { drive: Drive::recovered(config, &[1], &contents, 7).expect("it is whole"), ..world };
    assert_eq!(world.drive.data.lost_slots().collect::<Vec<_>>(), still);
    assert_eq!(world.issue(Operation::Read, beyond, 1), Some(beyond));
}
