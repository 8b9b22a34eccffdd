//! One drive and its workload.

use super::ahead::Ahead;
use super::config::{Capacity, LifeConfig, LifeError};
use super::placement::Placement;
use super::sample::{EndOfLife, LifeFigures, Sample};
use flashyard_flash::Geometry;
use flashyard_ftl::{Ftl, FtlConfig, FtlCounters, WearLeveling};
use flashyard_kernel::Rng;
use flashyard_nand::CountingMedium;
use flashyard_workload::RequestSource;

/// Erased superblocks that are left when a variable capacity is reduced. Source: [C] sheet wear-leveling §3.6, "free list nearly
/// empty": `nfree == 1` in the three public programs of variable drives.
const NEARLY_EMPTY: u32 = 1;

/// Slots that the file system relocates with one request. \[A\]
const RELOCATED_AT_ONCE: usize = 256;

/// A drive at work.
pub struct Life {
    config: LifeConfig,
    ftl: Ftl,
    medium: CountingMedium,
    ahead: Ahead,
    placement: Placement,
    /// Logical slots that the workload wrote, a bit each, while the capacity may become variable.
    written: Vec<u64>,
    /// Superblocks that may be retired before the first is missing, those that garbage collection keeps erased not counted. Source: \[C\]
    /// `bad_blocks >= T - U` of the public simulator, where T leaves these out.
    spare: u32,
    /// A variable capacity has been reduced.
    shrunk: bool,
    logical_slots: u32,
    relocated_slots: u64,
    /// Slots passed over in jumps.
    skipped_slots: u64,
    /// Counters after preconditioning.
    born: FtlCounters,
    samples: Vec<Sample>,
    death: Option<EndOfLife>,
    batch: Vec<u32>,
}

impl Life {
    /// A drive that is preconditioned and ready for `source`.
    ///
    /// Errors: a configuration that does not fit together, a drive that does not survive preconditioning.
    pub fn new(config: LifeConfig, source: Box<dyn RequestSource>) -> Result<Self, LifeError> {
        let logical = config.ftl.logical_slots;
        let footprint = config.footprint_slots;
        if footprint == 0 || footprint > logical {
            return Err(LifeError::Footprint { footprint, logical });
        }
        let filled_slots = if config.filled { logical } else { 0 };
        let filling = FtlConfig { filled_slots, drawn: false, wear_leveling: WearLeveling::None, ..config.ftl };
        let mut ftl = Ftl::new(&config.geometry, filling)?.with_whole_maps();
        let mut medium = CountingMedium::default();
        precondition(&mut ftl, &mut medium, &config)?;
        ftl.set_wear_leveling(config.ftl.wear_leveling);
        let mut placement = match config.extent_slots {
            Some(extent) => {
                Placement::extents(footprint, logical, extent, &mut Rng::named(config.seed, "life.placement"))
            }
            None => Placement::contiguous(),
        };
        if matches!(config.capacity, Capacity::Bounded { .. }) {
            placement.track(footprint, logical);
        }
        let written = match config.capacity {
            Capacity::Variable => vec![0; (logical as usize).div_ceil(64)],
            _ => Vec::new(),
        };
        if config.capacity != Capacity::Fixed {
            ftl.set_reserve(NEARLY_EMPTY);
        }
        let layout = ftl.layout();
        let spare = layout.superblocks - logical.div_ceil(layout.slots_per_superblock);
        // [A] Of a drive that has no others these are its spare ones.
        let spare = if spare > config.ftl.reclaim_below { spare - config.ftl.reclaim_below } else { spare };
        Ok(Self {
            born: *ftl.counters(),
            ftl,
            medium,
            ahead: Ahead::new(source, footprint),
            placement,
            written,
            spare,
            shrunk: false,
            logical_slots: logical,
            relocated_slots: 0,
            skipped_slots: 0,
            samples: Vec::new(),
            death: None,
            batch: Vec::new(),
            config,
        })
    }

    /// Host slots written since preconditioning, those passed over included.
    pub fn host_slots(&self) -> u64 {
        self.ftl.counters().host_slots - self.born.host_slots + self.skipped_slots
    }

    /// Slots of one drive write: the slots exported when new.
    pub fn drive_slots(&self) -> u32 {
        self.config.ftl.logical_slots
    }

    /// Why the drive is dead; `None` while it is not.
    pub fn death(&self) -> Option<EndOfLife> {
        self.death
    }

    /// Counts of the layer's work since preconditioning.
    pub fn counters(&self) -> FtlCounters {
        self.ftl.counters().since(&self.born)
    }

    /// Erase counts of all superblocks.
    pub fn erase_counts(&self) -> Vec<u32> {
        self.ftl.erase_counts().collect()
    }

