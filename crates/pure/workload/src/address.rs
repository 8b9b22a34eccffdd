//! Where generated requests go.

use crate::permutation::Permutation;
use crate::sizes::Size;
use crate::spec_error::SpecError;
use crate::zipf::Zipf;
use flashyard_kernel::Rng;

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum AddressPattern {
    /// One after the other, from an offset in bytes, around at the end of the span. The alignment is that of
    /// the start and the sizes.
    Sequential {
        /// First byte, modulo the span.
        start: u64,
    },
    /// Anywhere with equal probability.
    Uniform,
    /// Zipf-distributed over the span's aligned places, whatever the size; hot places are scattered one to one.
    Zipf {
        /// Exponent, above 0 and below 10.
        theta: f64,
    },
    /// Regions of one size are Zipf-distributed, and scattered one to one; within a region any aligned place is as likely as another.
    Regions {
        /// Exponent, above 0 and below 10.
        theta: f64,
        /// Bytes of a region, a multiple of the alignment.
        region_bytes: u64,
    },
    /// A share of the traffic goes to a share of the space at its beginning, both from 0 to 1 (r/h hot-cold).
    HotCold {
        /// Share of the space that is hot.
        space: f64,
        /// Share of the requests that go there.
        traffic: f64,
    },
    /// Sequential runs of random length: a request begins where the last one ended, or a new run begins. Reads
    /// and writes share a run. Mean length of a run in requests: 1 / (1 - `go_on`).
    Runs {
        /// Probability that a run goes on, 0 to below 1.
        go_on: f64,
        /// Where runs begin: any pattern but `Sequential` and `Runs`.
        starts: Box<AddressPattern>,
    },
}

/// A pattern made ready for drawing over one span.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    pattern: Placing,
    span_bytes: u64,
    alignment_bytes: u64,
}

#[derive(Clone, Debug)]
enum Placing {
    Sequential { next: u64 },
    Runs { go_on: f64, next: Option<u64>, starts: Scattered },
    Scattered(Scattered),
}

/// Patterns without memory.
#[derive(Clone, Debug)]
enum Scattered {
    Uniform,
    Zipf { zipf: Zipf, permutation: Permutation },
    Regions { zipf: Zipf, permutation: Permutation, region: u64 },
    HotCold { space: f64, traffic: f64 },
}

impl AddressPattern {
    /// Checks ranges.
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        match self {
            Self::Sequential { .. } | Self::Uniform => Ok(()),
            Self::Zipf { theta } | Self::Regions { theta, .. } if !(*theta > 0.0 && *theta < 10.0) => {
                Err(SpecError::new("Zipf exponent", theta.to_string(), "above 0 and below 10"))
            }
            Self::Zipf { .. } => Ok(()),
            Self::Regions { region_bytes: 0, .. } => {
                Err(SpecError::new("bytes of a region", "0".to_owned(), "a multiple of the alignment"))
            }
            Self::Regions { .. } => Ok(()),
            Self::HotCold { space, traffic } => {
                if *space > 0.0 && *space < 1.0 && (0.0..=1.0).contains(traffic) {
                    return Ok(());
                }
                let value = format!("{space} and {traffic}");
                Err(SpecError::new("hot space and traffic", value, "shares between 0 and 1"))
            }
            Self::Runs { go_on, starts } => {
                if !(0.0..1.0).contains(go_on) {
                    return Err(SpecError::new("probability that a run goes on", go_on.to_string(), "0 to below 1"));
                }
                if matches!(**starts, Self::Sequential { .. } | Self::Runs { .. }) {
                    let value = format!("{starts:?}");
                    return Err(SpecError::new("pattern of run starts", value, "a pattern without memory"));
                }
                starts.validate()
            }
        }
    }

    /// The pattern made ready for `span_bytes`. Call on a valid pattern only.
    pub(crate) fn prepare(&self, span_bytes: u64, alignment_bytes: u64) -> Placer {
        let scattered = |pattern: &Self| pattern.scattered((span_bytes / alignment_bytes).max(1), alignment_bytes);
        let pattern = match self {
            Self::Sequential { start } => Placing::Sequential { next: start % span_bytes },
            Self::Runs { go_on, starts } => Placing::Runs { go_on: *go_on, next: None, starts: scattered(starts) },
            other => Placing::Scattered(scattered(other)),
        };
        Placer { pattern, span_bytes, alignment_bytes }
    }

    /// A pattern without memory over `places` places.
    fn scattered(&self, places: u64, alignment_bytes: u64) -> Scattered {
        match self {
            Self::Uniform => Scattered::Uniform,
            Self::Zipf { theta } => {
                Scattered::Zipf { zipf: Zipf::new(places, *theta), permutation: Permutation::new(places) }
            }
            Self::Regions { theta, region_bytes } => {
                let region = (region_bytes / alignment_bytes).max(1);
                let regions = places.div_ceil(region);
                let (zipf, permutation) = (Zipf::new(regions, *theta), Permutation::new(regions));
                Scattered::Regions { zipf, permutation, region }
            }
            Self::HotCold { space, traffic } => Scattered::HotCold { space: *space, traffic: *traffic },
            Self::Sequential { .. } | Self::Runs { .. } => {
                unreachable!("validated: run starts have no memory")
            }
        }
    }
}

