//! Every combination of policies against a plain map of the writes.

mod counting;

use counting::Counting;
use flashyard_flash::Geometry;
use flashyard_ftl::{
    Allocation, Frontiers, Ftl, FtlConfig, ProgressiveReading, RemapError, ScoreWeights, VictimPolicy, VictimTies,
    WearLeveling,
};
use flashyard_kernel::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SUPERBLOCKS: u32 = 24;
const LOGICAL: u32 = SUPERBLOCKS * 96 * 6 / 10;

fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: SUPERBLOCKS,
        pages_per_block: 6,
        page_bytes: 8192,
        pages_per_program: 1,
    }
}

fn leveling() -> impl Strategy<Value = WearLeveling> {
    prop_oneof![
        Just(WearLeveling::None),
        (0_u32..8).prop_map(|threshold| WearLeveling::HotColdSwap { threshold }),
        (0_u32..8, 0_u64..40)
            .prop_map(|(threshold, protection)| WearLeveling::OldBlockProtection { threshold, protection }),
        (0_u32..8).prop_map(|threshold| WearLeveling::DualPool { threshold }),
        (0_u32..=100).prop_map(|percent| WearLeveling::Progressive { percent }),
        (0_u32..=100).prop_map(|percent| WearLeveling::UnevenFactor { percent }),
    ]
}

prop_compose! {
    fn config()(
        victim in prop_oneof![
            Just(VictimPolicy::Greedy),
            Just(VictimPolicy::CostBenefit),
            Just(VictimPolicy::CapacityVariant(ScoreWeights::default())),
            Just(VictimPolicy::FewestValidOldest),
        ],
        ties in prop_oneof![
            Just(VictimTies::NewestFirst),
            Just(VictimTies::OldestFirst),
            Just(VictimTies::LeastErased),
        ],
        allocation in prop_oneof![
            Just(Allocation::Fifo),
            Just(Allocation::YoungestFirst),
            Just(Allocation::OldestFirst),
            Just(Allocation::WearFocusing),
        ],
        frontiers in prop_oneof![Just(Frontiers::Separate), Just(Frontiers::Shared)],
        wear_leveling in leveling(),
        progressive in prop_oneof![Just(ProgressiveReading::Plain), Just(ProgressiveReading::Heap)],
        slc_superblocks in 0_u32..3,
        retire_at in prop::option::of(5_u32..60),
        remap_entries in 0_u32..40,
        seed: u64,
    ) -> FtlConfig {
        FtlConfig {
            logical_slots: LOGICAL,
            filled_slots: 700,
            victim,
            ties,
            stamps: true,
            allocation,
            frontiers,
            wear_leveling,
            progressive,
            slc_superblocks: if frontiers == Frontiers::Shared { 0 } else { slc_superblocks },
            retire_at,
            remap_entries,
            endurance: Some(50),
            seed,
            ..FtlConfig::default()
        }
    }
}

/// A layer, its expected contents, and the owners that remapped copies on flash name.
struct World {
    ftl: Ftl,
    medium: Counting,
    rng: Rng,
    stamps: BTreeMap<u32, u64>,
    /// Owners that copies on flash name, where that is not the owner.
    named: BTreeMap<u32, u32>,
}

impl World {
    fn new(config: FtlConfig, seed: u64) -> Self {
        Self {
            ftl: Ftl::new(&geometry(), config).expect("the small drive fits"),
            medium: Counting::default(),
            rng: Rng::named(seed, "test"),
            stamps: (0..700).map(|logical| (logical, 0)).collect(),
            named: BTreeMap::new(),
        }
    }

    /// Slots that are written often, and others.
    fn any_slot(&mut self) -> u32 {
        let range = if self.rng.below(10) > 0 { LOGICAL / 10 } else { LOGICAL };
        self.rng.below(u64::from(range)) as u32
    }

