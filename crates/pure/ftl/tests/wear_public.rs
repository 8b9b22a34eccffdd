//! Wear leveling beside the public simulator of the study, FTLSim-WL, built and run with the same load on a drive of the same size.
//!
//! Source of all constants: [C] `ftlsim_op_var.c` with `shrinkable` 0, `ftlsim_dp.c` and `ftlsim_pwl.c` of its commit 5360d4a, retirement
//! left out, 256 exported blocks and 7 that are kept erased, one sequential and three random drive writes, then 40 drive writes of
//! r/h = 0.9/0.1: the least and the greatest of five seeds.

mod counting;
mod skewed;

use flashyard_ftl::{FtlConfig, ProgressiveReading, WearLeveling};
use skewed::{DRIVE_WRITES, LOGICAL, leveled};

/// Blocks that garbage collection keeps erased. Source: \[C\] `minfree` of its scripts.
const KEPT: usize = 7;
/// The exported ones by nine tenths, and those. With one more garbage collection moves 5.01 slots for each of the host.
const BLOCKS: usize = 284 + KEPT;

/// Slots that garbage collection moves for each of the host.
const MOVED: (f64, f64) = (5.169, 5.174);

/// Whether a value lies between two measured ones, or beyond them by as much as they are apart. [A] five seeds do not show all.
fn is_within(value: f64, (least, most): (f64, f64)) -> bool {
    let margin = most - least;
    (least - margin..=most + margin).contains(&value)
}

/// Slots moved for each of the host by leveling, and the deviation of the erases by their mean.
fn measured(wear_leveling: WearLeveling) -> (f64, f64) {
    let config = FtlConfig {
        wear_leveling,
        // Of the threshold of PWL alone: nothing is retired.
        endurance: Some(200),
        progressive: ProgressiveReading::Heap,
        ..FtlConfig::default()
    };
    let (ftl, done) = leveled(BLOCKS, KEPT, config);
    let host = (DRIVE_WRITES * LOGICAL) as f64;
    let moved = done.moved_slots as f64 / host;
    assert!(is_within(moved, MOVED), "garbage collection moves {moved}");
    let erases: Vec<f64> = ftl.erase_counts().map(f64::from).collect();
    let mean = erases.iter().sum::<f64>() / erases.len() as f64;
    let variance = erases.iter().map(|erases| (erases - mean) * (erases - mean)).sum::<f64>() / erases.len() as f64;
    (done.leveled_slots as f64 / host, variance.sqrt() / mean)
}

#[test]
fn old_block_protection_moves_what_the_public_simulator_moves() {
    let (leveled, spread) = measured(WearLeveling::OldBlockProtection { threshold: 4, protection: 8 });
    assert!(is_within(leveled, (1.136, 1.297)), "{leveled}");
    assert!(is_within(spread, (0.432, 0.455)), "{spread}");
}

#[test]
fn dual_pool_moves_what_the_public_simulator_moves() {
    let (leveled, spread) = measured(WearLeveling::DualPool { threshold: 5 });
    assert!(is_within(leveled, (0.335, 0.512)), "{leveled}");
    assert!(is_within(spread, (0.066, 0.096)), "{spread}");
}

#[test]
fn progressive_wear_leveling_moves_what_the_public_simulator_moves() {
    let (leveled, spread) = measured(WearLeveling::Progressive { percent: 50 });
    assert!(is_within(leveled, (0.834, 0.860)), "{leveled}");
    assert!(is_within(spread, (0.036, 0.044)), "{spread}");
}
