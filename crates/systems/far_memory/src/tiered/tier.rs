//! A tier: DRAM behind an index, CXL memory behind it, and the time of each access.
//!
//! Metadata with the tags of a set say that a block is not there: CXL memory is asked at once, since no line of the set is one to look at.
//! Where the tag lies beside its data the line is read to know. A double read is an access that reads DRAM for metadata and for a line: the
//! article's "both the index-related metadata and the cache block data from the DRAM cache".
//!
//! Source: \[P\] sheet micro-ginkgo §3.4, §3.6 and §3.7. Lines are allocated on a miss, of loads as of stores, and written back when they leave;
//! write-backs are counted and take no time of an access. \[A\] §8

use super::index::Index;
use super::sram::Sram;
use flashyard_memory::{Dram, DramConfig, Lookup, MemoryError, SetAssociative};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// Bytes of a granule of metadata, and of what stands for a line of any size in a cache without data.
const LINE: u64 = 64;

/// Counts of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounters {
    /// Accesses.
    pub accesses: u64,
    /// Accesses whose block was in DRAM.
    pub hits: u64,
    /// Accesses whose block came from CXL memory into DRAM.
    pub misses: u64,
    /// Accesses that CXL memory answered because no line of DRAM may have their block.
    pub bypasses: u64,
    /// Accesses that were the first to their block: no index could have a hit there.
    pub first_touches: u64,
    /// Changed lines that were written back to CXL memory.
    pub write_backs: u64,
    /// Lines of DRAM read for metadata.
    pub metadata_reads: u64,
    /// Accesses for which a learned function was computed.
    pub computed: u64,
}

impl TierCounters {
    /// Share of accesses that CXL memory answered.
    pub fn miss_ratio(&self) -> f64 {
        (self.misses + self.bypasses) as f64 / self.accesses.max(1) as f64
    }

    /// Accesses to CXL memory beyond the first one of each block.
    pub fn conflicts(&self) -> u64 {
        (self.misses + self.bypasses).saturating_sub(self.first_touches)
    }
}

/// Time of all accesses together, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierTimes {
    /// DRAM that had the block.
    pub hits: SimSpan,
    /// Lines of DRAM that were read in vain.
    pub probes: SimSpan,
    /// DRAM read for metadata.
    pub metadata: SimSpan,
    /// CXL memory.
    pub cxl: SimSpan,
}

/// How the time of an access is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    /// Whether a miss costs the look in DRAM as well; the article's formula has CXL memory alone.
    pub serial_probe: bool,
    /// Computing a learned function, where there is one: pages that keep the direct map need none.
    pub index_time: SimSpan,
}

impl TierTimes {
    /// The mean time of accesses in nanoseconds; `counters` are theirs.
    pub fn mean_ns(&self, counters: &TierCounters, convention: Convention) -> f64 {
        let probes = if convention.serial_probe { self.probes } else { SimSpan::ZERO };
        let index = convention.index_time.as_ps() as f64 * counters.computed as f64;
        let sum = self.hits + probes + self.metadata + self.cxl;
        (sum.as_ps() as f64 + index) / 1e3 / counters.accesses.max(1) as f64
    }
}

/// DRAM of lines behind an index, and memory behind CXL.
pub struct Tier {
    index: Box<dyn Index + Send>,
    lines: SetAssociative,
    dram: Dram,
    cxl: SimSpan,
    convention: Convention,
    /// Of the first one the misses are timed; of the others they are counted.
    srams: Vec<Sram>,
    /// Byte of DRAM behind its lines, where metadata begins.
    metadata_begin: u64,
    /// Bytes of a set.
    set_bytes: u64,
    now: SimTime,
    counters: TierCounters,
    times: TierTimes,
    latencies: LatencyHistogram,
}

