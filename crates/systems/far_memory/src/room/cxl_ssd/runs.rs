//! The runs of the study.

use crate::design::Design;
use crate::program::Program;
use crate::room::section::MemorySection;
use crate::run::{Figures, Job, run};
use flashyard_describe::reproduce::{NamedRun, Number};
use flashyard_describe::{Files, ScenarioError};
use flashyard_memory::{AnnotationRules, Determinism, MediumConfig};
use flashyard_units::{Bytes, Named};
use serde::{Deserialize, Serialize};

/// Requests to the memory in each phase of the time series. [P] sheet §7: the phase of loads ends near the 90,000th
const SERIES_REQUESTS: f64 = 90_000.0;

/// Share of loads in the reorder window above which requests are deterministic, in the time series. [A] between the shares of
/// both phases
const LOADS_ABOVE: f64 = 0.2;

/// When requests of a run are deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deterministic {
    /// This percentage of them.
    Percent(u32),
    /// While loads prevail.
    Loads,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CxlRun {
    /// Name of the program, or of the first of two phases.
    pub(super) program: &'static str,
    /// The second phase.
    pub(super) then: Option<&'static str>,
    pub(super) design: Design,
    /// Percentage of functions that are annotated as bufferable.
    pub(super) functions: u32,
    pub(super) deterministic: Deterministic,
    /// Whether internal DRAM caches loads without annotation.
    pub(super) caches_loads: bool,
    /// Cores, where they are not those of the scenario.
    pub(super) threads: Option<u32>,
    /// Whether all loads and stores past the caches go to the device, and not the footprint's alone.
    pub(super) all: bool,
    /// Whether the processor is that of the prototype, whose flash collects no garbage.
    pub(super) prototype: bool,
    /// Whether collection of garbage is due when the run begins.
    pub(super) due: bool,
}

/// A program on a design; annotated throughout where it annotates.
pub(super) const fn of(program: &'static str, design: Design) -> CxlRun {
    CxlRun {
        program,
        then: None,
        design,
        functions: 100,
        deterministic: Deterministic::Percent(100),
        caches_loads: false,
        threads: None,
        all: false,
        prototype: false,
        due: false,
    }
}

impl CxlRun {
    /// The run with annotations of so many percent of functions and requests.
    pub(super) const fn annotated(self, functions: u32, requests: u32) -> Self {
        Self { functions, deterministic: Deterministic::Percent(requests), ..self }
    }

    /// The run on devices whose internal DRAM caches loads without annotations as well.
    pub(super) const fn cached(self) -> Self {
        Self { caches_loads: true, ..self }
    }

    /// The run with all data of the program on the device.
    pub(super) const fn with_all_data(self) -> Self {
        Self { all: true, ..self }
    }

    /// The run on the prototype.
    pub(super) const fn on_prototype(self) -> Self {
        Self { prototype: true, ..self }
    }

    /// The run on a drive whose collection of garbage is due.
    pub(super) const fn with_collection_due(self) -> Self {
        Self { due: true, ..self }
    }

    /// The run with so many cores.
    pub(super) const fn with_threads(self, threads: u32) -> Self {
        Self { threads: Some(threads), ..self }
    }
}

/// All that runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(super) seed: u64,
    pub(super) memory: MemorySection,
}

/// Figures of a program in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhaseRecord {
    /// Time of the measured part.
    pub(super) seconds: f64,
    pub(super) instructions: u64,
    /// Requests to the memory.
    pub(super) requests: u64,
    pub(super) misses_per_thousand: f64,
    pub(super) last_level_hits: f64,
    /// Latencies of accesses that went to the memory: mean, p50, p99, p99.9, longest.
    pub(super) latency_us: [f64; 5],
    /// Share of requests whose page was in the internal DRAM.
    pub(super) device_hits: f64,
    /// Pages written to flash, and rounds of garbage collection, over the run so far.
    pub(super) flash_writes: u64,
    pub(super) rounds: u64,
    /// Part of the cores' time that was lost to waiting.
    pub(super) stalled: f64,
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CxlRecord {
    /// Its name.
    pub(super) name: String,
    /// Its phases; most runs have one.
    pub(super) phases: Vec<PhaseRecord>,
}

impl CxlRecord {
    /// The first phase. A record has one or it was not made.
    pub(super) fn first(&self) -> &PhaseRecord {
        &self.phases[0]
    }

    /// Seconds of the first phase.
    pub(super) fn seconds(&self) -> f64 {
        self.first().seconds
    }

    /// The longest latency of a phase in milliseconds.
    pub(super) fn longest_ms(&self, phase: usize) -> f64 {
        self.phases.get(phase).map_or(f64::NAN, |phase| phase.latency_us[4] / 1e3)
    }
}

/// A number made of runs.
pub(super) type CxlNumber = Number<CxlRun, CxlRecord>;

