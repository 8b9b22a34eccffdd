//! One run: a design under a program.

use crate::design::{Backing, Design, Parts};
use crate::program::{Program, Source};
use crate::trace::Trace;
use flashyard_describe::ScenarioError;
use flashyard_memory::{
    AnnotationRules, CoreCounters, EndpointCounters, FlashCounters, LEVELS_MAX, Machine, MachineConfig, MemoryError,
    Stalls,
};
use flashyard_stats::LatencyHistogram;
use flashyard_units::SimSpan;

/// Accesses of all cores between two looks of the observer.
const PIECE: u64 = 1 << 20;

/// A design under programs, one after the other.
#[derive(Clone)]
pub struct Job<'a> {
    /// The design.
    pub design: Design,
    /// Parameters of its parts.
    pub parts: &'a Parts,
    /// Rules of annotation, which [`Design::CxlAssd`] follows.
    pub annotations: AnnotationRules,
    /// Programs: each is measured for itself, and the first is warmed with.
    pub programs: &'a [Program],
    /// The file of a traced program.
    pub trace: Option<&'a Trace>,
    /// Accesses of each core before the first is measured.
    pub warm_accesses: u64,
    /// Accesses of each core under each program.
    pub accesses: u64,
    /// Seed of programs.
    pub seed: u64,
}

/// Figures of a program under a design.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Time from the begin of the measured part until all cores have done all of it.
    pub time: SimSpan,
    /// Counts of all cores together.
    pub cores: CoreCounters,
    /// Latencies of accesses that went to the memory.
    pub latencies: LatencyHistogram,
    /// Counts of the device, where there is one: over the measured part.
    pub endpoint: Option<EndpointCounters>,
    /// Counts of its flash, over the whole run.
    pub flash: Option<FlashCounters>,
    /// Requests that DRAM on the processor has answered.
    pub local_requests: u64,
    /// Levels of cache.
    pub levels: usize,
    /// Cores.
    pub core_count: u32,
}

impl Figures {
    /// Requests to the memory: those that reached the device, where there is one.
    pub fn requests(&self) -> u64 {
        self.endpoint.map_or_else(|| self.cores.requests.iter().sum(), |endpoint| endpoint.requests)
    }

    /// Misses of the last level in a thousand instructions.
    pub fn misses_per_thousand(&self) -> f64 {
        self.cores.misses as f64 / self.cores.instructions.max(1) as f64 * 1e3
    }

    /// Share of the accesses to the last level that it answers.
    pub fn last_level_hits(&self) -> f64 {
        let hits = self.levels.checked_sub(1).map_or(0, |last| self.cores.hits[last]);
        hits as f64 / (hits + self.cores.misses).max(1) as f64
    }

    /// Laws that do not hold, in words.
    pub fn broken(&self) -> Vec<String> {
        let core = &self.cores;
        let answered = core.hits.iter().sum::<u64>() + core.misses;
        let mut broken = Vec::new();
        if answered != core.loads + core.stores {
            broken.push(format!("{answered} accesses answered of {}", core.loads + core.stores));
        }
        if core.memory_latency > core.latency {
            broken.push("accesses to the memory took longer than all accesses".to_owned());
        }
        let made: u64 = core.requests.iter().sum();
        if let Some(endpoint) = &self.endpoint
            && endpoint.requests + self.local_requests != made
        {
            broken.push(format!("{} requests arrived of {made}", endpoint.requests + self.local_requests));
        }
        broken
    }
}

/// The outcome of a job: figures of each program, or `None` where the observer stopped it.
pub type Run = Option<Vec<Figures>>;

/// Runs a job. The observer hears how far it is, from 0 to 1, and may stop it.
///
/// Errors: parameters outside their ranges, a trace that cannot be read.
pub fn run(job: &Job<'_>, observer: &mut dyn FnMut(f64) -> bool) -> Result<Run, ScenarioError> {
    let of_world = |error: MemoryError| ScenarioError::of_world(error);
    let uncached = job.design == Design::PcieSsd;
    let config = MachineConfig {
        uncached_from: uncached.then_some(job.parts.device_from),
        annotations: if job.design == Design::CxlAssd { job.annotations } else { AnnotationRules::default() },
        ..job.parts.machine.clone()
    };
    let cores = config.cores;
    let levels = config.levels.len();
    let mut backing = Backing::new(job.design, job.parts).map_err(of_world)?;
    if let (Some(endpoint), Some(program)) = (backing.endpoint_mut(), job.programs.first()) {
        program.warm(endpoint, cores, job.seed).map_err(of_world)?;
    }
    let mut machine = Machine::new(config, backing).map_err(of_world)?;
    let mut figures = Vec::new();
    let all = (job.warm_accesses + job.accesses * job.programs.len() as u64).max(1) as f64;
    let mut done = 0;
    for (number, program) in job.programs.iter().enumerate() {
        let data = program.data(job.trace).map_err(of_world)?;
        // Each program makes draws of its own: the next one would find the pages of the one before otherwise.
        let mut sources = program.sources(cores, &data, job.seed.wrapping_add(number as u64))?;
        let mut go_on = |machine: &mut Machine<Backing>, sources: &mut [Source<'_>], accesses: u64| {
            let mut left = accesses;
            while left > 0 {
                let piece = left.min((PIECE / u64::from(cores)).max(1));
                let ran = machine.run(sources, piece);
                left -= piece;
                done += piece;
                if !observer(done as f64 / all) {
                    return false;
                }
                if ran == 0 {
                    break;
                }
            }
            true
        };
        if number == 0 && !go_on(&mut machine, &mut sources, job.warm_accesses) {
            return Ok(None);
        }
        let (begins, before) = (machine.now(), machine.memory().endpoint().map(|endpoint| *endpoint.counters()));
        let local = machine.memory().local_requests();
        machine.measure();
        if !go_on(&mut machine, &mut sources, job.accesses) {
            return Ok(None);
        }
        if let Some(error) = sources.iter_mut().find_map(Source::take_error) {
            return Err(error);
        }
        let endpoint = machine.memory().endpoint();
        figures.push(Figures {
            time: machine.drained().saturating_since(begins),
            cores: sum(machine.counters()),
            latencies: machine.latencies().clone(),
            endpoint: endpoint.zip(before).map(|(endpoint, before)| endpoint.counters().since(&before)),
            flash: endpoint.and_then(|endpoint| endpoint.medium().flash()).map(|flash| *flash.counters()),
            local_requests: machine.memory().local_requests() - local,
            levels,
            core_count: cores,
        });
    }
    Ok(Some(figures))
}

/// Counts of all cores together.
fn sum<'a>(cores: impl Iterator<Item = &'a CoreCounters>) -> CoreCounters {
    let mut all = CoreCounters::default();
    for core in cores {
        all.instructions += core.instructions;
        all.loads += core.loads;
        all.stores += core.stores;
        for level in 0..LEVELS_MAX {
            all.hits[level] += core.hits[level];
        }
        all.hits_on_the_way += core.hits_on_the_way;
        all.misses += core.misses;
        for kind in 0..2 {
            all.requests[kind] += core.requests[kind];
            all.annotated[kind] += core.annotated[kind];
        }
        all.latency += core.latency;
        all.memory_latency += core.memory_latency;
        let Stalls { window, queue, misses, dependence, ordered } = core.stalls;
        all.stalls.window += window;
        all.stalls.queue += queue;
        all.stalls.misses += misses;
        all.stalls.dependence += dependence;
        all.stalls.ordered += ordered;
    }
    all
}
