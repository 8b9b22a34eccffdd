//! Ageing without time: the same layer driven against a medium that completes at once.

use crate::config::Frontiers;
use crate::ftl::{DieRow, Ftl, Stream};
use crate::gc::Want;
use flashyard_flash::{CommandKind, FlashCommand, Medium, PageKind, Priority};

/// The drive can take no write: no superblock can be opened, and reclaim would free nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drive is worn out: no superblock can be opened and none pays to reclaim")]
pub struct WornOut;

/// Superblocks beyond this many slots would push their own map entries out of the cache again.
const TOUCHED_SLOTS_MAX: u32 = 4096;

impl Ftl {
    /// Writes one logical slot, reclaiming as needed, on a medium that completes every command at once.
    ///
    /// Errors: when no superblock can be opened any more; then nothing has changed for the slot.
    #[inline]
    pub fn age_write(&mut self, logical: u32, stamp: u64, medium: &mut impl Medium) -> Result<(), WornOut> {
        if self.needs_superblock(Stream::Host) {
            self.make_room(medium)?;
        }
        if let Some(row) = self.append(Stream::Host, logical, stamp).row {
            self.program_at_once(row, medium);
        }
        Ok(())
    }

    /// Reclaims until a superblock can be opened for the host.
    #[cold]
    fn make_room(&mut self, medium: &mut impl Medium) -> Result<(), WornOut> {
        // A shared frontier is open after one victim: what it has left goes to the host, so that every superblock gets
        // the same mixture. Filling several from victims alone would separate the data after all.
        let mixes = self.config.frontiers == Frontiers::Shared;
        // But what retirement took from the erased ones is made up for first, or they would run out.
        let kept = |ftl: &Self| ftl.blocks.erased.len() >= ftl.config.reclaim_below;
        let enough = |ftl: &Self| mixes && !ftl.needs_superblock(Stream::Host) && kept(ftl);
        // Without time nobody is promised anything: the threshold is that of the parameters.
        let needed = |ftl: &Self| ftl.blocks.erased.len() <= ftl.config.reclaim_below;
        let above_reserve = |ftl: &Self| ftl.reserve == 0 || ftl.blocks.erased.len() > ftl.reserve;
        while needed(self) && !enough(self) && above_reserve(self) && self.reclaim_one(medium) {
            // What an erase brought wear levelling to do is done before the next one.
            while self.reclaiming() && self.reclaim_one(medium) {}
        }
        // Reclaim keeps one, or nothing could ever move again. A shared frontier may just have been opened by it.
        let open = self.blocks.erased.len() > self.reserve.max(1) || !self.needs_superblock(Stream::Host);
        if open { Ok(()) } else { Err(WornOut) }
    }

    /// Writes several logical slots, one after the other, with stamp zero.
    ///
    /// What [`Ftl::age_write`] does for each, but the map entries of all are loaded first: on a drive whose map
    /// exceeds the caches their misses then overlap instead of following each other.
    ///
    /// Errors: when no superblock can be opened any more; the slots before are written.
    pub fn age_writes(&mut self, logicals: &[u32], medium: &mut impl Medium) -> Result<(), WornOut> {
        let touched = logicals.iter().fold(0, |sum: u32, &logical| sum.wrapping_add(self.map.get(logical).get()));
        std::hint::black_box(touched);
        for &logical in logicals {
            self.age_write(logical, 0, medium)?;
        }
        Ok(())
    }

    /// Loads the map entries of all valid slots of the victim, for the same reason.
    fn touch_victim(&self, victim: u32) {
        let first = victim * self.layout.slots_per_superblock;
        let mut touched = 0_u32;
        for base in (first..first + self.written_slots(victim)).step_by(64) {
            let mut mask = self.blocks.valid_mask(base, 64.min(first + self.written_slots(victim) - base));
            while mask != 0 {
                let logical = self.blocks.reverse.get(base + mask.trailing_zeros()).get();
                touched = touched.wrapping_add(self.map.get(logical).get());
                mask &= mask - 1;
            }
        }
        std::hint::black_box(touched);
    }