    /// Does one thing; false when the drive is worn out.
    fn step(&mut self, stamp: u64) -> bool {
        let logical = self.any_slot();
        match self.rng.below(40) {
            0 | 1 => {
                self.ftl.trim(logical);
                self.stamps.remove(&logical);
            }
            2 => {
                let source = self.any_slot();
                self.remap(logical, source);
            }
            3 => self.ftl.set_degraded(stamp.is_multiple_of(3)),
            4..=10 => {
                let slot = self.ftl.lookup(logical);
                if slot.is_some() {
                    self.ftl.count_read(slot);
                }
            }
            _ => {
                let erases: Vec<u32> = self.ftl.erase_counts().collect();
                let written = self.ftl.age_write(logical, stamp, &mut self.medium).is_ok();
                let now: Vec<u32> = self.ftl.erase_counts().collect();
                self.named.retain(|&slot, _| erases[slot as usize / 96] == now[slot as usize / 96]);
                if !written {
                    return false;
                }
                self.stamps.insert(logical, stamp);
            }
        }
        true
    }

    fn remap(&mut self, destination: u32, source: u32) {
        let slot = self.ftl.lookup(source);
        match self.ftl.remap(destination, source) {
            Ok(()) => {
                self.named.entry(slot.get()).or_insert(source);
                let stamp = self.stamps.remove(&source).expect("it held something");
                self.stamps.insert(destination, stamp);
            }
            Err(RemapError::Unmapped { .. }) => assert!(!slot.is_some()),
            Err(RemapError::Full { entries }) => assert_eq!(self.ftl.remap_log().len(), entries as usize),
            Err(error) => panic!("{error}"),
        }
    }

    fn check(&self) {
        self.ftl.check();
        for logical in 0..LOGICAL {
            let slot = self.ftl.lookup(logical);
            let found = slot.is_some().then(|| self.ftl.stamp(slot));
            assert_eq!(found, self.stamps.get(&logical).copied(), "slot {logical}");
        }
        for superblock in (0..SUPERBLOCKS).filter(|&superblock| self.ftl.is_retired(superblock)) {
            assert!((0..LOGICAL).all(|logical| self.ftl.lookup(logical).get() / 96 != superblock));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_combination_of_policies_loses_data_or_an_erase(config in config(), seed: u64) {
        let mut world = World::new(config, seed);
        let lasted = (1..12_000).take_while(|&stamp| world.step(stamp)).count();
        world.check();
        let counters = *world.ftl.counters();
        let erases: u64 = world.ftl.erase_counts().map(u64::from).sum();
        prop_assert_eq!(counters.erased_superblocks, erases);
        if let Some(last) = config.retire_at {
            prop_assert!(world.ftl.erase_counts().all(|erases| erases <= last));
        }
        prop_assert!(lasted == 11_999 || counters.retired_superblocks > 0, "worn out without a reason");
        let rows = counters.programmed_slots() / 4;
        prop_assert!(world.medium.programs().abs_diff(2 * rows) <= 4, "{counters:?}");
    }

    #[test]
    fn copies_on_flash_and_the_protected_log_give_the_map_back(
        config in config(), seed: u64, steps in 1_usize..3000, restarts in 1_u32..5,
    ) {
        let mut world = World::new(FtlConfig { stamps: false, ..config }, seed);
        for _ in 0..restarts {
            let _ = (1..).take(steps).all(|stamp| world.step(stamp));
            let mut contents = world.ftl.contents();
            for (superblock, contents) in (0..).zip(&mut contents) {
                for (index, logical) in contents.used.iter_mut().flat_map(|used| &mut used.valid) {
                    *logical = world.named.get(&(superblock * 96 + *index)).copied().unwrap_or(*logical);
                }
            }
            let again = Ftl::recovered_with_log(&geometry(), config, &contents, world.ftl.remap_log())
                .expect("these are contents of a layer");
            again.check();
            for logical in 0..LOGICAL {
                prop_assert_eq!(again.lookup(logical), world.ftl.lookup(logical));
            }
            prop_assert!(again.erase_counts().eq(world.ftl.erase_counts()));
            prop_assert!((0..SUPERBLOCKS).all(|number| again.is_retired(number) == world.ftl.is_retired(number)));
            world.ftl = again;
        }
    }
}

#[test]
fn each_policy_moves_data_and_narrows_the_spread_of_erases() {
    let spread = |wear_leveling| {
        let config = FtlConfig {
            logical_slots: LOGICAL,
            filled_slots: LOGICAL,
            frontiers: Frontiers::Shared,
            wear_leveling,
            endurance: Some(200),
            ..FtlConfig::default()
        };
        let mut ftl = Ftl::new(&geometry(), config).expect("the small drive fits");
        let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "test"));
        for _ in 0..60_000 {
            ftl.age_write(rng.below(u64::from(LOGICAL) / 10) as u32, 0, &mut medium).expect("nothing wears out");
        }
        ftl.check();
        assert_eq!(wear_leveling == WearLeveling::None, ftl.counters().leveled_slots == 0, "{wear_leveling:?}");
        ftl.erase_counts().max().unwrap_or(0) - ftl.erase_counts().min().unwrap_or(0)
    };
    assert!(spread(WearLeveling::None) > 40);
    for policy in [
        WearLeveling::OldBlockProtection { threshold: 8, protection: 4 },
        WearLeveling::DualPool { threshold: 8 },
        WearLeveling::Progressive { percent: 5 },
        WearLeveling::UnevenFactor { percent: 99 },
    ] {
        assert!(spread(policy) < 30, "{policy:?}: {}", spread(policy));
    }
    // Its flaw: the oldest superblock stays the oldest, and is picked again and again.
    assert!(spread(WearLeveling::HotColdSwap { threshold: 8 }) > 100);
}

