//! Reproduction of published results: which runs they need, and what each number is made of.
//!
//! `Study::runs` lists the runs, in an order that does not matter; the caller runs them, in parallel if it
//! likes, and hands all figures to `Study::compare`. Nothing here depends on how they were run.

mod measure;

use crate::parse::{ScenarioError, resolve};
use crate::quantity::{Size, Time};
use crate::run::run_design;
use crate::schema::{PatternName, Scenario};
use crate::{Files, assemble};
use flashyard_report::{Comparison, Expectations};
use flashyard_systems::jbof::{Design, JbofFigures};
use flashyard_units::{Bytes, SimSpan};
use flashyard_workload::table2::PUBLISHED;

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
    /// The generator for a workload of Table 2, by its place there, at depth 16.
    Table2(Design, usize),
    /// Ali-0 with the whole map in memory and fewer cores, in sixths of Conv's; so many busy drives of twelve.
    Cores {
        /// Design.
        design: Design,
        /// Cores of a shrunk drive: Conv has six.
        cores: u32,
        /// Busy drives.
        busy: u32,
    },
    /// 4 KB random reads at depth 1 with all cores and a share of the mapping memory, in percent.
    Memory(Design, u32),
}

/// Places in Table 2.
pub(crate) const SRC: usize = 0;
pub(crate) const FUJI_0: usize = 5;
pub(crate) const ALI_0: usize = 11;

/// Request sizes of the microbenchmarks in KiB. Source: [A] sheet xbof §6.
const MICRO_KIB: [u64; 3] = [64, 128, 256];

/// Mapping memory of the DRAM sweep in percent of what the whole map needs. Source: [P] sheet xbof §7, row 33.
const MEMORY_PERCENT: [u32; 3] = [25, 50, 75];

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
        let text = include_str!("../../../../../scenarios/xbof/scenario.toml");
        let base = resolve(text, "scenarios/xbof/scenario.toml", &[], files)?.scenario;
        let expectations = Expectations::parse(include_str!("../../../../../scenarios/xbof/expected.toml"))?;
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
            runs.extend([Design::Oc, Design::Xbof].map(|design| Run::Table2(design, ALI_0)));
        }
        if self.wants("traces") {
            for design in [Design::Conv, Design::Oc, Design::Shrunk, Design::Vh, Design::Xbof] {
                runs.extend((0..PUBLISHED.len()).map(|place| Run::Table2(design, place)));
            }
        }
        if self.wants("src-vh-ideal") {
            runs.extend([Design::Shrunk, Design::VhIdeal].map(|design| Run::Table2(design, SRC)));
        }
        if self.wants("fuji-0-energy") {
            runs.extend([Design::Conv, Design::Xbof].map(|design| Run::Table2(design, FUJI_0)));
        }
        if self.wants("cores") {
            runs.extend([Design::Conv, Design::Shrunk].map(|design| Run::Cores { design, cores: 1, busy: 4 }));
            runs.extend([Design::Conv, Design::Xbof].map(|design| Run::Cores { design, cores: 2, busy: 4 }));
            runs.push(Run::Cores { design: Design::Xbof, cores: 2, busy: 1 });
        }
        if self.wants("memory") {
            for percent in MEMORY_PERCENT {
                runs.extend([Design::Conv, Design::Shrunk, Design::Xbof].map(|design| Run::Memory(design, percent)));
            }
        }
        let mut seen = Vec::new();
        runs.retain(|run| {
            let first = !seen.contains(run);
            seen.push(*run);
            first
        });
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
            Run::Table2(design, place) => {
                table2(&mut scenario, place);
                design
            }
            Run::Cores { design, cores, busy } => {
                table2(&mut scenario, ALI_0);
                scenario.jbof.busy_drives = busy;
                scenario.jbof.shrunk_memory = Some(1.0);
                scenario.jbof.shrunk_cores = Some(f64::from(cores) / f64::from(scenario.drive.cores));
                design
            }
            Run::Memory(design, percent) => {
                pattern(true, false, 4, 1);
                scenario.run.measure = Some(Time(SimSpan::from_ms(400)));
                scenario.jbof.shrunk_cores = Some(1.0);
                scenario.jbof.shrunk_memory = Some(f64::from(percent) / 100.0);
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
                let measured = measure::measure(&expectation.id, finished, &prices, self.base.jbof.kept());
                Comparison::new(expectation, measured, "")
            })
            .collect()
    }
}

/// A workload of Table 2. Depth 16 is what the source's own figures imply: sheet §8.11.
fn table2(scenario: &mut Scenario, place: usize) {
    scenario.workload.depth = Some(16);
    scenario.run.warm_mapping_requests = 1_500_000;
    scenario.workload.table2 = Some(PUBLISHED[place].name.to_owned());
}