    /// Empties and erases one victim; returns whether there was one.
    fn reclaim_one(&mut self, medium: &mut impl Medium) -> bool {
        if let Some(victim) = self.peek_victim().filter(|_| self.layout.slots_per_superblock <= TOUCHED_SLOTS_MAX) {
            self.touch_victim(victim);
        }
        while let Some(read) = self.reclaim_next_read(Want::Space) {
            let command = self.read_command(read.first, read.span, Priority::Background, 0);
            medium.accept(command);
            self.reclaim_row_read(read.number, |ftl, _, appended| {
                if let Some(row) = appended.row {
                    ftl.program_at_once(row, medium);
                }
            });
        }
        let Some(emptied) = self.reclaim_take_emptied() else { return false };
        if let Some(row) = emptied.row {
            self.program_at_once(row, medium);
        }
        for die in 0..self.layout.dies {
            medium.accept(self.erase_command(die as u16, 0));
        }
        self.reclaim_erased(emptied.superblock);
        true
    }

    /// The erase of one die's share of a superblock; `tag` is the caller's.
    pub fn erase_command(&self, die: u16, tag: u64) -> FlashCommand {
        FlashCommand {
            kind: CommandKind::Erase,
            die,
            planes: self.planes(),
            page: PageKind::Lsb,
            priority: Priority::Background,
            erases: 0,
            reads: 0,
            bus_bytes: 0,
            tag,
        }
    }

    #[inline]
    fn program_at_once(&mut self, row: DieRow, medium: &mut impl Medium) {
        medium.accept(self.program_command(row, Priority::Background, 0));
        self.row_programmed(row.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FtlConfig, VictimPolicy};
    use flashyard_flash::{Geometry, MediumCounters};
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Counting(MediumCounters);

    impl Medium for Counting {
        fn accept(&mut self, command: FlashCommand) {
            self.0.count(&command);
        }

        fn counters(&self) -> &MediumCounters {
            &self.0
        }
    }

    fn small(policy: VictimPolicy, slc: u32) -> (Geometry, FtlConfig) {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 24,
            pages_per_block: 6,
            page_bytes: 8192,
        };
        let config = FtlConfig {
            logical_slots: 24 * 96 * 6 / 10,
            filled_slots: 700,
            victim: policy,
            reclaim_below: 2,
            coalesce: true,
            slc_superblocks: slc,
            stamps: true,
            ..FtlConfig::default()
        };
        (geometry, config)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_slot_reads_back_what_was_last_written(seed: u64, cost_benefit: bool, slc in 0_u32..3) {
            let policy = if cost_benefit { VictimPolicy::CostBenefit } else { VictimPolicy::Greedy };
            let (geometry, config) = small(policy, slc);
            let mut ftl = Ftl::new(&geometry, config).expect("the small drive fits");
            let mut medium = Counting::default();
            let mut oracle: Vec<Option<u64>> = (0..config.logical_slots).map(|l| (l < 700).then_some(0)).collect();
            let mut rng = Rng::named(seed, "test");
            for step in 1..20_000_u64 {
                let logical = rng.below(u64::from(config.logical_slots)) as u32;
                if rng.below(20) == 0 {
                    ftl.trim(logical);
                    oracle[logical as usize] = None;
                } else {
                    ftl.age_write(logical, step, &mut medium).expect("nothing wears out");
                    oracle[logical as usize] = Some(step);
                }
            }
            ftl.check();
            for (logical, expected) in oracle.iter().enumerate() {
                let slot = ftl.lookup(logical as u32);
                prop_assert_eq!(slot.is_some().then(|| ftl.stamp(slot)), *expected, "slot {}", logical);
            }
            let counters = ftl.counters();
            let rows = (counters.host_slots + counters.moved_slots) / 4;
            prop_assert!(medium.counters().page_programs.abs_diff(2 * rows) <= 4);
        }
    }

    #[test]
    fn writing_in_batches_changes_nothing_but_the_speed() {
        let (geometry, config) = small(VictimPolicy::Greedy, 0);
        let mut rng = Rng::named(8, "test");
        let writes: Vec<u32> = (0..30_000).map(|_| rng.below(u64::from(config.logical_slots)) as u32).collect();
        let new = || Ftl::new(&geometry, config).expect("the small drive fits");
        let (mut one, mut many) = (new(), new());
        let mut medium = Counting::default();
        writes.iter().for_each(|&logical| one.age_write(logical, 0, &mut medium).expect("nothing wears out"));
        writes.chunks(64).for_each(|batch| many.age_writes(batch, &mut medium).expect("nothing wears out"));
        assert_eq!(one.counters(), many.counters());
        assert!((0..config.logical_slots).all(|logical| one.lookup(logical) == many.lookup(logical)));
    }
}
