//! Reproduction of published results: which runs they need, and what each number is made of.
//!
//! `Study::runs` lists the runs, in an order that does not matter; the caller runs them, in parallel if it
//! likes, and hands all figures to `Study::compare`. Nothing here depends on how they were run.

use crate::parse::{ScenarioError, resolve};
use crate::quantity::{Size, Time};
use crate::run::{drive_price, run_design};
use crate::schema::{PatternName, Scenario};
use crate::{Files, assemble};
use flashyard_report::{Comparison, Expectations, Prices, Shares};
use flashyard_systems::jbof::{Design, DriveFigures, JbofFigures};
use flashyard_units::{Bytes, SimSpan};

/// One run of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Run {
    /// Depth 64, one size and pattern, reads or writes.
    Micro {
        /// Design.
        design: Design,
        /// Reads, or writes.
        read: bool,
        /// Sequential, or uniformly random.
        sequential: bool,
        /// Request size.
        kib: u64,
    },
    /// 4 KB random reads at depth 1.
    Small(Design),
    /// 4 KB sequential writes of Shrunk at depth 64.
    SmallWrites,
    /// OC with this many busy drives, 64 KB sequential reads.
    OcScale(u32),
    /// The generator for Ali-0 at depth 16.
    Ali0(Design),
}

/// Request sizes of the microbenchmarks in KiB. Source: [A] sheet xbof §6.
const MICRO_KIB: [u64; 3] = [64, 128, 256];

/// Seed-independent figures of one finished run.
pub type Finished = (Run, JbofFigures);

/// The XBOF reproduction.
pub struct Study {
    base: Scenario,
    expectations: Expectations,
    wanted: Vec<String>,
}

/// Why a study cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The expectations are wrong.
    #[error(transparent)]
    Expectations(#[from] flashyard_report::ExpectationError),
    /// An id that is not there.
    #[error("there is no published number {0:?}; there are {1}")]
    Unknown(String, String),
}

impl Study {
    /// The XBOF study, for all numbers or for those named in `ids`.
    ///
    /// Errors: an id that is not there.
    pub fn xbof(ids: &[String], files: &dyn Files) -> Result<Self, StudyError> {
        let text = include_str!("../../../../scenarios/xbof/scenario.toml");
        let base = resolve(text, "scenarios/xbof/scenario.toml", &[], files)?.scenario;
        let expectations = Expectations::parse(include_str!("../../../../scenarios/xbof/expected.toml"))?;
        for id in ids {
            if !expectations.expectation.iter().any(|expectation| expectation.id == *id) {
                let known: Vec<&str> = expectations.expectation.iter().map(|entry| entry.id.as_str()).collect();
                return Err(StudyError::Unknown(id.clone(), known.join(", ")));
            }
        }
        Ok(Self { base, expectations, wanted: ids.to_vec() })
    }

    fn wants(&self, prefix: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|id| id.starts_with(prefix))
    }

    /// The runs that the wanted numbers need.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let micro = |design, runs: &mut Vec<Run>| {
            for (read, sequential) in [(true, true), (true, false), (false, true), (false, false)] {
                runs.extend(MICRO_KIB.map(|kib| Run::Micro { design, read, sequential, kib }));
            }
        };
        if self.wants("micro") {
            let compared = [Design::Conv, Design::Oc, Design::Shrunk, Design::Vh, Design::VhIdeal, Design::Xbof];
            compared.into_iter().for_each(|design| micro(design, &mut runs));
        }
        if self.wants("shrunk-64k") && !self.wants("micro") {
            runs.push(Run::Micro { design: Design::Shrunk, read: true, sequential: true, kib: 64 });
        }
        if self.wants("xbof-processor") && !self.wants("micro") {
            let run = |design| Run::Micro { design, read: true, sequential: true, kib: 256 };
            runs.extend([run(Design::Shrunk), run(Design::Xbof)]);
        }
        if self.wants("shrunk-4k") {
            runs.push(Run::SmallWrites);
        }
        if self.wants("random-4k") {
            runs.extend([Design::Conv, Design::Oc, Design::Shrunk, Design::ProcH, Design::Xbof].map(Run::Small));
        }
        if self.wants("oc-knee") {
            runs.extend((1..=6).map(Run::OcScale));
        }
        if self.wants("ali-0") {
            runs.extend([Design::Oc, Design::Xbof].map(Run::Ali0));
        }
        runs
    }

    /// Carries out one run.
    ///
    /// Errors: as [`run_design`]; the observer may stop it.
    pub fn run(
        &self,
        run: Run,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<JbofFigures, ScenarioError> {
        let mut scenario = self.base.clone();
        let workload = &mut scenario.workload;
        let mut pattern = |read: bool, sequential: bool, kib: u64, depth| {
            workload.pattern = Some(if sequential { PatternName::Sequential } else { PatternName::Uniform });
            workload.read_share = Some(if read { 1.0 } else { 0.0 });
            workload.size = Some(Size(Bytes::from_kib(kib)));
            workload.depth = Some(depth);
        };
        let design = match run {
            Run::Micro { design, read, sequential, kib } => {
                pattern(read, sequential, kib, 64);
                design
            }
            Run::Small(design) => {
                pattern(true, false, 4, 1);
                scenario.run.measure = Some(Time(SimSpan::from_ms(400)));
                design
            }
            Run::SmallWrites => {
                pattern(false, true, 4, 64);
                Design::Shrunk
            }
            Run::OcScale(busy) => {
                pattern(true, true, 64, 64);
                scenario.jbof.busy_drives = busy;
                Design::Oc
            }
            Run::Ali0(design) => {
                // Depth 16 is what the source's own figures imply: sheet §8.11.
                scenario.workload.depth = Some(16);
                scenario.run.warm_mapping_requests = 1_500_000;
                scenario.workload.table2 = Some("Ali-0".to_owned());
                design
            }
        };
        Ok(run_design(&scenario, design, files, observer)?.figures)
    }

    /// Puts every wanted number beside ours.
    pub fn compare(&self, finished: &[Finished]) -> Vec<Comparison> {
        let prices = assemble::prices(&self.base.prices);
        let wanted = |id: &String| self.wanted.is_empty() || self.wanted.contains(id);
        self.expectations
            .expectation
            .iter()
            .filter(|expectation| wanted(&expectation.id))
            .map(|expectation| {
                let measured = measure(&expectation.id, finished, &prices, self.base.jbof.kept());
                Comparison::new(expectation, measured, "")
            })
            .collect()
    }
}

