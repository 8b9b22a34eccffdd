//! A program through tiers: once to learn which blocks it touches, once through all of them at the same time.

use super::filter::{Filter, FilterLevel};
use super::index::{DirectIndex, Index, RankIndex, SetIndex, direct};
use super::learned::{LearnedIndex, PlaceBy};
use super::pages::HUGE_PAGE_BLOCKS;
use super::tier::{Convention, Tier, TierCounters, TierTimes};
use super::touched::TouchedBlocks;
use crate::program::{Data, Program, Source};
use crate::trace::Trace;
use flashyard_describe::ScenarioError;
use flashyard_kernel::Rng;
use flashyard_memory::{AccessKind, Accesses, DramConfig, MemoryError};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{Named, SimSpan};

/// Accesses between two looks of the observer.
const PIECE: u64 = 1 << 20;

/// Bytes of a line of the processor's caches.
const LINE: u64 = 64;

/// Segments of the index that shows whether more are of use.
const MANY_SEGMENTS: usize = 128;

/// A tier by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierKind {
    /// The direct map.
    Alloy,
    /// Four ways.
    Unison,
    /// The learned index, by modulo.
    Ginkgo,
    /// The learned index, by rank.
    GinkgoRank,
    /// The learned index with 128 segments a page.
    GinkgoMany,
    /// Ranks of all touched blocks.
    Ideal,
}

impl Named for TierKind {
    const ALL: &'static [Self] =
        &[Self::Alloy, Self::Unison, Self::Ginkgo, Self::GinkgoRank, Self::GinkgoMany, Self::Ideal];

    fn name(self) -> &'static str {
        match self {
            Self::Alloy => "alloy",
            Self::Unison => "unison",
            Self::Ginkgo => "ginkgo",
            Self::GinkgoRank => "ginkgo-rank",
            Self::GinkgoMany => "ginkgo-128",
            Self::Ideal => "ideal",
        }
    }
}

impl TierKind {
    /// The tier in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Alloy => "a direct map, tags beside data",
            Self::Unison => "sets of four lines, whose metadata SRAM may lack",
            Self::Ginkgo => "a function of each huge page that was learned before, lines by modulo",
            Self::GinkgoRank => "the same function, lines by the rank that it predicts",
            Self::GinkgoMany => "the learned index with up to 128 segments a page",
            Self::Ideal => "the rank of each block among all touched ones, which no hardware has",
        }
    }

    /// Whether double reads are of interest with SRAM of several sizes: of the article's two designs with metadata.
    const fn is_counted(self) -> bool {
        matches!(self, Self::Unison | Self::Ginkgo)
    }

    /// Whether a function is computed for each access.
    pub const fn is_learned(self) -> bool {
        matches!(self, Self::Ginkgo | Self::GinkgoRank | Self::GinkgoMany)
    }
}

/// A program, memory, and how it is indexed.
#[derive(Clone)]
pub struct ReplayConfig<'a> {
    /// The program.
    pub program: Program,
    /// The file of a traced one, which is replayed to its end.
    pub trace: Option<&'a Trace>,
    /// Accesses for each block of the program's data.
    pub window: f64,
    /// Share of the accesses, from the first on, that indices are trained on.
    pub train_share: f64,
    /// Bytes of a block, a power of two from 64 on. Huge pages have 32,768 blocks.
    pub block_bytes: u64,
    /// Caches before the tiers, of lines of 64 bytes; none where everything passes.
    pub filter: Vec<FilterLevel>,
    /// Whether huge pages lie in random order; in that of their addresses otherwise.
    pub random_placement: bool,
    /// Huge pages of CXL memory for each one of DRAM.
    pub capacity_ratio: u64,
    /// Segments of a page's function at most.
    pub segments: usize,
    /// Sizes of SRAM: the first is timed, the others are counted beside it for Unison and Ginkgo.
    pub srams: Vec<u64>,
    /// DRAM.
    pub dram: DramConfig,
    /// An access to CXL memory.
    pub cxl: SimSpan,
    /// How the time of an access is made up.
    pub convention: Convention,
    /// Tiers.
    pub tiers: &'a [TierKind],
    /// Seed of the program and of the placement.
    pub seed: u64,
}

/// Figures of a tier.
#[derive(Clone, Debug)]
pub struct TieredFigures {
    /// The tier.
    pub kind: TierKind,
    /// Counts.
    pub counters: TierCounters,
    /// Times.
    pub times: TierTimes,
    /// Latencies of accesses.
    pub latencies: LatencyHistogram,
    /// Size of SRAM, and accesses that read DRAM once more for want of metadata in it.
    pub double_reads: Vec<(u64, u64)>,
    /// Share of DRAM lines that were read in an open row.
    pub row_hits: f64,
    /// Bytes of all metadata.
    pub metadata_bytes: u64,
    /// Of a learned index the share of pages of DRAM with room to spare, and the mean bytes of a record.
    pub learned: Option<(f64, f64)>,
}

