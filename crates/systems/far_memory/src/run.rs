//! One run: a design under a program.

use crate::ahead::{Part, Recorded, bases, footprints, one_core, pace, placed, predictor, record};
use crate::combine::PageIndex;
use crate::design::{Backing, Design, MARK, Parts};
use crate::program::{Data, Program, Source};
use crate::sampled::{Sampling, Window, sampled};
use crate::series::Series;
use crate::trace::Trace;
use flashyard_cxl::CACHE_LINE_BYTES;
use flashyard_describe::ScenarioError;
use flashyard_memory::{
    AheadCounters, AnnotationRules, CoreCounters, EndpointCounters, FlashCounters, LEVELS_MAX, LentCounters, Machine,
    MachineConfig, Measured, MemoryError, PAGE_BYTES, PathTimes, Stalls,
};
use flashyard_prefetch::{AnyPredictor, Cost};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// Accesses of all cores between two looks of the observer.
const PIECE: u64 = 1 << 20;

/// How many times as long a mixture takes on flash as with the memory that writes its requests down, about. [A] 100 ns and some 4 us
const SLOWER: u64 = 40;

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
    /// Requests in a thousand instructions that each program is to have; none for its own pace.
    pub paces: &'a [Option<f64>],
    /// Programs run beside each other, one on each core, for so long before and while they are measured together; one after the other
    /// where there are no such times.
    pub beside: Option<[SimSpan; 2]>,
    /// Windows at equal distances over the whole computation of a kernel, over which its accesses are spread. All other programs, and kernels
    /// where it is 1, run from their begin. Where programs run beside each other, each kernel begins at its middle window.
    pub windows: u32,
    /// Accesses of each core before the first is measured; all windows together.
    pub warm_accesses: u64,
    /// Accesses of each core under each program; all windows together.
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
    /// Instructions of each core.
    pub instructions: Vec<u64>,
    /// Latencies of accesses that went to the memory.
    pub latencies: LatencyHistogram,
    /// Times of persistent stores and flushes.
    pub commits: LatencyHistogram,
    /// Counts of the device, where there is one: over the measured part.
    pub endpoint: Option<EndpointCounters>,
    /// Counts of its flash, over the whole run.
    pub flash: Option<FlashCounters>,
    /// Where the time of requests over a path went, and their number, over the measured part; `None` without a path.
    pub path: Option<(PathTimes, u64)>,
    /// Hints that the root port has sent over the measured part, and the lines in them.
    pub hinted: [u64; 2],
    /// Counts of DRAM that is lent, over the whole run.
    pub lent: Option<LentCounters>,
    /// Counts of lines fetched ahead over the measured part, and the cost of predicting them.
    pub ahead: Option<(AheadCounters, Cost)>,
    /// Mean interval of a thousand loads of the memory after the other, in nanoseconds; where a program has several windows, that of accesses
    /// to the last level in each of them, hits and misses.
    pub intervals_ns: Vec<f64>,
    /// Requests that DRAM on the processor has answered.
    pub local_requests: u64,
    /// Requests to the memory over time, those before the measured part among them.
    pub series: Series,
    /// When the measured part began, and when it ended.
    pub measured: [SimTime; 2],
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
        (self.last_level_accesses() - self.cores.misses) as f64 / self.last_level_accesses().max(1) as f64
    }

    /// Accesses to the last level: its hits and misses.
    fn last_level_accesses(&self) -> u64 {
        self.levels.checked_sub(1).map_or(0, |last| self.cores.hits[last]) + self.cores.misses
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
        // Lines that are read ahead arrive as well; loads that a buffer answers do not, nor those that wait for lines read ahead.
        let (read, answered) = self.ahead.map_or((0, 0), |(ahead, _)| ahead.read_and_answered());
        let made: u64 = core.requests.iter().sum::<u64>() + read - answered;
        if let Some(endpoint) = &self.endpoint
            && endpoint.requests + self.local_requests != made
        {
            broken.push(format!("{} requests arrived of {made}", endpoint.requests + self.local_requests));
        }
        if let (Some(endpoint), Some((times, _))) = (&self.endpoint, &self.path)
            && endpoint.controller + endpoint.dram + endpoint.medium != times.device
        {
            broken.push(format!("parts of the device's time are not its time: {endpoint:?} of {times:?}"));
        }
        broken
    }
}

/// The outcome of a job: figures of each program, or `None` where the observer stopped it.
pub type Run = Option<Vec<Figures>>;

