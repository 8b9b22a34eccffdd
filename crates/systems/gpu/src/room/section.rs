//! The `[gpu]` section of scenarios: the GPU, its data, the ways to memory, and media.

use crate::{Beyond, DeterministicStores, ExpanderConfig, FaultConfig, Gpu, GpuConfig, HintFill, Kernel};
use flashyard_describe::{Purpose, Rate, Scenario, ScenarioError, Section, Size, SuspendSection, Time, Unknown};
use flashyard_flash::Geometry;
use flashyard_memory::{DramConfig, FlashConfig, MediumConfig, PathConfig, ReadAhead};
use flashyard_units::{Bytes, Hertz, Named, SimSpan};
use schemars::JsonSchema;
use serde::Deserialize;

/// The sections.
pub(super) static SECTIONS: [&Section; 1] = [&GPU];

static GPU: Section = Section::of::<GpuSection>("gpu", &[("gpu", &[Purpose::Run])]);

/// Bytes of a line, and of a logical page of a medium.
const LINE: u64 = 64;
const PAGE: u64 = 4096;

/// The sections as they are read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sections {
    gpu: GpuSection,
}

/// All that the runs of the study have in common.
#[derive(Clone, Debug)]
pub(crate) struct GpuScenario {
    seed: u64,
    gpu: GpuSection,
}

/// A GPU whose data is larger than its memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GpuSection {
    /// The kernel that `flashyard run` runs; the study runs all.
    #[serde(default = "first")]
    kernel: String,
    /// The medium of the expander that `flashyard run` runs, or of storage: `dram` or one of `[gpu.media]`.
    #[serde(default)]
    medium: Medium,
    /// Cores.
    #[schemars(range(min = 1, max = 1024))]
    cores: u32,
    /// Warps of a core, which issue in turn and hide each other's waits.
    #[schemars(range(min = 1, max = 1024))]
    warps: u32,
    /// Lanes of a warp, a power of two: threads that carry out one instruction together, and wait for the last of their loads.
    #[schemars(range(min = 1, max = 1024))]
    lanes: u32,
    /// Clock of the cores in MHz.
    #[schemars(range(min = 1, max = 100_000))]
    clock_mhz: u32,
    /// The last-level cache.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB"))]
    cache: Size,
    /// Ways of the cache.
    #[schemars(range(min = 1, max = 64))]
    cache_ways: u32,
    /// Time of a hit.
    #[schemars(extend("x-minimum" = "1 ns", "x-maximum" = "1 us"))]
    cache_hit: Time,
    /// Data of a kernel.
    #[schemars(extend("x-minimum" = "1 MiB", "x-maximum" = "16 GiB"))]
    data: Size,
    /// The GPU's own memory has room for one part of the data in so many, where the rest is elsewhere.
    #[schemars(range(min = 1, max = 1000))]
    own_part: u32,
    /// Accesses of a run, each to a line.
    #[schemars(range(min = 1000, max = 1_000_000_000))]
    accesses: u64,
    /// Work of the host's runtime for page faults that it takes at once.
    #[schemars(extend("x-minimum" = "0 us", "x-maximum" = "10 ms"))]
    fault: Time,
    /// Bytes that a fault brings.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "2 MiB"))]
    fault_page: Size,
    /// Faults that the runtime works for at once, at most: those that wait when it is free.
    #[schemars(range(min = 1, max = 1_000_000))]
    faults_at_once: u32,
    /// Rate of the way to the host and to storage, each direction.
    #[schemars(extend("x-minimum" = "100 MB/s", "x-maximum" = "1000 GB/s"))]
    pcie: Rate,
    /// Rate of an expander's link, each direction.
    #[schemars(extend("x-minimum" = "100 MB/s", "x-maximum" = "1000 GB/s"))]
    link: Rate,
    /// Time of both controllers and the wires, there and back.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "10 us"))]
    round_trip: Time,
    /// Room for stores that are kept back, of which the GPU's own memory has as much as it holds at most.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB"))]
    kept: Size,
    /// The internal DRAM of an expander holds one part of the data in so many.
    #[schemars(range(min = 1, max = 100_000))]
    internal_part: u32,
    /// Hints bring sectors of 256 bytes or pages of 4 KiB into it.
    #[serde(default)]
    hints_fill: Fill,
    /// DRAM: the GPU's own, the host's, and that of expanders.
    dram: DramSection,
    /// Media of expanders.
    media: MediaSection,
}

fn first() -> String {
    Kernel::Vadd.name().to_owned()
}

