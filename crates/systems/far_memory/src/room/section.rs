//! The `[memory]` section of scenarios: processor, memories, device, programs by name.

use super::ahead_section::{AheadSection, InPlaceSection, KernelSection, RegularSection};
use super::combine_section::CombineSection;
use super::journal_section::JournalSection;
use super::link_section::{DramSection, PathSection};
use crate::design::{Design, Parts};
use crate::program::Program;
use flashyard_cache::PolicyKind;
use flashyard_describe::{Choice, Purpose, Rate, Scenario, ScenarioError, Section, Size, Time};
use flashyard_flash::Geometry;
use flashyard_kernel::Rng;
use flashyard_memory::{
    AnnotationRules, BPlusTreeConfig, Determinism, EndpointConfig, FlashConfig, LevelConfig, MachineConfig,
    MediumConfig, Mix, MixConfig, PAGE_BYTES, Rmat, StreamKernel,
};
use flashyard_units::{Bytes, Hertz, Named};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The sections of all systems of the machine.
pub(super) static SECTIONS: [&Section; 1] = [&MEMORY];

static MEMORY: Section =
    Section::of::<MemorySection>("memory", &[("memory", &[Purpose::Run])]).with_files(&["memory.trace"]);

/// Exponent of the shares of functions. [D] sheet micro-cxl-ssd §7: 8 of 32 functions make 50.5 % of storage accesses
const SKEW: f64 = 0.643_451_541_176_213;

/// Lines of the region that the nearest level does not hold and the next one does. [A] 80 KiB, a quarter more than the L1
const WARM_LINES: u64 = 1280;

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    pub(super) memory: MemorySection,
}

/// The memory machine: cores, memories that answer them, and programs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemorySection {
    /// Name of the program that is run, a section of `mix`, `apex_map`, `stream`, `bfs`, `pagerank`, `btree`, `journal`, `kernel` or `regular`.
    #[serde(default)]
    pub(crate) program: Option<String>,
    /// In its place a file with loads and stores that were traced; `FILE#FORMAT` names its format.
    #[serde(default)]
    pub(crate) trace: Option<String>,
    /// Accesses of each core before figures count.
    #[schemars(range(min = 0, max = 1_000_000_000_000_i64))]
    pub(crate) warm_accesses: u64,
    /// Accesses of each core that figures cover.
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub(crate) accesses: u64,
    /// Cores and caches.
    processor: ProcessorSection,
    /// Another processor, which a study puts in place of the first.
    #[serde(default)]
    prototype: Option<ProcessorSection>,
    /// DRAM on the processor, and behind CXL.
    dram: DramSection,
    /// The path over CXL.
    cxl: PathSection,
    /// The path to a PCIe BAR.
    bar: PathSection,
    /// The device with flash.
    endpoint: EndpointSection,
    /// Its flash.
    flash: FlashSection,
    /// Cells that are written in place, behind the device instead of flash, by name.
    #[serde(default)]
    in_place: BTreeMap<String, InPlaceSection>,
    /// The name of those that are behind the device; flash for want of one.
    #[serde(default)]
    pub(crate) medium: Option<String>,
    /// Lines that are fetched ahead, in designs that do.
    #[serde(default)]
    ahead: Option<AheadSection>,
    /// Mechanisms of other designs that flash over CXL has besides its own.
    #[serde(default)]
    combine: Option<CombineSection>,
    /// Annotations that the processor makes.
    #[serde(default)]
    annotations: AnnotationsSection,
    /// Programs by their published rates.
    #[serde(default)]
    mix: BTreeMap<String, MixSection>,
    /// Apex-Map.
    #[serde(default)]
    apex_map: BTreeMap<String, ApexMapSection>,
    /// STREAM, a part of its vectors for each core.
    #[serde(default)]
    stream: BTreeMap<String, StreamSection>,
    /// Breadth-first searches over a generated graph.
    #[serde(default)]
    bfs: BTreeMap<String, GraphSection>,
    /// PageRank over a generated graph.
    #[serde(default)]
    pagerank: BTreeMap<String, GraphSection>,
    /// Look-ups in a B+-tree that is built before.
    #[serde(default)]
    btree: BTreeMap<String, TreeSection>,
    /// Transactions that are written ahead.
    #[serde(default)]
    journal: BTreeMap<String, JournalSection>,
    /// Kernels over a generated graph, at a pace.
    #[serde(default)]
    kernel: BTreeMap<String, KernelSection>,
    /// Streams with a stride and chains of pointers, at a pace.
    #[serde(default)]
    regular: BTreeMap<String, RegularSection>,
}

