//! A layer built from an aged state goes on as the original would.

mod counting;

use counting::Counting;
use flashyard_flash::Geometry;
use flashyard_ftl::{
    AgedState, Allocation, Frontiers, Ftl, FtlConfig, RecoveryError, ScoreWeights, VictimPolicy, VictimTies,
    WearLeveling,
};
use flashyard_kernel::Rng;
use proptest::prelude::*;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 24,
    pages_per_block: 6,
    page_bytes: 8192,
    pages_per_program: 1,
};
const LOGICAL: u32 = 24 * 96 * 6 / 10;

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
        wear_leveling in prop_oneof![Just(WearLeveling::None), Just(WearLeveling::DualPool { threshold: 4 })],
        slc_superblocks in 0_u32..3,
        retire_at in prop::option::of(8_u32..60),
    ) -> FtlConfig {
        FtlConfig {
            logical_slots: LOGICAL,
            filled_slots: 700,
            victim,
            ties,
            allocation,
            frontiers,
            wear_leveling,
            // A shared frontier has no single-level cache.
            slc_superblocks: if frontiers == Frontiers::Shared { 0 } else { slc_superblocks },
            retire_at,
            remap_entries: 16,
            endurance: Some(50),
            ..FtlConfig::default()
        }
    }
}

/// Writes, trims, reads and remaps at random, until the drive is worn out.
fn work(ftl: &mut Ftl, rng: &mut Rng, steps: u32) {
    let mut medium = Counting::default();
    for _ in 0..steps {
        let logical = rng.below(u64::from(LOGICAL)) as u32;
        let slot = ftl.lookup(logical);
        match rng.below(24) {
            0 => {
                ftl.trim(logical);
            }
            1 if slot.is_some() => ftl.count_read(slot),
            2 => {
                // Nothing to remap, or no entry left.
                let _ = ftl.remap(logical, rng.below(u64::from(LOGICAL)) as u32);
            }
            _ if ftl.age_write(logical, 0, &mut medium).is_err() => return,
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn a_layer_from_an_aged_state_goes_on_as_the_one_in_memory(
        config in config(), seed: u64, before in 0_u32..12_000, after in 0_u32..6_000, retiring in prop::option::of(0_u32..24),
    ) {
        let mut rng = Rng::named(seed, "test");
        let mut first = Ftl::new(&GEOMETRY, config).expect("the small drive fits");
        work(&mut first, &mut rng, before);
        if let Some(superblock) = retiring.filter(|&superblock| !first.is_retired(superblock)) {
            first.retire_early(superblock);
        }
        let state = first.aged_state();
        let mut second = Ftl::from_aged(&GEOMETRY, config, &state).expect("it is the state of a layer");
        second.check();
        prop_assert_eq!(&second.aged_state(), &state);
        // The memory of a wear leveling is not in the state.
        if config.wear_leveling == WearLeveling::None {
            let mut same = rng.clone();
            work(&mut first, &mut rng, after);
            work(&mut second, &mut same, after);
            prop_assert_eq!(second.aged_state(), first.aged_state());
        } else {
            work(&mut second, &mut rng, after);
        }
        second.check();
    }

    #[test]
    fn a_state_that_was_tampered_with_is_refused_or_is_some_drive(
        config in config(), seed: u64, list in 0_u8..3, place: prop::sample::Index, number in 0_u32..30,
    ) {
        let mut ftl = Ftl::new(&GEOMETRY, config).expect("the small drive fits");
        work(&mut ftl, &mut Rng::named(seed, "test"), 4_000);
        let mut state = ftl.aged_state();
        let list = match list {
            0 => &mut state.erased,
            1 => &mut state.closed,
            _ => &mut state.retiring,
        };
        list.insert(place.index(list.len() + 1), number);
        if let Ok(ftl) = Ftl::from_aged(&GEOMETRY, config, &state) {
            ftl.check();
        }
    }
}

#[test]
fn superblocks_that_are_worn_out_by_other_parameters_retire_at_once() {
    let config = FtlConfig { logical_slots: LOGICAL, filled_slots: 700, ..FtlConfig::default() };
    let mut ftl = Ftl::new(&GEOMETRY, config).expect("the small drive fits");
    work(&mut ftl, &mut Rng::named(4, "test"), 9_000);
    let state = ftl.aged_state();
    let erased_most =
        state.erased.iter().map(|&number| state.contents[number as usize].erases).max().expect("some are");
    let strict = FtlConfig { retire_at: Some(erased_most), ..config };
    let again = Ftl::from_aged(&GEOMETRY, strict, &state).expect("it is the state of a layer");
    again.check();
    assert!(again.retired_superblocks() > 0);
}

#[test]
fn the_state_of_another_drive_is_refused() {
    let config = FtlConfig { logical_slots: LOGICAL, filled_slots: 700, ..FtlConfig::default() };
    let state = Ftl::new(&GEOMETRY, config).expect("the small drive fits").aged_state();
    let other = Geometry { blocks_per_plane: 30, ..GEOMETRY };
    let refused = Ftl::from_aged(&other, config, &state).err().expect("it is another drive");
    assert_eq!(refused, RecoveryError::Count { given: 24, expected: 30 });
    let listed = AgedState { erased: vec![0], ..state };
    let refused = Ftl::from_aged(&GEOMETRY, config, &listed).err().expect("superblock 0 is filled");
    assert_eq!(refused.to_string(), "superblock 0 is listed as one that it is not");
}
