//! The lives of the study.

use super::section::CvssScenario;
use crate::cvss::{
    CvssConfig, CvssFigures, CvssLife, CvssSample, Design, DeviceConfig, FilebenchConfig, FilebenchLife, PAGE_BYTES,
    RAW_PAGES, Separation, StoreConfig, StoreLife, StreamRule,
};
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
    /// Whether the tuned drive gets data that is read much apart.
    pub(super) separated: bool,
    /// Whether the user gives unused capacity back at once.
    pub(super) gives_back: bool,
    /// Causes, by their name in the scenario; loads of filebench and of stores have CVFS below them, and no other causes.
    pub(super) causes: &'static str,
    /// Work, by its name in the scenario.
    pub(super) load: &'static str,
}

/// A life of a design as it is published.
pub(super) const fn run(design: Design, causes: &'static str, load: &'static str) -> CvssRun {
    // [P] sheet §3.4: 5 % by default. The artifact goes by erases.
    let rate_percent = if matches!(design, Design::Literal) { Some(5) } else { None };
    CvssRun { design, rate_percent, ecc_bits: None, heavy: None, separated: true, gives_back: false, causes, load }
}

impl CvssRun {
    /// The run's name among lives of one load and set of causes.
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
        if self.design == Design::Tuned && !self.separated {
            name += " mixed";
        }
        if self.gives_back {
            name += " given back";
        }
        name
    }

    fn device(&self, base: &CvssScenario) -> DeviceConfig {
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
        DeviceConfig {
            design: self.design,
            reliability: self.rate_percent.map(|percent| f64::from(percent) / 100.0),
            requirement: base.cvss.device.requirement,
            weights,
            exchanges_read_hot: base.cvss.device.exchange_read_hot,
            wear,
        }
    }

    pub(super) fn config(&self, base: &CvssScenario) -> Result<CvssConfig, ScenarioError> {
        Ok(CvssConfig {
            device: self.device(base),
            host: base.host(),
            file_system: base.file_system(self.causes)?,
            separation: match self.design {
                Design::AutoStream => Separation::Streams(StreamRule::Queues),
                Design::Tuned if self.separated => Separation::ReadHot,
                _ => Separation::None,
            },
            load: base.load(self.load)?,
            sample_pages: base.sample_pages(),
            watermark_pages: None,
            give_back_to: self.gives_back.then_some(base.cvss.device.give_back_to),
            seed: base.seed,
        })
    }
}

/// A number made of runs.
pub(super) type CapacityNumber = Number<CvssRun, CapacityRecord>;

impl NamedRun for CvssRun {
    type Base = CvssScenario;
    type Record = CapacityRecord;

    fn name(&self) -> String {
        format!("{} {} {}", self.load, self.causes, self.name_in_panel())
    }

    fn carry_out(
        &self,
        base: &CvssScenario,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<CapacityRecord>, ScenarioError> {
        // Of the pages that ideal wear leveling would let the host write.
        let most = 300.0 * f64::from(RAW_PAGES);
        let mut go_on = true;
        let mut watch = |pages: u64| {
            go_on = observer((pages as f64 / most).min(1.0));
            go_on
        };
        let (device, host, seed) = (self.device(base), base.host(), base.seed);
        let figures = if let Some(load) = base.filebench(self.load) {
            let config = FilebenchConfig { device, host, load, seed };
            FilebenchLife::new(config).and_then(|mut life| life.live(&mut watch))
        } else if let Some(load) = base.store(self.load) {
            let config = StoreConfig { device, host, load, seed };
            StoreLife::new(config).and_then(|mut life| life.live(&mut watch))
        } else {
            CvssLife::new(self.config(base)?).and_then(|mut life| life.live(&mut watch))
        };
        let figures = figures.map_err(ScenarioError::of_world)?;
        Ok(go_on.then(|| record(self.name(), &figures)))
    }

    fn table(records: &[CapacityRecord]) -> String {
        flashyard_report::capacity_table(records)
    }
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
        delayed: sample.timing.delayed,
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
