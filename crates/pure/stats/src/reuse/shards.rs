//! SHARDS: a miss-ratio curve from a spatially hashed sample, with a fixed number of keys.
//!
//! A key is sampled when its hash lies below a threshold T of P = 2^24; the sampling rate is R = T / P. A
//! sampled access of stack distance d counts at distance d / R; a first access counts as infinite. When
//! more than `keys_max` keys are held, the one with the largest hash leaves, T falls to its hash and counts
//! are rescaled. Curve at size c: 1 - (hits up to c) / all.
//! Source: [X] Waldspurger et al., FAST '15; parameters [A] sheet xbof §9.2.

use super::histogram::DistanceHistogram;
use super::recency::Recency;
use std::collections::{BTreeMap, BTreeSet};

const MODULUS: u32 = 1 << 24;

/// Online miss-ratio curve of a stream of keys.
pub struct Shards {
    threshold: u32,
    keys_max: usize,
    /// Key to (hash, slot of the last access).
    last: BTreeMap<u64, (u32, u32)>,
    /// Last accesses in order: the LRU stack.
    recency: Recency,
    /// (hash, key), to find the largest hash.
    hashes: BTreeSet<(u32, u64)>,
    histogram: DistanceHistogram,
    /// Lower bounds from first touches: they come from further than all keys seen so far.
    bounds: DistanceHistogram,
    cold: f64,
    accesses: f64,
}

impl Shards {
    /// An empty curve in 256 equal steps over `keys` possible keys, sampling one in a hundred at first, holding
    /// `keys_max`.
    pub fn new(keys: u32, keys_max: usize) -> Self {
        Self::with(MODULUS / 100, keys_max, DistanceHistogram::linear(keys))
    }

    /// An empty curve in geometric steps over any number of keys, sampling all of them at first, holding
    /// `keys_max`: nothing is estimated while there are no more.
    pub fn geometric(keys_max: usize) -> Self {
        Self::with(MODULUS, keys_max, DistanceHistogram::geometric())
    }

    fn with(threshold: u32, keys_max: usize, histogram: DistanceHistogram) -> Self {
        Self {
            threshold,
            keys_max,
            last: BTreeMap::new(),
            recency: Recency::new(),
            hashes: BTreeSet::new(),
            bounds: histogram.clone(),
            histogram,
            cold: 0.0,
            accesses: 0.0,
        }
    }

    /// The present sampling rate.
    pub fn rate(&self) -> f64 {
        f64::from(self.threshold) / f64::from(MODULUS)
    }

    /// Keys held at present.
    pub fn keys(&self) -> usize {
        self.last.len()
    }

    /// Distances of the sampled accesses, scaled to all keys; their weight is scaled to the present rate only.
    pub fn distances(&self) -> &DistanceHistogram {
        &self.histogram
    }

    /// Distances that first touches exceed, those of the keys seen before them, scaled like
    /// [`distances`](Self::distances).
    pub(super) fn bounds(&self) -> &DistanceHistogram {
        &self.bounds
    }

    /// Counts one access.
    #[inline]
    pub fn access(&mut self, key: u32) {
        self.count(u64::from(key), Self::hash(key));
    }

    /// Counts one access to a key of 64 bits. One curve takes keys of one width.
    #[inline]
    pub fn access_wide(&mut self, key: u64) {
        self.count(key, Self::hash_wide(key));
    }

    #[inline]
    fn count(&mut self, key: u64, hash: u32) {
        self.accesses += 1.0;
        if hash < self.threshold {
            self.sample(key, hash);
        }
    }

    /// Predicted miss ratio of a cache of `size` keys; 1 before any sample.
    pub fn miss_ratio(&self, size: u64) -> f64 {
        // The correction of SHARDS-adj: accesses that sampling missed or added belong to the first bucket.
        let sampled: f64 = self.histogram.weight() + self.cold;
        let expected = self.accesses * self.rate();
        if expected <= 0.0 || sampled <= 0.0 {
            return 1.0;
        }
        let whole = self.histogram.buckets_within(size);
        let correction = if whole > 0 { expected - sampled } else { 0.0 };
        let hits: f64 = self.histogram.weight_within(whole) + correction;
        (1.0 - hits / expected).clamp(0.0, 1.0)
    }

    /// Accesses that the curve is of: those before a [`fade`](Self::fade) count half of what they did.
    pub fn accesses(&self) -> f64 {
        self.accesses
    }

    /// Halves all counts, so that old behaviour fades.
    pub fn fade(&mut self) {
        self.histogram.scale(0.5);
        self.bounds.scale(0.5);
        self.cold /= 2.0;
        self.accesses /= 2.0;
    }

    fn hash(key: u32) -> u32 {
        // The finalizer of MurmurHash3: a bijection that spreads neighbours.
        let mut hash = key ^ key >> 16;
        hash = hash.wrapping_mul(0x85EB_CA6B);
        hash ^= hash >> 13;
        hash = hash.wrapping_mul(0xC2B2_AE35);
        (hash ^ hash >> 16) % MODULUS
    }

