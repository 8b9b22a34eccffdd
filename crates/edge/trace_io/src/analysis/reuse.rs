//! Reuse distances of pages, and the miss ratio of a cache of every size.
//!
//! Every 4 KiB page that a read or write touches is one reference, in the order of addresses within a request. The
//! cache holds whole pages, of reads and writes alike, and evicts the one used least recently. Distances are exact
//! while that takes no more memory than allowed; a sample of fixed size is taken from the first row on, and is reported
//! when they cannot be.

use super::pages::PageNumbers;
use crate::footprint::PAGE;
use flashyard_stats::{DistanceHistogram, ReuseDistances, Shards};

/// Pages in the sample: a mean error of the miss ratio below 0.01 in its paper, with half as many.
const SAMPLED_PAGES: usize = 16_384;

/// How distances were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReuseMethod {
    /// Every reference counts.
    Exact,
    /// Estimated from the pages whose hash is below a threshold (SHARDS).
    Sampled {
        /// Share of the pages that are in the sample.
        rate: f64,
    },
}

/// Reuse of 4 KiB pages by reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReuseSummary {
    /// How distances were found.
    pub method: ReuseMethod,
    /// References to pages.
    pub references: u64,
    /// References to a page that was not used before, in percent: no cache of this kind hits them.
    pub first_percent: f64,
    /// The cache in bytes that hits half of the other references: median reuse distance. At most 6 % too large;
    /// `None` without reuse.
    pub distance_p50_bytes: Option<u64>,
    /// The cache that hits 90 % of the other references.
    pub distance_p90_bytes: Option<u64>,
    /// The cache that hits 99 % of the other references.
    pub distance_p99_bytes: Option<u64>,
    /// Miss ratios in order of size, four sizes an octave, up to the size that holds all pages.
    pub curve: Vec<CurvePoint>,
}

/// The miss ratio of one cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Its size in bytes.
    pub bytes: u64,
    /// References that miss, as a share of all.
    pub miss_ratio: f64,
}

/// A summary in the making.
pub(super) struct Reuse {
    references: u64,
    exact: Option<Exact>,
    exact_bytes_max: usize,
    sampled: Shards,
}

struct Exact {
    numbers: PageNumbers,
    reuse: ReuseDistances,
    histogram: DistanceHistogram,
}

impl Reuse {
    pub(super) fn new(exact_bytes_max: usize) -> Self {
        let exact = Exact {
            numbers: PageNumbers::default(),
            reuse: ReuseDistances::new(),
            histogram: DistanceHistogram::geometric(),
        };
        let sampled = Shards::geometric(SAMPLED_PAGES);
        Self { references: 0, exact: Some(exact), exact_bytes_max, sampled }
    }

    /// Counts the pages of `len_bytes`, above zero, from `offset_bytes` on, which end below 2^64.
    pub(super) fn add(&mut self, volume: u32, offset_bytes: u64, len_bytes: u32) {
        let first = offset_bytes / PAGE;
        let last = (offset_bytes + (u64::from(len_bytes) - 1)) / PAGE;
        self.references += last - first + 1;
        // Volumes lie far apart in one space of 2^64 pages: an odd multiple, so none of them share a place.
        let base = u64::from(volume).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (first..=last).for_each(|page| self.sampled.access_wide(base.wrapping_add(page)));
        let Some(exact) = &mut self.exact else { return };
        let Exact { numbers, reuse, histogram } = exact;
        numbers.visit(volume, first, last, |number| {
            if let Some(distance) = reuse.access(number) {
                histogram.record(f64::from(distance));
            }
        });
        if numbers.bytes() + reuse.bytes() > self.exact_bytes_max {
            self.exact = None;
        }
    }

    pub(super) fn finish(self, footprint_bytes: u64) -> ReuseSummary {
        let all = self.references.max(1) as f64;
        // Known exactly in either case, and no cache misses less.
        let first = (footprint_bytes / PAGE) as f64 / all;
        let (method, distances, curve) = match &self.exact {
            Some(Exact { histogram, .. }) => {
                let hits = |pages| histogram.weight_within(histogram.buckets_within(pages));
                (ReuseMethod::Exact, histogram, curve(footprint_bytes, |pages| 1.0 - hits(pages) / all))
            }
            None => {
                let misses = |pages| self.sampled.miss_ratio(pages).max(first);
                let method = ReuseMethod::Sampled { rate: self.sampled.rate() };
                (method, self.sampled.distances(), curve(footprint_bytes, misses))
            }
        };
        // Distances of a sample are estimates; whole bytes are reported.
        let quantile = |quantile| distances.quantile(quantile).map(|pages| (pages * PAGE as f64) as u64);
        ReuseSummary {
            method,
            references: self.references,
            first_percent: 100.0 * first,
            distance_p50_bytes: quantile(0.5),
            distance_p90_bytes: quantile(0.9),
            distance_p99_bytes: quantile(0.99),
            curve,
        }
    }
}

