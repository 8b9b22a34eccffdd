//! The runs of the study: a kernel on a GPU with one memory beyond its own.

use super::section::{GpuScenario, Media};
use crate::{Beyond, DeterministicStores, Gpu, GpuConfig, GpuFigures, HintFill, Kernel};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_memory::ReadAhead;
use flashyard_report::text_table;
use flashyard_units::Named;
use serde::{Deserialize, Serialize};

/// A memory beyond the GPU's own, and how it is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Design {
    /// Memory of the GPU's own for all data.
    GpuDram,
    /// The host's DRAM by page faults.
    Uvm,
    /// Storage by page faults.
    Gds,
    /// `Uvm`, whose runtime works for each fault alone.
    UvmAlone,
    /// `Gds`, whose runtime works for each fault alone.
    GdsAlone,
    /// An expander.
    Cxl,
    /// With a hint for each load.
    Naive,
    /// `Naive` with hints that bring the sectors that they name.
    NaiveSectors,
    /// With hints as long as the device's load allows.
    Dynamic,
    /// With the longest hints.
    Largest,
    /// With windows around loads.
    Sr,
    /// With the source's window by the letter.
    SrLiteral,
    /// `Sr` with hints that bring the sectors that they name.
    SrSectors,
    /// `Sr`, and stores that complete at once.
    Ds,
}

impl Design {
    pub(super) const ALL: [Self; 14] = [
        Self::GpuDram,
        Self::Uvm,
        Self::Gds,
        Self::UvmAlone,
        Self::GdsAlone,
        Self::Cxl,
        Self::Naive,
        Self::NaiveSectors,
        Self::Dynamic,
        Self::Largest,
        Self::Sr,
        Self::SrLiteral,
        Self::SrSectors,
        Self::Ds,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::GpuDram => "gpu-dram",
            Self::Uvm => "uvm",
            Self::Gds => "gds",
            Self::UvmAlone => "uvm-alone",
            Self::GdsAlone => "gds-alone",
            Self::Cxl => "cxl",
            Self::Naive => "cxl-naive",
            Self::NaiveSectors => "cxl-naive-sectors",
            Self::Dynamic => "cxl-dyn",
            Self::Largest => "cxl-largest",
            Self::Sr => "cxl-sr",
            Self::SrLiteral => "cxl-sr-literal",
            Self::SrSectors => "cxl-sr-sectors",
            Self::Ds => "cxl-ds",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::GpuDram => "a GPU with memory for all data",
            Self::Uvm => "the host's DRAM, page by page through page faults",
            Self::Gds => "a drive, page by page through page faults",
            Self::UvmAlone => "the same from the host's DRAM, one fault after the other",
            Self::GdsAlone => "the same from a drive, one fault after the other",
            Self::Cxl => "an expander behind a root port of the GPU",
            Self::Naive => "an expander that is told of each load before it comes",
            Self::NaiveSectors => "the same, of which the named sectors come, and not their pages",
            Self::Dynamic => "the same, of as many lines ahead as its load allows",
            Self::Largest => "the same, of as many lines ahead as a hint can name",
            Self::Sr => "the same, of lines before and behind by where queued loads lie",
            Self::SrLiteral => "the same, with the window counted by the source's letter",
            Self::SrSectors => "windows of which the named sectors come, and not their pages",
            Self::Ds => "windows of lines, and stores that the GPU keeps while the expander is busy",
        }
    }

    /// The GPU of a run.
    pub(super) fn config(self, scenario: &GpuScenario, kernel: Kernel, media: Option<Media>) -> GpuConfig {
        let mut config = scenario.config(kernel, self.beyond(scenario, media));
        if matches!(self, Self::UvmAlone | Self::GdsAlone) {
            config.fault.at_once = 1;
        }
        config
    }

    fn beyond(self, scenario: &GpuScenario, media: Option<Media>) -> Beyond {
        let (read_ahead, stores) = match self {
            Self::GpuDram => return Beyond::Own,
            Self::Uvm | Self::UvmAlone => return Beyond::Faults,
            Self::Gds | Self::GdsAlone => return Beyond::Storage(scenario.expander(media.unwrap_or(Media::ZNand))),
            Self::Cxl => (ReadAhead::None, DeterministicStores::No),
            Self::Naive | Self::NaiveSectors => (ReadAhead::Naive, DeterministicStores::No),
            Self::Dynamic => (ReadAhead::Dynamic, DeterministicStores::No),
            Self::Largest => (ReadAhead::Largest, DeterministicStores::No),
            Self::Sr | Self::SrSectors => (ReadAhead::Window, DeterministicStores::No),
            Self::SrLiteral => (ReadAhead::Literal, DeterministicStores::No),
            Self::Ds => (ReadAhead::Window, DeterministicStores::Yes),
        };
        match media {
            None => Beyond::Dram,
            Some(media) => {
                let mut expander = scenario.expander(media);
                if matches!(self, Self::NaiveSectors | Self::SrSectors) {
                    expander.hints = HintFill::Sectors;
                }
                Beyond::Media(expander, read_ahead, stores)
            }
        }
    }
}