/// Cores and caches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessorSection {
    /// Cores.
    #[schemars(range(min = 1, max = 1024))]
    cores: u32,
    /// Clock in MHz.
    #[schemars(range(min = 1, max = 100_000))]
    clock_mhz: u64,
    /// Instructions that a core dispatches in a cycle.
    #[schemars(range(min = 1, max = 64))]
    width: u32,
    /// Instructions of the reorder window.
    #[schemars(range(min = 1, max = 65_536))]
    window: u32,
    /// Places of the load/store queue.
    #[schemars(range(min = 1, max = 65_536))]
    queue: u32,
    /// Miss-status registers of a core.
    #[schemars(range(min = 1, max = 4096))]
    core_misses: u32,
    /// Miss-status registers of the last level.
    #[schemars(range(min = 1, max = 65_536))]
    last_misses: u32,
    /// The nearest level of cache.
    level1: LevelSection,
    /// The level behind it.
    level2: LevelSection,
    /// A third level.
    #[serde(default)]
    level3: Option<LevelSection>,
}

/// A level of cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LevelSection {
    /// Size.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "16 GiB"))]
    size: Size,
    /// Lines of a set.
    #[schemars(range(min = 1, max = 1024))]
    ways: u32,
    /// Cycles from dispatch to data that is found here.
    #[schemars(range(min = 0, max = 100_000))]
    cycles: u32,
    /// Whether all cores share it.
    #[serde(default)]
    shared: bool,
}

/// The device with flash.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndpointSection {
    /// Parsing and look-up.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    controller: Time,
    /// Internal DRAM that caches pages.
    #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "128 GiB"))]
    cache: Size,
    /// Which page leaves it.
    policy: Choice<Eviction>,
    /// Whether loads that nothing is said of bring their page into it.
    caches_loads: bool,
    /// Whether it buffers stored lines and not their pages, where neither loads nor annotations have pages brought: a load asks the medium.
    #[serde(default)]
    buffers_lines: bool,
    /// Whether a load whose page is not kept there reads its line alone from the medium.
    #[serde(default)]
    reads_lines: bool,
    /// One in so many pages is kept for data without annotation, where annotations are read.
    #[schemars(range(min = 2, max = 16))]
    unannounced_part: u32,
    /// Pages that are fetched after one that a bufferable load missed.
    #[schemars(range(min = 0, max = 1024))]
    prefetch_pages: u32,
    /// How long a deterministic request keeps garbage collection away.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 s"))]
    guard: Time,
    /// Its DRAM.
    dram: DramSection,
}

/// The flash of the device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FlashSection {
    /// Channels.
    #[schemars(range(min = 1, max = 256))]
    channels: u32,
    /// Dies of a channel.
    #[schemars(range(min = 1, max = 256))]
    dies_per_channel: u32,
    /// Planes of a die.
    #[schemars(range(min = 1, max = 16))]
    planes_per_die: u32,
    /// Blocks of a plane.
    #[schemars(range(min = 8, max = 1_000_000))]
    blocks_per_plane: u32,
    /// Pages of a block.
    #[schemars(range(min = 1, max = 65_536))]
    pages_per_block: u32,
    /// Size of a page, in whole 4 KiB.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 KiB"))]
    page_size: Size,
    /// Share of the raw capacity that is not exported.
    #[schemars(range(min = 0.0, max = 0.89))]
    spare: f64,
    /// tR.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    read: Time,
    /// tPROG.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    program: Time,
    /// tBERS.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 s"))]
    erase: Time,
    /// Rate of a channel.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "1000 GB/s"))]
    channel_rate: Rate,
    /// Pages that wait for their program at most.
    #[schemars(range(min = 1, max = 1_048_576))]
    buffer_pages: u32,
    /// Share of superblocks at or below which collection begins.
    #[schemars(range(min = 0.0, max = 0.89))]
    collect_below: f64,
    /// Share of superblocks at or below which collection heeds no guard time.
    #[schemars(range(min = 0.0, max = 0.89))]
    collect_always_below: f64,
    /// Whether the drive has been overwritten for long.
    worn_in: bool,
}

/// Annotations that the processor makes, in designs that do.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnnotationsSection {
    /// Share of functions whose data is bufferable.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    functions: Option<f64>,
    /// Share of requests that are deterministic.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    requests: Option<f64>,
    /// In place of that: requests are deterministic while loads are more than this share of the reorder window.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    loads_above: Option<f64>,
}