/// A medium of an expander.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Medium {
    /// DRAM.
    Dram,
    /// Cells that are written in place.
    Optane,
    /// Flash of low latency.
    #[default]
    ZNand,
    /// Flash of three bits a cell.
    Nand,
}

/// The part of the data that a hint brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Fill {
    /// The sectors that it names.
    Sectors,
    /// The pages that it touches.
    #[default]
    Pages,
}

/// DRAM and its controller.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DramSection {
    /// Channels, each with a bus.
    #[schemars(range(min = 1, max = 64))]
    channels: u32,
    /// Banks of a channel.
    #[schemars(range(min = 1, max = 1024))]
    banks: u32,
    /// An open row.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "1 MiB"))]
    row: Size,
    /// tRP.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 us"))]
    precharge: Time,
    /// tRCD.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 us"))]
    activate: Time,
    /// tCAS.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 us"))]
    column: Time,
    /// A line on the bus.
    #[schemars(extend("x-minimum" = "0.1 ns", "x-maximum" = "1 us"))]
    burst: Time,
    /// The controller and the pins, there and back.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 us"))]
    controller: Time,
}

/// Media by name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MediaSection {
    /// Cells that are written in place.
    optane: Units,
    /// Flash of low latency.
    z_nand: Units,
    /// Flash of three bits a cell.
    nand: Units,
}

/// Units of a medium that work beside each other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Units {
    /// Channels.
    #[schemars(range(min = 1, max = 64))]
    channels: u32,
    /// Dies of a channel.
    #[schemars(range(min = 1, max = 64))]
    dies_per_channel: u32,
    /// Planes of a die, which are programmed together.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 8))]
    planes: u32,
    /// A page of a plane.
    #[serde(default = "page")]
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "64 KiB"))]
    page: Size,
    /// Pages of a plane that one program writes: one for each bit of a cell.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pages_per_program: u32,
    /// Pages of a block: few, as the data is small, so that there are some dozens of superblocks.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4096))]
    block_pages: u32,
    /// A page read: tR. Where cells are written in place, 256 bytes of it.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "10 ms"))]
    read: Time,
    /// A page written: tPROG. Where cells are written in place, 256 bytes of it.
    #[schemars(extend("x-minimum" = "100 ns", "x-maximum" = "100 ms"))]
    program: Time,
    /// A block erased: tBERS. Cells are written in place without the key.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "1 s"))]
    erase: Option<Time>,
    /// How programs and erases make way for reads; they make none without it.
    suspend: Option<SuspendSection>,
    /// Rate of a channel.
    #[serde(default = "fast")]
    #[schemars(extend("x-minimum" = "10 MB/s", "x-maximum" = "1000 GB/s"))]
    channel_rate: Rate,
    /// Pages that wait for their program at most.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    buffer_pages: u32,
    /// Whether flash begins as after long random overwrites; it is filled in sequence otherwise.
    #[serde(default)]
    worn_in: bool,
    /// Share of the flash beyond the data.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 0.9))]
    spare: f64,
}

/// Of cells that are written in place, transfers are part of the time of a page.
fn fast() -> Rate {
    Rate(flashyard_units::ByteRate::from_mb(1_000_000))
}

const fn one() -> u32 {
    1
}

const fn page() -> Size {
    Size(Bytes::new(PAGE))
}

/// A medium of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Media {
    Optane,
    ZNand,
    Nand,
}

impl Media {
    pub(super) const ALL: [Self; 3] = [Self::Optane, Self::ZNand, Self::Nand];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Optane => "optane",
            Self::ZNand => "z-nand",
            Self::Nand => "nand",
        }
    }
}

