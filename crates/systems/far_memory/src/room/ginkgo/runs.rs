//! The runs of the study: a program through all tiers at once.

use super::section::TieringSection;
use crate::tiered::{Convention, Replayed, TierKind, TieredFigures, replay};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_report::text_table;
use flashyard_units::{Named, SimSpan};
use serde::{Deserialize, Serialize};

/// Sizes of SRAM in the article, by which figures are named. [P] sheet micro-ginkgo §4 has 64 and 16 KB; [A] the others
pub(super) const SRAM_KIB: [u64; 7] = [4, 8, 16, 32, 64, 128, 256];

/// Data of the article by ours, and so its SRAM. [D] scenarios/ginkgo/scenario.toml: 32 GB and 16 GB by 500 and 243 MiB
const SCALE: u64 = 64;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GinkgoRun {
    pub(super) program: &'static str,
    /// Whether caches of the processor stand before the tiers.
    pub(super) filtered: bool,
    /// Whether huge pages lie in random order.
    pub(super) random: bool,
    /// Whether SRAM is as large as the article's, though data is not.
    pub(super) whole: bool,
}

/// A program by the scenario's words, behind caches of the processor.
pub(super) const fn of(program: &'static str) -> GinkgoRun {
    GinkgoRun { program, filtered: true, random: false, whole: false }
}

impl GinkgoRun {
    /// With all accesses of the program.
    pub(super) const fn unfiltered(self) -> Self {
        Self { filtered: false, ..self }
    }

    /// With huge pages in random order.
    pub(super) const fn random(self) -> Self {
        Self { random: true, ..self }
    }

    /// With the article's SRAM.
    pub(super) const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }
}

/// All that runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(super) seed: u64,
    pub(super) tiering: TieringSection,
}

/// Figures of a tier, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TierRecord {
    /// Its name.
    pub(super) tier: String,
    pub(super) accesses: u64,
    /// Accesses that CXL memory answered, those of them beyond the first one of their block, and those that no line may serve.
    pub(super) misses: u64,
    pub(super) conflicts: u64,
    pub(super) bypasses: u64,
    pub(super) write_backs: u64,
    /// Accesses for which a learned function was computed.
    pub(super) computed: u64,
    /// Share of DRAM lines that were read in an open row, in percent.
    pub(super) row_hits_percent: f64,
    /// Mean latency: with the look in DRAM before CXL memory, and by the article's formula. Without the time of an index.
    pub(super) serial_ns: f64,
    pub(super) literal_ns: f64,
    /// Share of accesses with double reads, in percent; of Unison and Ginkgo also for each size in [`SRAM_KIB`].
    pub(super) double_percent: f64,
    pub(super) double_by_sram: Vec<f64>,
    pub(super) metadata_bytes: u64,
    /// Of learned indices the share of pages of DRAM with room to spare, in percent, and mean bytes of a record.
    pub(super) learned: Option<(f64, f64)>,
}

impl TierRecord {
    /// Mean latency with the look in DRAM before CXL memory where computing a learned function takes so long.
    pub(super) fn with_index(&self, index_ns: f64) -> f64 {
        self.serial_ns + index_ns * self.computed as f64 / self.accesses.max(1) as f64
    }

    /// Share of accesses that CXL memory answered, in percent.
    pub(super) fn miss_percent(&self) -> f64 {
        100.0 * self.misses as f64 / self.accesses.max(1) as f64
    }
}

/// Figures of a run, as they are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GinkgoRecord {
    pub(super) name: String,
    /// Huge pages of CXL memory, and of DRAM.
    pub(super) pages: [u64; 2],
    pub(super) touched: u64,
    /// Memory in touched pages of 4 KiB and of 2 MiB by that in touched blocks.
    pub(super) bloat: [f64; 2],
    /// Lines of DRAM that the direct map gives to no touched block, in percent.
    pub(super) waste_percent: f64,
    pub(super) program_accesses: u64,
    pub(super) tiers: Vec<TierRecord>,
}

impl GinkgoRecord {
    /// Figures of a tier. Every run has all of them.
    pub(super) fn tier(&self, kind: TierKind) -> &TierRecord {
        self.tiers.iter().find(|tier| tier.tier == kind.name()).unwrap_or(&self.tiers[0])
    }
}

/// A number made of runs.
pub(super) type GinkgoNumber = Number<GinkgoRun, GinkgoRecord>;

impl NamedRun for GinkgoRun {
    type Base = Base;
    type Record = GinkgoRecord;

    fn name(&self) -> String {
        let mut name = self.program.to_owned();
        for (is_so, word) in
            [(!self.filtered, ", all accesses"), (self.random, ", random pages"), (self.whole, ", SRAM not scaled")]
        {
            if is_so {
                name += word;
            }
        }
        name
    }

