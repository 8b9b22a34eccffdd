//! The lives of the study.

use super::section::CvssScenario;
use crate::cvss::{
    Below, CvssFigures, CvssSample, DegradeRule, Design, DeviceConfig, DiscardRule, FilebenchConfig, FilebenchLife,
    FioConfig, FioLife, PAGE_BYTES, Placement, RAW_PAGES, StoreConfig, StoreLife, Timing, reads_beside_holes,
    share_in_one_state, shrink_seconds,
};
use crate::room::life::evenness::erases_after_passes;
use flashyard_cvfs::{BLOCK_BYTES, Method};
use flashyard_describe::Files;
use flashyard_describe::ScenarioError;
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_ftl::ScoreWeights;
use flashyard_nand::{EccStrength, RetryRule};
use flashyard_report::{CapacityRecord, CapacitySample};
use flashyard_units::Named;

/// A weight of equation 5.1 that is 0.6 while the others are 0.2. Source: [P] sheet cvss §7, row 22.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heavy {
    Invalid,
    Age,
    Reads,
}

/// One life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CvssRun {
    pub(super) design: Design,
    /// Raw bit error rate in percent at which superblocks are retired.
    pub(super) rate_percent: Option<u32>,
    /// Strength of the code in bits; retries then follow from the error rate.
    pub(super) ecc_bits: Option<u32>,
    pub(super) heavy: Option<Heavy>,
    /// Whether the user requires a share of the first performance.
    pub(super) is_required: bool,
    /// Whether the manager degrades the drive, as the text says, whatever the scenario has.
    pub(super) is_managed: bool,
    /// The file system below the work.
    pub(super) below: Below,
    /// Work, by its name in the scenario, or a way of giving capacity back.
    pub(super) load: &'static str,
}

/// Work that is no life: a GiB of an aged file system is given back once.
const SHRINKING: [(&str, Method); 3] =
    [("shrink-remap", Method::Remap), ("shrink-relocate", Method::Relocate), ("shrink-holes", Method::Holes)];

/// Work that is no life: sequential reads before and after that, in requests of so many blocks. Source: [P] sheet cvss §3.1,
/// 16 and 4,096 KiB.
pub(super) const HOLES_READS: [(&str, usize); 2] = [("holes-reads-16k", 4), ("holes-reads-4m", 1024)];

/// Work that is no life either: passes of a trace on the drive of the wear-leveling study. Source: [P] sheet cvss §7, row 6.
pub(super) const PASSES: &str = "passes-dtrs";
/// Source: [P] the same.
const PASSES_TRACE: &str = "DTRS";
/// Source: [P] the same.
const PASSES_COUNT: u32 = 100;

/// A life of a design as it is published.
pub(super) const fn run(design: Design, load: &'static str) -> CvssRun {
    // [P] sheet §3.4: 5 % by default. The artifact goes by erases.
    let rate_percent = if matches!(design, Design::Literal) { Some(5) } else { None };
    let (is_required, is_managed, below) = (false, false, Below::PUBLISHED);
    CvssRun { design, rate_percent, ecc_bits: None, heavy: None, is_required, is_managed, below, load }
}

impl CvssRun {
    /// The run's name among lives of one load and file system.
    pub(super) fn name_in_panel(&self) -> String {
        let mut name = self.design.name().to_owned();
        if let Some(percent) = self.rate_percent {
            name += &format!(" {percent} %");
        }
        if let Some(bits) = self.ecc_bits {
            name += &format!(" {bits} bits");
        }
        match self.heavy {
            Some(Heavy::Invalid) => name += " heavy invalid",
            Some(Heavy::Age) => name += " heavy age",
            Some(Heavy::Reads) => name += " heavy reads",
            None => {}
        }
        if self.is_required {
            name += " required";
        }
        if self.is_managed {
            name += " managed";
        }
        name
    }

    /// The file system's name among lives of one load.
    pub(super) fn below_in_words(&self) -> String {
        let files = if self.below.placement == Placement::Log { "cvfs" } else { "in-place" };
        if self.below.discards == DiscardRule::Published {
            files.to_owned()
        } else {
            format!("{files} discards-{}", self.below.discards.name())
        }
    }

    pub(super) fn device(&self, base: &CvssScenario) -> DeviceConfig {
        let mut wear = base.wear();
        if let Some(bits_per_4_kib) = self.ecc_bits {
            wear.ecc = EccStrength { bits_per_4_kib };
            wear.rule = RetryRule::Halving;
        }
        let weight = |heavy| if self.heavy == Some(heavy) { 0.6 } else { 0.2 };
        let weights = match self.heavy {
            None => base.weights(),
            Some(_) => ScoreWeights {
                invalid: weight(Heavy::Invalid),
                age: weight(Heavy::Age),
                reads: weight(Heavy::Reads),
                ..ScoreWeights::default()
            },
        };
        let by_the_text = self.is_managed || self.design == Design::Literal;
        DeviceConfig {
            design: self.design,
            reliability: self.rate_percent.map(|percent| f64::from(percent) / 100.0),
            requirement: self.is_required.then_some(base.cvss.device.requirement),
            weights,
            exchanges_read_hot: base.cvss.device.exchange_read_hot,
            degraded_by: if by_the_text { DegradeRule::Manager } else { base.cvss.device.degraded_by.0 },
            pages_beyond: base.cvss.device.pages_beyond,
            wear,
        }
    }
}

