//! A random order of places that needs no memory of those already visited.

use flashyard_kernel::Rng;

/// Sends each of `count` numbers to one of as many places, no two to the same, in an order that looks random.
///
/// Unlike [`Permutation`](crate::Permutation), which spreads the first numbers evenly on purpose: an even spread
/// would load the dies of a drive more evenly than chance does.
///
/// Four rounds of multiplication by an odd number, addition and a shift to the right, all modulo a power of two,
/// are one to one each; a result outside the count goes through again (at most every second one does).
/// Source: \[X\] cycle walking, J. Black and P. Rogaway, CT-RSA 2002.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shuffle {
    count: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 4],
}

/// An odd multiplier with well-mixed bits. \[X\] the 64-bit finalizer of SplitMix64
const MULTIPLIER: u64 = 0xBF58_476D_1CE4_E5B9;

impl Shuffle {
    /// An order of `count` numbers, at least 1, drawn from `rng`.
    pub(crate) fn new(count: u64, rng: &mut Rng) -> Self {
        assert!(count > 0, "there is no place to visit");
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        let mask = u64::MAX >> (u64::BITS - bits);
        Self { count, mask, shift: (bits / 2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// The place of `number`, which must be below the count.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> u64 {
        debug_assert!(number < self.count, "number {number} of {}", self.count);
        let mut place = number;
        loop {
            for key in self.keys {
                place = place.wrapping_mul(MULTIPLIER ^ (key << 1)).wrapping_add(key >> 7) & self.mask;
                place ^= place >> self.shift;
            }
            if place < self.count {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    #[test]
    fn neighbours_land_independently_of_each_other() {
        // Pairs of consecutive places in a 10 by 10 grid: 100 cells, 99 degrees of freedom, deviation 14.
        for count in [10_000_u64, 65_536, 1_000_003] {
            let shuffle = Shuffle::new(count, &mut Rng::named(5, "test"));
            let cell = |number| shuffle.place(number) * 10 / count;
            let mut cells = [0_u32; 100];
            let pairs = 9_999;
            (0..pairs).for_each(|number| cells[(cell(number) * 10 + cell(number + 1)) as usize] += 1);
            let expected = pairs as f64 / 100.0;
            let statistic: f64 = cells
                .iter()
                .map(|&found| (f64::from(found) - expected) * (f64::from(found) - expected) / expected)
                .sum();
            assert!((40.0..190.0).contains(&statistic), "{statistic} for {count} (seed 5)");
        }
    }

    #[test]
    fn two_orders_differ() {
        let mut rng = Rng::named(5, "test");
        let (first, second) = (Shuffle::new(1000, &mut rng), Shuffle::new(1000, &mut rng));
        let same = (0..1000).filter(|&number| first.place(number) == second.place(number)).count();
        assert!(same < 10, "{same} places are the same (seed 5)");
    }

    proptest! {
        #[test]
        fn every_place_is_visited_once(count in 1_u64..3000, seed in any::<u64>()) {
            let shuffle = Shuffle::new(count, &mut Rng::named(seed, "test"));
            let mut visited = vec![false; count as usize];
            for number in 0..count {
                let place = shuffle.place(number) as usize;
                prop_assert!(!visited[place], "place {} twice", place);
                visited[place] = true;
            }
        }

        #[test]
        fn large_counts_stay_below_themselves(count in 1_u64.., seed in any::<u64>()) {
            let shuffle = Shuffle::new(count, &mut Rng::named(seed, "test"));
            prop_assert!(shuffle.place(count - 1) < count && shuffle.place(0) < count);
        }
    }
}