    /// How the drive's flash is divided.
    pub fn geometry(&self) -> &Geometry {
        &self.config.geometry
    }

    /// The drive's translation layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Continues until the host has written `host_slots`, or until death.
    ///
    /// Errors: a workload that ends, or that leaves its footprint.
    pub fn live_until(&mut self, host_slots: u64) -> Result<(), LifeError> {
        while self.death.is_none() && self.host_slots() < host_slots {
            let (ftl, placement, batch) = (&self.ftl, &self.placement, &mut self.batch);
            let write = self.ahead.next(|writes| {
                batch.clear();
                batch.extend(writes.iter().cloned().flatten().map(|slot| placement.of(slot)));
                ftl.touch(batch);
            })?;
            self.write(write.start, write.end);
            self.wear_out();
            self.take_sample();
        }
        Ok(())
    }

    /// Jumps over `host_slots`: every superblock gets its erase count, the data stays where it is.
    pub fn project(&mut self, counts: &[u32], host_slots: u64) {
        self.ftl.project_erase_counts(counts);
        self.skipped_slots += host_slots;
        self.wear_out();
        self.take_sample();
    }

    /// Figures of the lifetime so far.
    pub fn figures(&self) -> LifeFigures {
        LifeFigures {
            logical_slots: self.config.ftl.logical_slots,
            death: self.death,
            samples: self.samples.clone(),
            last: self.now(),
            erase_counts: self.erase_counts(),
            oldest_reentries: self.ftl.oldest_reentries(),
        }
    }

    /// The drive as it is.
    pub fn now(&self) -> Sample {
        Sample {
            host_slots: self.host_slots(),
            skipped_slots: self.skipped_slots,
            retired: self.ftl.retired_superblocks(),
            logical_slots: self.logical_slots,
            relocated_slots: self.relocated_slots,
            ..Sample::new(&self.counters(), self.erase_counts().into_iter())
        }
    }

    /// Writes the workload's slots `first..end`.
    fn write(&mut self, first: u32, end: u32) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        batch.extend((first..end).map(|slot| self.placement.of(slot)));
        if !self.written.is_empty() {
            batch.iter().for_each(|&slot| self.written[slot as usize / 64] |= 1 << (slot % 64));
        }
        while self.ftl.age_writes(&batch, &mut self.medium).is_err() {
            if !self.make_room() {
                self.death.get_or_insert(EndOfLife::NoRoom);
                break;
            }
            // Relocation may have moved them.
            batch.clear();
            batch.extend((first..end).map(|slot| self.placement.of(slot)));
        }
        self.batch = batch;
    }

    /// Takes the consequences of retired superblocks.
    #[inline]
    fn wear_out(&mut self) {
        if self.ftl.retired_superblocks() < self.spare {
            return;
        }
        if self.config.capacity == Capacity::Fixed {
            self.death.get_or_insert(EndOfLife::SpareExhausted);
        } else {
            self.make_room();
        }
    }

    /// Gives capacity back, once. Returns whether anything changed.
    fn make_room(&mut self) -> bool {
        if self.shrunk || self.config.capacity == Capacity::Fixed {
            return false;
        }
        self.shrunk = true;
        self.ftl.set_reserve(0);
        match self.config.capacity {
            Capacity::Bounded { slots } => self.relocate(slots),
            _ => self.give_back(),
        }
        true
    }

    /// Everything that the workload never wrote is given back.
    fn give_back(&mut self) {
        let written = std::mem::take(&mut self.written);
        let mut kept = 0;
        for logical in 0..self.logical_slots {
            if written[logical as usize / 64] >> (logical % 64) & 1 == 1 {
                kept += 1;
            } else {
                self.ftl.trim(logical);
            }
        }
        self.logical_slots = kept;
    }

    /// The capacity ends as far below as the file system may relocate the data above.
    fn relocate(&mut self, bound: u64) {
        let (limit, moves) = self.placement.vacate(bound);
        for logical in limit..self.logical_slots {
            self.ftl.trim(logical);
        }
        self.logical_slots = limit;
        self.relocated_slots = moves.len() as u64;
        // The new places hold data that is no longer needed; relocated data overwrites it.
        for moves in moves.chunks(RELOCATED_AT_ONCE) {
            self.ftl.touch(moves);
            if self.ftl.age_writes(moves, &mut self.medium).is_err() {
                self.death.get_or_insert(EndOfLife::NoRoom);
                return;
            }
        }
    }

    #[inline]
    fn take_sample(&mut self) {
        let every = self.config.sample_slots;
        if every > 0 && self.host_slots() >= (self.samples.len() as u64 + 1) * every {
            let sample = self.now();
            // A jump may pass several moments.
            while (self.samples.len() as u64 + 1) * every <= sample.host_slots {
                self.samples.push(sample);
            }
        }
    }
}

