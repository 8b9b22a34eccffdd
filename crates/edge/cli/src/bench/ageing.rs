//! The untimed ageing rate and memory for each physical page.

use crate::Digest;
use flashyard_flash::{Geometry, Medium};
use flashyard_ftl::{Ftl, FtlConfig, VictimPolicy};
use flashyard_kernel::Rng;
use flashyard_nand::CountingMedium;
use std::time::Instant;

/// Ages a drive of `blocks` blocks of 256 pages of 4 KiB by `writes` page writes, in steady state.
pub(crate) fn measure(name: &str, blocks: u32, writes: u64, digest: &mut Digest) {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: 256,
        page_bytes: 4096,
        pages_per_program: 1,
    };
    let logical_slots = FtlConfig::logical_slots_for(&geometry, 0.20);
    let config = FtlConfig {
        logical_slots,
        filled_slots: logical_slots,
        victim: VictimPolicy::Greedy,
        reclaim_below: 2,
        coalesce: true,
        slc_superblocks: 0,
        stamps: false,
        ..FtlConfig::default()
    };
    let mut ftl = Ftl::new(&geometry, config).expect("the constants above are valid").with_whole_maps();
    let mut rng = Rng::named(1, "bench.ageing");
    let mut medium = CountingMedium::default();
    let mut age = |ftl: &mut Ftl, writes: u64| {
        let mut batch = [0; 64];
        for _ in 0..writes / 64 {
            batch.fill_with(|| rng.below(u64::from(logical_slots)) as u32);
            ftl.touch(&batch);
            ftl.age_writes(&batch, &mut medium).expect("nothing wears out");
        }
    };
    // Steady state first: amplification settles after about one and a half drive writes.
    age(&mut ftl, u64::from(logical_slots) * 3 / 2);
    let before = *ftl.counters();
    let began = Instant::now();
    age(&mut ftl, writes);
    let seconds = began.elapsed().as_secs_f64();
    let done = ftl.counters().since(&before);
    let programs = done.host_slots + done.moved_slots;
    println!(
        "  {name:8} {:6.2} M page writes/s  write amplification {:.3}  {:.2} B for each physical page",
        programs as f64 / seconds / 1e6,
        done.write_amplification(),
        ftl.resident_bytes() as f64 / geometry.pages() as f64
    );
    digest.add(medium.counters().page_operations());
    digest.add(done.moved_slots);
}
