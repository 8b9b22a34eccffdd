//! Skewed writes to a small drive, and the layer after them under a policy of wear leveling.

use crate::counting::Counting;
use flashyard_flash::Geometry;
use flashyard_ftl::{Frontiers, Ftl, FtlConfig, FtlCounters, VictimTies, WearLeveling};
use flashyard_kernel::Rng;

pub(crate) const PAGES: usize = 256;
pub(crate) const LOGICAL: usize = 256 * PAGES;
pub(crate) const DRIVE_WRITES: usize = 40;

/// 0.9/0.1 after one sequential and three random drive writes; `write` learns whether to level.
pub(crate) fn drive(mut write: impl FnMut(usize, bool)) {
    let mut rng = Rng::named(1, "writes");
    let mut below = |pages: usize| rng.below(pages as u64) as usize;
    (0..LOGICAL).for_each(|page| write(page, false));
    (0..3 * LOGICAL).for_each(|_| write(below(LOGICAL), false));
    let hot = LOGICAL / 10;
    for _ in 0..DRIVE_WRITES * LOGICAL {
        let page = if below(10) < 9 { below(hot) } else { hot + below(LOGICAL - hot) };
        write(page, true);
    }
}

/// The layer with so many blocks after these writes, and what it did under the policy of `config`: greedy victims that have waited longest
/// among equals, and one frontier, as in the public simulator of the study.
pub(crate) fn leveled(blocks: usize, kept: usize, config: FtlConfig) -> (Ftl, FtlCounters) {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks as u32,
        pages_per_block: PAGES as u32,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let wear_leveling = config.wear_leveling;
    let config = FtlConfig {
        logical_slots: LOGICAL as u32,
        reclaim_below: kept as u32,
        ties: VictimTies::OldestFirst,
        frontiers: Frontiers::Shared,
        wear_leveling: WearLeveling::None,
        ..config
    };
    let mut ftl = Ftl::new(&geometry, config).expect("the drive is possible");
    let mut medium = Counting::default();
    let mut before = None;
    drive(|page, level| {
        if level && before.is_none() {
            ftl.set_wear_leveling(wear_leveling);
            before = Some(*ftl.counters());
        }
        ftl.age_write(page as u32, 0, &mut medium).expect("nothing wears out");
    });
    let done = ftl.counters().since(&before.expect("the drive was levelled"));
    (ftl, done)
}