/// Programs of a job with their data, their paces, and the requests that they make.
pub(crate) struct Prepared<'g> {
    data: &'g [Data],
    /// Windows of each program, where its accesses are spread over it.
    windows: Vec<Vec<Window<'g>>>,
    /// Instructions for an access of each; none where the program has its own pace.
    instructions: Vec<Option<f64>>,
    recorded: Recorded,
}

impl Job<'_> {
    /// Sources of program `number` at one of its windows, or of all at once where they run beside each other.
    fn sources<'g>(
        &self,
        prepared: &Prepared<'g>,
        number: usize,
        window: usize,
    ) -> Result<Vec<Source<'g>>, ScenarioError> {
        let cores = self.parts.machine.cores;
        if self.beside.is_none() {
            let instructions = prepared.instructions[number];
            let sources = match prepared.windows[number].get(window) {
                Some(window) => window.sources(),
                None => self.begun(prepared.data, number, cores)?,
            };
            return Ok(sources.into_iter().map(|source| placed(source, instructions, 0, 0)).collect());
        }
        let mut all = Vec::new();
        let bases = bases(&footprints(self.programs, prepared.data));
        for (core, base) in bases.into_iter().enumerate() {
            let instructions = prepared.instructions[core].unwrap_or(1.0);
            let windows = &prepared.windows[core];
            let sources = match windows.get(windows.len() / 2) {
                Some(window) => window.sources(),
                None => self.begun(prepared.data, core, 1)?,
            };
            all.extend(sources.into_iter().map(|source| placed(source, Some(instructions), base, core as u16)));
        }
        Ok(all)
    }

    /// Sources of program `number` from its begin.
    fn begun<'g>(&self, data: &'g [Data], number: usize, cores: u32) -> Result<Vec<Source<'g>>, ScenarioError> {
        // Each program makes draws of its own: the next one would find the pages of the one before otherwise.
        let seed = self.seed.wrapping_add(number as u64);
        self.programs[number].sources(cores, &data[number], seed)
    }

    /// Data that its programs go through.
    ///
    /// Errors: sizes outside their ranges, a traced program without a file.
    pub(crate) fn data(&self) -> Result<Vec<Data>, ScenarioError> {
        let data = self.programs.iter().map(|program| program.data(self.trace)).collect::<Result<_, _>>();
        data.map_err(of_world)
    }

    /// Runs programs for their requests, and keeps them at their windows, where a pace, a predictor or windows need those.
    pub(crate) fn prepare<'g>(&self, data: &'g [Data]) -> Result<Prepared<'g>, ScenarioError> {
        let mut prepared = Prepared {
            data,
            windows: Vec::new(),
            instructions: vec![None; self.programs.len()],
            recorded: Recorded::default(),
        };
        let one = one_core(&self.parts.machine);
        let windows = u64::from(self.windows.max(1));
        let sampling =
            Sampling { windows: self.windows, warm: self.warm_accesses / windows, measured: self.accesses / windows };
        for number in 0..self.programs.len() {
            let config = if self.beside.is_some() { &one } else { &self.parts.machine };
            let sources = || self.begun(data, number, config.cores);
            let found = if self.windows > 1 { sampled(config, sampling, sources)? } else { None };
            let (kept, mut recorded) = found.unwrap_or_default();
            if let Some(rate) = self.paces.get(number).copied().flatten() {
                if kept.is_empty() {
                    let mut sources = self.begun(data, number, 1)?;
                    let [warm, measured] = [self.warm_accesses, self.accesses].map(Part::Accesses);
                    recorded = record(&one, &mut sources, warm, measured).map_err(of_world)?;
                }
                prepared.instructions[number] = Some(pace(&recorded, rate));
            }
            if number == 0 && !kept.is_empty() {
                prepared.recorded = recorded;
            }
            prepared.windows.push(kept);
        }
        let knows = self.design.predicts().is_some() || self.learns_pages();
        let is_recorded = self.beside.is_none() && !prepared.recorded.windows.is_empty();
        if knows && !is_recorded && !self.programs.is_empty() {
            let mut sources = self.sources(&prepared, 0, 0)?;
            let [warm, measured] = self.parts(1);
            prepared.recorded = record(&self.parts.machine, &mut sources, warm, measured).map_err(of_world)?;
        }
        Ok(prepared)
    }

    /// Windows that the job has.
    fn windows(&self, prepared: &Prepared<'_>) -> usize {
        let first = prepared.windows.first().filter(|_| self.beside.is_none());
        first.map_or(1, |windows| windows.len().max(1))
    }

    /// The parts before and while figures count, `slower` times as long where memory is so much slower than that which writes requests down.
    fn parts(&self, slower: u64) -> [Part; 2] {
        match self.beside {
            None => [self.warm_accesses, self.accesses].map(Part::Accesses),
            Some(times) => times.map(|time| Part::Time(SimSpan::from_ps(time.as_ps() * slower / SLOWER))),
        }
    }

    /// The predictor of the design; a network is trained.
    pub(crate) fn predictor(&self, prepared: &Prepared<'_>) -> Option<Box<dyn AnyPredictor>> {
        predictor(self.design, self.parts, &prepared.recorded, self.seed)
    }

    /// Whether an index learns which pages the program touches.
    fn learns_pages(&self) -> bool {
        self.design.combines() && self.parts.combine.index == PageIndex::Learned
    }

    /// The pages of all requests, where an index learns them.
    fn touched(&self, prepared: &Prepared<'_>) -> Vec<u32> {
        let seen = if self.learns_pages() { &prepared.recorded.seen[..] } else { &[] };
        seen.iter().map(|seen| (seen.line * CACHE_LINE_BYTES / PAGE_BYTES) as u32).collect()
    }

    fn config(&self) -> MachineConfig {
        MachineConfig {
            uncached_from: (self.design == Design::PcieSsd).then_some(self.parts.local.get()),
            annotations: if self.design.annotates(&self.parts.combine) {
                self.annotations
            } else {
                AnnotationRules::default()
            },
            ..self.parts.machine.clone()
        }
    }
}

