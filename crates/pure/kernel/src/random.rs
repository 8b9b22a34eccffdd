//! Random streams derived by name from one seed, so that a new consumer does not shift the others.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// One named stream of random numbers: xoshiro256++ seeded by SplitMix64 from seed and name.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream called `name` of the world seeded with `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name: short names, no collision among the few a world has.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(17)))
    }

    /// A number uniform over 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number uniform below `bound`, which must be above zero.
    ///
    /// Multiply-shift: the bias is below 2^-32 for bounds below 2^32, and the draw costs one product.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number uniform over [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_seed_and_name_only() {
        let draw = |seed, name| Rng::named(seed, name).next_u64();
        assert_eq!(draw(1, "ftl.gc"), draw(1, "ftl.gc"));
        assert_ne!(draw(1, "ftl.gc"), draw(2, "ftl.gc"));
        assert_ne!(draw(1, "ftl.gc"), draw(1, "host.redirect"));
    }

    /// From the published definitions of FNV-1a, SplitMix64 and xoshiro256++, calculated apart from this program.
    #[test]
    fn streams_are_those_of_the_published_generators() {
        let draws = |seed, name| {
            let mut rng = Rng::named(seed, name);
            [(); 3].map(|()| rng.next_u64())
        };
        assert_eq!(draws(0, ""), [0xfe81_6938_5fd6_1a4e, 0x84f2_e601_54da_4ffe, 0x2d52_11c3_aec2_607c]);
        assert_eq!(draws(7, "ftl.gc"), [0xa2d6_c9fd_6069_4c07, 0x1966_1f8b_d978_d492, 0x1237_1770_3744_afc5]);
        let mut units = Rng::named(7, "ftl.gc");
        assert_eq!(
            [(); 3].map(|()| units.unit()),
            [0.636_089_920_386_813_2, 0.099_214_526_789_612_07, 0.071_153_130_432_565_55]
        );
        let mut thousands = Rng::named(7, "ftl.gc");
        assert_eq!([(); 3].map(|()| thousands.below(1000)), [636, 99, 71]);
    }

    #[test]
    fn draws_below_a_bound_are_uniform() {
        let mut rng = Rng::named(7, "test");
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }
}