/// A program by its published rates.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MixSection {
    /// Misses of the last level in a thousand instructions.
    #[schemars(range(min = 0.0, max = 1000.0))]
    misses_per_thousand: f64,
    /// Share of instructions that load.
    #[schemars(range(min = 0.0, max = 1.0))]
    loads: f64,
    /// Share of instructions that store.
    #[schemars(range(min = 0.0, max = 1.0))]
    stores: f64,
    /// Data that misses go to.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "16 TiB"))]
    footprint: Size,
    /// Share of the accesses to the last level that it answers.
    #[schemars(range(min = 0.0, max = 0.99))]
    last_level_hits: f64,
}

/// Apex-Map.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApexMapSection {
    /// Words of 8 bytes.
    #[schemars(range(min = 2, max = 281_474_976_710_656_i64))]
    words: u64,
    /// Temporal locality: 1 for none, near 0 for most.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// Consecutive words from each start.
    #[schemars(range(min = 1, max = 1_000_000))]
    run: u32,
    /// Other instructions before each access.
    #[schemars(range(min = 0, max = 1_000_000))]
    gap: u32,
}

/// STREAM.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamSection {
    /// Kernel: copy, scale, add or triad.
    kernel: Choice<StreamKernel>,
    /// Elements of each of three vectors, 8 bytes each.
    #[schemars(range(min = 1, max = 1_099_511_627_776_i64))]
    elements: u64,
    /// Other instructions before each access.
    #[schemars(range(min = 0, max = 1_000_000))]
    gap: u32,
}

/// Look-ups in a B+-tree.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeSection {
    /// Keys, inserted in random order.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    keys: u32,
    /// Size of a node, a multiple of 16 bytes.
    #[schemars(extend("x-minimum" = "128 B", "x-maximum" = "64 KiB"))]
    node: Size,
    /// Size of a record, which a leaf points to.
    #[schemars(extend("x-minimum" = "8 B", "x-maximum" = "64 KiB"))]
    record: Size,
}

impl ApexMapSection {
    pub(super) fn program(&self) -> Program {
        Program::ApexMap { words: self.words, alpha: self.alpha, run: self.run, gap: self.gap }
    }
}

impl GraphSection {
    pub(super) fn rmat(&self, seed: u64) -> Rmat {
        Rmat { scale: self.scale, edges_per_vertex: self.edges_per_vertex, seed }
    }
}

impl TreeSection {
    pub(super) fn program(&self) -> Program {
        let bytes = |size: Size| u32::try_from(size.0.get()).unwrap_or(u32::MAX);
        Program::BTree(BPlusTreeConfig {
            keys: self.keys,
            node_bytes: bytes(self.node),
            record_bytes: bytes(self.record),
        })
    }
}

/// A walk over a graph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphSection {
    /// Vertices as a power of two.
    #[schemars(range(min = 1, max = 26))]
    scale: u32,
    /// Edges for each vertex.
    #[schemars(range(min = 1, max = 32))]
    edges_per_vertex: u32,
}

/// An eviction policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Eviction(PolicyKind);

impl Named for Eviction {
    const ALL: &'static [Self] = &[
        Self(PolicyKind::Fifo),
        Self(PolicyKind::Lru),
        Self(PolicyKind::Clock),
        Self(PolicyKind::Sieve),
        Self(PolicyKind::Arc),
        Self(PolicyKind::Lirs),
        Self(PolicyKind::S3Fifo),
        Self(PolicyKind::WTinyLfu),
    ];

    fn name(self) -> &'static str {
        self.0.name()
    }
}

impl ProcessorSection {
    fn machine(&self) -> MachineConfig {
        let level = |level: &LevelSection| LevelConfig {
            bytes: level.size.0.get(),
            ways: level.ways,
            cycles: level.cycles,
            shared: level.shared,
        };
        let levels = [Some(&self.level1), Some(&self.level2), self.level3.as_ref()];
        MachineConfig {
            cores: self.cores,
            clock: Hertz::new(self.clock_mhz * 1_000_000),
            width: self.width,
            window: self.window,
            queue: self.queue,
            levels: levels.into_iter().flatten().map(level).collect(),
            core_misses: self.core_misses,
            last_misses: self.last_misses,
            uncached_from: None,
            annotations: AnnotationRules::default(),
        }
    }
}