impl Tier {
    /// An empty tier with `dram_lines` lines of DRAM, each as large as a block, and SRAM of the sizes in `srams`.
    ///
    /// Errors: DRAM or SRAM that cannot be.
    pub fn new(
        index: Box<dyn Index + Send>,
        (dram_lines, block_bytes): (u64, u64),
        dram: DramConfig,
        cxl: SimSpan,
        convention: Convention,
        srams: &[u64],
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            lines: SetAssociative::new(dram_lines * LINE, index.ways())?,
            set_bytes: u64::from(index.ways()) * block_bytes,
            index,
            dram: Dram::new(dram)?,
            cxl,
            convention,
            srams: srams.iter().map(|bytes| Sram::new(*bytes)).collect::<Result<_, _>>()?,
            metadata_begin: dram_lines * block_bytes,
            now: SimTime::ZERO,
            counters: TierCounters::default(),
            times: TierTimes::default(),
            latencies: LatencyHistogram::new(),
        })
    }

    /// An access to a block; `first` where it is the first one to it.
    #[inline]
    pub fn access(&mut self, block: u64, write: bool, first: bool) {
        let begins = self.now;
        self.counters.accesses += 1;
        self.counters.first_touches += u64::from(first);
        let mapping = self.index.map(block);
        if let Some((timed, counted)) = self.srams.split_first_mut() {
            timed.read(mapping.metadata, |granule| {
                self.now = self.dram.line(self.now, self.metadata_begin + u64::from(granule) * LINE);
                self.counters.metadata_reads += 1;
            });
            counted.iter_mut().for_each(|sram| sram.read(mapping.metadata, |_| {}));
        }
        let metadata = self.now.since(begins);
        self.times.metadata += metadata;
        let rest = match mapping.set {
            Some(set) => self.look_up(set, block, write),
            None => {
                self.counters.bypasses += 1;
                self.times.cxl += self.cxl;
                self.cxl
            }
        };
        let index = if mapping.is_computed { self.convention.index_time } else { SimSpan::ZERO };
        self.counters.computed += u64::from(mapping.is_computed);
        self.latencies.record(metadata + rest + index);
    }

    /// Looks a block up in DRAM, fetches it where it is not there, and returns the time that this takes.
    #[inline]
    fn look_up(&mut self, set: u64, block: u64, write: bool) -> SimSpan {
        match self.lines.access_in(set, block, write) {
            Lookup::Hit => {
                let line = self.read_line(set);
                self.counters.hits += 1;
                self.times.hits += line;
                line
            }
            Lookup::Miss(evicted) => {
                let probe = if self.index.has_tags() { SimSpan::ZERO } else { self.read_line(set) };
                self.counters.misses += 1;
                self.counters.write_backs += u64::from(evicted.is_some_and(|evicted| evicted.dirty));
                self.times.probes += probe;
                self.times.cxl += self.cxl;
                if self.convention.serial_probe { probe + self.cxl } else { self.cxl }
            }
        }
    }

    /// Reads a line of a set. All of them lie in one row where blocks are small: the first one stands for them.
    #[inline]
    fn read_line(&mut self, set: u64) -> SimSpan {
        let begins = self.now;
        self.now = self.dram.line(begins, set * self.set_bytes);
        // Metadata that SRAM lacked were read for this access as well.
        self.srams.iter_mut().for_each(Sram::reads_a_line);
        self.now.since(begins)
    }

    /// Its counts.
    pub fn counters(&self) -> TierCounters {
        self.counters
    }

    /// Its times.
    pub fn times(&self) -> TierTimes {
        self.times
    }

    /// Latencies of accesses by its convention.
    pub fn latencies(&self) -> &LatencyHistogram {
        &self.latencies
    }

    /// SRAM of each size.
    pub fn srams(&self) -> &[Sram] {
        &self.srams
    }

    /// Lines of DRAM that were read, and those of them whose row was open.
    pub fn rows(&self) -> (u64, u64) {
        self.dram.counts()
    }

    /// Bytes of all metadata.
    pub fn metadata_bytes(&self) -> u64 {
        self.index.metadata_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::{DirectIndex, SetIndex};
    use super::*;

    const SERIAL: Convention = Convention { serial_probe: true, index_time: SimSpan::ZERO };
    const LITERAL: Convention = Convention { serial_probe: false, index_time: SimSpan::ZERO };

    fn dram() -> DramConfig {
        DramConfig {
            channels: 1,
            banks: 4,
            row_bytes: 1024,
            precharge: SimSpan::ZERO,
            activate: SimSpan::from_ns(20),
            column: SimSpan::from_ns(80),
            burst: SimSpan::ZERO,
            controller: SimSpan::ZERO,
        }
    }

    fn tier(index: impl Index + Send + 'static) -> Tier {
        Tier::new(Box::new(index), (64, 64), dram(), SimSpan::from_ns(200), SERIAL, &[64, 1024])
            .expect("it is possible")
    }

    #[test]
    fn times_are_those_of_rows_and_of_both_conventions() {
        let mut tier = tier(DirectIndex { lines: 64 });
        // A row that is opened and CXL, then a hit in the open row, then a miss there.
        tier.access(0, false, true);
        tier.access(0, true, false);
        tier.access(64, false, true);
        let ns = SimSpan::from_ns;
        let expected = TierTimes { hits: ns(80), probes: ns(100 + 80), metadata: ns(0), cxl: ns(400) };
        assert_eq!(tier.times(), expected);
        let counters = tier.counters();
        assert_eq!(tier.times().mean_ns(&counters, SERIAL), 220.0);
        assert_eq!(tier.times().mean_ns(&counters, LITERAL), 160.0);
        let slow = Convention { index_time: ns(6), ..LITERAL };
        assert_eq!(tier.times().mean_ns(&counters, slow), 160.0, "a direct map computes nothing");
        assert_eq!(tier.times().mean_ns(&TierCounters { computed: 2, ..counters }, slow), 164.0);
        assert_eq!((counters.hits, counters.misses, counters.write_backs, counters.conflicts()), (1, 2, 1, 0));
        assert_eq!(tier.rows(), (3, 2));
        assert_eq!(tier.latencies().count(), 3);
    }

    #[test]
    fn metadata_that_sram_lacks_is_read_from_dram() {
        let mut tier = tier(SetIndex { lines: 64, ways: 4 });
        // Sets 0 and 1 have one granule, set 4 has the next: a granule of SRAM reads them in turn, sixteen keep both.
        for block in [0, 1, 4, 0] {
            tier.access(block, false, block != 0);
        }
        // Only the last access finds its block, and the smaller SRAM no longer has its metadata.
        assert_eq!(tier.srams().iter().map(Sram::double_reads).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(tier.counters().metadata_reads, 3);
        assert_eq!(tier.metadata_bytes(), 256);
        // Metadata lies behind the lines, in a row of its own. Of the lines themselves the one hit was read.
        assert_eq!(tier.rows().0, 1 + 3);
        assert!(tier.times().metadata >= SimSpan::from_ns(3 * 80));
    }

    #[test]
    fn a_set_whose_tags_are_metadata_reads_no_line_in_vain() {
        let mut tier = tier(SetIndex { lines: 64, ways: 4 });
        let ns = SimSpan::from_ns;
        // Nothing is there: metadata says so, and CXL memory is asked.
        tier.access(0, false, true);
        assert_eq!(tier.times(), TierTimes { hits: ns(0), probes: ns(0), metadata: ns(100), cxl: ns(200) });
        assert_eq!(tier.rows().0, 1);
        // Another granule takes the place of the first one in the smaller SRAM. The block hit there then takes two reads of DRAM.
        tier.access(4, false, true);
        tier.access(0, false, false);
        assert_eq!(tier.srams().iter().map(Sram::double_reads).collect::<Vec<_>>(), [1, 0]);
        let TierCounters { metadata_reads, hits, misses, .. } = tier.counters();
        assert_eq!((metadata_reads, hits, misses, tier.rows().0), (3, 1, 2, 3 + 1));
    }

    #[test]
    fn four_ways_keep_what_a_direct_map_loses() {
        let (mut direct, mut ways) = (tier(DirectIndex { lines: 64 }), tier(SetIndex { lines: 64, ways: 4 }));
        for round in 0..10 {
            for block in [0, 64, 128, 192] {
                direct.access(block, false, round == 0);
                ways.access(block, false, round == 0);
            }
        }
        assert_eq!((direct.counters().conflicts(), ways.counters().conflicts()), (36, 0));
        assert_eq!(ways.counters().miss_ratio(), 0.1);
    }
}
