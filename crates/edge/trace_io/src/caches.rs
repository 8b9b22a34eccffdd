//! Misses of caches with different policies on one trace.
//!
//! Every 4 KiB page that a read or write touches is one access, as for reuse distances; a page that misses is taken in. A
//! trace is read twice: sizes may be parts of its footprint, which is known at its end.

use crate::analysis::OBSERVED_ROWS;
use crate::error::TraceError;
use crate::footprint::PAGE;
use crate::reader::TraceReader;
use crate::summary::{Totals, TraceSummary};
use flashyard_blk::{Operation, TraceRecord};
use flashyard_cache::{CAPACITY_MAX, Policy, PolicyKind};

/// Accesses that caches are given at once: they stay in the processor's cache while all caches see them.
const BATCH: usize = 1 << 16;

/// The size of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    /// In bytes; rounded down to pages.
    Bytes(u64),
    /// Of the pages that the trace touches, in percent; rounded down to pages.
    Percent(f64),
}

/// Caches to compare, and how.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Sizes, each for every policy.
    pub sizes: Vec<CacheSize>,
    /// Memory for all caches together, in bytes.
    pub memory_bytes_max: u64,
    /// Threads that share the caches; results do not depend on them.
    pub threads: usize,
}

impl Default for CacheOptions {
    /// 1, 5, 10, 20 and 40 % of the footprint, as others use; 8 GiB, one thread.
    fn default() -> Self {
        let sizes = [1.0, 5.0, 10.0, 20.0, 40.0].map(CacheSize::Percent).to_vec();
        Self { sizes, memory_bytes_max: 8 << 30, threads: 1 }
    }
}

/// Misses of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheMisses {
    /// The size that was asked for, in bytes: whole pages, at least one.
    pub bytes: u64,
    /// Share of the accesses that missed, with each policy in the order of [`PolicyKind::ALL`].
    pub miss_ratios: Vec<f64>,
}

/// Caches on a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheComparison {
    /// Totals of the trace.
    pub summary: TraceSummary,
    /// Accesses to pages.
    pub accesses: u64,
    /// A row for each size, in the order of the options.
    pub sizes: Vec<CacheMisses>,
}

/// Why caches cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The caches would take more memory than allowed.
    #[error("caches of these sizes take {bytes} bytes of memory, more than {most}: give fewer or smaller sizes")]
    Memory {
        /// Bytes that they would take.
        bytes: u64,
        /// Bytes that are allowed.
        most: u64,
    },
    /// A cache has more pages than policies can number.
    #[error("a cache of {pages} pages of 4 KiB is larger than {CAPACITY_MAX}: give smaller sizes")]
    Size {
        /// Pages.
        pages: u64,
    },
}