#[test]
fn a_worn_out_drive_says_so_and_goes_on_when_less_is_stored() {
    let config = FtlConfig { logical_slots: LOGICAL, filled_slots: LOGICAL, ..FtlConfig::default() };
    let mut ftl = Ftl::new(&geometry(), config).expect("the small drive fits");
    let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "test"));
    let mut write = |ftl: &mut Ftl, slots: u32| ftl.age_write(rng.below(u64::from(slots)) as u32, 0, &mut medium);
    let mut retiring = 0..12;
    let error = loop {
        if let Some(superblock) = retiring.next() {
            ftl.retire_early(superblock);
        }
        if let Some(error) = (0..500).find_map(|_| write(&mut ftl, LOGICAL).err()) {
            break error;
        }
    };
    assert_eq!(error.to_string(), "the drive is worn out: no superblock can be opened and none pays to reclaim");
    assert!(ftl.retired_superblocks() >= 6, "{}", ftl.retired_superblocks());
    assert!(ftl.is_out_of_room(1));
    ftl.check();
    let kept = LOGICAL / 3;
    (kept..LOGICAL).for_each(|logical| {
        ftl.trim(logical);
    });
    ftl.set_logical_slots(kept).expect("nothing is above");
    (0..5_000).for_each(|_| write(&mut ftl, kept).expect("there is room again"));
    assert!(!ftl.is_out_of_room(1));
    ftl.check();
    let refused = |ftl: &mut Ftl, slots| ftl.set_logical_slots(slots).expect_err("it cannot be").to_string();
    let held = (0..kept).rev().find(|&logical| ftl.lookup(logical).is_some()).expect("something is stored");
    assert_eq!(refused(&mut ftl, held), format!("logical slot {held} holds data, so that {held} slots are too few"));
    assert_eq!(refused(&mut ftl, LOGICAL + 1), format!("{} logical slots, give 1 to {LOGICAL}", LOGICAL + 1));
    ftl.set_logical_slots(LOGICAL).expect("the drive was built for them");
}