impl Placer {
    /// The number of aligned offsets at which `len_bytes`, at most the span, fit.
    pub(crate) fn places(span_bytes: u64, alignment_bytes: u64, len_bytes: u32) -> u64 {
        (span_bytes - u64::from(len_bytes)) / alignment_bytes + 1
    }

    /// An offset at which `size` fits.
    #[inline]
    pub(crate) fn place(&mut self, size: Size, rng: &mut Rng) -> u64 {
        let len = u64::from(size.len_bytes);
        match &mut self.pattern {
            Placing::Scattered(scattered) => scattered.index(size.places, rng) * self.alignment_bytes,
            Placing::Sequential { next } => {
                // `next` is at most the span, and so is the length.
                let start = if len > self.span_bytes - *next { 0 } else { *next };
                *next = start + len;
                start
            }
            Placing::Runs { go_on, next, starts } => {
                let goes_on = rng.unit() < *go_on;
                let follows = next.filter(|&next| goes_on && len <= self.span_bytes - next);
                let start = follows.unwrap_or_else(|| starts.index(size.places, rng) * self.alignment_bytes);
                *next = Some(start + len);
                start
            }
        }
    }
}

impl Scattered {
    /// A place below `places`, the number of those at which a request of the present size fits.
    #[inline]
    fn index(&self, places: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform => rng.below(places),
            Self::Zipf { zipf, permutation } => {
                // Heat belongs to places, not to sizes: a long request that does not fit at a place near the
                // end begins at the last one at which it fits.
                permutation.place(zipf.draw(rng)).min(places - 1)
            }
            Self::Regions { zipf, permutation, region } => {
                (permutation.place(zipf.draw(rng)) * *region + rng.below(*region)).min(places - 1)
            }
            Self::HotCold { space, traffic } => {
                let hot = ((places as f64 * space) as u64).clamp(1, places);
                if rng.unit() < *traffic || hot == places { rng.below(hot) } else { hot + rng.below(places - hot) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 1 << 30;

    fn offsets(pattern: &AddressPattern, len_bytes: u32, count: usize) -> Vec<u64> {
        pattern.validate().expect("the pattern is valid");
        let mut placer = pattern.prepare(SPAN, 4096);
        let size = Size { len_bytes, places: Placer::places(SPAN, 4096, len_bytes) };
        let mut rng = Rng::named(3, "test");
        (0..count).map(|_| placer.place(size, &mut rng)).collect()
    }

    #[test]
    fn a_sequential_pattern_goes_around_at_the_end() {
        let start = SPAN - 8192;
        let found = offsets(&AddressPattern::Sequential { start }, 4096, 4);
        assert_eq!(found, [SPAN - 8192, SPAN - 4096, 0, 4096]);
        // A request that does not fit before the end goes to the beginning as a whole.
        assert_eq!(offsets(&AddressPattern::Sequential { start }, 12_288, 2), [0, 12_288]);
    }

    #[test]
    fn runs_have_their_mean_length() {
        let pattern = AddressPattern::Runs { go_on: 0.75, starts: Box::new(AddressPattern::Uniform) };
        let found = offsets(&pattern, 4096, 100_000);
        let breaks = found.windows(2).filter(|pair| pair[1] != pair[0] + 4096).count();
        let mean = found.len() as f64 / breaks as f64;
        assert!((mean - 4.0).abs() < 0.08, "{mean} requests a run (seed 3)");
    }

    #[test]
    fn the_hot_part_gets_its_share_of_the_traffic() {
        let found = offsets(&AddressPattern::HotCold { space: 0.2, traffic: 0.7 }, 4096, 100_000);
        let hot = found.iter().filter(|&&offset| offset < SPAN / 5).count();
        assert!((hot as f64 / 100_000.0 - 0.7).abs() < 0.006, "{hot} (seed 3)");
    }

    #[test]
    fn hot_places_of_a_zipf_pattern_are_apart_and_the_same_for_every_size() {
        let pattern = AddressPattern::Zipf { theta: 0.99 };
        let hottest = |len_bytes| {
            let mut found = offsets(&pattern, len_bytes, 100_000);
            found.sort_unstable();
            let mut counts: Vec<(usize, u64)> = found.chunk_by(|a, b| a == b).map(|c| (c.len(), c[0])).collect();
            counts.sort_unstable_by_key(|&(count, place)| (std::cmp::Reverse(count), place));
            counts.iter().take(8).map(|&(_, place)| place).collect::<Vec<u64>>()
        };
        let mut hot = hottest(4096);
        assert_eq!(hot, hottest(65_536));
        hot.sort_unstable();
        assert!(hot.windows(2).all(|pair| pair[1] - pair[0] > SPAN / 100), "{hot:?}");
    }

    #[test]
    fn regions_are_hot_and_their_places_are_not() {
        let pattern = AddressPattern::Regions { theta: 1.0, region_bytes: 4 << 20 };
        let found = offsets(&pattern, 4096, 100_000);
        let mut counts = vec![0_u32; (SPAN >> 22) as usize];
        found.iter().for_each(|offset| counts[(offset >> 22) as usize] += 1);
        let hottest = (0..counts.len()).max_by_key(|&region| counts[region]).expect("there are regions") as u64;
        // 1 / (1 + 1/2 + ... + 1/256) of the requests.
        assert!((f64::from(counts[hottest as usize]) / 100_000.0 - 0.1633).abs() < 0.004, "{counts:?} (seed 3)");
        let low = found.iter().filter(|&&offset| offset >> 22 == hottest && (offset >> 21) & 1 == 0).count();
        assert!((low as f64 / f64::from(counts[hottest as usize]) - 0.5).abs() < 0.02, "{low} (seed 3)");
        assert!(AddressPattern::Regions { theta: 1.0, region_bytes: 0 }.validate().is_err());
    }

    #[test]
    fn runs_of_runs_are_refused() {
        let inner = AddressPattern::Runs { go_on: 0.5, starts: Box::new(AddressPattern::Uniform) };
        for starts in [inner, AddressPattern::Sequential { start: 0 }, AddressPattern::Zipf { theta: 0.0 }] {
            let pattern = AddressPattern::Runs { go_on: 0.5, starts: Box::new(starts) };
            assert!(pattern.validate().is_err(), "{pattern:?}");
        }
    }
}
