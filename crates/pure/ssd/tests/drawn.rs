//! Drives that begin in a drawn steady state: collection works in time from the first write on, through power cuts.

use crate::small::config;
use crate::small::crashing::World;
use flashyard_ftl::{Frontiers, FtlConfig};
use flashyard_kernel::Rng;
use flashyard_ssd::{DriveConfig, PacingRule};
use flashyard_units::Named;

/// Random commands with up to 16 in flight; cuts the power now and then.
fn run(config: DriveConfig, seed: u64) -> World {
    println!("seed {seed}");
    let (mut world, mut rng) = (World::new(config, seed), Rng::named(seed, "drawn"));
    for _ in 0..3000 {
        while world.commands.len() > 16 || !world.drive.is_ready() {
            assert!(world.step(), "stuck: {}", world.drive.data.describe());
        }
        world.issue_random(&mut rng);
        if rng.below(200) == 0 {
            world.cut();
            world.restore();
        }
    }
    world.check_all();
    world
}

#[test]
fn a_drawn_drive_keeps_what_it_has_acknowledged_under_every_pacing() {
    for (pacing, seed) in PacingRule::ALL.iter().copied().zip(0..) {
        for (coalesces, frontiers) in
            [(true, Frontiers::Separate), (false, Frontiers::Separate), (true, Frontiers::Shared)]
        {
            let base = config(coalesces, 0, 1, true);
            let ftl = FtlConfig { drawn: true, frontiers, ..base.ftl };
            let world = run(DriveConfig { pacing, ftl, ..base }, seed);
            let counters = world.drive.data.ftl.counters();
            assert!(counters.moved_slots > 0 && counters.erased_superblocks > 10, "{pacing:?}: {counters:?}");
            assert!(world.reads_checked > 100);
            world.drive.data.ftl.check();
        }
    }
}

#[test]
fn collection_is_needed_at_once_and_the_host_has_half_of_the_reserve() {
    let base = config(true, 0, u32::MAX, true);
    let drive = World::new(DriveConfig { ftl: FtlConfig { drawn: true, ..base.ftl }, ..base }, 1).drive;
    let ftl = &drive.data.ftl;
    assert!(ftl.reclaim_needed() && !ftl.reclaiming(), "collection begins with the first write");
    assert_eq!(ftl.valid_counts().sum::<u32>(), base.ftl.filled_slots);
    assert_eq!(ftl.host_room(), ftl.reclaim_reserve() / 2);
}