/// A number made of runs.
pub(super) type CapacityNumber = Number<CvssRun, CapacityRecord>;

impl NamedRun for CvssRun {
    type Base = CvssScenario;
    type Record = CapacityRecord;

    fn name(&self) -> String {
        format!("{} {} {}", self.load, self.below_in_words(), self.name_in_panel())
    }

    fn carry_out(
        &self,
        base: &CvssScenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<CapacityRecord>, ScenarioError> {
        // Of the pages that ideal wear leveling would let the host write.
        let most = 300.0 * f64::from(RAW_PAGES);
        let mut go_on = true;
        let mut watch = |pages: u64| {
            go_on = observer((pages as f64 / most).min(1.0));
            go_on
        };
        let (device, host, below, seed) = (self.device(base), base.host(), self.below, base.seed);
        if self.load == PASSES {
            let even = erases_after_passes(PASSES_TRACE, PASSES_COUNT, files, observer)?;
            return Ok(even.map(|(counts, endurance)| record(self.name(), &evenness(&counts, endurance))));
        }
        let figures = if let Some(&(_, method)) = SHRINKING.iter().find(|(name, _)| *name == self.load) {
            shrink_seconds(device, method, seed).map(once)
        } else if let Some(&(_, blocks)) = HOLES_READS.iter().find(|(name, _)| *name == self.load) {
            reads_beside_holes(device, blocks, seed).map(|rates| before_and_after(rates, blocks))
        } else if let Some(load) = base.filebench(self.load) {
            let config = FilebenchConfig { device, host, below, load, seed };
            FilebenchLife::new(config).and_then(|mut life| life.live(&mut watch))
        } else if let Some(load) = base.store(self.load) {
            let config = StoreConfig { device, host, below, load, seed };
            StoreLife::new(config).and_then(|mut life| life.live(&mut watch))
        } else {
            let config = FioConfig { device, host, below, load: base.fio(self.load)?, seed };
            FioLife::new(config).and_then(|mut life| life.live(&mut watch))
        };
        let figures = figures.map_err(ScenarioError::of_world)?;
        Ok(go_on.then(|| record(self.name(), &figures)))
    }

    fn table(records: &[CapacityRecord]) -> String {
        flashyard_report::capacity_table(records)
    }
}

/// Figures of a drive whose superblocks have `counts` erases: one sample with the share of one state of wear.
fn evenness(counts: &[u32], endurance: u32) -> CvssFigures {
    let erases_mean = counts.iter().copied().map(f64::from).sum::<f64>() / counts.len() as f64;
    let sample = CvssSample { in_one_state: share_in_one_state(counts, endurance), ..CvssSample::default() };
    CvssFigures { samples: vec![sample], erases_mean, ..CvssFigures::default() }
}

/// Figures of a drive that did one operation.
fn once(seconds: f64) -> CvssFigures {
    let timing = Timing { operation_mean_us: 1e6 * seconds, requests_per_second: 1.0 / seconds, ..Timing::default() };
    CvssFigures { samples: vec![CvssSample { timing, ..CvssSample::default() }], ..CvssFigures::default() }
}

/// Figures of a drive that reads `blocks` at a time: two samples.
fn before_and_after(bytes_per_second: [f64; 2], blocks: usize) -> CvssFigures {
    let sample = |bytes_per_second: f64| {
        let requests_per_second = bytes_per_second / (blocks * BLOCK_BYTES) as f64;
        let timing = Timing { requests_per_second, operation_mean_us: 1e6 / requests_per_second, ..Timing::default() };
        CvssSample { timing, ..CvssSample::default() }
    };
    CvssFigures { samples: bytes_per_second.map(sample).to_vec(), ..CvssFigures::default() }
}

fn record(name: String, figures: &CvssFigures) -> CapacityRecord {
    CapacityRecord {
        name,
        death: figures.death.map(str::to_owned),
        written_bytes: figures.written_bytes(),
        written_bytes_at_80: figures.written_bytes_at(0.8),
        amplification: figures.amplification(),
        file_system_amplification: figures.file_system_amplification(),
        retries_mean: figures.retries_mean(),
        retries_per_read: figures.retries_per_read(),
        erases_mean: figures.erases_mean,
        reductions: figures.reductions,
        remapped_pages: figures.remapped_pages,
        samples: figures.samples.iter().map(|one| sample(figures, one)).collect(),
    }
}

fn sample(figures: &CvssFigures, sample: &CvssSample) -> CapacitySample {
    CapacitySample {
        written_bytes: (sample.load_pages * PAGE_BYTES) as f64,
        performance: figures.performance(sample),
        requests_per_second: sample.timing.requests_per_second,
        written_bytes_per_second: sample.timing.written_bytes_per_second,
        read_p99_us: sample.timing.read_p99_us,
        read_mean_us: sample.timing.read_mean_us,
        waited: sample.timing.waited,
        operation_mean_us: sample.timing.operation_mean_us,
        operation_p99_us: sample.timing.operation_p99_us,
        delayed: sample.timing.delayed,
        blocked: sample.timing.blocked,
        retries_mean: sample.retries_mean,
        retried: sample.retried,
        retries_p99: sample.retries_p99,
        amplification: sample.amplification,
        retired: sample.retired,
        logical_pages: sample.logical_pages,
        degraded: sample.degraded,
        in_one_state: sample.in_one_state,
        misjudged: sample.misjudged,
    }
}
