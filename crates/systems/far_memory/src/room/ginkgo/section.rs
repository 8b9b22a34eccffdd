//! The `[tiering]` section of scenarios: DRAM, CXL memory, the index's SRAM, and programs by name.

use crate::program::Program;
use crate::room::section::{ApexMapSection, GraphSection, TreeSection};
use crate::tiered::{Convention, FilterLevel, ReplayConfig, TierKind};
use crate::trace::Trace;
use flashyard_describe::{Purpose, Scenario, ScenarioError, Section, Size, Time, Unknown, is_in};
use flashyard_memory::DramConfig;
use flashyard_units::SimSpan;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The sections of the system.
pub(super) static SECTIONS: [&Section; 1] = [&TIERING];

static TIERING: Section =
    Section::of::<TieringSection>("tiering", &[("tiering", &[Purpose::Run])]).with_files(&["tiering.trace"]);

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    tiering: TieringSection,
}

/// DRAM that caches lines of a larger memory behind CXL.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TieringSection {
    /// Name of the program that is run, a section of `btree`, `slab_tree`, `pagerank`, `gap_pagerank`, `gap_components`, `bfs` or `apex_map`.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// In its place a file with loads and stores that were traced; `FILE#FORMAT` names its format. It is replayed once.
    #[serde(default)]
    pub(super) trace: Option<String>,
    /// Accesses for each block of the program's data.
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    window: f64,
    /// Share of the accesses, from the first on, that indices are trained on; a trace is trained on whole.
    #[schemars(range(min = 0.0, max = 1.0))]
    train_share: f64,
    /// Size of a block, a power of two; huge pages have 32,768 blocks.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "64 KiB"))]
    block: Size,
    /// Whether the caches of the section stand before the DRAM.
    filtered: bool,
    /// Whether huge pages lie in random order.
    random_placement: bool,
    /// SRAM for metadata.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "16 MiB"))]
    sram: Size,
    /// Huge pages of CXL memory for each one of DRAM.
    #[schemars(range(min = 1, max = 1024))]
    capacity_ratio: u64,
    /// Segments of a page's function at most.
    #[schemars(range(min = 2, max = 1024))]
    segments: usize,
    /// Whether a miss costs the look in DRAM beside CXL memory.
    serial_probe: bool,
    /// Computing a learned index.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    index_time: Time,
    /// An access to CXL memory.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    cxl: Time,
    /// DRAM.
    dram: RowsSection,
    /// Caches of the processor.
    caches: CachesSection,
    /// Look-ups in a B+-tree that is built before.
    #[serde(default)]
    btree: BTreeMap<String, TreeSection>,
    /// Look-ups in a B+-tree whose nodes and records lie in slabs, as those of the public program BTree do.
    #[serde(default)]
    slab_tree: BTreeMap<String, SlabTreeSection>,
    /// PageRank over a generated graph.
    #[serde(default)]
    pagerank: BTreeMap<String, GraphSection>,
    /// PageRank of the GAP benchmark suite, over a Kronecker graph whose vertices are numbered at random.
    #[serde(default)]
    gap_pagerank: BTreeMap<String, GraphSection>,
    /// Connected components of the GAP benchmark suite, over a graph of the same kind.
    #[serde(default)]
    gap_components: BTreeMap<String, GraphSection>,
    /// Breadth-first searches over a generated graph.
    #[serde(default)]
    bfs: BTreeMap<String, GraphSection>,
    /// Apex-Map.
    #[serde(default)]
    apex_map: BTreeMap<String, ApexMapSection>,
}

/// A B+-tree that keys from both ends have built in turn.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlabTreeSection {
    /// Keys, an even number.
    #[schemars(range(min = 2, max = 1_073_741_824))]
    keys: u32,
}

/// DRAM by the time of a line.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RowsSection {
    /// Channels.
    #[schemars(range(min = 1, max = 1024))]
    channels: u32,
    /// Banks of a channel.
    #[schemars(range(min = 1, max = 4096))]
    banks: u32,
    /// Size of an open row.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "1 MiB"))]
    row: Size,
    /// A line of the open row.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 ms"))]
    row_hit: Time,
    /// A line of another row.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 ms"))]
    row_miss: Time,
}

/// Levels of cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CachesSection {
    /// The nearest level.
    level1: WaysSection,
    /// The level behind it.
    level2: WaysSection,
    /// A level behind that one, where there is one.
    #[serde(default)]
    level3: Option<WaysSection>,
}

/// A level of cache without times.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaysSection {
    /// Size.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "16 GiB"))]
    size: Size,
    /// Lines of a set.
    #[schemars(range(min = 1, max = 1024))]
    ways: u32,
}