impl TieredFigures {
    /// Laws that do not hold, in words.
    pub fn broken(&self) -> Vec<String> {
        let TierCounters { accesses, hits, misses, bypasses, first_touches, .. } = self.counters;
        let mut broken = Vec::new();
        if hits + misses + bypasses != accesses {
            broken.push(format!("{} accesses answered of {accesses}", hits + misses + bypasses));
        }
        if misses + bypasses < first_touches {
            broken.push(format!("{first_touches} first touches and {} misses", misses + bypasses));
        }
        if let Some((_, double)) = self.double_reads.iter().find(|(_, double)| *double > accesses) {
            broken.push(format!("{double} double reads of {accesses} accesses"));
        }
        broken
    }
}

/// Figures of a program.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Huge pages of CXL memory, and of DRAM.
    pub pages: [u64; 2],
    /// Blocks that were touched.
    pub touched: u64,
    /// Memory in touched pages of 4 KiB and of 2 MiB by that in touched blocks.
    pub bloat: [f64; 2],
    /// Share of the lines of DRAM that the direct map gives to no touched block.
    pub waste: f64,
    /// Accesses of the program.
    pub program_accesses: u64,
    /// Figures of each tier.
    pub tiers: Vec<TieredFigures>,
}

/// Replays a program; `None` where the observer stopped it.
///
/// Errors: parameters outside their ranges, a program whose data has no known size, a trace that cannot be read.
pub fn replay(
    config: &ReplayConfig<'_>,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<Replayed>, ScenarioError> {
    let data = config.program.data(config.trace).map_err(of_world)?;
    let source = || source(config, &data);
    let known = config.program.bytes(&data);
    if known.is_none() && config.trace.is_none() {
        let wanted = "the size of its data is not known; give one of bfs, pagerank, btree, apex_map or stream";
        return Err(ScenarioError::value("tiering.program", wanted));
    }
    let blocks = |bytes: u64| (bytes / config.block_bytes) as f64;
    let limit = known.map_or(u64::MAX, |bytes| (config.window * blocks(bytes)).ceil() as u64);
    let Some((touched, trained, accesses)) = profile(config, known, limit, source()?, observer)? else {
        return Ok(None);
    };
    let pages = touched.pages();
    let dram_pages = pages.div_ceil(config.capacity_ratio.max(1)).max(1);
    let places = places(pages, config.random_placement.then_some(config.seed));
    let trained = trained.placed(&places);
    let mut tiers = config.tiers.iter().map(|kind| tier(*kind, config, &trained, dram_pages));
    let mut tiers = tiers.by_ref().collect::<Result<Vec<_>, _>>().map_err(of_world)?;
    let mut filter = Filter::new(&config.filter).map_err(of_world)?;
    let mut seen = TouchedBlocks::new(pages);
    let mut source = source()?;
    for number in 0..accesses {
        let Some(access) = source.next_access() else { break };
        filter.access(access.address / LINE, access.kind != AccessKind::Load, |line, write| {
            let block = line * LINE / config.block_bytes;
            let block = places[(block / HUGE_PAGE_BLOCKS) as usize] * HUGE_PAGE_BLOCKS + block % HUGE_PAGE_BLOCKS;
            let first = seen.touch(block);
            tiers.iter_mut().for_each(|(_, tier, _)| tier.access(block, write, first));
        });
        if number % PIECE == 0 && !observer(0.5 + 0.5 * number as f64 / accesses as f64) {
            return Ok(None);
        }
    }
    source.take_error().map_or(Ok(()), Err)?;
    Ok(Some(Replayed {
        pages: [pages, dram_pages],
        touched: touched.count(),
        bloat: touched.bloat(),
        waste: waste(&touched.placed(&places), dram_pages),
        program_accesses: accesses,
        tiers: tiers.into_iter().map(|(kind, tier, learned)| figures(kind, &tier, learned)).collect(),
    }))
}

fn of_world(error: MemoryError) -> ScenarioError {
    ScenarioError::of_world(error)
}

fn source<'a>(config: &ReplayConfig<'_>, data: &'a Data) -> Result<Source<'a>, ScenarioError> {
    if let Data::Trace(trace) = data {
        return Ok(Source::Trace(Box::new(trace.open(config.block_bytes * HUGE_PAGE_BLOCKS, false)?)));
    }
    let mut sources = config.program.sources(1, data, config.seed)?;
    Ok(sources.swap_remove(0))
}

