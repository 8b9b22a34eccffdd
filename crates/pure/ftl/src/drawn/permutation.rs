//! A permutation that is computed from a key, and its inverse: nothing is stored for the numbers.

use flashyard_kernel::Rng;

/// Rounds. Source: \[X\] Luby and Rackoff, four make a permutation that looks random; two more are for the cheap mixer.
const ROUNDS: usize = 6;

/// A keyed permutation of the numbers below a length: a Feistel network over the fewest bits that hold them. A number that
/// leaves the range goes through it again until it is back.
pub(super) struct Permutation {
    len: u32,
    low_bits: u32,
    low_mask: u32,
    high_mask: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of the numbers below `len`, at least 1, with keys from `rng`.
    pub(super) fn new(len: u32, rng: &mut Rng) -> Self {
        let bits = 32 - (len - 1).leading_zeros();
        let low_bits = bits / 2;
        let mask = |bits: u32| ((1_u64 << bits) - 1) as u32;
        let keys = std::array::from_fn(|_| rng.next_u64());
        Self { len, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), keys }
    }

    /// The number at `index`.
    pub(super) fn at(&self, index: u32) -> u32 {
        debug_assert!(index < self.len);
        let mut number = index;
        loop {
            number = self.forward(number);
            if number < self.len {
                return number;
            }
        }
    }

    /// The index at which `number` is.
    pub(super) fn index_of(&self, number: u32) -> u32 {
        debug_assert!(number < self.len);
        let mut index = number;
        loop {
            index = self.backward(index);
            if index < self.len {
                return index;
            }
        }
    }

    fn forward(&self, number: u32) -> u32 {
        let (mut low, mut high) = (number & self.low_mask, number >> self.low_bits);
        for keys in self.keys.chunks_exact(2) {
            high ^= mixed(low, keys[0]) & self.high_mask;
            low ^= mixed(high, keys[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }

    fn backward(&self, number: u32) -> u32 {
        let (mut low, mut high) = (number & self.low_mask, number >> self.low_bits);
        for keys in self.keys.rchunks_exact(2) {
            low ^= mixed(high, keys[1]) & self.low_mask;
            high ^= mixed(low, keys[0]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// Bits that depend on all of `half` and of `key`: the high ones of a product.
fn mixed(half: u32, key: u64) -> u32 {
    ((u64::from(half) ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn each_number_has_one_place_and_is_found_there(len in 1_u32..5000, seed in any::<u64>()) {
            let permutation = Permutation::new(len, &mut Rng::named(seed, "test"));
            let mut seen = vec![false; len as usize];
            for index in 0..len {
                let number = permutation.at(index);
                prop_assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} is there twice");
                prop_assert_eq!(permutation.index_of(number), index);
            }
        }

        #[test]
        fn numbers_of_a_large_drive_come_back_too(len in 1_u32 << 20..=u32::MAX, share in 0.0..1.0, seed in any::<u64>()) {
            let permutation = Permutation::new(len, &mut Rng::named(seed, "test"));
            let index = (f64::from(len - 1) * share) as u32;
            prop_assert!(permutation.at(index) < len);
            prop_assert_eq!(permutation.index_of(permutation.at(index)), index);
        }
    }

    #[test]
    fn neighbours_are_scattered_over_the_whole_length() {
        let (len, tenths) = (1_000_000_u32, 10);
        let permutation = Permutation::new(len, &mut Rng::named(1, "test"));
        let mut counts = vec![0_u32; tenths];
        (0..10_000).for_each(|index| counts[(permutation.at(index) / (len / 10)) as usize] += 1);
        // Standard deviation 30.
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 150), "{counts:?} (seed 1)");
        let ascents = (0..10_000).filter(|&index| permutation.at(index) < permutation.at(index + 1)).count();
        assert!(ascents.abs_diff(5000) < 200, "{ascents} of 10,000 neighbours ascend (seed 1)");
    }
}
