//! Greedy garbage collection of uniform random writes against theory and another simulator.

mod counting;

use counting::Counting;
use flashyard_flash::Geometry;
use flashyard_ftl::{Ftl, FtlConfig, VictimPolicy, VictimTies};
use flashyard_kernel::Rng;

/// Write amplification of an 8 GiB drive of 256-page blocks in steady state.
fn amplification(spare: f64, victim: VictimPolicy) -> f64 {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 8192,
        pages_per_block: 256,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let logical_slots = FtlConfig::logical_slots_for(&geometry, spare);
    let config = FtlConfig {
        logical_slots,
        filled_slots: logical_slots,
        victim,
        reclaim_below: 2,
        coalesce: true,
        slc_superblocks: 0,
        stamps: false,
        ..FtlConfig::default()
    };
    let mut ftl = Ftl::new(&geometry, config).expect("the drive is possible");
    let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "writes"));
    let mut write = |ftl: &mut Ftl, count: u32| {
        for _ in 0..count {
            ftl.age_write(rng.below(u64::from(logical_slots)) as u32, 0, &mut medium).expect("nothing wears out");
        }
    };
    write(&mut ftl, 2 * logical_slots);
    let before = *ftl.counters();
    write(&mut ftl, logical_slots);
    let after = ftl.counters().since(&before);
    assert_eq!(after.host_slots, u64::from(logical_slots));
    after.write_amplification()
}

/// Amplification of greedy garbage collection for uniform writes with large blocks: alpha / (alpha + W(-alpha
/// e^-alpha)) with alpha = 1 / (1 - spare). Source: [X] Xiang and Kurkoski, and Desnoyers, on greedy garbage
/// collection.
fn analytic(spare: f64) -> f64 {
    let alpha = 1.0 / (1.0 - spare);
    let argument = -alpha * libm::exp(-alpha);
    // Newton's method on w e^w = argument, on the branch above -1.
    let mut w = -0.5;
    for _ in 0..60 {
        let power = libm::exp(w);
        w -= (w * power - argument) / (power * (w + 1.0));
    }
    alpha / (alpha + w)
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() < tolerance, "{found} against {expected} (seed 1)");
}

#[test]
fn twenty_percent_spare_agrees_with_the_other_simulator_within_one_percent() {
    assert_near(amplification(0.20, VictimPolicy::Greedy), 2.669, 0.01);
}

#[test]
fn six_and_two_thirds_percent_spare_agrees_with_the_other_simulator_within_one_percent() {
    assert_near(amplification(0.0666, VictimPolicy::Greedy), 7.475, 0.01);
}

#[test]
fn two_more_levels_agree_with_theory_within_three_percent() {
    for spare in [0.12, 0.30] {
        assert_near(amplification(spare, VictimPolicy::Greedy), analytic(spare), 0.03);
    }
}

#[test]
fn victims_that_hold_nothing_take_turns_so_that_an_almost_empty_drive_wears_evenly() {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 256,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    for victim in [VictimPolicy::Greedy, VictimPolicy::CostBenefit] {
        let config = FtlConfig {
            logical_slots: 50 * 256,
            filled_slots: 0,
            victim,
            ties: VictimTies::OldestFirst,
            reclaim_below: 2,
            coalesce: true,
            slc_superblocks: 0,
            stamps: false,
            ..FtlConfig::default()
        };
        let mut ftl = Ftl::new(&geometry, config).expect("the drive is possible");
        let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "writes"));
        for _ in 0..100 * 64 * 256 {
            ftl.age_write(rng.below(2 * 256) as u32, 0, &mut medium).expect("nothing wears out");
        }
        let erases: Vec<u32> = ftl.erase_counts().collect();
        let (least, most) = (erases.iter().min(), erases.iter().max());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least < 20), "{victim:?}: {erases:?} (seed 1)");
    }
}