    #[inline]
    fn hash_wide(key: u64) -> u32 {
        // The finalizer of MurmurHash3 for 64 bits.
        let mut hash = key ^ key >> 33;
        hash = hash.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        // The remainder of division by 2^24 fits.
        ((hash ^ hash >> 33) % u64::from(MODULUS)) as u32
    }

    #[cold]
    fn sample(&mut self, key: u64, hash: u32) {
        if self.recency.is_full() {
            for (_, slot) in self.last.values_mut() {
                *slot = self.recency.rank(*slot);
            }
            self.recency.compact();
        }
        let slot = self.recency.append();
        match self.last.insert(key, (hash, slot)) {
            Some((_, before)) => {
                // The new slot is among those from the one before on, and is not counted.
                let distance = f64::from(self.recency.count_from(before) - 1) / self.rate();
                self.histogram.record(distance);
                self.recency.clear(before);
            }
            None => {
                self.cold += 1.0;
                let others = self.last.len() - 1;
                self.bounds.record(others as f64 / self.rate());
                self.hashes.insert((hash, key));
            }
        }
        if self.last.len() > self.keys_max {
            self.lower_threshold();
        }
    }

    fn lower_threshold(&mut self) {
        let Some((hash, largest)) = self.hashes.pop_last() else { return };
        let scale = f64::from(hash) / f64::from(self.threshold);
        self.threshold = hash;
        self.histogram.scale(scale);
        self.bounds.scale(scale);
        self.cold *= scale;
        // Every key at or above the new threshold leaves.
        let equal = self.hashes.split_off(&(hash, 0)).into_iter().map(|(_, key)| key);
        for key in equal.chain([largest]) {
            if let Some((_, slot)) = self.last.remove(&key) {
                self.recency.clear(slot);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ReuseDistances;
    use proptest::prelude::*;

    /// Uniform numbers below `bound`: the SplitMix64 generator.
    pub(in crate::reuse) fn uniform(seed: u64, bound: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = state;
            word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (word ^ word >> 31) % bound
        })
    }

    #[test]
    fn uniform_accesses_give_a_straight_curve() {
        let keys = 100_000_u32;
        let mut shards = Shards::new(keys, 2_000);
        for key in uniform(11, u64::from(keys)).take(1_500_000) {
            shards.access(key as u32);
        }
        shards.cold = 0.0;
        for share in [0.25, 0.5, 0.75] {
            let predicted = shards.miss_ratio((f64::from(keys) * share) as u64);
            assert!((predicted - (1.0 - share)).abs() < 0.1, "size {share}: {predicted}");
        }
    }

    #[test]
    fn a_small_working_set_needs_no_more_than_itself() {
        let mut shards = Shards::new(100_000, 8_192);
        for key in uniform(12, 20_000).take(500_000) {
            shards.access(key as u32);
        }
        assert!(shards.miss_ratio(24_000) < 0.08, "{}", shards.miss_ratio(24_000));
        assert!(shards.miss_ratio(5_000) > 0.6, "{}", shards.miss_ratio(5_000));
    }

    /// Values of MurmurHash3's finalizers, calculated apart from this program, below 2^24.
    #[test]
    fn hashes_are_the_published_ones() {
        let narrow = [0, 1, 2, 0xdead_beef, 0xffff_ffff].map(Shards::hash);
        assert_eq!(narrow, [0, 0x4e_28b7, 0xf4_c306, 0xe5_c6a9, 0xf1_6f39]);
        let wide = [0, 1, 2, 0xdead_beef_cafe_babe, u64::MAX].map(Shards::hash_wide);
        assert_eq!(wide, [0, 0xc2_cb2c, 0x06_83e7, 0xf0_c48c, 0x82_5f21]);
    }

    #[test]
    fn one_key_in_a_hundred_is_sampled_at_first() {
        let mut shards = Shards::new(1_000, 64);
        assert!((shards.rate() - 0.01).abs() < 1e-6, "{}", shards.rate());
        // Without a sample nothing is known, however many accesses there were.
        shards.count(1, MODULUS - 1);
        assert_eq!((shards.miss_ratio(500), shards.keys()), (1.0, 0));
        shards.count(2, MODULUS / 100 - 1);
        shards.count(3, MODULUS / 100);
        assert_eq!(shards.keys(), 1);
    }

    #[test]
    fn the_keys_of_the_largest_hash_leave_together() {
        let mut shards = Shards::geometric(2);
        for (key, hash) in [(1, 50), (2, 50), (3, 10)] {
            shards.count(key, hash);
        }
        assert_eq!((shards.keys(), shards.threshold, shards.recency.count_from(0)), (1, 50, 1));
        let scale = 50.0 / f64::from(MODULUS);
        assert_eq!((shards.cold, shards.bounds().weight(), shards.accesses), (3.0 * scale, 3.0 * scale, 3.0));
        // A hash at the threshold is not below it.
        shards.count(2, 50);
        assert_eq!((shards.keys(), shards.cold), (1, 3.0 * scale));
    }

    #[test]
    fn distances_grow_as_the_sample_shrinks_and_what_it_missed_counts_as_near() {
        let mut shards = Shards::geometric(2);
        for (key, hash) in [(1, MODULUS / 2), (2, 10), (3, 11)] {
            shards.count(key, hash);
        }
        // Key 1 has left: one of two keys is sampled. Of the access to key 2, two sampled keys back, follows a distance of four.
        shards.count(2, 10);
        let within = |shards: &Shards, size| shards.distances().weight_within(shards.distances().buckets_within(size));
        assert_eq!((shards.rate(), within(&shards, 3), within(&shards, 4)), (0.5, 0.0, 1.0));
        // Two samples are expected of four accesses. There are 2.5: three first touches that count a half, and this one.
        assert_eq!([0, 3, 4].map(|size| shards.miss_ratio(size)), [1.0, 1.0, 0.75]);
        // A further first touch exceeds the two sampled keys: four of all.
        let bounds_before = shards.bounds().weight();
        shards.count(4, MODULUS / 4);
        let bounds = shards.bounds();
        let beyond = bounds.weight() - bounds.weight_within(bounds.buckets_within(3));
        assert_eq!((bounds.weight(), beyond, shards.rate()), ((bounds_before + 1.0) / 2.0, 0.5, 0.25));
    }

    #[test]
    fn accesses_that_were_not_sampled_hit_in_any_cache() {
        let mut shards = Shards::geometric(2);
        for (key, hash) in [(1, MODULUS / 2), (2, 10), (3, 11), (2, 10)] {
            shards.count(key, hash);
        }
        (0..8).for_each(|key| shards.count(100 + key, MODULUS - 1));
        // Six samples are expected of twelve accesses, 2.5 were taken: 3.5 more at the least distance.
        let found = [0, 1, 4].map(|size| shards.miss_ratio(size));
        assert_eq!(found, [1.0, 1.0 - 3.5 / 6.0, 1.0 - 4.5 / 6.0]);
    }

    #[test]
    fn fading_halves_all_counts_and_leaves_the_curve() {
        let mut shards = Shards::geometric(64);
        (0..256).for_each(|access| shards.access_wide(access % 64));
        let curve = [1, 32, 63, 64].map(|size| shards.miss_ratio(size));
        assert_eq!(curve, [1.0, 1.0, 1.0, 0.25]);
        shards.fade();
        assert_eq!([1, 32, 63, 64].map(|size| shards.miss_ratio(size)), curve);
        let counts = (shards.distances().weight(), shards.bounds().weight(), shards.cold, shards.accesses);
        assert_eq!(counts, (96.0, 32.0, 32.0, 128.0));
    }

    /// A skewed stream: the smaller of three uniform numbers, and now and then a scan over a third of the keys.
    fn skewed(seed: u64, keys: u64, accesses: usize) -> Vec<u64> {
        let mut draw = uniform(seed, keys);
        let mut stream = Vec::with_capacity(accesses);
        while stream.len() < accesses {
            let least = draw.by_ref().take(3).min().unwrap_or(0);
            if least % 4_096 == 7 {
                stream.extend(least..least + keys / 3);
            }
            stream.push(least);
        }
        stream.truncate(accesses);
        stream
    }

    /// Exact miss ratios at sizes.
    fn exact(stream: &[u64], sizes: &[u64]) -> Vec<f64> {
        let mut reuse = ReuseDistances::new();
        let distances: Vec<Option<u32>> = stream.iter().map(|&key| reuse.access(key as u32)).collect();
        let hits = |size| distances.iter().flatten().filter(|distance| u64::from(**distance) <= size).count();
        sizes.iter().map(|&size| 1.0 - hits(size) as f64 / stream.len() as f64).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn a_sampled_curve_is_near_the_exact_one(seed in any::<u64>(), keys in 20_000_u64..60_000) {
            let stream = skewed(seed, keys, 300_000);
            let mut shards = Shards::geometric(4_096);
            stream.iter().for_each(|&key| shards.access_wide(key));
            prop_assert!(shards.rate() < 0.3 && shards.keys() <= 4_096);
            let sizes = [1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
            // A scan is a cliff of the curve, and samples place it some percent off: the value of the exact curve a
            // little to either side is right as well.
            let smaller = exact(&stream, &sizes.map(|size| size * 19 / 20));
            let larger = exact(&stream, &sizes.map(|size| size * 21 / 20));
            let errors: Vec<f64> = (0..sizes.len())
                .map(|place| {
                    let predicted = shards.miss_ratio(sizes[place]);
                    (predicted - predicted.clamp(larger[place], smaller[place])).abs()
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            prop_assert!(mean < 0.03 && errors.iter().all(|&error| error < 0.08), "{:?}", errors);
        }

        #[test]
        fn nothing_is_estimated_while_all_keys_are_held(stream in prop::collection::vec(0_u64..3_000, 1..4_000)) {
            let mut shards = Shards::geometric(3_000);
            stream.iter().for_each(|&key| shards.access_wide(key));
            let sizes = [1, 2, 16, 64, 1 << 10, 1 << 12];
            prop_assert_eq!(shards.rate(), 1.0);
            for (miss, size) in exact(&stream, &sizes).into_iter().zip(sizes) {
                prop_assert!((shards.miss_ratio(size) - miss).abs() < 1e-9);
            }
        }
    }
}