/// Reads a trace twice, by `open`, and counts the misses of every policy with every size. `observer` gets the rows that
/// were read in both passes now and then, and ends the comparison with `false`; the result is `None` then.
///
/// Errors: what cannot be read, and sizes that take too much memory.
pub fn compare_caches(
    open: impl Fn() -> Result<TraceReader, TraceError>,
    options: &CacheOptions,
    observer: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<CacheComparison>, CacheError> {
    let mut totals = Totals::default();
    let mut reader = open()?;
    let mut rows = 0;
    for record in &mut reader {
        totals.add(&record?);
        if !observed(&mut rows, observer) {
            return Ok(None);
        }
    }
    let summary = totals.finish(&reader);
    let footprint_pages = summary.footprint_bytes / PAGE;
    let sizes: Vec<u64> = options.sizes.iter().map(|size| pages(*size, footprint_pages)).collect();
    let mut caches = Caches::new(&sizes, footprint_pages, options)?;
    for record in open()? {
        caches.add(&record?);
        if !observed(&mut rows, observer) {
            return Ok(None);
        }
    }
    let (accesses, miss_ratios) = caches.finish();
    let policies = PolicyKind::ALL.len();
    let sizes = sizes.iter().zip(miss_ratios.chunks(policies));
    let sizes = sizes.map(|(pages, ratios)| CacheMisses { bytes: pages * PAGE, miss_ratios: ratios.to_vec() });
    Ok(Some(CacheComparison { summary, accesses, sizes: sizes.collect() }))
}

/// Counts a row; `false` where the observer has had enough.
fn observed(rows: &mut u64, observer: &mut dyn FnMut(u64) -> bool) -> bool {
    *rows += 1;
    !rows.is_multiple_of(OBSERVED_ROWS) || observer(*rows)
}

/// Whole pages, at least one.
fn pages(size: CacheSize, footprint_pages: u64) -> u64 {
    let pages = match size {
        CacheSize::Bytes(bytes) => bytes / PAGE,
        // Exact below 2^53 pages; `as` rounds down.
        CacheSize::Percent(percent) => (footprint_pages as f64 * percent / 100.0) as u64,
    };
    pages.max(1)
}

/// All caches on their way through a trace.
struct Caches {
    /// Those of a size beside each other.
    caches: Vec<Counted>,
    threads: usize,
    batch: Vec<u64>,
    accesses: u64,
}

struct Counted {
    cache: Box<dyn Policy + Send>,
    misses: u64,
}

impl Caches {
    fn new(sizes: &[u64], footprint_pages: u64, options: &CacheOptions) -> Result<Self, CacheError> {
        // A cache that is larger than the footprint never evicts: it need not be larger.
        let capacities = sizes.iter().map(|&pages| pages.min(footprint_pages.max(1)));
        let capacities: Vec<u32> = capacities
            .map(|pages| match u32::try_from(pages) {
                Ok(capacity) if capacity <= CAPACITY_MAX => Ok(capacity),
                _ => Err(CacheError::Size { pages }),
            })
            .collect::<Result<_, _>>()?;
        let keys: u64 = capacities.iter().copied().map(u64::from).sum();
        let bytes = (keys as f64 * PolicyKind::ALL.into_iter().map(PolicyKind::bytes_a_key).sum::<f64>()) as u64;
        if bytes > options.memory_bytes_max {
            return Err(CacheError::Memory { bytes, most: options.memory_bytes_max });
        }
        let all = capacities.iter().flat_map(|&capacity| PolicyKind::ALL.map(|policy| policy.cache(capacity)));
        let caches = all.map(|cache| Counted { cache, misses: 0 }).collect();
        Ok(Self { caches, threads: options.threads.max(1), batch: Vec::with_capacity(BATCH), accesses: 0 })
    }

    fn add(&mut self, record: &TraceRecord) {
        let request = &record.request;
        let moves = matches!(request.operation, Operation::Read | Operation::Write);
        if !moves || request.len_bytes == 0 {
            return;
        }
        let first = request.offset_bytes / PAGE;
        let last = (request.offset_bytes + (u64::from(request.len_bytes) - 1)) / PAGE;
        // Volumes lie far apart in one space of 2^64 pages: an odd multiple, so none of them share a place.
        let base = u64::from(record.volume).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for page in first..=last {
            self.batch.push(base.wrapping_add(page));
            if self.batch.len() == BATCH {
                self.run();
            }
        }
    }

    /// Gives the batch to all caches.
    fn run(&mut self) {
        let batch = &self.batch;
        let part = self.caches.len().div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            for caches in self.caches.chunks_mut(part) {
                scope.spawn(move || {
                    for counted in caches {
                        let misses = batch.iter().filter(|&&key| !counted.cache.access(key).is_hit()).count();
                        counted.misses += misses as u64;
                    }
                });
            }
        });
        self.accesses += self.batch.len() as u64;
        self.batch.clear();
    }

    fn finish(mut self) -> (u64, Vec<f64>) {
        self.run();
        let all = self.accesses.max(1) as f64;
        (self.accesses, self.caches.iter().map(|counted| counted.misses as f64 / all).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnalysisOptions, OpenOptions, analyze, open};
    use std::io::Write;

    /// Rows of requests for 4 to 12 KiB, with popular places.
    fn file() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        for row in 0_u64..4_000 {
            let place = row * row % 997 % (1 + row % 400);
            let len = 4096 * (1 + row % 3);
            writeln!(file, "{row}.0 {} {} {len} {}", row % 2, place * 4096, row % 2).expect("it can be written");
        }
        file
    }

    fn compared(file: &tempfile::NamedTempFile, options: &CacheOptions) -> Result<CacheComparison, CacheError> {
        let open = || open(file.path(), OpenOptions::default());
        compare_caches(open, options, &mut |_| true).map(|found| found.expect("it goes on"))
    }

    #[test]
    fn lru_misses_what_reuse_distances_say() {
        let file = file();
        let reader = open(file.path(), OpenOptions::default()).expect("the rows have a format");
        let analysis = analyze(reader, AnalysisOptions::default(), &mut |_| true).expect("good rows").expect("all");
        let curve = &analysis.reuse.curve;
        let sizes = curve.iter().map(|point| CacheSize::Bytes(point.bytes)).collect();
        let found = compared(&file, &CacheOptions { sizes, ..CacheOptions::default() }).expect("it is small");
        assert_eq!((&found.summary, found.accesses), (&analysis.summary, analysis.reuse.references));
        let lru = PolicyKind::ALL.iter().position(|&policy| policy == PolicyKind::Lru).expect("it is there");
        assert!(curve.len() > 20);
        for (point, found) in curve.iter().zip(&found.sizes) {
            assert_eq!(point.bytes, found.bytes);
            assert!((point.miss_ratio - found.miss_ratios[lru]).abs() < 1e-12, "{point:?} {found:?}");
        }
        // The largest holds all pages: each of them misses once, whatever the policy.
        let last = &found.sizes.last().expect("there are sizes").miss_ratios;
        assert!(last.iter().all(|&ratio| (ratio * 100.0 - analysis.reuse.first_percent).abs() < 1e-9), "{last:?}");
    }

    #[test]
    fn threads_and_larger_caches_than_pages_change_nothing() {
        let file = file();
        let one = compared(&file, &CacheOptions::default()).expect("it is small");
        let three = compared(&file, &CacheOptions { threads: 3, ..CacheOptions::default() }).expect("it is small");
        assert_eq!(one, three);
        let sizes = vec![CacheSize::Percent(100.0), CacheSize::Bytes(1 << 60)];
        let found = compared(&file, &CacheOptions { sizes, ..CacheOptions::default() }).expect("it is small").sizes;
        assert_eq!(found[0].miss_ratios, found[1].miss_ratios);
        assert_eq!(found[1].bytes, 1 << 60);
    }

    #[test]
    fn memory_has_a_limit_and_an_observer_ends_it() {
        let file = file();
        let error = compared(&file, &CacheOptions { memory_bytes_max: 1_000, ..CacheOptions::default() });
        assert!(matches!(error, Err(CacheError::Memory { bytes, most: 1_000 }) if bytes > 1_000), "{error:?}");
        let open = || open(file.path(), OpenOptions::default());
        let mut seen = Vec::new();
        let ended = compare_caches(open, &CacheOptions::default(), &mut |rows| {
            seen.push(rows);
            rows < 5_000
        });
        assert_eq!((ended.expect("the rows are good"), seen), (None, vec![1024, 2048, 3072, 4096, 5120]));
    }
}