impl CxlRun {
    /// Carries the run out; `None` when the observer stopped it.
    fn figures(
        &self,
        base: &Base,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<Vec<Figures>>, ScenarioError> {
        let memory = &base.memory;
        let mut parts = memory.parts(self.prototype, base.seed)?;
        parts.endpoint.caches_loads = self.caches_loads;
        // [P] "BF-only and DT-only apply a single type of annotation": where no function is annotated, internal DRAM is that of CXL-SSD.
        parts.endpoint.reads_buffering = self.functions > 0;
        let cores = self.threads.unwrap_or(parts.machine.cores);
        parts.machine.cores = cores;
        if let MediumConfig::Flash(flash) = &mut parts.endpoint.medium {
            flash.collection_due = self.due;
            if self.prototype {
                // [P] sheet §4: garbage collection is excluded.
                flash.worn_in = false;
                flash.collect_below = 0.0;
            }
        }
        let share = |percent: u32| f64::from(percent) / 100.0;
        let annotations = AnnotationRules {
            determinism: match self.deterministic {
                Deterministic::Percent(percent) => Determinism::Share(share(percent)),
                Deterministic::Loads => Determinism::LoadsAbove(LOADS_ABOVE),
            },
            bufferable: Some(share(self.functions)),
        };
        let mut first = memory.program(self.program, base.seed)?;
        if !self.all
            && let Program::Mix(mix) = &mut first
        {
            mix.words_per_line = 8;
            parts.local = Bytes::new(first.footprint_begins());
        }
        let then = self.then.map(|name| memory.program(name, base.seed)).transpose()?;
        // Phases last as long as their number of requests takes.
        let accesses = match (&first, &then) {
            (Program::Mix(mix), Some(_)) if memory.accesses > 1_000_000 => {
                (SERIES_REQUESTS * 1000.0 / mix.misses_per_thousand * (mix.loads + mix.stores)) as u64
            }
            _ => memory.accesses / u64::from(cores),
        };
        let programs: Vec<Program> = std::iter::once(first).chain(then).collect();
        let job = Job {
            design: self.design,
            parts: &parts,
            annotations,
            programs: &programs,
            trace: None,
            paces: &[],
            beside: None,
            windows: 1,
            warm_accesses: memory.warm_accesses / u64::from(cores),
            accesses: accesses.max(1),
            seed: base.seed,
        };
        run(&job, observer)
    }

    /// Carries the run out and forgets it.
    #[cfg(test)]
    pub(super) fn shortened(&self, base: &Base) -> Result<(), ScenarioError> {
        self.figures(base, &mut |_| true).map(drop)
    }
}

impl NamedRun for CxlRun {
    type Base = Base;
    type Record = CxlRecord;

    fn name(&self) -> String {
        let mut name = format!("{} {}", self.program, self.design.name());
        if let Some(then) = self.then {
            name += &format!(", then {then}");
        }
        if self.design == Design::CxlAssd {
            name += &match self.deterministic {
                Deterministic::Percent(percent) => {
                    format!(", {} % of functions, {percent} % of requests", self.functions)
                }
                Deterministic::Loads => format!(", {} % of functions, requests while loads prevail", self.functions),
            };
        }
        if let Some(threads) = self.threads {
            name += &format!(", {threads} threads");
        }
        if self.caches_loads {
            name += ", loads cached";
        }
        if self.all {
            name += ", all data";
        }
        if self.prototype {
            name += ", prototype";
        }
        if self.due {
            name += ", collection due";
        }
        name
    }

    fn carry_out(
        &self,
        base: &Base,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<CxlRecord>, ScenarioError> {
        let Some(figures) = self.figures(base, observer)? else { return Ok(None) };
        if let Some(broken) = figures.iter().flat_map(Figures::broken).next() {
            return Err(ScenarioError::Program(format!("{}: {broken}", self.name())));
        }
        Ok(Some(CxlRecord { name: self.name(), phases: figures.iter().map(phase).collect() }))
    }

    fn table(records: &[CxlRecord]) -> String {
        let head = format!(
            "{:58} {:>10} {:>10} {:>8} {:>7} {:>9} {:>9} {:>9} {:>8}\n",
            "run", "time ms", "requests", "misses", "device", "mean us", "p99 us", "longest", "stalled"
        );
        let row = |record: &CxlRecord, phase: &PhaseRecord| {
            let [mean, _, p99, _, longest] = phase.latency_us;
            format!(
                "{:58} {:>10.3} {:>10} {:>8.2} {:>6.1}% {:>9.3} {:>9.3} {:>9.1} {:>7.1}%\n",
                record.name,
                phase.seconds * 1e3,
                phase.requests,
                phase.misses_per_thousand,
                phase.device_hits * 100.0,
                mean,
                p99,
                longest,
                phase.stalled * 100.0
            )
        };
        let rows = records.iter().flat_map(|record| record.phases.iter().map(move |phase| row(record, phase)));
        head + &rows.collect::<String>()
    }
}

fn phase(figures: &Figures) -> PhaseRecord {
    let latencies = &figures.latencies;
    let percentile = |share| if latencies.count() == 0 { 0.0 } else { latencies.percentile_us(share) };
    let device = figures.endpoint.filter(|endpoint| endpoint.requests > 0);
    let stalls = &figures.cores.stalls;
    let lost = stalls.window + stalls.queue + stalls.misses + stalls.dependence + stalls.ordered;
    PhaseRecord {
        seconds: figures.time.as_secs_f64(),
        instructions: figures.cores.instructions,
        requests: figures.requests(),
        misses_per_thousand: figures.misses_per_thousand(),
        last_level_hits: figures.last_level_hits(),
        latency_us: [
            if latencies.count() == 0 { 0.0 } else { latencies.mean_us() },
            percentile(0.5),
            percentile(0.99),
            percentile(0.999),
            percentile(1.0),
        ],
        device_hits: device.map_or(0.0, |endpoint| endpoint.hits as f64 / endpoint.requests as f64),
        flash_writes: figures.flash.map_or(0, |flash| flash.writes),
        rounds: figures.flash.map_or(0, |flash| flash.rounds),
        stalled: lost.ratio_of(figures.time * u64::from(figures.core_count)),
    }
}
