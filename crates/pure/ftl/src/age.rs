//! Ageing without time: the same layer driven against a medium that completes at once.

use crate::config::Frontiers;
use crate::ftl::{DieRow, Ftl, Stream};
use crate::gc::Want;
use flashyard_flash::{CommandKind, FlashCommand, Medium, Pages, Planes, Priority, Slot};

/// The drive can take no write: no superblock can be opened, and garbage collection would free nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drive is worn out: no superblock can be opened and none pays to reclaim")]
pub struct WornOut;

/// Slots whose map entries are loaded ahead: many misses at once, few enough not to push each other out of the cache.
pub(crate) const PIECE: usize = 512;

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
        // A shared frontier is open after one victim: the rest of it goes to the host, so that every superblock gets
        // the same mixture. Filling several from victims alone would separate the data after all.
        let mixes = self.config.frontiers == Frontiers::Shared;
        // But erased ones lost to retirement are made up for first, or they would run out.
        let kept = |ftl: &Self| ftl.blocks.erased.len() >= ftl.config.reclaim_below;
        let enough = |ftl: &Self| mixes && !ftl.needs_superblock(Stream::Host) && kept(ftl);
        // Without time no room is promised: the threshold is that of the parameters.
        let needed = |ftl: &Self| ftl.blocks.erased.len() <= ftl.config.reclaim_below;
        let above_reserve = |ftl: &Self| ftl.reserve == 0 || ftl.blocks.erased.len() > ftl.reserve;
        while needed(self) && !enough(self) && above_reserve(self) && self.reclaim_one(medium) {
            // Work that an erase brought to wear leveling is done before the next one.
            while self.reclaiming() && self.reclaim_one(medium) {}
        }
        // Garbage collection keeps one, or nothing could ever move again. A shared frontier may just have been opened
        // by it.
        let open = self.blocks.erased.len() > self.reserve.max(1) || !self.needs_superblock(Stream::Host);
        if open { Ok(()) } else { Err(WornOut) }
    }

    /// Writes several logical slots, one after the other, with stamp zero.
    ///
    /// Does the work of [`Ftl::age_write`] for each, and faster after [`Ftl::touch`].
    ///
    /// Errors: when no superblock can be opened any more; the slots before are written.
    pub fn age_writes(&mut self, logicals: &[u32], medium: &mut impl Medium) -> Result<(), WornOut> {
        let mut left = logicals;
        while let Some((&next, after)) = left.split_first() {
            let room = self.run_room(Stream::Host) as usize;
            if room == 0 {
                self.age_write(next, 0, medium)?;
                left = after;
                continue;
            }
            let (run, after) = left.split_at(room.min(left.len()));
            let first = self.place_run(Stream::Host, run, medium);
            self.repoint_run(first, run);
            left = after;
        }
        Ok(())
    }

    /// Empties and erases one victim; returns whether there was one.
    fn reclaim_one(&mut self, medium: &mut impl Medium) -> bool {
        if let Some(victim) = self.reclaim_victim(Want::Space) {
            // At once, if garbage collection would not stop for room meanwhile.
            let needed = self.blocks.all[victim as usize].valid + self.layout.slots_per_die_row;
            if self.reclaim.leveled || u64::from(needed) <= self.moved_room() {
                self.move_at_once(victim, medium);
            }
        }
        self.reclaim_rows(medium)
    }

    /// Empties the rest of the victim row by row, as a drive in time does, and erases it; returns whether there was
    /// one.
    fn reclaim_rows(&mut self, medium: &mut impl Medium) -> bool {
        while let Some(read) = self.reclaim_next_read(Want::Space) {
            let command = self.read_command(read.first, read.span, read.valid, Priority::Background, 0);
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

    /// Moves all that is still valid of the victim.
    fn move_at_once(&mut self, victim: u32, medium: &mut impl Medium) {
        self.touch_reverse(victim);
        self.read_rows(victim, medium);
        let first = victim * self.layout.slots_per_superblock;
        let end = first + self.reclaim.rows * self.layout.slots_per_die_row;
        let mut piece = [0; PIECE];
        let mut base = first + self.reclaim.next_row * self.layout.slots_per_die_row;
        while base < end {
            let mut count = 0;
            while base < end && count + 64 <= PIECE {
                let mut mask = self.blocks.valid_mask(base, 64.min(end - base));
                while mask != 0 {
                    let slot = base + mask.trailing_zeros();
                    piece[count] = self.blocks.reverse.get(slot).get();
                    count += 1;
                    mask &= mask - 1;
                }
                base += 64;
            }
            self.move_piece(&piece[..count], medium);
        }
        self.blocks.invalidate_all(victim, end - first);
        self.reclaim.next_row = self.reclaim.rows;
    }

    /// Reads the die rows in which the victim has something valid.
    fn read_rows(&self, victim: u32, medium: &mut impl Medium) {
        let per_row = self.layout.slots_per_die_row;
        let row = |index: u32| victim * self.layout.slots_per_superblock + index * per_row;
        if per_row == 1 {
            // Rows of one slot are all alike.
            let command = self.read_command(Slot::new(row(0)), 1, 1, Priority::Background, 0);
            return medium.accept_alike(command, u64::from(self.blocks.all[victim as usize].valid));
        }
        for base in (self.reclaim.next_row..self.reclaim.rows).map(row) {
            let mask = self.blocks.valid_mask(base, per_row);
            if mask != 0 {
                let (low, high) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
                let (first, span, valid) = (Slot::new(base + low), high - low + 1, mask.count_ones());
                medium.accept(self.read_command(first, span, valid, Priority::Background, 0));
            }
        }
    }

    /// Moves slots that are valid in the victim, which is invalidated as a whole afterwards.
    fn move_piece(&mut self, logicals: &[u32], medium: &mut impl Medium) {
        self.touch_map(logicals);
        let stream = self.reclaim_stream();
        let mut left = logicals;
        while let Some((&next, after)) = left.split_first() {
            let room = self.run_room(stream) as usize;
            if room == 0 {
                let stamp = self.stamp(self.map.get(next));
                if let Some(row) = self.append(stream, next, stamp).row {
                    self.program_at_once(row, medium);
                }
                left = after;
                continue;
            }
            let (run, after) = left.split_at(room.min(left.len()));
            let first = self.place_run(stream, run, medium).get();
            if let Some(stamps) = &mut self.stamps {
                let before = |logical: u32| self.map.get(logical).get() as usize;
                (first as usize..).zip(run).for_each(|(slot, &logical)| stamps[slot] = stamps[before(logical)]);
            }
            for (slot, &logical) in (first..).zip(run) {
                self.map.set(logical, Slot::new(slot));
            }
            left = after;
        }
    }

    /// The erase of one die's share of a superblock; `tag` is the caller's.
    pub fn erase_command(&self, die: u16, tag: u64) -> FlashCommand {
        FlashCommand {
            kind: CommandKind::Erase,
            die,
            planes: Planes::together(self.planes),
            pages: Pages::LSB,
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
    use crate::{FtlConfig, VictimPolicy, VictimTies, WearLeveling};
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
            pages_per_program: 1,
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
    fn a_shared_frontier_goes_to_the_host_behind_one_victim() {
        let most_erased = |frontiers| {
            let (geometry, config) = small(VictimPolicy::Greedy, 0);
            let config = FtlConfig { frontiers, reclaim_below: 4, ..config };
            let (mut ftl, mut rng) =
                (Ftl::new(&geometry, config).expect("the small drive fits"), Rng::named(1, "test"));
            let mut write = |_| {
                ftl.age_write(rng.below(1300) as u32, 0, &mut Counting::default()).expect("nothing wears out");
                ftl.blocks.erased.len()
            };
            (0..6000).for_each(|number| _ = write(number));
            let erased: Vec<u32> = (0..6000).map(write).collect();
            (erased.iter().min().copied(), erased.iter().max().copied())
        };
        assert_eq!(most_erased(Frontiers::Shared), (Some(4), Some(4)));
        assert_eq!(most_erased(Frontiers::Separate), (Some(4), Some(4)));
    }

    #[test]
    fn a_victim_is_read_at_once_as_it_is_row_by_row() {
        let (four, config) = small(VictimPolicy::Greedy, 0);
        let one = Geometry { planes_per_die: 1, page_bytes: 4096, pages_per_block: 24, ..four };
        for geometry in [four, one] {
            let mut ftl = Ftl::new(&geometry, config).expect("the small drive fits");
            let (first, size) = (3 * ftl.layout.slots_per_superblock, ftl.layout.slots_per_superblock);
            // Rows that are whole, empty, and valid in one page or across both.
            let is_valid = |place: u32| place < 8 || [13, 21, 22, 95].contains(&place);
            (0..size).filter(|&place| !is_valid(place)).for_each(|place| _ = ftl.trim(first + place));
            ftl.condemn(3);
            let (mut at_once, mut by_row) = (Counting::default(), Counting::default());
            ftl.read_rows(3, &mut at_once);
            while let Some(read) = ftl.reclaim_next_read(Want::Nothing) {
                by_row.accept(ftl.read_command(read.first, read.span, read.valid, Priority::Background, 0));
            }
            assert_eq!(at_once.counters(), by_row.counters());
            assert!(at_once.counters().page_reads > 0);
        }
    }

    #[test]
    fn a_victim_whose_emptying_began_in_time_is_finished_at_once() {
        let (geometry, config) = small(VictimPolicy::Greedy, 0);
        let mut ftl = Ftl::new(&geometry, config).expect("the small drive fits");
        let mut oracle = vec![0; 1300];
        let (mut rng, mut medium, mut begun) = (Rng::named(1, "test"), Counting::default(), 0);
        for stamp in 1..6000 {
            let logical = rng.below(1300) as u32;
            ftl.age_write(logical, stamp, &mut medium).expect("nothing wears out");
            oracle[logical as usize] = stamp;
            let read = if stamp % 50 < 3 { ftl.reclaim_next_read(Want::Space) } else { None };
            if let Some(read) = read {
                begun += 1;
                ftl.reclaim_row_read(read.number, |ftl, _, appended| {
                    appended.row.iter().for_each(|row| ftl.row_programmed(row.number));
                });
            }
        }
        assert!(begun > 100, "{begun} rows were read in time");
        ftl.check();
        let stamp = |slot: Slot| if slot.is_some() { ftl.stamp(slot) } else { 0 };
        let found: Vec<u64> = (0..1300).map(|logical| stamp(ftl.lookup(logical))).collect();
        assert!(found == oracle, "data was lost (seed 1)");
    }

    /// Writes as [`Ftl::age_write`] does, but empties victims row by row.
    fn write_by_rows(ftl: &mut Ftl, logical: u32, medium: &mut Counting) {
        let shared = ftl.config.frontiers == Frontiers::Shared;
        let scarce = |ftl: &Ftl| ftl.blocks.erased.len() <= ftl.config.reclaim_below;
        let kept = |ftl: &Ftl| ftl.blocks.erased.len() >= ftl.config.reclaim_below;
        let open = |ftl: &Ftl| shared && !ftl.needs_superblock(Stream::Host) && kept(ftl);
        if ftl.needs_superblock(Stream::Host) {
            while scarce(ftl) && !open(ftl) && ftl.reclaim_rows(medium) {
                while ftl.reclaiming() && ftl.reclaim_rows(medium) {}
            }
        }
        if let Some(row) = ftl.append(Stream::Host, logical, 0).row {
            ftl.program_at_once(row, medium);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn runs_and_victims_at_once_leave_what_single_slots_and_rows_leave(
            seed: u64, shared: bool, oldest_first: bool, slc in 0_u32..3, planes in 1_u32..3, pages in 1_u32..3,
            dies in 1_u32..4, leveled: bool, whole: bool,
        ) {
            let geometry = Geometry {
                channels: 1,
                dies_per_channel: dies,
                planes_per_die: planes,
                blocks_per_plane: 30,
                pages_per_block: 70,
                page_bytes: 4096 * pages,
                pages_per_program: 1,
            };
            let superblock = dies * planes * 70 * pages;
            let config = FtlConfig {
                logical_slots: superblock * 18 - 5,
                filled_slots: superblock * 9 + 7,
                reclaim_below: 3,
                slc_superblocks: if shared { 0 } else { slc },
                frontiers: if shared { Frontiers::Shared } else { Frontiers::Separate },
                ties: if oldest_first { VictimTies::OldestFirst } else { VictimTies::NewestFirst },
                wear_leveling: if leveled { WearLeveling::HotColdSwap { threshold: 2 } } else { WearLeveling::None },
                ..FtlConfig::default()
            };
            let new = || Ftl::new(&geometry, config).expect("the drive fits");
            let (mut one, mut many) = (new(), if whole { new().with_whole_maps() } else { new() });
            let (mut counted_one, mut counted_many) = (Counting::default(), Counting::default());
            let mut rng = Rng::named(seed, "test");
            for _ in 0..250 {
                // Pieces of the first fifth, mostly, so that there is something cold.
                let span = if rng.below(8) > 0 { config.logical_slots / 5 } else { config.logical_slots };
                let (first, count) = (rng.below(u64::from(span)) as u32, 1 + rng.below(300) as u32);
                let piece: Vec<u32> = (first..config.logical_slots.min(first + count)).collect();
                piece.iter().for_each(|&logical| write_by_rows(&mut one, logical, &mut counted_one));
                many.touch(&piece);
                many.age_writes(&piece, &mut counted_many).expect("nothing wears out");
            }
            many.check();
            prop_assert_eq!(one.counters(), many.counters());
            prop_assert_eq!(one.aged_state(), many.aged_state());
            prop_assert_eq!(counted_one.0, counted_many.0);
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
