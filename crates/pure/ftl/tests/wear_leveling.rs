//! Wear levelling under skewed writes against the other simulator: sheet wear-leveling §8.2, the 1 GiB model.

mod counting;

use counting::Counting;
use flashyard_flash::Geometry;
use flashyard_ftl::{Frontiers, Ftl, FtlConfig, VictimTies, WearLeveling};
use flashyard_kernel::Rng;

/// Blocks of 1 MiB, and how often the exported ones are written.
const LOGICAL_BLOCKS: u32 = 1024;
const SLOTS: u32 = LOGICAL_BLOCKS * 256;

/// Erased blocks that reclaim keeps; the spare tenth is counted without them ([A], it is what gives the sheet's
/// amplification of reclaim on so small a drive).
const ERASED: u32 = 3;

struct Outcome {
    reclaim: f64,
    leveling: f64,
    mean: f64,
    deviation: f64,
    most: u32,
}

/// One sequential and three random drive writes, then `drive_writes`: a share `hot` of them to a share `1 - hot` of
/// the first `footprint` slots, which are the first of them.
fn age(policy: WearLeveling, hot: f64, footprint: f64, drive_writes: u32) -> Outcome {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: (f64::from(LOGICAL_BLOCKS) / 0.9) as u32 + ERASED,
        pages_per_block: 256,
        page_bytes: 4096,
    };
    let config = FtlConfig {
        logical_slots: SLOTS,
        filled_slots: SLOTS,
        reclaim_below: ERASED - 1,
        ties: VictimTies::OldestFirst,
        frontiers: Frontiers::Shared,
        endurance: Some(500),
        ..FtlConfig::default()
    };
    let mut ftl = Ftl::new(&geometry, config).expect("the drive is possible");
    let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "writes"));
    for _ in 0..3 * SLOTS {
        ftl.age_write(rng.below(u64::from(SLOTS)) as u32, 0, &mut medium).expect("nothing wears out");
    }
    ftl.set_wear_leveling(policy);
    let used = f64::from(SLOTS) * footprint;
    let border = (used * (1.0 - hot)) as u64;
    let before = *ftl.counters();
    for _ in 0..drive_writes * SLOTS {
        let logical = if rng.unit() < hot { rng.below(border) } else { border + rng.below(used as u64 - border) };
        ftl.age_write(logical as u32, 0, &mut medium).expect("nothing wears out");
    }
    ftl.check();
    let done = ftl.counters().since(&before);
    let counts: Vec<f64> = ftl.erase_counts().map(f64::from).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / counts.len() as f64;
    let share = |slots: u64| slots as f64 / done.host_slots as f64;
    let outcome = Outcome {
        reclaim: share(done.moved_slots),
        leveling: share(done.leveled_slots),
        mean,
        deviation: libm::sqrt(variance),
        most: ftl.erase_counts().max().unwrap_or(0),
    };
    println!(
        "{policy:?} {hot} of {footprint}: reclaim {:.3} levelling {:.3} mean {:.0} sd {:.1} max {}",
        outcome.reclaim, outcome.leveling, outcome.mean, outcome.deviation, outcome.most
    );
    outcome
}

#[test]
#[ignore]
fn table() {
    let none = WearLeveling::None;
    let obp = |threshold, protection| WearLeveling::OldBlockProtection { threshold, protection };
    let dp = |threshold| WearLeveling::DualPool { threshold };
    let pwl = |percent| WearLeveling::Progressive { percent };
    for (hot, footprint) in [(0.9, 1.0), (0.8, 1.0), (0.5, 1.0), (0.9, 0.05), (0.5, 0.05)] {
        for policy in
            [none, obp(4, 8), obp(8, 64), dp(5), dp(10), pwl(25), pwl(50), WearLeveling::HotColdSwap { threshold: 20 }]
        {
            age(policy, hot, footprint, 100);
        }
    }
}
