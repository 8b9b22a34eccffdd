//! SHARDS: a miss-ratio curve from a spatially hashed sample, with a fixed number of keys.
//!
//! A key is sampled when its hash lies below a threshold T of P = 2^24; the sampling rate is R = T / P. A
//! sampled access of stack distance d counts at distance d / R; a first access counts as infinite. When
//! more than `keys_max` keys are held, the one with the largest hash leaves, T falls to its hash and counts
//! are rescaled. Curve at size c: 1 - (hits up to c) / all.
//! Source: [X] Waldspurger et al., FAST '15; parameters [A] sheet xbof §9.2.

use std::collections::BTreeMap;

const MODULUS: u32 = 1 << 24;
const BUCKETS: usize = 256;

/// Online miss-ratio curve of one drive's translation pages.
pub struct Shards {
    threshold: u32,
    keys_max: usize,
    /// Distance covered by one histogram bucket, in keys.
    bucket: f64,
    clock: u64,
    /// Key to (hash, last access).
    last: BTreeMap<u32, (u32, u64)>,
    /// Last access to key: the LRU stack.
    stack: BTreeMap<u64, u32>,
    /// (hash, key), to find the largest hash.
    hashes: BTreeMap<(u32, u32), ()>,
    histogram: Vec<f64>,
    cold: f64,
    accesses: f64,
}

impl Shards {
    /// An empty curve over `keys` possible keys, sampling one in a hundred at first, holding `keys_max`.
    pub fn new(keys: u32, keys_max: usize) -> Self {
        Self {
            threshold: MODULUS / 100,
            keys_max,
            bucket: (f64::from(keys) / BUCKETS as f64).max(1.0),
            clock: 0,
            last: BTreeMap::new(),
            stack: BTreeMap::new(),
            hashes: BTreeMap::new(),
            histogram: vec![0.0; BUCKETS],
            cold: 0.0,
            accesses: 0.0,
        }
    }

    /// The present sampling rate.
    pub fn rate(&self) -> f64 {
        f64::from(self.threshold) / f64::from(MODULUS)
    }

    /// Counts one access.
    #[inline]
    pub fn access(&mut self, key: u32) {
        self.accesses += 1.0;
        let hash = Self::hash(key);
        if hash < self.threshold {
            self.sample(key, hash);
        }
    }

    /// Predicted miss ratio of a cache of `size` keys; 1 before any sample.
    pub fn miss_ratio(&self, size: u32) -> f64 {
        // The correction of SHARDS-adj: what sampling missed or added belongs to the first bucket.
        let sampled: f64 = self.histogram.iter().sum::<f64>() + self.cold;
        let expected = self.accesses * self.rate();
        if expected <= 0.0 || sampled <= 0.0 {
            return 1.0;
        }
        let whole = (f64::from(size) / self.bucket) as usize;
        let correction = if whole > 0 { expected - sampled } else { 0.0 };
        let hits: f64 = self.histogram.iter().take(whole).sum::<f64>() + correction;
        (1.0 - hits / expected).clamp(0.0, 1.0)
    }

    /// Halves all counts, so that old behaviour fades.
    pub fn fade(&mut self) {
        self.histogram.iter_mut().for_each(|count| *count /= 2.0);
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

    #[cold]
    fn sample(&mut self, key: u32, hash: u32) {
        self.clock += 1;
        match self.last.insert(key, (hash, self.clock)) {
            Some((_, before)) => {
                let distance = self.stack.range(before..).count() as f64 / self.rate();
                let bucket = ((distance / self.bucket) as usize).min(BUCKETS - 1);
                self.histogram[bucket] += 1.0;
                self.stack.remove(&before);
            }
            None => {
                self.cold += 1.0;
                self.hashes.insert((hash, key), ());
            }
        }
        self.stack.insert(self.clock, key);
        if self.last.len() > self.keys_max {
            self.lower_threshold();
        }
    }

    fn lower_threshold(&mut self) {
        let Some(((hash, _), ())) = self.hashes.pop_last() else { return };
        let scale = f64::from(hash) / f64::from(self.threshold);
        self.threshold = hash;
        self.histogram.iter_mut().for_each(|count| *count *= scale);
        self.cold *= scale;
        // Every key at or above the new threshold leaves.
        let mut gone: Vec<u32> = self.hashes.split_off(&(hash, 0)).into_keys().map(|(_, key)| key).collect();
        gone.extend(self.last.iter().filter(|(_, (h, _))| *h == hash).map(|(&key, _)| key));
        for key in gone {
            if let Some((_, at)) = self.last.remove(&key) {
                self.stack.remove(&at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;

    #[test]
    fn uniform_accesses_give_a_straight_curve() {
        let keys = 100_000;
        let mut shards = Shards::new(keys, 2_000);
        let mut rng = Rng::named(11, "test");
        for _ in 0..1_500_000 {
            shards.access(rng.below(u64::from(keys)) as u32);
        }
        shards.cold = 0.0;
        for share in [0.25, 0.5, 0.75] {
            let predicted = shards.miss_ratio((f64::from(keys) * share) as u32);
            assert!((predicted - (1.0 - share)).abs() < 0.1, "size {share}: {predicted}");
        }
    }

    #[test]
    fn a_small_working_set_needs_no_more_than_itself() {
        let mut shards = Shards::new(100_000, 8_192);
        let mut rng = Rng::named(12, "test");
        for _ in 0..500_000 {
            shards.access(rng.below(20_000) as u32);
        }
        assert!(shards.miss_ratio(24_000) < 0.08, "{}", shards.miss_ratio(24_000));
        assert!(shards.miss_ratio(5_000) > 0.6, "{}", shards.miss_ratio(5_000));
    }
}
