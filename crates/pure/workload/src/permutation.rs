//! A one-to-one scattering of ranks over places.

/// Sends each of `count` numbers to one of as many places, no two to the same, neighbours far apart.
///
/// Rank `r` goes to `r * stride mod count` with a stride near `count` divided by the golden ratio and without a
/// common divisor: multiplication by such a number is one to one, and the golden ratio keeps the first ranks
/// evenly spread however many of them one looks at (the three-distance theorem).
/// Source: \[X\] Fibonacci hashing, D. E. Knuth, The Art of Computer Programming 3, §6.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    stride: u64,
}

impl Permutation {
    /// The scattering of `count` numbers. Panics on zero.
    pub fn new(count: u64) -> Self {
        assert!(count > 0, "there is no place to scatter to");
        // 2^64 divided by the golden ratio, as a fixed-point fraction.
        let mut stride = ((u128::from(count) * 0x9E37_79B9_7F4A_7C15) >> 64) as u64;
        stride = stride.max(1);
        while common_divisor(stride, count) != 1 {
            stride += 1;
        }
        Self { count, stride }
    }

    /// The place of `rank`, which must be below the count.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.count, "rank {rank} of {}", self.count);
        match rank.checked_mul(self.stride) {
            Some(product) => product % self.count,
            None => (u128::from(rank) * u128::from(self.stride) % u128::from(self.count)) as u64,
        }
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_is_taken_once(count in 1_u64..3000) {
            let permutation = Permutation::new(count);
            let mut taken = vec![false; count as usize];
            for rank in 0..count {
                let place = permutation.place(rank) as usize;
                prop_assert!(!taken[place], "place {} twice", place);
                taken[place] = true;
            }
        }

        #[test]
        fn the_hottest_ranks_are_far_apart(count in 10_000_u64..u64::MAX) {
            let permutation = Permutation::new(count);
            let mut places: Vec<u64> = (0..100).map(|rank| permutation.place(rank)).collect();
            places.sort_unstable();
            let nearest = places.windows(2).map(|pair| pair[1] - pair[0]).min().expect("there are pairs");
            // Ideal spacing is count / 100; the golden ratio guarantees more than a third of it.
            prop_assert!(nearest >= count / 300, "{} of {}", nearest, count);
        }

        #[test]
        fn the_stride_has_no_common_divisor_with_any_count(count in any::<u64>()) {
            prop_assume!(count > 0);
            let permutation = Permutation::new(count);
            prop_assert_eq!(common_divisor(permutation.stride, count), 1);
            prop_assert!(permutation.place(count - 1) < count);
        }
    }
}
