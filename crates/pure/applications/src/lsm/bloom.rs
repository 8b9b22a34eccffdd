//! Filters of keys that may be in a file.

/// A Bloom filter: no key that is in it is ever denied.
///
/// Source: [X] the double hashing of Kirsch and Mitzenmacher, as many probes as 0.69 times the bits of a key.
#[derive(Clone, Debug)]
pub struct Bloom {
    words: Vec<u64>,
    bits: u64,
    probes: u32,
}

impl Bloom {
    /// An empty filter for `keys` keys with `bits_per_key` bits each, 1 to 64.
    pub fn new(keys: usize, bits_per_key: u32) -> Self {
        let bits = (keys as u64 * u64::from(bits_per_key)).max(64);
        // [X] 69 of 100: the natural logarithm of 2.
        Self { words: vec![0; bits.div_ceil(64) as usize], bits, probes: (bits_per_key * 69 / 100).clamp(1, 30) }
    }

    /// Takes a key in.
    pub fn insert(&mut self, key: u64) {
        for bit in self.places(key) {
            self.words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    /// Whether a key may be in it.
    pub fn may_hold(&self, key: u64) -> bool {
        self.places(key).all(|bit| self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }

    fn places(&self, key: u64) -> impl Iterator<Item = u64> + use<> {
        let hash = scramble(key);
        let (first, step) = (hash >> 32, hash & 0xffff_ffff | 1);
        let bits = self.bits;
        (0..u64::from(self.probes)).map(move |probe| (first + probe * step) % bits)
    }
}

/// A bijection of numbers that leaves no order in them. Source: \[X\] the finalizer of `SplitMix64`.
pub(crate) fn scramble(key: u64) -> u64 {
    let mixed = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_denied_and_few_others_are_admitted() {
        for (bits, least, most) in [(5, 0.08, 0.12), (10, 0.007, 0.012), (16, 0.0002, 0.001)] {
            let mut bloom = Bloom::new(20_000, bits);
            (0..20_000).for_each(|key| bloom.insert(key));
            assert!((0..20_000).all(|key| bloom.may_hold(key)));
            let wrong = (20_000..220_000).filter(|&key| bloom.may_hold(key)).count() as f64 / 200_000.0;
            // (1 - exp(-k/b))^k: 0.092, 0.0084 and 0.00046.
            assert!((least..most).contains(&wrong), "{bits} bits: {wrong}");
        }
    }
}