impl FlashSection {
    fn config(&self, seed: u64) -> FlashConfig {
        FlashConfig {
            geometry: Geometry {
                channels: self.channels,
                dies_per_channel: self.dies_per_channel,
                planes_per_die: self.planes_per_die,
                blocks_per_plane: self.blocks_per_plane,
                pages_per_block: self.pages_per_block,
                page_bytes: self.page_size.0.get() as u32,
                pages_per_program: 1,
            },
            spare: self.spare,
            read: self.read.0,
            program: self.program.0,
            erase: self.erase.0,
            suspend: None,
            channel_rate: self.channel_rate.0,
            buffer_pages: self.buffer_pages,
            collect_below: self.collect_below,
            collect_always_below: self.collect_always_below,
            worn_in: self.worn_in,
            collection_due: false,
            seed,
        }
    }
}

impl MemorySection {
    /// The section of a scenario.
    ///
    /// Errors: a scenario of another system.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { memory } = scenario.own()?;
        Ok(memory)
    }

    /// The parts of designs; of the prototype where that is asked for and there is one.
    ///
    /// Errors: a medium that no section has.
    pub(super) fn parts(&self, prototype: bool, seed: u64) -> Result<Parts, ScenarioError> {
        self.parts_of(prototype, self.medium.as_deref(), seed)
    }

    /// The parts of designs with the medium of a section behind the device, or with flash.
    ///
    /// Errors: a medium that no section has.
    pub(super) fn parts_on(&self, medium: Option<&str>, seed: u64) -> Result<Parts, ScenarioError> {
        self.parts_of(false, medium, seed)
    }

    fn parts_of(&self, prototype: bool, medium: Option<&str>, seed: u64) -> Result<Parts, ScenarioError> {
        if let Some(ahead) = &self.ahead {
            ahead.check()?;
        }
        let medium = match medium {
            None => MediumConfig::Flash(self.flash.config(seed)),
            Some(name) => match self.in_place.get(name) {
                Some(section) => section.medium(),
                None => {
                    let known = self.in_place.keys().map(String::as_str);
                    let message = flashyard_describe::Unknown::new("medium", name, known).to_string();
                    return Err(ScenarioError::value("memory.medium", message));
                }
            },
        };
        let processor = self.prototype.as_ref().filter(|_| prototype).unwrap_or(&self.processor);
        let endpoint = &self.endpoint;
        Ok(Parts {
            machine: processor.machine(),
            dram: self.dram.config(),
            cxl: self.cxl.config(),
            bar: self.bar.config(),
            endpoint: EndpointConfig {
                controller: endpoint.controller.0,
                dram: endpoint.dram.config(),
                cache_pages: (endpoint.cache.0.get() / PAGE_BYTES) as u32,
                policy: endpoint.policy.0.0,
                caches_loads: endpoint.caches_loads,
                buffers_lines: endpoint.buffers_lines,
                reads_lines: endpoint.reads_lines,
                reads_annotations: false,
                reads_buffering: true,
                unannounced_part: endpoint.unannounced_part,
                prefetch_pages: endpoint.prefetch_pages,
                guard: endpoint.guard.0,
                medium,
            },
            local: Bytes::ZERO,
            ahead: self.ahead.as_ref().map(AheadSection::parts),
            combine: self.combine.as_ref().map(|combine| combine.combine(&endpoint.dram, seed)).unwrap_or_default(),
        })
    }

    /// The rules of annotation.
    pub(super) fn annotations(&self) -> AnnotationRules {
        let AnnotationsSection { functions, requests, loads_above } = &self.annotations;
        AnnotationRules {
            determinism: match (loads_above, requests) {
                (Some(threshold), _) => Determinism::LoadsAbove(*threshold),
                (None, Some(share)) => Determinism::Share(*share),
                (None, None) => Determinism::Never,
            },
            bufferable: *functions,
        }
    }

    /// Names of all programs.
    pub(super) fn programs(&self) -> Vec<&str> {
        let (mix, apex, stream) = (self.mix.keys(), self.apex_map.keys(), self.stream.keys());
        let walks = self.bfs.keys().chain(self.pagerank.keys()).chain(self.btree.keys());
        let paced = self.kernel.keys().chain(self.regular.keys()).chain(self.journal.keys());
        mix.chain(apex).chain(stream).chain(walks).chain(paced).map(String::as_str).collect()
    }

    /// The program called `name`.
    ///
    /// Errors: a name that no program has; the message lists those that there are.
    pub(super) fn program(&self, name: &str, seed: u64) -> Result<Program, ScenarioError> {
        let mix = self.mix.get(name).map(|mix| {
            Program::Mix(MixConfig {
                misses_per_thousand: mix.misses_per_thousand,
                loads: mix.loads,
                stores: mix.stores,
                footprint: mix.footprint.0.get(),
                last_level_hits: mix.last_level_hits,
                warm_lines: WARM_LINES,
                skew: SKEW,
                words_per_line: 1,
            })
        });
        let apex = || self.apex_map.get(name).map(ApexMapSection::program);
        let stream = || {
            let found = self.stream.get(name);
            found.map(|stream| Program::Stream { kernel: stream.kernel.0, elements: stream.elements, gap: stream.gap })
        };
        let walk = || {
            let bfs = self.bfs.get(name).map(|graph| Program::Bfs(graph.rmat(seed)));
            let walk = bfs.or_else(|| self.pagerank.get(name).map(|graph| Program::PageRank(graph.rmat(seed))));
            walk.or_else(|| self.btree.get(name).map(TreeSection::program))
        };
        let paced = || {
            let kernel = self.kernel.get(name).map(|kernel| kernel.program(seed));
            kernel.or_else(|| self.regular.get(name).map(RegularSection::program))
        };
        let known = || flashyard_describe::Unknown::new("program", name, self.programs().into_iter()).to_string();
        let journal = || self.journal.get(name).map(JournalSection::program);
        mix.or_else(apex)
            .or_else(stream)
            .or_else(journal)
            .or_else(walk)
            .or_else(paced)
            .ok_or_else(|| ScenarioError::value("memory.program", known()))
    }

    /// Requests in a thousand instructions that a program is to have, where its section says so.
    pub(super) fn pace(&self, name: &str) -> Option<f64> {
        let kernel = self.kernel.get(name).map(|kernel| kernel.misses_per_thousand);
        kernel.or_else(|| self.regular.get(name).map(|regular| regular.misses_per_thousand))
    }

    /// Windows over which the accesses of a program are spread.
    pub(super) fn windows(&self, name: &str) -> u32 {
        self.kernel.get(name).and_then(|kernel| kernel.windows).unwrap_or(1)
    }

    /// Share of the misses that the first eight functions of a mix make.
    pub(super) fn share_of_hot_functions(&self, name: &str) -> f64 {
        let Ok(Program::Mix(config)) = self.program(name, 0) else { return f64::NAN };
        Mix::new(&config, Rng::named(0, "shares")).map_or(f64::NAN, |mix| mix.share_of_first(8))
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
                Err(ScenarioError::value("memory.program", message))
            }
        }
    }
}