/// Sizes of 1, 1.25, 1.5 and 1.75 times a power of two of pages, up to the first that holds the footprint. They are
/// edges of the histogram's buckets, so that nothing is rounded.
fn curve(footprint_bytes: u64, miss_ratio: impl Fn(u64) -> f64) -> Vec<CurvePoint> {
    let footprint_pages = footprint_bytes / PAGE;
    let mut points = Vec::new();
    let mut covered = footprint_pages == 0;
    for size in (0..50).flat_map(|octave| [4_u64, 5, 6, 7].map(|quarters| quarters << octave)) {
        if covered {
            break;
        }
        // Sizes below four pages come once, where a quarter of them is whole.
        if size.is_multiple_of(4) {
            let pages = size / 4;
            points.push(CurvePoint { bytes: pages * PAGE, miss_ratio: miss_ratio(pages) });
            covered = pages >= footprint_pages;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Footprint in bytes of ranges in one volume.
    fn footprint(ranges: &[(u64, u32)]) -> u64 {
        let mut footprint = crate::footprint::Footprint::default();
        ranges.iter().for_each(|&(offset, len)| footprint.add(0, offset, len));
        footprint.pages() * PAGE
    }

    fn run(ranges: &[(u64, u32)], exact_bytes_max: usize) -> ReuseSummary {
        let mut reuse = Reuse::new(exact_bytes_max);
        ranges.iter().for_each(|&(offset, len)| reuse.add(0, offset, len));
        reuse.finish(footprint(ranges))
    }

    /// Hits of a cache that is simulated, for each size.
    fn simulated(ranges: &[(u64, u32)], pages: u64) -> f64 {
        let mut cache: Vec<u64> = Vec::new();
        let (mut misses, mut all) = (0.0, 0.0);
        for &(offset, len) in ranges {
            for page in offset / PAGE..=(offset + u64::from(len) - 1) / PAGE {
                let place = cache.iter().position(|&held| held == page);
                misses += f64::from(u8::from(place.is_none()));
                all += 1.0;
                place.map(|place| cache.remove(place));
                cache.insert(0, page);
                cache.truncate(pages as usize);
            }
        }
        misses / all
    }

    #[test]
    fn more_memory_than_allowed_means_a_sample() {
        let ranges: Vec<(u64, u32)> = (0..200_000_u64).map(|row| (row * 7_919 % 60_000 * PAGE, 4096)).collect();
        let (exact, sampled) = (run(&ranges, usize::MAX), run(&ranges, 64 << 10));
        assert_eq!(exact.method, ReuseMethod::Exact);
        assert!(matches!(sampled.method, ReuseMethod::Sampled { rate } if rate > 0.2 && rate < 0.4), "{sampled:?}");
        assert_eq!((exact.references, exact.curve.len()), (sampled.references, sampled.curve.len()));
        assert_eq!(exact.first_percent, sampled.first_percent);
        for (exact, sampled) in exact.curve.iter().zip(&sampled.curve) {
            // All distances are the same here, so the step may come one point early or late.
            let near = exact.bytes > 50_000 * PAGE && exact.bytes < 75_000 * PAGE;
            assert!(near || (exact.miss_ratio - sampled.miss_ratio).abs() < 0.05, "{exact:?} {sampled:?}");
        }
    }

    proptest! {
        #[test]
        fn the_curve_is_that_of_simulated_caches(
            ranges in prop::collection::vec((0_u64..300_000, 1_u32..40_000), 1..150),
        ) {
            let found = run(&ranges, usize::MAX);
            prop_assert_eq!(found.method, ReuseMethod::Exact);
            for point in &found.curve {
                let expected = simulated(&ranges, point.bytes / PAGE);
                prop_assert!((point.miss_ratio - expected).abs() < 1e-12, "{:?} against {}", point, expected);
            }
            let last = found.curve.last().map_or(1.0, |point| point.miss_ratio);
            prop_assert!((last * 100.0 - found.first_percent).abs() < 1e-9);
        }
    }
}