/// The blocks that a program touches, those that indices are trained on, and the number of its accesses.
type Profile = (TouchedBlocks, TouchedBlocks, u64);

fn profile(
    config: &ReplayConfig<'_>,
    known: Option<u64>,
    limit: u64,
    mut source: Source<'_>,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<Profile>, ScenarioError> {
    let mut touched =
        TouchedBlocks::new(known.map_or(0, |bytes| bytes.div_ceil(config.block_bytes * HUGE_PAGE_BLOCKS)));
    // A trace is trained on whole: how many accesses a part of it has is not known before its end.
    let train = if known.is_some() { (config.train_share * limit as f64).ceil() as u64 } else { u64::MAX };
    let mut trained = (train == 0).then(|| touched.clone());
    let mut accesses = 0;
    while accesses < limit {
        let Some(access) = source.next_access() else { break };
        let block = access.address / config.block_bytes;
        if known.is_none() {
            touched.grow(block / HUGE_PAGE_BLOCKS + 1);
        }
        touched.touch(block);
        accesses += 1;
        if accesses == train && train < limit {
            trained = Some(touched.clone());
        }
        if accesses.is_multiple_of(PIECE) && !observer(0.5 * accesses as f64 / limit as f64) {
            return Ok(None);
        }
    }
    source.take_error().map_or(Ok(()), Err)?;
    let trained = trained.unwrap_or_else(|| touched.clone());
    Ok(Some((touched, trained, accesses)))
}

/// The page of CXL memory of each huge page of the program.
fn places(pages: u64, random: Option<u64>) -> Vec<u64> {
    let mut places: Vec<u64> = (0..pages).collect();
    if let Some(seed) = random {
        let mut rng = Rng::named(seed, "placement");
        for last in (1..places.len()).rev() {
            let other = rng.below(last as u64 + 1) as usize;
            places.swap(last, other);
        }
    }
    places
}

type Built = (TierKind, Tier, Option<(f64, f64)>);

fn tier(
    kind: TierKind,
    config: &ReplayConfig<'_>,
    trained: &TouchedBlocks,
    dram_pages: u64,
) -> Result<Built, MemoryError> {
    let lines = dram_pages * HUGE_PAGE_BLOCKS;
    let mut learned = None;
    let mut learn = |segments, place_by| {
        let index = LearnedIndex::train(trained, dram_pages, segments, place_by)?;
        learned = Some((index.surplus(), index.mean_record_bytes()));
        Ok::<Box<dyn Index + Send>, MemoryError>(Box::new(index))
    };
    let index: Box<dyn Index + Send> = match kind {
        TierKind::Alloy => Box::new(DirectIndex { lines }),
        TierKind::Unison => Box::new(SetIndex { lines, ways: 4 }),
        TierKind::Ginkgo => learn(config.segments, PlaceBy::Modulo)?,
        TierKind::GinkgoRank => learn(config.segments, PlaceBy::Rank)?,
        TierKind::GinkgoMany => learn(MANY_SEGMENTS, PlaceBy::Modulo)?,
        TierKind::Ideal => Box::new(RankIndex::new(lines, trained.clone())),
    };
    let srams = if kind.is_counted() { &config.srams[..] } else { &config.srams[..config.srams.len().min(1)] };
    let tier = Tier::new(index, (lines, config.block_bytes), config.dram, config.cxl, config.convention, srams)?;
    Ok((kind, tier, learned))
}

/// Share of the lines of DRAM that the direct map gives to no touched block.
fn waste(touched: &TouchedBlocks, dram_pages: u64) -> f64 {
    let mut lines = TouchedBlocks::new(dram_pages);
    for page in 0..touched.pages() {
        for offset in touched.offsets(page) {
            lines.touch(direct(page * HUGE_PAGE_BLOCKS + u64::from(offset), dram_pages));
        }
    }
    1.0 - lines.count() as f64 / (dram_pages * HUGE_PAGE_BLOCKS) as f64
}

fn figures(kind: TierKind, tier: &Tier, learned: Option<(f64, f64)>) -> TieredFigures {
    let (lines, hits) = tier.rows();
    TieredFigures {
        kind,
        counters: tier.counters(),
        times: tier.times(),
        latencies: tier.latencies().clone(),
        double_reads: tier.srams().iter().map(|sram| (sram.bytes(), sram.double_reads())).collect(),
        row_hits: hits as f64 / lines.max(1) as f64,
        metadata_bytes: tier.metadata_bytes(),
        learned,
    }
}