/// Keys of the section that some designs read and others do not, by design.
pub(super) fn reads(design: Design, key: &str) -> bool {
    let of = |part: &str| flashyard_describe::is_in(key, part);
    if of("memory.annotations")
        || of("memory.endpoint.prefetch_pages")
        || of("memory.endpoint.guard")
        || of("memory.endpoint.unannounced_part")
    {
        return design == Design::CxlAssd || design.combines();
    }
    if of("memory.combine") {
        // A design that annotates already ignores that it might.
        return design.combines() && !(design == Design::CxlAssd && of("memory.combine.annotations"));
    }
    if of("memory.endpoint") || of("memory.flash") {
        return design.has_flash();
    }
    if of("memory.bar") {
        return design == Design::PcieSsd;
    }
    if of("memory.cxl") {
        return !matches!(design, Design::Dram | Design::PcieSsd);
    }
    if of("memory.ahead") {
        return design.predicts().is_some() && reads_ahead(design, key);
    }
    if of("memory.in_place") || of("memory.medium") {
        return design.has_flash();
    }
    if of("memory.dram") {
        return matches!(design, Design::Dram | Design::CxlDram);
    }
    true
}

/// Keys of fetching ahead that some predictors read and others do not.
fn reads_ahead(design: Design, key: &str) -> bool {
    let at_device = design.predicts() == Some(flashyard_memory::Place::Device);
    match key.rsplit('.').next().unwrap_or(key) {
        "buffer" | "ahead_max" | "knows_switches" => at_device,
        // At the host, the number of requests that the LSTM is ahead.
        "ahead_min" => at_device || design == Design::Lstm,
        "host_buffer" => !at_device,
        "isb_lines" | "isb_degree" => design == Design::Isb,
        "training_requests" | "training_epochs" | "training_rate" | "network_counters" => design.is_trained(),
        "network_window" => matches!(design, Design::Attention | Design::Expand),
        "lstm" => design == Design::Lstm,
        "attention" => design == Design::Attention,
        "transformer" | "behaviour_events" => design == Design::Expand,
        "oracle_accuracy" | "oracle_coverage" => design == Design::Oracle,
        _ => true,
    }
}