#[test]
fn projected_erases_retire_what_is_erased_now_and_the_rest_when_it_is_emptied() {
    let config = FtlConfig { logical_slots: LOGICAL, filled_slots: LOGICAL / 2, ..FtlConfig::default() };
    let config = FtlConfig { retire_at: Some(100), ..config };
    let mut ftl = Ftl::new(&geometry(), config).expect("the small drive fits");
    let mut counts = vec![10; SUPERBLOCKS as usize];
    (counts[0], counts[23]) = (100, 100);
    ftl.project_erase_counts(&counts);
    assert!(ftl.is_retired(23) && !ftl.is_retired(0));
    ftl.retire_early(22);
    ftl.retire_early(1);
    assert!(ftl.is_retired(22) && !ftl.is_retired(1));
    let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "test"));
    for _ in 0..10 * LOGICAL {
        ftl.age_write(rng.below(u64::from(LOGICAL)) as u32, 0, &mut medium).expect("nothing wears out");
    }
    assert!(ftl.is_retired(0) && ftl.is_retired(1));
    assert_eq!(ftl.retired_superblocks(), 4);
    ftl.check();
}

#[test]
fn what_was_retired_before_a_restart_is_retired_again_and_kept_so_whoever_levels_wear() {
    let dual_pool = WearLeveling::DualPool { threshold: 4 };
    for (wear_leveling, retire_at) in [(WearLeveling::None, None), (dual_pool, None), (dual_pool, Some(60_000))] {
        let config = FtlConfig { logical_slots: LOGICAL, filled_slots: LOGICAL / 2, ..FtlConfig::default() };
        let config = FtlConfig { wear_leveling, retire_at, ..config };
        let mut before = Ftl::new(&geometry(), config).expect("the small drive fits");
        let (mut medium, mut rng) = (Counting::default(), Rng::named(1, "test"));
        let mut write = |ftl: &mut Ftl| ftl.age_write(rng.below(u64::from(LOGICAL / 2)) as u32, 0, &mut medium);
        (20..23).for_each(|superblock| before.retire_early(superblock));
        (0..2 * LOGICAL).for_each(|_| write(&mut before).expect("nothing wears out"));
        let retired: Vec<u32> = (0..SUPERBLOCKS).filter(|&superblock| before.is_retired(superblock)).collect();
        assert_eq!(retired.len(), 3);
        let mut after = Ftl::recovered(&geometry(), config, &before.contents()).expect("these are contents");
        assert_eq!(after.retired_superblocks(), 0, "contents do not tell");
        retired.iter().for_each(|&superblock| after.retire_again(superblock));
        // A superblock that holds data stays.
        let held = after.layout().split(after.lookup(0)).0;
        after.retire_again(held);
        assert_eq!((after.retired_superblocks(), after.is_retired(held)), (3, false));
        after.check();
        (0..5 * LOGICAL).for_each(|_| write(&mut after).expect("nothing wears out"));
        assert!(retired.iter().all(|&superblock| after.is_retired(superblock)));
        assert_eq!(after.retired_superblocks(), 3);
        after.check();
    }
}

#[test]
fn what_cannot_be_configured_is_refused_in_words() {
    let base = FtlConfig { logical_slots: LOGICAL, ..FtlConfig::default() };
    let refused = |config| Ftl::new(&geometry(), config).err().expect("it cannot be").to_string();
    assert_eq!(
        refused(FtlConfig { wear_leveling: WearLeveling::Progressive { percent: 5 }, ..base }),
        "progressive wear leveling needs the endurance of a superblock, give `endurance` at least 1 erase"
    );
    assert_eq!(
        refused(FtlConfig { wear_leveling: WearLeveling::Progressive { percent: 101 }, endurance: Some(9), ..base }),
        "percent is 101, give 0 to 100"
    );
    assert_eq!(
        refused(FtlConfig { frontiers: Frontiers::Shared, slc_superblocks: 1, ..base }),
        "a shared frontier cannot have a single-level cache, give separate ones"
    );
    assert_eq!(refused(FtlConfig { retire_at: Some(0), ..base }), "retire_at is 0, give at least 1 erase");
}
