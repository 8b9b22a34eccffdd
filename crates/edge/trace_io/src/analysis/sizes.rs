//! Sizes of requests.

use crate::footprint::PAGE;
use std::collections::HashMap;

/// Frequent sizes that are reported.
const FREQUENT: usize = 5;

/// Sizes of the requests of one kind; all zero without requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeSummary {
    /// Requests.
    pub requests: u64,
    /// Size in bytes that half of the requests do not exceed.
    pub p50_bytes: u32,
    /// Size in bytes that 90 % of the requests do not exceed.
    pub p90_bytes: u32,
    /// Size in bytes that 99 % of the requests do not exceed.
    pub p99_bytes: u32,
    /// Largest size in bytes.
    pub max_bytes: u32,
    /// Requests that begin and end at a multiple of 4 KiB, in percent.
    pub aligned_percent: f64,
    /// The five most frequent sizes, most frequent first, of equally frequent ones the smaller first.
    pub frequent: Vec<FrequentSize>,
}

/// A size and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequentSize {
    /// The size in bytes.
    pub bytes: u32,
    /// Requests of it.
    pub requests: u64,
}

/// Sizes in the making: exact, for programs use few different ones.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    counts: HashMap<u32, u64>,
    aligned: u64,
}

impl Sizes {
    pub(super) fn add(&mut self, offset_bytes: u64, len_bytes: u32) {
        *self.counts.entry(len_bytes).or_default() += 1;
        let aligned = offset_bytes.is_multiple_of(PAGE) && u64::from(len_bytes).is_multiple_of(PAGE);
        self.aligned += u64::from(aligned);
    }

    pub(super) fn finish(self) -> SizeSummary {
        let mut sizes: Vec<FrequentSize> =
            self.counts.into_iter().map(|(bytes, requests)| FrequentSize { bytes, requests }).collect();
        sizes.sort_unstable_by_key(|size| size.bytes);
        let requests: u64 = sizes.iter().map(|size| size.requests).sum();
        let percentile = |percent: u64| {
            let rank = (requests * percent).div_ceil(100);
            let mut below = 0;
            let reached = sizes.iter().find(|size| {
                below += size.requests;
                below >= rank
            });
            reached.map_or(0, |size| size.bytes)
        };
        let (p50_bytes, p90_bytes, p99_bytes) = (percentile(50), percentile(90), percentile(99));
        let max_bytes = sizes.last().map_or(0, |size| size.bytes);
        sizes.sort_by_key(|size| std::cmp::Reverse(size.requests));
        sizes.truncate(FREQUENT);
        let aligned_percent = 100.0 * self.aligned as f64 / requests.max(1) as f64;
        SizeSummary { requests, p50_bytes, p90_bytes, p99_bytes, max_bytes, aligned_percent, frequent: sizes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_sorted_list(mut list in prop::collection::vec(1_u32..50, 0..300)) {
            let mut sizes = Sizes::default();
            list.iter().for_each(|&size| sizes.add(0, size * 512));
            let found = sizes.finish();
            list.sort_unstable();
            let at = |percent: usize| list.get((list.len() * percent).div_ceil(100).max(1) - 1).map_or(0, |size| size * 512);
            prop_assert_eq!((found.p50_bytes, found.p90_bytes, found.p99_bytes), (at(50), at(90), at(99)));
            prop_assert_eq!(found.max_bytes, at(100));
            prop_assert_eq!(found.requests, list.len() as u64);
            prop_assert!(found.frequent.is_sorted_by_key(|size| std::cmp::Reverse(size.requests)));
        }
    }
}