/// Writes random slots all over the drive, which is filled already.
fn precondition(ftl: &mut Ftl, medium: &mut CountingMedium, config: &LifeConfig) -> Result<(), LifeError> {
    const BATCH: usize = 512;
    let mut rng = Rng::named(config.seed, "life.preconditioning");
    let logical = u64::from(config.ftl.logical_slots);
    let mut left = logical * u64::from(config.random_fills);
    let mut batch = [0; BATCH];
    while left > 0 {
        let count = left.min(BATCH as u64) as usize;
        batch[..count].iter_mut().for_each(|slot| *slot = rng.below(logical) as u32);
        ftl.touch(&batch[..count]);
        ftl.age_writes(&batch[..count], medium).map_err(|_| LifeError::StillBorn)?;
        left -= count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffssd::{Acceleration, ForwardConfig, Prediction};
    use crate::lifetime::{ForwardPlan, fast_forward};
    use flashyard_flash::Geometry;
    use flashyard_ftl::Frontiers;
    use flashyard_workload::Synthetic;
    use flashyard_workload::surrogates::hot_cold;

    const LOGICAL: u32 = 64 * 64;
    const ENDURANCE: u32 = 20;

    /// A drive of 78 superblocks of 64 slots, 64 of them exported.
    fn config(capacity: Capacity, leveling: WearLeveling, footprint: u32) -> LifeConfig {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 78,
            pages_per_block: 64,
            page_bytes: 4096,
            pages_per_program: 1,
        };
        let ftl = FtlConfig {
            logical_slots: LOGICAL,
            reclaim_below: 4,
            frontiers: Frontiers::Shared,
            wear_leveling: leveling,
            endurance: Some(ENDURANCE),
            retire_at: Some(ENDURANCE),
            ..FtlConfig::default()
        };
        LifeConfig {
            geometry,
            ftl,
            capacity,
            filled: true,
            random_fills: 1,
            extent_slots: None,
            footprint_slots: footprint,
            sample_slots: u64::from(LOGICAL) / 2,
            seed: 1,
        }
    }

    fn life(config: LifeConfig) -> Life {
        let spec = hot_cold(0.8, 0.2, u64::from(config.footprint_slots) * 4096);
        let source = Synthetic::new(spec, Rng::named(1, "life")).expect("the description is valid");
        Life::new(config, Box::new(source)).expect("the drive is possible")
    }

    fn until_death(config: LifeConfig) -> LifeFigures {
        let mut life = life(config);
        life.live_until(u64::MAX).expect("the workload goes on");
        life.ftl().check();
        life.figures()
    }

    #[test]
    fn a_small_footprint_outlives_a_fixed_capacity_by_far_and_a_full_one_does_not() {
        let drive_writes = |capacity, footprint| {
            let figures = until_death(config(capacity, WearLeveling::None, footprint));
            assert!(figures.death.is_some());
            figures.drive_writes()
        };
        let small = [Capacity::Variable, Capacity::Fixed].map(|capacity| drive_writes(capacity, LOGICAL / 20));
        assert!(small[0] > 2.0 * small[1], "{small:?}");
        let full = [Capacity::Variable, Capacity::Fixed].map(|capacity| drive_writes(capacity, LOGICAL));
        assert!(full[0] >= full[1] && full[0] < 1.2 * full[1], "{full:?}");
    }

    #[test]
    fn evenly_worn_superblocks_that_retire_together_leave_room_to_give_capacity_back() {
        // Every superblock is retired at its next erase, and a little more than half of the drive is in use.
        let config =
            LifeConfig { footprint_slots: LOGICAL * 6 / 10, ..config(Capacity::Variable, WearLeveling::None, 1) };
        let drive_writes = |capacity| {
            let mut life = life(LifeConfig { capacity, ..config.clone() });
            life.live_until(u64::from(LOGICAL)).expect("the workload goes on");
            life.project(&[ENDURANCE - 1; 78], 0);
            life.live_until(u64::MAX).expect("the workload goes on");
            life.figures().drive_writes()
        };
        let [variable, fixed] = [Capacity::Variable, Capacity::Fixed].map(drive_writes);
        assert!(variable > fixed, "{variable} after {fixed}");
    }

    #[test]
    fn a_worn_drive_has_used_its_erases_up_and_not_more() {
        let figures = until_death(config(Capacity::Fixed, WearLeveling::Progressive { percent: 50 }, LOGICAL / 20));
        assert!(figures.erase_counts.iter().all(|&erases| erases <= ENDURANCE));
        let worn = figures.erase_counts.iter().filter(|&&erases| erases == ENDURANCE).count();
        assert_eq!(worn as u32, figures.last.retired);
        assert!(figures.leveling_share() > 0.0);
        assert_eq!(figures.samples.len() as u64, figures.last.host_slots / (u64::from(LOGICAL) / 2));
    }

    #[test]
    fn a_fixed_drive_dies_when_its_superblocks_without_those_kept_erased_are_fewer_than_it_exports() {
        // 78 superblocks, 4 of them kept erased, 64 exported; the last erase is that of one superblock or of several at once.
        for leveling in [WearLeveling::None, WearLeveling::OldBlockProtection { threshold: 4, protection: 8 }] {
            let figures = until_death(config(Capacity::Fixed, leveling, LOGICAL / 2));
            assert_eq!(figures.death, Some(EndOfLife::SpareExhausted));
            assert!((10..14).contains(&figures.last.retired), "{}", figures.last.retired);
        }
    }

    #[test]
    fn bounded_relocation_lies_between_fixed_and_unbounded_and_keeps_its_bound() {
        let live = |capacity| {
            let config = config(capacity, WearLeveling::None, LOGICAL / 20);
            until_death(LifeConfig { extent_slots: Some(16), ..config })
        };
        let [none, some, all] = [0, 40, u64::MAX].map(|slots| live(Capacity::Bounded { slots }));
        assert!(none.drive_writes() < some.drive_writes() && some.drive_writes() < all.drive_writes());
        assert!(all.last.logical_slots < LOGICAL / 2, "{}", all.last.logical_slots);
        assert!((1..=40).contains(&some.last.relocated_slots), "{}", some.last.relocated_slots);
    }

    #[test]
    fn a_bound_of_nothing_is_a_fixed_capacity_and_none_a_variable_one() {
        let live = |capacity, footprint| until_death(config(capacity, WearLeveling::None, footprint)).drive_writes();
        let full = [Capacity::Bounded { slots: 0 }, Capacity::Fixed].map(|capacity| live(capacity, LOGICAL));
        assert!((0.9..1.1).contains(&(full[0] / full[1])), "{full:?}");
        let unbounded = Capacity::Bounded { slots: u64::MAX };
        let small = [unbounded, Capacity::Variable].map(|capacity| live(capacity, LOGICAL / 20));
        assert_eq!(small[0], small[1]);
    }

    #[test]
    fn the_same_life_is_lived_again_whatever_its_steps() {
        let once = until_death(config(Capacity::Variable, WearLeveling::None, LOGICAL / 4));
        let mut again = life(config(Capacity::Variable, WearLeveling::None, LOGICAL / 4));
        while again.death().is_none() {
            again.live_until(again.host_slots() + 100).expect("the workload goes on");
        }
        assert_eq!(again.figures(), once);
    }

    #[test]
    fn fast_forward_dies_at_about_the_same_age_with_half_of_the_work() {
        let full = until_death(config(Capacity::Fixed, WearLeveling::Progressive { percent: 50 }, LOGICAL));
        let mut life = life(config(Capacity::Fixed, WearLeveling::Progressive { percent: 50 }, LOGICAL));
        let acceleration = Acceleration::by_factor(2.0).expect("it is one of the source's");
        let config = ForwardConfig { prediction: Prediction::TwoPoint, acceleration, endurance: Some(ENDURANCE) };
        let plan = ForwardPlan { config, period_slots: u64::from(LOGICAL) / 8, periods: u32::MAX };
        let forwarded = fast_forward(&mut life, plan, &[4], &mut |_, _| true).expect("the workload goes on");
        assert!(life.death().is_some());
        let ratio = life.figures().drive_writes() / full.drive_writes();
        assert!((0.8..1.2).contains(&ratio), "{ratio}");
        assert!(forwarded.simulated * 2 <= forwarded.periods + 4, "{forwarded:?}");
        assert_eq!(forwarded.checkpoints.len(), 1);
    }

    #[test]
    fn a_workload_that_ends_or_leaves_its_footprint_is_told_so() {
        let spec = |span: u32, requests| flashyard_workload::SyntheticSpec {
            requests,
            ..hot_cold(0.5, 0.5, u64::from(span) * 4096)
        };
        let run = |spec| {
            let source = Synthetic::new(spec, Rng::named(1, "life")).expect("the description is valid");
            let config = config(Capacity::Fixed, WearLeveling::None, 100);
            let mut life = Life::new(config, Box::new(source)).expect("the drive is possible");
            life.live_until(u64::MAX).expect_err("it is wrong")
        };
        assert!(matches!(run(spec(100, Some(5))), LifeError::Ended));
        assert!(matches!(run(spec(200, None)), LifeError::Beyond { footprint: 100, .. }));
    }
}