/// The number called `id`, from finished runs or in closed form; `None` when a run is missing.
fn measure(id: &str, finished: &[Finished], prices: &Prices, kept: Shares) -> Option<f64> {
    let shrunk_64k = || find(finished, Run::Micro { design: Design::Shrunk, read: true, sequential: true, kib: 64 });
    let busy = 6;
    match id {
        "bom-saving" => {
            let price = |design| drive_price(prices, 2.0, design, kept);
            Some(100.0 * (1.0 - price(Design::Xbof) / price(Design::Conv)))
        }
        "bom-compute-share-pcie5" => Some(compute_share(prices)),
        "bom-compute-share-pcie4" => {
            // [D] sheet §8.9: the controller price that makes the published share.
            Some(compute_share(&Prices { controller: 20.9, ..*prices }))
        }
        "shrunk-64k-throughput" => Some(shrunk_64k()?.throughput() / 6e9),
        "shrunk-64k-processor" => Some(100.0 * shrunk_64k()?.mean(busy, |drive| drive.processor_utilization)),
        "shrunk-64k-flash" => Some(100.0 * shrunk_64k()?.mean(busy, DriveFigures::flash_utilization)),
        "shrunk-4k-processor" => {
            Some(100.0 * find(finished, Run::SmallWrites)?.mean(busy, |drive| drive.processor_utilization))
        }
        "shrunk-4k-flash" => {
            Some(100.0 * find(finished, Run::SmallWrites)?.mean(busy, DriveFigures::flash_utilization))
        }
        "oc-knee" => oc_knee(finished),
        "xbof-processor-gain" => {
            let all = |design| {
                let run = Run::Micro { design, read: true, sequential: true, kib: 256 };
                find(finished, run).map(|figures| figures.mean(12, |drive| drive.processor_utilization))
            };
            Some(100.0 * (all(Design::Xbof)? / all(Design::Shrunk)? - 1.0))
        }
        "ali-0-cost-efficiency" => {
            let efficiency = |design| {
                let figures = find(finished, Run::Ali0(design))?;
                Some(figures.throughput() / drive_price(prices, 2.0, design, kept))
            };
            Some(100.0 * (efficiency(Design::Xbof)? / efficiency(Design::Oc)? - 1.0))
        }
        _ => measure_family(id, finished),
    }
}

/// Numbers that exist for several designs: the design is the end of the id.
fn measure_family(id: &str, finished: &[Finished]) -> Option<f64> {
    let families = ["micro-throughput-", "micro-latency-", "random-4k-misses-", "random-4k-latency-"];
    let family = families.into_iter().find(|family| id.starts_with(family))?;
    let design = Design::by_name(&id[family.len()..])?;
    let small = |design| find(finished, Run::Small(design));
    let mean_us = |figures: &JbofFigures| figures.latency().mean_us();
    match family {
        "micro-throughput-" => mean_ratio(finished, design, JbofFigures::throughput),
        "micro-latency-" => mean_ratio(finished, design, mean_us),
        "random-4k-misses-" => Some(100.0 * small(design)?.mapping_miss_ratio()),
        _ => Some(100.0 * (mean_us(small(design)?) / mean_us(small(Design::Conv)?) - 1.0)),
    }
}

fn find(finished: &[Finished], run: Run) -> Option<&JbofFigures> {
    finished.iter().find(|entry| entry.0 == run).map(|entry| &entry.1)
}

/// Mean over sizes, patterns, reads and writes of a figure against Conv's, in percent above it.
fn mean_ratio(finished: &[Finished], design: Design, figure: impl Fn(&JbofFigures) -> f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut count = 0.0;
    for (read, sequential) in [(true, true), (true, false), (false, true), (false, false)] {
        for kib in MICRO_KIB {
            let of = |design| find(finished, Run::Micro { design, read, sequential, kib });
            sum += figure(of(design)?) / figure(of(Design::Conv)?);
            count += 1.0;
        }
    }
    Some(100.0 * (sum / count - 1.0))
}

/// The fewest busy drives within 2 % of the throughput of six.
fn oc_knee(finished: &[Finished]) -> Option<f64> {
    let most = find(finished, Run::OcScale(6))?.throughput();
    (1..=6)
        .find(|&busy| find(finished, Run::OcScale(busy)).is_some_and(|figures| figures.throughput() >= 0.98 * most))
        .map(f64::from)
}

/// Controller and DRAM as a share of a full 4 TB drive, in percent.
fn compute_share(prices: &Prices) -> f64 {
    let whole = drive_price(prices, 4.0, Design::Conv, Shares { cores: 1.0, memory: 1.0 });
    let compute = prices.controller + 4.0 * prices.dram_per_gb;
    100.0 * compute / whole
}