/// Whether a design reads a key of the section.
pub(super) fn reads(design: Design, key: &str) -> bool {
    let of = |part: &str| flashyard_describe::is_in(key, part);
    let faults = matches!(design, Design::Uvm | Design::Gds | Design::UvmAlone | Design::GdsAlone);
    match () {
        () if of("gpu.fault") || of("gpu.fault_page") || of("gpu.pcie") || of("gpu.own_part") => faults,
        () if of("gpu.faults_at_once") => matches!(design, Design::Uvm | Design::Gds),
        () if of("gpu.link") || of("gpu.round_trip") => !faults && design != Design::GpuDram,
        () if of("gpu.kept") => design == Design::Ds,
        () if of("gpu.hints_fill") => {
            !faults && !matches!(design, Design::GpuDram | Design::Cxl | Design::NaiveSectors | Design::SrSectors)
        }
        () if of("gpu.internal_part") => !faults && design != Design::GpuDram,
        () if of("gpu.media") || of("gpu.medium") => {
            !matches!(design, Design::GpuDram | Design::Uvm | Design::UvmAlone)
        }
        () => true,
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GpuRun {
    pub(super) kernel: Kernel,
    pub(super) design: Design,
    /// The medium of an expander or of storage; DRAM without.
    pub(super) media: Option<Media>,
}

/// Figures of a run, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GpuRecord {
    pub(super) name: String,
    /// Time of the run.
    pub(super) milliseconds: f64,
    /// Mean and longest load beyond the last-level cache.
    pub(super) load_us: f64,
    pub(super) longest_us: f64,
    /// Loads that the last-level cache answered, in percent.
    pub(super) cache_percent: f64,
    /// Loads of an expander that were in its internal DRAM when they came, in percent.
    pub(super) internal_percent: f64,
    /// Loads whose line was on its way there, as another request had asked for it, in percent.
    pub(super) coming_percent: f64,
    /// Time for which the memory queue was full, in percent.
    pub(super) full_percent: f64,
    /// Mean time of a load in the queues of the port, at the medium of an expander, and elsewhere on its way.
    pub(super) split_us: [f64; 3],
    /// Mean time for which a store takes a place of the memory queue.
    pub(super) store_us: f64,
    /// Page faults, hints, reads and writes of the medium, and stores that the GPU kept.
    pub(super) faults: u64,
    pub(super) hints: u64,
    pub(super) media_reads: u64,
    pub(super) media_writes: u64,
    pub(super) kept: u64,
}

/// A number made of runs.
pub(super) type GpuNumber = Number<GpuRun, GpuRecord>;

impl NamedRun for GpuRun {
    type Base = GpuScenario;
    type Record = GpuRecord;

    fn name(&self) -> String {
        let media = self.media.map_or("dram", Media::name);
        format!("{} {} {media}", self.kernel.name(), self.design.name())
    }

    fn carry_out(
        &self,
        base: &GpuScenario,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<GpuRecord>, ScenarioError> {
        let config = self.design.config(base, self.kernel, self.media);
        let gpu = Gpu::new(config).map_err(|error| ScenarioError::value("gpu", error.to_string()))?;
        Ok(gpu.run(observer).map(|figures| record(self.name(), &figures)))
    }

    fn table(records: &[GpuRecord]) -> String {
        let header = [
            "run",
            "time\nms",
            "load\nus",
            "longest\nus",
            "cache\nhits %",
            "internal\nhits %",
            "queue\nfull %",
            "in port\nus",
            "medium\nus",
            "store\nus",
            "faults",
            "hints",
            "media\nreads",
            "media\nwrites",
            "kept\nstores",
        ];
        let row = |record: &GpuRecord| {
            let figures = [record.milliseconds, record.load_us, record.longest_us];
            let shares = [record.cache_percent, record.internal_percent, record.full_percent];
            let counts = [record.faults, record.hints, record.media_reads, record.media_writes, record.kept];
            let mut row = vec![record.name.clone()];
            row.extend(figures.map(|value| format!("{value:.3}")));
            row.extend(shares.map(|value| format!("{value:.1}")));
            row.extend([record.split_us[0], record.split_us[1], record.store_us].map(|value| format!("{value:.2}")));
            row.extend(counts.map(|count| count.to_string()));
            row
        };
        text_table(&header, records.iter().map(row).collect(), 160)
    }
}

/// Mean parts of a load beyond the cache, in us.
fn split(figures: &GpuFigures) -> [f64; 3] {
    let [queued, away] = [figures.port.loads_queued, figures.port.loads_away].map(|span| span.as_us_f64());
    let medium = figures.expander.load_waited.as_us_f64();
    [queued, medium, away - medium].map(|part| part / figures.loads_beyond.max(1) as f64)
}

fn record(name: String, figures: &GpuFigures) -> GpuRecord {
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    GpuRecord {
        name,
        milliseconds: figures.time.as_us_f64() / 1e3,
        load_us: figures.load_time.as_us_f64() / figures.loads_beyond.max(1) as f64,
        longest_us: figures.longest_load.as_us_f64(),
        cache_percent: percent(figures.cache_hits, figures.loads),
        internal_percent: percent(figures.expander.hits, figures.expander.loads),
        coming_percent: percent(figures.expander.coming, figures.expander.loads),
        full_percent: 100.0 * figures.port.full.ratio_of(figures.time),
        split_us: split(figures),
        store_us: match figures.expander.stores {
            0 => 0.0,
            stores => figures.port.stores_away.as_us_f64() / stores as f64,
        },
        faults: figures.faults,
        hints: figures.port.hints,
        media_reads: figures.expander.media_reads,
        media_writes: figures.expander.media_writes,
        kept: figures.port.diverted,
    }
}