fn of_world(error: MemoryError) -> ScenarioError {
    ScenarioError::of_world(error)
}

/// Runs a job. The observer hears how far it is, from 0 to 1, and may stop it.
///
/// Errors: parameters outside their ranges, a trace that cannot be read, addresses that no memory has.
pub fn run(job: &Job<'_>, observer: &mut dyn FnMut(f64) -> bool) -> Result<Run, ScenarioError> {
    let data = job.data()?;
    let prepared = job.prepare(&data)?;
    let predictor = job.predictor(&prepared);
    run_prepared(job, &prepared, predictor, observer)
}

/// Runs a job that was prepared, or one that differs from it in parts that change no request of its programs.
///
/// Errors: parameters outside their ranges, a trace that cannot be read, addresses that no memory has.
pub(crate) fn run_prepared(
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    predictor: Option<Box<dyn AnyPredictor>>,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Run, ScenarioError> {
    let config = job.config();
    let cores = config.cores;
    let levels = config.levels.len();
    let touched = job.touched(prepared);
    let mut backing = Backing::new(job.design, job.parts, predictor, &touched, job.seed).map_err(of_world)?;
    if let (Some(endpoint), Some(program)) = (backing.endpoint_mut(), job.programs.first()) {
        program.warm(endpoint, &job.annotations, cores, job.seed).map_err(of_world)?;
    }
    let mut machine = Machine::new(config, backing).map_err(of_world)?;
    let mut series = Series::default();
    let count = if job.beside.is_some() { job.programs.len().min(1) } else { job.programs.len() };
    let most = (PIECE / u64::from(cores)).max(1);
    let windows = job.windows(prepared);
    let [warm, measured] = job.parts(SLOWER).map(|part| part.of(windows as u64));
    let all = ((warm.pieces(most).count() + measured.pieces(most).count() * count) * windows).max(1) as f64;
    let mut done = 0;
    let mut so_far: Vec<SoFar> = (0..count).map(|_| SoFar::default()).collect();
    let mut figures = Vec::new();
    for window in 0..windows {
        figures.clear();
        for number in 0..count {
            let mut sources = job.sources(prepared, number, window)?;
            let mut go_on = |machine: &mut Machine<Backing>, sources: &mut [Source<'_>], part: Part| {
                for piece in part.pieces(most) {
                    piece.run_noted(machine, sources, &mut series);
                    machine.memory().check().map_err(of_world)?;
                    done += 1;
                    if !observer(done as f64 / all) {
                        return Ok(false);
                    }
                }
                Ok::<_, ScenarioError>(true)
            };
            if number == 0 {
                // Programs that follow find the caches as those before them leave them.
                if let Some(kept) = prepared.windows[0].get(window).filter(|_| job.beside.is_none()) {
                    machine.set_caches(kept.caches());
                    machine.memory_mut().pass(job.design, prepared.recorded.between(window));
                }
                if !go_on(&mut machine, &mut sources, warm)? {
                    return Ok(None);
                }
                let now = machine.now();
                if let Some(endpoint) = machine.memory_mut().endpoint_mut().filter(|_| window == 0) {
                    endpoint.fall_due(now);
                }
            }
            let so_far = &mut so_far[number];
            let here = Counts::of(&machine);
            let before = here.since(&so_far.counts);
            let accesses = so_far.last_level;
            machine.measure_on(std::mem::take(&mut so_far.measured));
            if !go_on(&mut machine, &mut sources, measured)? {
                return Ok(None);
            }
            if let Some(error) = sources.iter_mut().find_map(Source::take_error) {
                return Err(error);
            }
            let mut of_program = before.figures(&machine, levels, cores);
            so_far.last_level = of_program.last_level_accesses();
            if windows > 1 {
                // A window has too few requests for intervals of a thousand: it has its own mean, of what the last level is asked for.
                let took = machine.drained().saturating_since(here.at).as_ps() as f64 / 1e3;
                so_far.intervals_ns.push(took / (so_far.last_level - accesses).max(1) as f64);
                of_program.intervals_ns.clone_from(&so_far.intervals_ns);
            }
            let begun = *so_far.begun.get_or_insert(here.at);
            of_program.measured = [begun, machine.drained()];
            so_far.counts = Counts { at: machine.drained(), ..Counts::of(&machine) }.since(&before);
            so_far.measured = machine.take_measured();
            figures.push(Figures { series: series.clone(), ..of_program });
        }
    }
    Ok(Some(figures))
}

/// Figures of a program over the windows before.
#[derive(Default)]
struct SoFar {
    counts: Counts,
    measured: Measured,
    /// Accesses to the last level.
    last_level: u64,
    intervals_ns: Vec<f64>,
    /// Begin of its first measured part.
    begun: Option<SimTime>,
}

/// Counts up to a time; those of a measured part are the difference of two.
#[derive(Default)]
struct Counts {
    at: SimTime,
    endpoint: Option<EndpointCounters>,
    ahead: Option<(AheadCounters, Cost)>,
    path: Option<(PathTimes, u64)>,
    hinted: [u64; 2],
    local: u64,
    marks: usize,
}

impl Counts {
    fn of(machine: &Machine<Backing>) -> Self {
        let memory = machine.memory();
        Self {
            at: machine.now(),
            endpoint: memory.endpoint().map(|endpoint| *endpoint.counters()),
            ahead: memory.ahead(),
            path: memory.times(),
            hinted: memory.hinted(),
            local: memory.local_requests(),
            marks: memory.marks().len(),
        }
    }

    /// The counts since `earlier`, which are all where that has none.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            at: SimTime::ZERO + self.at.saturating_since(earlier.at),
            endpoint: self.endpoint.map(|counts| counts.since(&earlier.endpoint.unwrap_or_default())),
            ahead: self.ahead.map(|(counts, cost)| {
                let (before, earlier) = earlier.ahead.unwrap_or_default();
                (counts.since(&before), Cost { inferences: cost.inferences - earlier.inferences, ..cost })
            }),
            path: self.path.map(|(times, count)| {
                let (before, earlier) = earlier.path.unwrap_or_default();
                (times.since(&before), count - earlier)
            }),
            hinted: [0, 1].map(|part| self.hinted[part] - earlier.hinted[part]),
            local: self.local - earlier.local,
            marks: self.marks - earlier.marks,
        }
    }

    fn figures(&self, machine: &Machine<Backing>, levels: usize, core_count: u32) -> Figures {
        let memory = machine.memory();
        let endpoint = memory.endpoint();
        let made = Self::of(machine).since(self);
        Figures {
            time: machine.drained().saturating_since(self.at),
            cores: sum(machine.counters()),
            instructions: machine.counters().map(|core| core.instructions).collect(),
            latencies: machine.latencies().clone(),
            commits: machine.commits().clone(),
            endpoint: made.endpoint,
            flash: endpoint.and_then(|endpoint| endpoint.medium().flash()).map(|flash| *flash.counters()),
            path: made.path,
            hinted: made.hinted,
            lent: endpoint.and_then(|endpoint| endpoint.lent()).map(|lent| *lent.counters()),
            ahead: made.ahead,
            intervals_ns: memory.marks()[self.marks..]
                .windows(2)
                .map(|pair| pair[1].since(pair[0]).as_ps() as f64 / 1e3 / MARK as f64)
                .collect(),
            local_requests: made.local,
            series: Series::default(),
            measured: [self.at, machine.drained()],
            levels,
            core_count,
        }
    }
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