    fn carry_out(
        &self,
        base: &Base,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<GinkgoRecord>, ScenarioError> {
        let program = base.tiering.program(self.program, base.seed)?;
        let mut config = base.tiering.replay(program, None, TierKind::ALL, base.seed);
        config.filter = if self.filtered { base.tiering.levels() } else { Vec::new() };
        config.random_placement = self.random;
        let scale = if self.whole { 1 } else { SCALE };
        let sizes = SRAM_KIB.map(|kib| kib * 1024 / scale);
        config.srams = std::iter::once(64 * 1024 / scale).chain(sizes).collect();
        let Some(replayed) = replay(&config, observer)? else { return Ok(None) };
        if let Some(broken) = replayed.tiers.iter().flat_map(TieredFigures::broken).next() {
            return Err(ScenarioError::Program(format!("{}: {broken}", self.name())));
        }
        Ok(Some(record(self.name(), &replayed)))
    }

    fn table(records: &[GinkgoRecord]) -> String {
        let header = [
            "run",
            "tier",
            "misses\n%",
            "beyond\nfirst %",
            "double\nreads %",
            "latency\nns",
            "literal\nns",
            "open\nrows %",
            "metadata\nB",
            "surplus\n%",
            "record\nB",
            "bypassed",
            "written\nback",
        ];
        let row = |record: &GinkgoRecord, tier: &TierRecord| {
            let learned = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
            vec![
                record.name.clone(),
                tier.tier.clone(),
                format!("{:.3}", tier.miss_percent()),
                format!("{:.3}", 100.0 * tier.conflicts as f64 / tier.accesses.max(1) as f64),
                format!("{:.2}", tier.double_percent),
                format!("{:.2}", tier.serial_ns),
                format!("{:.2}", tier.literal_ns),
                format!("{:.1}", tier.row_hits_percent),
                tier.metadata_bytes.to_string(),
                learned(tier.learned.map(|learned| learned.0)),
                learned(tier.learned.map(|learned| learned.1)),
                tier.bypasses.to_string(),
                tier.write_backs.to_string(),
            ]
        };
        let rows = records.iter().flat_map(|record| record.tiers.iter().map(move |tier| row(record, tier)));
        let pages = |record: &GinkgoRecord| {
            let [small, huge] = record.bloat;
            let [cxl, dram] = record.pages;
            vec![
                record.name.clone(),
                record.program_accesses.to_string(),
                record.tiers.first().map_or(0, |tier| tier.accesses).to_string(),
                record.touched.to_string(),
                format!("{small:.2}"),
                format!("{huge:.2}"),
                cxl.to_string(),
                dram.to_string(),
                format!("{:.2}", record.waste_percent),
            ]
        };
        let head = [
            "run",
            "accesses",
            "of them\nto tiers",
            "touched\nblocks",
            "bloat\n4 KiB",
            "bloat\n2 MiB",
            "huge\npages",
            "of\nDRAM",
            "unused by\ndirect map %",
        ];
        let programs = text_table(&head, records.iter().map(pages).collect(), 160);
        format!("{programs}\n{}", text_table(&header, rows.collect(), 160))
    }
}

fn record(name: String, replayed: &Replayed) -> GinkgoRecord {
    let tier = |figures: &TieredFigures| {
        let counters = figures.counters;
        let mean =
            |serial_probe| figures.times.mean_ns(&counters, Convention { serial_probe, index_time: SimSpan::ZERO });
        let percent = |count: u64| 100.0 * count as f64 / counters.accesses.max(1) as f64;
        TierRecord {
            tier: figures.kind.name().to_owned(),
            accesses: counters.accesses,
            misses: counters.misses + counters.bypasses,
            conflicts: counters.conflicts(),
            bypasses: counters.bypasses,
            write_backs: counters.write_backs,
            computed: counters.computed,
            row_hits_percent: 100.0 * figures.row_hits,
            serial_ns: mean(true),
            literal_ns: mean(false),
            // The first size is the one that is timed.
            double_percent: figures.double_reads.first().map_or(0.0, |(_, count)| percent(*count)),
            double_by_sram: figures.double_reads.iter().skip(1).map(|(_, count)| percent(*count)).collect(),
            metadata_bytes: figures.metadata_bytes,
            learned: figures.learned.map(|(surplus, bytes)| (100.0 * surplus, bytes)),
        }
    };
    GinkgoRecord {
        name,
        pages: replayed.pages,
        touched: replayed.touched,
        bloat: replayed.bloat,
        waste_percent: 100.0 * replayed.waste,
        program_accesses: replayed.program_accesses,
        tiers: replayed.tiers.iter().map(tier).collect(),
    }
}