impl GpuScenario {
    /// Errors: a section that is not there or cannot be read.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { gpu } = scenario.own()?;
        Ok(Self { seed: scenario.seed, gpu })
    }

    /// Errors: a GPU, DRAM or a medium that cannot be.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.kernel()?;
        for media in Media::ALL {
            let beyond = Beyond::Media(self.expander(media), ReadAhead::None, DeterministicStores::Yes);
            let made = Gpu::new(self.config(Kernel::Vadd, beyond));
            made.map(drop)
                .map_err(|error| ScenarioError::value("gpu", format!("with {} behind it: {error}", media.name())))?;
        }
        Ok(())
    }

    /// The medium that `flashyard run` runs with; `None` for DRAM.
    pub(super) fn medium(&self) -> Option<Media> {
        match self.gpu.medium {
            Medium::Dram => None,
            Medium::Optane => Some(Media::Optane),
            Medium::ZNand => Some(Media::ZNand),
            Medium::Nand => Some(Media::Nand),
        }
    }

    /// The kernel that it runs.
    ///
    /// Errors: no such kernel.
    pub(super) fn kernel(&self) -> Result<Kernel, ScenarioError> {
        let unknown = || {
            ScenarioError::value("gpu.kernel", Unknown::new("kernel", &self.gpu.kernel, Kernel::names()).to_string())
        };
        Kernel::by_name(&self.gpu.kernel).ok_or_else(unknown)
    }

    /// The load of `flashyard run`.
    pub(super) fn in_words(&self) -> String {
        format!("{}: {} accesses to {}", self.gpu.kernel, self.gpu.accesses, self.gpu.data.0)
    }

    /// A GPU that runs a kernel with this memory behind it.
    pub(super) fn config(&self, kernel: Kernel, beyond: Beyond) -> GpuConfig {
        let gpu = &self.gpu;
        GpuConfig {
            kernel,
            lines: gpu.data.0.get() / LINE,
            steps: gpu.accesses,
            cores: gpu.cores,
            warps: gpu.warps,
            lanes: gpu.lanes,
            clock: Hertz::new(u64::from(gpu.clock_mhz) * 1_000_000),
            cache_bytes: gpu.cache.0.get(),
            cache_ways: gpu.cache_ways,
            cache_hit: gpu.cache_hit.0,
            dram: self.dram(),
            path: PathConfig {
                link_rate: gpu.link.0,
                port: SimSpan::from_ps(gpu.round_trip.0.as_ps() / 2),
                switches: 0,
                switch: SimSpan::ZERO,
            },
            fault: FaultConfig {
                work: gpu.fault.0,
                lines: gpu.fault_page.0.get() / LINE,
                at_once: gpu.faults_at_once,
                link: gpu.pcie.0,
            },
            own_part: gpu.own_part.into(),
            kept_lines: (gpu.kept.0.get() / LINE) as usize,
            beyond,
            seed: self.seed,
        }
    }

    fn dram(&self) -> DramConfig {
        let dram = &self.gpu.dram;
        DramConfig {
            channels: dram.channels,
            banks: dram.banks,
            row_bytes: dram.row.0.get() as u32,
            precharge: dram.precharge.0,
            activate: dram.activate.0,
            column: dram.column.0,
            burst: dram.burst.0,
            controller: dram.controller.0,
        }
    }

    /// An expander of a medium.
    pub(super) fn expander(&self, media: Media) -> ExpanderConfig {
        let units = match media {
            Media::Optane => &self.gpu.media.optane,
            Media::ZNand => &self.gpu.media.z_nand,
            Media::Nand => &self.gpu.media.nand,
        };
        let pages = (self.gpu.data.0.get() / PAGE) as u32;
        let dies = units.channels * units.dies_per_channel;
        let medium = match units.erase {
            None => MediumConfig::InPlace { pages, units: dies, read: units.read.0, write: units.program.0 },
            Some(erase) => {
                let slots = units.planes * (units.page.0.get() / PAGE) as u32;
                let superblock = f64::from(dies * slots * units.block_pages);
                let blocks = f64::from(pages) / (1.0 - units.spare) / superblock;
                MediumConfig::Flash(FlashConfig {
                    geometry: Geometry {
                        channels: units.channels,
                        dies_per_channel: units.dies_per_channel,
                        planes_per_die: units.planes,
                        blocks_per_plane: blocks.ceil() as u32 + 1,
                        pages_per_block: units.block_pages,
                        page_bytes: units.page.0.get() as u32,
                        pages_per_program: units.pages_per_program,
                    },
                    spare: units.spare,
                    read: units.read.0,
                    program: units.program.0,
                    erase: erase.0,
                    suspend: units.suspend.map(SuspendSection::rules),
                    channel_rate: units.channel_rate.0,
                    buffer_pages: units.buffer_pages,
                    collect_below: COLLECT_BELOW,
                    collect_always_below: COLLECT_ALWAYS_BELOW,
                    worn_in: units.worn_in,
                    collection_due: false,
                    seed: self.seed,
                })
            }
        };
        let frames = pages.div_ceil(self.gpu.internal_part).max(1);
        let hints = match self.gpu.hints_fill {
            Fill::Sectors => HintFill::Sectors,
            Fill::Pages => HintFill::Pages,
        };
        ExpanderConfig { dram: self.dram(), frames, hints, medium }
    }
}

/// Shares of erased superblocks at which collection begins, and at which nothing holds it up. \[A\]
const COLLECT_BELOW: f64 = 0.05;
const COLLECT_ALWAYS_BELOW: f64 = 0.03;