impl TieringSection {
    /// The section of a scenario.
    ///
    /// Errors: a scenario of another system.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { tiering } = scenario.own()?;
        Ok(tiering)
    }

    /// Errors: a size of blocks that is no power of two.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let block = self.block.0.get();
        let wrong = || ScenarioError::value("tiering.block", format!("{block} B is no power of two"));
        if block.is_power_of_two() { Ok(()) } else { Err(wrong()) }
    }

    /// Names of all programs.
    fn programs(&self) -> Vec<&str> {
        let trees = self.btree.keys().chain(self.slab_tree.keys());
        let walks = self.pagerank.keys().chain(self.bfs.keys());
        let suite = self.gap_pagerank.keys().chain(self.gap_components.keys());
        trees.chain(walks).chain(suite).chain(self.apex_map.keys()).map(String::as_str).collect()
    }

    /// The program called `name`.
    ///
    /// Errors: a name that no program has.
    pub(super) fn program(&self, name: &str, seed: u64) -> Result<Program, ScenarioError> {
        let tree = self.btree.get(name).map(TreeSection::program);
        let slabs = || self.slab_tree.get(name).map(|tree| Program::SlabTree(tree.keys));
        let rank = || self.pagerank.get(name).map(|graph| Program::PageRank(graph.rmat(seed)));
        let components = || self.gap_components.get(name).map(|graph| Program::GapComponents(graph.rmat(seed)));
        let gap = || self.gap_pagerank.get(name).map(|graph| Program::GapPageRank(graph.rmat(seed)));
        let bfs = || self.bfs.get(name).map(|graph| Program::Bfs(graph.rmat(seed)));
        let apex = || self.apex_map.get(name).map(ApexMapSection::program);
        let known = || Unknown::new("program", name, self.programs().into_iter()).to_string();
        tree.or_else(slabs)
            .or_else(rank)
            .or_else(gap)
            .or_else(components)
            .or_else(bfs)
            .or_else(apex)
            .ok_or_else(|| ScenarioError::value("tiering.program", known()))
    }

    /// The program that a scenario runs: its trace, where it names one.
    ///
    /// Errors: no name, or one that no program has.
    pub(super) fn chosen_program(&self, seed: u64) -> Result<Program, ScenarioError> {
        match (&self.trace, &self.program) {
            (Some(_), _) => Ok(Program::Trace),
            (None, Some(name)) => self.program(name, seed),
            (None, None) => {
                let message = format!("none is named, give one of {}", self.programs().join(", "));
                Err(ScenarioError::value("tiering.program", message))
            }
        }
    }

    /// A replay of a program, by the section's words.
    pub(super) fn replay<'a>(
        &self,
        program: Program,
        trace: Option<&'a Trace>,
        tiers: &'a [TierKind],
        seed: u64,
    ) -> ReplayConfig<'a> {
        let filter = if self.filtered { self.levels() } else { Vec::new() };
        ReplayConfig {
            program,
            trace,
            window: self.window,
            train_share: self.train_share,
            block_bytes: self.block.0.get(),
            filter,
            random_placement: self.random_placement,
            capacity_ratio: self.capacity_ratio,
            segments: self.segments,
            srams: vec![self.sram.0.get()],
            dram: self.dram.config(),
            cxl: self.cxl.0,
            convention: Convention { serial_probe: self.serial_probe, index_time: self.index_time.0 },
            tiers,
            seed,
        }
    }

    /// Levels of cache.
    pub(super) fn levels(&self) -> Vec<FilterLevel> {
        let CachesSection { level1, level2, level3 } = &self.caches;
        let levels = [level1, level2].into_iter().chain(level3);
        levels.map(|level| FilterLevel { bytes: level.size.0.get(), ways: level.ways }).collect()
    }

    /// The section with another window.
    #[cfg(test)]
    pub(super) fn with_window(&self, window: f64) -> Self {
        Self { window, ..self.clone() }
    }
}

impl RowsSection {
    /// DRAM whose lines take these times when nothing else is under way: no closing, and a column command that is all of a line.
    fn config(&self) -> DramConfig {
        DramConfig {
            channels: self.channels,
            banks: self.banks,
            row_bytes: self.row.0.get() as u32,
            precharge: SimSpan::ZERO,
            activate: SimSpan::from_ps(self.row_miss.0.as_ps().saturating_sub(self.row_hit.0.as_ps())),
            column: self.row_hit.0,
            burst: SimSpan::ZERO,
            controller: SimSpan::ZERO,
        }
    }
}

/// Keys of the section that some tiers read and others do not.
pub(super) fn reads(tier: TierKind, key: &str) -> bool {
    let of = |part: &str| is_in(key, part);
    if of("tiering.segments") {
        return matches!(tier, TierKind::Ginkgo | TierKind::GinkgoRank);
    }
    if of("tiering.index_time") {
        return tier.is_learned();
    }
    if of("tiering.train_share") {
        return tier.is_learned() || tier == TierKind::Ideal;
    }
    if of("tiering.sram") {
        return tier.is_learned() || tier == TierKind::Unison;
    }
    true
}
