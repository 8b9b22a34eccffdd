//! Each policy against a literal reading of its algorithm, on vectors that are searched and shifted.
//!
//! Both get the same accesses, removals and evictions ahead of need, and must give the same answers and hold the same keys.
//! In the vectors of a model the oldest is first. W-TinyLFU, whose model needs its sketch, is tested where it is.

mod naive;

use flashyard_cache::{Access, Policy, PolicyKind, S3Fifo, S3FifoShares};
use naive::Model;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A step of an owner.
#[derive(Clone, Copy, Debug)]
enum Step {
    Access(u64),
    Remove(u64),
    Evict,
    Look(u64),
}

/// Mostly accesses, half of them to a tenth of the keys.
fn steps(keys: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0..keys).prop_map(Step::Access),
        20 => (0..keys.div_ceil(10)).prop_map(Step::Access),
        2 => (0..keys).prop_map(Step::Remove),
        1 => Just(Step::Evict),
        2 => (0..keys).prop_map(Step::Look),
    ];
    prop::collection::vec(step, 0..600)
}

/// Takes `cache` and `model` through the steps. The slots of keys are tracked from the answers alone.
fn compare(cache: &mut dyn Policy, model: &mut dyn Model, steps: &[Step], keys: u64) -> Result<(), TestCaseError> {
    let memory = cache.memory_bytes();
    let mut slots: BTreeMap<u64, u32> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        match *step {
            Step::Access(key) => {
                let expected = model.access(key);
                let (is_hit, evicted) = match cache.access(key) {
                    Access::Hit { slot } => {
                        prop_assert_eq!(slots.get(&key), Some(&slot), "a key keeps its slot");
                        (true, None)
                    }
                    Access::Miss(inserted) => {
                        if let Some(evicted) = inserted.evicted {
                            prop_assert_eq!(slots.remove(&evicted.key), Some(evicted.slot));
                        }
                        prop_assert_eq!(slots.insert(key, inserted.slot), None);
                        (false, inserted.evicted.map(|evicted| evicted.key))
                    }
                };
                prop_assert_eq!((is_hit, evicted), expected, "step {}: {:?}", at, step);
            }
            Step::Remove(key) => {
                model.remove(key);
                prop_assert_eq!(cache.remove(key), slots.remove(&key));
            }
            Step::Evict => {
                let evicted = cache.evict();
                prop_assert_eq!(evicted.map(|evicted| evicted.key), model.evict(), "step {}", at);
                if let Some(evicted) = evicted {
                    prop_assert_eq!(slots.remove(&evicted.key), Some(evicted.slot));
                }
            }
            Step::Look(key) => prop_assert_eq!(cache.slot_of(key), slots.get(&key).copied()),
        }
        prop_assert_eq!(cache.len() as usize, slots.len());
        prop_assert!(cache.len() <= cache.capacity());
    }
    let held: Vec<u64> = (0..keys).filter(|&key| cache.slot_of(key).is_some()).collect();
    prop_assert_eq!(held, slots.keys().copied().collect::<Vec<u64>>());
    let mut used: Vec<u32> = slots.values().copied().collect();
    used.sort_unstable();
    used.dedup();
    prop_assert!(used.len() == slots.len() && used.iter().all(|&slot| slot < cache.capacity()), "{:?}", used);
    prop_assert_eq!(cache.memory_bytes(), memory, "no memory is taken later");
    Ok(())
}

/// A property test of a policy against its model, for caches of 1 to 30 keys and of some 200, where shares are more than one.
macro_rules! policy {
    ($name:ident, $kind:expr, $model:expr) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(300))]
            #[test]
            fn $name(
                (capacity, keys) in prop_oneof![(1_u32..30, 2_u64..80), (190_u32..240, 400_u64..500)],
                seed in steps(500),
            ) {
                let fold = |step: &Step| match *step {
                    Step::Access(key) => Step::Access(key % keys),
                    Step::Remove(key) => Step::Remove(key % keys),
                    Step::Look(key) => Step::Look(key % keys),
                    Step::Evict => Step::Evict,
                };
                let steps: Vec<Step> = seed.iter().map(fold).collect();
                let mut model = $model(capacity as usize);
                compare(&mut *$kind.cache(capacity), &mut model, &steps, keys)?;
            }
        }
    };
}

policy!(fifo_is_a_queue, PolicyKind::Fifo, naive::Queue::fifo);
policy!(lru_is_a_queue_that_hits_reorder, PolicyKind::Lru, naive::Queue::lru);
policy!(clock_gives_a_second_chance, PolicyKind::Clock, naive::Queue::clock);
policy!(sieve_moves_a_hand, PolicyKind::Sieve, naive::Sieve::new);
policy!(arc_follows_its_figure_4, PolicyKind::Arc, naive::Arc::new);
policy!(lirs_keeps_a_stack_and_a_queue, PolicyKind::Lirs, naive::Lirs::new);
policy!(s3_fifo_has_three_queues, PolicyKind::S3Fifo, |capacity| naive::S3Fifo::new(capacity, 10, 90, 2));

proptest! {
    #[test]
    fn s3_fifo_takes_any_shares(
        capacity in 1_u32..60,
        small_percent in 1_u32..100,
        ghost_percent in 0_u32..=100,
        hits_to_main in 1_u8..=3,
        steps in steps(120),
    ) {
        let mut cache = S3Fifo::with_shares(capacity, S3FifoShares { small_percent, ghost_percent, hits_to_main });
        let share = |percent: u32| percent as usize;
        let mut model = naive::S3Fifo::new(capacity as usize, share(small_percent), share(ghost_percent), hits_to_main);
        compare(&mut cache, &mut model, &steps, 120)?;
    }

    #[test]
    fn the_same_calls_have_the_same_results(keys in prop::collection::vec(0_u64..400, 0..3_000)) {
        for policy in PolicyKind::ALL {
            let (mut one, mut other) = (policy.cache(64), policy.cache(64));
            for &key in &keys {
                prop_assert_eq!(one.access(key), other.access(key), "{}", policy);
            }
        }
    }
}

#[test]
fn memory_is_what_the_pages_say() {
    for policy in PolicyKind::ALL {
        let expected = policy.bytes_a_key();
        let found = policy.cache(1_000_000).memory_bytes() as f64 / 1e6;
        assert!((found - expected).abs() < 0.06, "{policy}: {found} bytes a key, not {expected}");
    }
}

#[test]
fn a_cache_of_nothing_is_refused() {
    for policy in PolicyKind::ALL {
        assert!(std::panic::catch_unwind(|| policy.cache(0)).is_err(), "{policy}");
        assert!(std::panic::catch_unwind(|| policy.cache(flashyard_cache::CAPACITY_MAX + 1)).is_err(), "{policy}");
    }
}

#[test]
fn each_policy_knows_its_name_and_begins_empty() {
    for policy in PolicyKind::ALL {
        let mut cache = policy.cache(3);
        assert_eq!((cache.kind(), cache.capacity(), cache.is_empty()), (policy, 3, true));
        assert_eq!((cache.evict(), cache.remove(7), cache.touch(7)), (None, None, None));
    }
}

#[test]
fn a_cache_that_is_not_empty_can_always_evict() {
    for kind in PolicyKind::ALL {
        for hits in 0..5 {
            let mut cache = kind.cache(20);
            (0..=hits).for_each(|_| _ = cache.access(7));
            assert_eq!(cache.evict().map(|evicted| evicted.key), Some(7), "{kind:?} after {hits} hits");
            assert_eq!(cache.evict(), None);
        }
    }
}
