//! Sizes of generated requests.

use crate::spec_error::SpecError;
use flashyard_kernel::Rng;

/// Sizes of requests, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeMix {
    /// Always this size.
    Fixed(u32),
    /// Sizes with weights. Weights are relative; they need not add up to one.
    Weighted(Vec<(u32, f64)>),
    /// A mean, made of the two multiples of 4 KiB around it, in the shares that give exactly this mean
    /// (\[A\]: nothing but the mean is published). A mean below 4 KiB is made of itself, rounded down, and 4 KiB.
    Mean(f64),
}

/// The granule of sizes that a mean is made of. \[A\] the mapping unit of common drives.
const GRANULE: u32 = 4096;

/// A size with its derived values, computed once: a division for each request would double its cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) len_bytes: u32,
    /// The number of aligned offsets at which this many bytes fit into the span.
    pub(crate) places: u64,
}

/// A size mix made ready for drawing.
#[derive(Clone, Debug)]
pub(crate) enum Sizes {
    Fixed(Size),
    Weighted {
        sizes: Vec<(Size, f64)>,
        total: f64,
    },
    /// The second size with probability `share`, else the first.
    Two {
        below: Size,
        above: Size,
        share: f64,
    },
}

impl SizeMix {
    /// The mean size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        match self {
            Self::Fixed(size) => f64::from(*size),
            Self::Weighted(sizes) => {
                let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
                sizes.iter().map(|(size, weight)| f64::from(*size) * weight).sum::<f64>() / total
            }
            Self::Mean(mean) => *mean,
        }
    }

    /// Checks that every size is at least 1 byte and fits into `span_bytes`, and that weights are weights.
    pub(crate) fn validate(&self, span_bytes: u64) -> Result<(), SpecError> {
        let check_size = |size: u32| {
            if size > 0 && u64::from(size) <= span_bytes {
                return Ok(());
            }
            Err(SpecError::new("request size", format!("{size} bytes"), "at least 1 byte and at most the span"))
        };
        match self {
            Self::Fixed(size) => check_size(*size),
            Self::Weighted(sizes) => {
                if let Some((_, weight)) = sizes.iter().find(|(_, weight)| !(weight.is_finite() && *weight >= 0.0)) {
                    return Err(SpecError::new("weight of a size", weight.to_string(), "0 or above, and finite"));
                }
                let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
                if !(total > 0.0 && total.is_finite()) {
                    return Err(SpecError::new("sum of size weights", total.to_string(), "above 0 and finite"));
                }
                sizes.iter().filter(|(_, weight)| *weight > 0.0).try_for_each(|(size, _)| check_size(*size))
            }
            Self::Mean(mean) => {
                if !(1.0..=f64::from(u32::MAX - GRANULE)).contains(mean) {
                    return Err(SpecError::new("mean request size", mean.to_string(), "1 byte to 4 GiB less 4 KiB"));
                }
                let (below, above, share) = around(*mean);
                check_size(if share > 0.0 { above } else { below })
            }
        }
    }

    /// The mix made ready; `places` counts the offsets for a length. Call on a valid mix only.
    pub(crate) fn prepare(&self, places: impl Fn(u32) -> u64) -> Sizes {
        let size = |len_bytes| Size { len_bytes, places: places(len_bytes) };
        match self {
            Self::Fixed(len) => Sizes::Fixed(size(*len)),
            Self::Weighted(sizes) => {
                let kept = sizes.iter().filter(|(_, weight)| *weight > 0.0);
                let sizes: Vec<(Size, f64)> = kept.map(|&(len, weight)| (size(len), weight)).collect();
                let total = sizes.iter().map(|(_, weight)| weight).sum();
                Sizes::Weighted { sizes, total }
            }
            Self::Mean(mean) => {
                let (below, above, share) = around(*mean);
                // A mean that is a multiple itself never draws the size above, which need not fit the span.
                let above = if share > 0.0 { above } else { below };
                Sizes::Two { below: size(below), above: size(above), share }
            }
        }
    }
}

impl Sizes {
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> Size {
        match self {
            Self::Fixed(size) => *size,
            Self::Two { below, above, share } => {
                if rng.unit() < *share {
                    *above
                } else {
                    *below
                }
            }
            Self::Weighted { sizes, total } => {
                let mut left = rng.unit() * total;
                for (size, weight) in sizes {
                    left -= weight;
                    if left < 0.0 {
                        return *size;
                    }
                }
                // Rounding may leave a last bit over.
                sizes.last().expect("a valid mix has a size").0
            }
        }
    }
}

/// The multiples of 4 KiB around a mean, and the share of the one above that makes the mean.
fn around(mean: f64) -> (u32, u32, f64) {
    let below = (mean / f64::from(GRANULE)) as u32 * GRANULE;
    let (below, above) = if below == 0 { (mean as u32, GRANULE) } else { (below, below + GRANULE) };
    (below, above, (mean - f64::from(below)) / f64::from(above - below))
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has an `Rng` of its own.
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    #[test]
    fn weights_decide_how_often_a_size_comes() {
        let mix = SizeMix::Weighted(vec![(4096, 3.0), (512, 0.0), (65_536, 1.0)]);
        let sizes = mix.prepare(|_| 1);
        let mut rng = Rng::named(11, "test");
        let mut counts = [0_u32; 2];
        for _ in 0..100_000 {
            match sizes.draw(&mut rng).len_bytes {
                4096 => counts[0] += 1,
                65_536 => counts[1] += 1,
                other => panic!("{other} has no weight (seed 11)"),
            }
        }
        assert!((f64::from(counts[0]) / 100_000.0 - 0.75).abs() < 0.006, "{counts:?} (seed 11)");
        assert_eq!(mix.mean_bytes(), (3.0 * 4096.0 + 65_536.0) / 4.0);
    }

    #[test]
    fn mixes_without_a_drawable_size_are_refused() {
        let wrong = [
            SizeMix::Fixed(0),
            SizeMix::Fixed(1 << 21),
            SizeMix::Weighted(vec![]),
            SizeMix::Weighted(vec![(4096, 0.0)]),
            SizeMix::Weighted(vec![(4096, -1.0), (8192, 2.0)]),
            SizeMix::Weighted(vec![(4096, f64::NAN)]),
            SizeMix::Weighted(vec![(0, 1.0), (4096, 1.0)]),
            SizeMix::Mean(0.5),
            SizeMix::Mean(-4096.0),
            SizeMix::Mean(f64::NAN),
            SizeMix::Mean(1e12),
            SizeMix::Mean(1_048_577.0),
        ];
        for mix in wrong {
            assert!(mix.validate(1 << 20).is_err(), "{mix:?}");
        }
        // The size above a whole multiple is never drawn, so a mean of the span itself is possible.
        assert_eq!(SizeMix::Mean(1_048_576.0).validate(1 << 20), Ok(()));
    }

    proptest! {
        #[test]
        fn two_sizes_make_exactly_the_mean(mean in 1.0_f64..4e9) {
            prop_assert_eq!(SizeMix::Mean(mean).validate(u64::MAX), Ok(()));
            let (below, above, share) = around(mean);
            let made = f64::from(below) * (1.0 - share) + f64::from(above) * share;
            prop_assert!((made - mean).abs() <= mean * 1e-12);
            prop_assert!((0.0..1.0).contains(&share) && below > 0);
            prop_assert!(mean < 4096.0 || (below % GRANULE == 0 && above == below + GRANULE));
        }
    }
}
