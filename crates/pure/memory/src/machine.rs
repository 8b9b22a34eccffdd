//! Cores that stall on a memory: each access is dispatched in program order, looked up level by level, and answered by the
//! memory where no level has its line.
//!
//! A core is a clock that its accesses move on: by the instructions between them, by a full reorder window, by a full
//! load/store queue, by miss-status registers that are all taken, and by accesses that must be waited for. The core that is
//! furthest behind goes on, so that the memory sees times that only grow.

use crate::access::{Access, AccessKind, Accesses};
use crate::annotate::AnnotationRules;
use crate::caches::{Caches, LevelConfig};
use crate::error::MemoryError;
use crate::misses::Misses;
use crate::queue::AccessQueue;
use flashyard_cxl::{Buffering, CACHE_LINE_BYTES, Completes, Hint, Memory, MemoryAccess, Transaction};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{Hertz, SimSpan, SimTime};

/// Levels of cache at most.
pub const LEVELS_MAX: usize = 4;

/// Parameters of the cores and their caches.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// Cores.
    pub cores: u32,
    /// Their clock.
    pub clock: Hertz,
    /// Instructions that a core dispatches in a cycle.
    pub width: u32,
    /// Instructions of the reorder window.
    pub window: u32,
    /// Places of the load/store queue.
    pub queue: u32,
    /// Levels of cache, the nearest first; none where nothing is cached.
    pub levels: Vec<LevelConfig>,
    /// Miss-status registers of a core.
    pub core_misses: u32,
    /// Miss-status registers of the last level, which written lines occupy as well.
    pub last_misses: u32,
    /// Accesses from this address on go past all caches in program order, one load at a time, as those to a PCIe BAR do.
    pub uncached_from: Option<u64>,
    /// Which requests are annotated.
    pub annotations: AnnotationRules,
}

/// Time that a core lost, by what it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The reorder window was full.
    pub window: SimSpan,
    /// The load/store queue was full.
    pub queue: SimSpan,
    /// All miss-status registers were taken.
    pub misses: SimSpan,
    /// An address came from a load that was not there yet.
    pub dependence: SimSpan,
    /// An access past the caches, or a persistent store, was waited for.
    pub ordered: SimSpan,
}

/// Counts of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Instructions, accesses among them.
    pub instructions: u64,
    /// Loads.
    pub loads: u64,
    /// Stores, persistent ones among them.
    pub stores: u64,
    /// Accesses that found their line, by level.
    pub hits: [u64; LEVELS_MAX],
    /// Hits on lines that were still on their way.
    pub hits_on_the_way: u64,
    /// Accesses that no level answered, and those past the caches.
    pub misses: u64,
    /// Requests to the memory: misses, and changed lines that left the last level.
    pub requests: [u64; 2],
    /// Requests that were annotated as deterministic, and as bufferable.
    pub annotated: [u64; 2],
    /// Latency of all accesses together, from dispatch to data.
    pub latency: SimSpan,
    /// Latency of the accesses that went to the memory.
    pub memory_latency: SimSpan,
    /// Time lost.
    pub stalls: Stalls,
}

struct Core {
    now: SimTime,
    /// Part of a picosecond that dispatch is ahead of `now`, in 2^-16.
    fraction: u64,
    number: u64,
    queue: AccessQueue,
    misses: Misses,
    /// An access that was dispatched and could not go on.
    pending: Option<Access>,
    last_load: SimTime,
    last_ordered: SimTime,
    spread: f64,
    counters: CoreCounters,
}

/// Cores and caches in front of a memory.
pub struct Machine<M> {
    config: MachineConfig,
    cores: Vec<Core>,
    caches: Caches,
    last_misses: Misses,
    memory: M,
    /// Time of an instruction in 2^-16 ps.
    step: u64,
    cycles: [SimSpan; LEVELS_MAX],
    latencies: LatencyHistogram,
    /// Times of persistent stores and flushes.
    commits: LatencyHistogram,
    /// Lines that a flush writes.
    flushed: Vec<u64>,
    /// Changed lines that an access has pushed out of the last level.
    left: Vec<u64>,
    token: u64,
    /// When the memory was asked last.
    asked: SimTime,
}

/// Counts of a part of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    cores: Vec<CoreCounters>,
    latencies: LatencyHistogram,
    commits: LatencyHistogram,
}

/// A step of the machine that its owner looks at: an access that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Number of its instruction on its core.
    pub number: u64,
    /// When it was dispatched.
    pub at: SimTime,
    /// Dispatch to data.
    pub latency: SimSpan,
    /// Whether the memory answered it.
    pub by_memory: bool,
}

impl MachineConfig {
    fn validate(&self) -> Result<(), MemoryError> {
        let range = |name, value: u64, range| Err(MemoryError::Range { name, value, range });
        for (name, value, most) in [
            ("cores", self.cores, 1024),
            ("width", self.width, 64),
            ("window", self.window, 1 << 20),
            ("queue", self.queue, 1 << 16),
            ("core_misses", self.core_misses, 1 << 12),
            ("last_misses", self.last_misses, 1 << 16),
        ] {
            if value == 0 || value > most {
                return range(name, value.into(), "at least 1, and what a processor can have");
            }
        }
        if self.clock.get() > 100_000_000_000 {
            return range("clock in hertz", self.clock.get(), "at most 100 GHz");
        }
        if self.levels.len() > LEVELS_MAX {
            return range("levels of cache", self.levels.len() as u64, "at most 4");
        }
        let first_shared = self.levels.iter().position(|level| level.shared).unwrap_or(self.levels.len());
        if self.levels[first_shared..].iter().any(|level| !level.shared) {
            return range("a level of one core", 0, "levels of one core before those that all share");
        }
        Ok(())
    }
}

impl<M: Memory> Machine<M> {
    /// A machine with empty caches in front of `memory`.
    ///
    /// Errors: counts outside their ranges, caches that cannot be.
    pub fn new(config: MachineConfig, memory: M) -> Result<Self, MemoryError> {
        config.validate()?;
        let core = || Core {
            now: SimTime::ZERO,
            fraction: 0,
            number: 0,
            queue: AccessQueue::new(config.queue, config.window),
            misses: Misses::new(config.core_misses),
            pending: None,
            last_load: SimTime::ZERO,
            last_ordered: SimTime::ZERO,
            spread: 0.0,
            counters: CoreCounters::default(),
        };
        let cores = (0..config.cores).map(|_| core()).collect();
        let mut cycles = [SimSpan::ZERO; LEVELS_MAX];
        for (span, level) in cycles.iter_mut().zip(&config.levels) {
            *span = config.clock.span_of(level.cycles.into());
        }
        let period = config.clock.span_of(1 << 16).as_ps();
        Ok(Self {
            step: period / u64::from(config.width),
            last_misses: Misses::new(config.last_misses),
            cores,
            caches: Caches::new(config.cores, &config.levels)?,
            memory,
            cycles,
            latencies: LatencyHistogram::new(),
            commits: LatencyHistogram::new(),
            flushed: Vec::new(),
            left: Vec::new(),
            token: 0,
            asked: SimTime::ZERO,
            config,
        })
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The memory, for work between two runs.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Counts of each core.
    pub fn counters(&self) -> impl Iterator<Item = &CoreCounters> {
        self.cores.iter().map(|core| &core.counters)
    }

    /// Latencies of accesses that went to the memory.
    pub fn latencies(&self) -> &LatencyHistogram {
        &self.latencies
    }

    /// Times of persistent stores and flushes, from dispatch until all would outlive a loss of power.
    pub fn commits(&self) -> &LatencyHistogram {
        &self.commits
    }

    /// The clock of the core that is furthest ahead.
    pub fn now(&self) -> SimTime {
        self.cores.iter().map(|core| core.now).max().unwrap_or_default()
    }

    /// When each core has done all that it dispatched, the last of them.
    pub fn drained(&self) -> SimTime {
        self.cores.iter().map(|core| core.now.max(core.queue.drained())).max().unwrap_or_default()
    }

    /// Forgets all counts: what follows is measured.
    pub fn measure(&mut self) {
        self.measure_on(Measured::default());
    }

    /// Counts so far, after which others can be made.
    pub fn take_measured(&mut self) -> Measured {
        Measured {
            cores: self.cores.iter_mut().map(|core| std::mem::take(&mut core.counters)).collect(),
            latencies: std::mem::take(&mut self.latencies),
            commits: std::mem::take(&mut self.commits),
        }
    }

    /// Goes on with counts that were taken before, in place of those made since.
    pub fn measure_on(&mut self, measured: Measured) {
        let mut counters = measured.cores.into_iter();
        for core in &mut self.cores {
            core.counters = counters.next().unwrap_or_default();
        }
        self.latencies = measured.latencies;
        self.commits = measured.commits;
    }

    /// Puts other caches in the place of its own: those that a program has filled up to where it goes on.
    pub fn set_caches(&mut self, caches: Caches) {
        self.caches = caches;
    }

    /// Runs `accesses` more accesses of each core, from a source each, or fewer where a source ends. Returns how many there
    /// were.
    pub fn run<A: Accesses>(&mut self, sources: &mut [A], accesses: u64) -> u64 {
        self.run_observed(sources, accesses, |_| {})
    }

    /// Runs all cores up to a time, or to the ends of their sources. Returns how many accesses there were.
    pub fn run_until<A: Accesses>(&mut self, sources: &mut [A], until: SimTime) -> u64 {
        self.run_cores(sources, u64::MAX, until, |_| {})
    }

    /// Runs as [`Machine::run`] does and shows each access once it was answered.
    pub fn run_observed<A: Accesses>(
        &mut self,
        sources: &mut [A],
        accesses: u64,
        observer: impl FnMut(&Answered),
    ) -> u64 {
        self.run_cores(sources, accesses, SimTime::MAX, observer)
    }

    fn run_cores<A: Accesses>(
        &mut self,
        sources: &mut [A],
        accesses: u64,
        until: SimTime,
        mut observer: impl FnMut(&Answered),
    ) -> u64 {
        let cores = self.cores.len().min(sources.len());
        let mut left = vec![accesses; cores];
        let mut done = 0;
        loop {
            // The core furthest behind goes on until another one is.
            let (mut first, mut limit) = (None, until);
            let goes_on = |(number, core): &(usize, &Core)| left[*number] > 0 && core.now <= until;
            for (number, core) in self.cores[..cores].iter().enumerate().filter(goes_on) {
                match first {
                    None => first = Some((number, core.now)),
                    Some((_, now)) if core.now < now => (first, limit) = (Some((number, core.now)), now.min(until)),
                    Some(_) => limit = limit.min(core.now),
                }
            }
            let Some((number, _)) = first else { return done };
            let before = left[number];
            let ended = self.go_on(number, &mut sources[number], &mut left[number], limit, &mut observer);
            done += before - left[number];
            if ended {
                left[number] = 0;
            }
        }
    }

    /// Lets a core go on until it is beyond `limit`; returns whether its source ended.
    #[inline]
    fn go_on<A: Accesses>(
        &mut self,
        number: usize,
        source: &mut A,
        left: &mut u64,
        limit: SimTime,
        observer: &mut impl FnMut(&Answered),
    ) -> bool {
        while *left > 0 {
            let core = &mut self.cores[number];
            let access = match core.pending.take() {
                Some(access) => access,
                None => {
                    let Some(access) = source.next_access() else { return true };
                    core.dispatch(&access, self.step);
                    access
                }
            };
            if core.now > limit {
                core.pending = Some(access);
                return false;
            }
            match self.execute(number, &access) {
                Some(answered) => {
                    observer(&answered);
                    *left -= 1;
                }
                None => self.cores[number].pending = Some(access),
            }
        }
        false
    }

    /// Carries out an access that was dispatched; `None` where it had to wait for a register first.
    #[inline]
    fn execute(&mut self, number: usize, access: &Access) -> Option<Answered> {
        if access.kind == AccessKind::Flush {
            return Some(self.flush(number));
        }
        let uncached = self.config.uncached_from.is_some_and(|from| access.address >= from);
        if uncached || access.kind == AccessKind::PersistentStore {
            return Some(self.ordered(number, access));
        }
        let line = access.address / CACHE_LINE_BYTES;
        let core = &mut self.cores[number];
        let now = core.now;
        // Only what misses needs registers; nothing is changed before they are there.
        let free = core.misses.free_at(now).max(self.last_misses.free_at(now));
        if free > now && !self.caches.holds(number, line) {
            core.counters.stalls.misses += free.since(now);
            core.advance_to(free);
            return None;
        }
        let is_load = access.kind == AccessKind::Load;
        let found = self.caches.access(number, line, !is_load, &mut self.left);
        let levels = self.config.levels.len();
        let (core, last) = (&mut self.cores[number], levels.saturating_sub(1));
        let done = if found < levels {
            core.counters.hits[found] += 1;
            let here = now + self.cycles[found];
            match self.last_misses.arrival(now, line) {
                Some(arrival) => {
                    core.counters.hits_on_the_way += 1;
                    here.max(arrival)
                }
                None => here,
            }
        } else {
            let asked = now + self.cycles[last];
            let done = self.request(number, asked, Transaction::Load, access, None);
            let core = &mut self.cores[number];
            core.misses.take(Some(line), done);
            self.last_misses.take(Some(line), done);
            core.counters.misses += 1;
            core.counters.memory_latency += done.since(now);
            self.latencies.record(done.since(now));
            done
        };
        let core = &mut self.cores[number];
        core.finish(is_load, now, done);
        let answered = Answered { number: core.number, at: now, latency: done.since(now), by_memory: found == levels };
        // The access has its register by now: changed lines that leave for it wait for others, after it.
        for place in 0..self.left.len() {
            self.write_back(number, self.left[place]);
        }
        self.left.clear();
        Some(answered)
    }

    /// Writes a changed line to the memory.
    fn write_back(&mut self, number: usize, line: u64) {
        let core = &mut self.cores[number];
        let now = core.now;
        let free = self.last_misses.free_at(now);
        if free > now {
            core.counters.stalls.misses += free.since(now);
            core.advance_to(free);
        }
        let written = Access { address: line * CACHE_LINE_BYTES, kind: AccessKind::Store, ..Access::default() };
        let asked = free + self.cycles[self.config.levels.len().saturating_sub(1)];
        let done = self.request(number, asked, Transaction::Store, &written, Some(Buffering::Unsaid));
        self.last_misses.take(None, done);
    }

    /// Writes changed lines of all caches to the memory, and waits until all that it has outlives a loss of power.
    #[cold]
    fn flush(&mut self, number: usize) -> Answered {
        let begins = self.cores[number].now;
        let mut lines = std::mem::take(&mut self.flushed);
        lines.clear();
        self.caches.clean_all(|line| lines.push(line));
        // A line may have changed in several levels, and is written once.
        lines.sort_unstable();
        lines.dedup();
        let mut written = begins;
        for line in &lines {
            let store = Access { address: line * CACHE_LINE_BYTES, kind: AccessKind::Store, ..Access::default() };
            let free = self.last_misses.free_at(begins);
            let done = self.request(number, free, Transaction::Store, &store, Some(Buffering::Unsaid));
            self.last_misses.take(None, done);
            written = written.max(done);
        }
        self.flushed = lines;
        let asked = self.asked.max(written);
        self.asked = asked;
        let done = self.memory.persist(asked);
        let core = &mut self.cores[number];
        core.counters.misses += 1;
        core.counters.memory_latency += done.since(begins);
        self.commits.record(done.since(begins));
        core.finish(false, begins, done);
        core.counters.stalls.ordered += done.since(begins);
        core.advance_to(done);
        core.last_ordered = core.last_ordered.max(done);
        Answered { number: core.number, at: begins, latency: done.since(begins), by_memory: true }
    }

    /// An access that is waited for: past the caches in program order, or a store that must persist.
    fn ordered(&mut self, number: usize, access: &Access) -> Answered {
        let core = &mut self.cores[number];
        let begins = core.now.max(core.last_ordered);
        let persistent = access.kind == AccessKind::PersistentStore;
        let is_load = access.kind == AccessKind::Load;
        if is_load || persistent {
            core.counters.stalls.ordered += begins.since(core.now);
            core.advance_to(begins);
        }
        let line = access.address / CACHE_LINE_BYTES;
        if persistent {
            self.caches.clean(number, line);
        }
        let operation = if is_load { Transaction::Load } else { Transaction::Store };
        let buffering = if persistent { Some(Buffering::NotBufferable) } else { None };
        let now = self.cores[number].now;
        let done = self.request(number, now, operation, access, buffering);
        let core = &mut self.cores[number];
        core.counters.misses += 1;
        core.counters.memory_latency += done.since(now);
        self.latencies.record(done.since(now));
        if persistent {
            self.commits.record(done.since(now));
        }
        core.finish(is_load, now, done);
        if is_load || persistent {
            core.counters.stalls.ordered += done.since(now);
            core.advance_to(done);
        }
        core.last_ordered = core.last_ordered.max(done);
        Answered { number: core.number, at: now, latency: done.since(now), by_memory: true }
    }

    /// A request to the memory; returns when it is done. A buffering that is given takes precedence over the rules.
    #[inline]
    fn request(
        &mut self,
        number: usize,
        asked: SimTime,
        operation: Transaction,
        access: &Access,
        buffering: Option<Buffering>,
    ) -> SimTime {
        let core = &mut self.cores[number];
        let (queue, instruction) = (&core.queue, core.number);
        let rules = &self.config.annotations;
        let mut annotation = rules.of(access.function, || queue.load_share(instruction), &mut core.spread);
        if let Some(buffering) = buffering {
            annotation.buffering = buffering;
        }
        core.counters.requests[usize::from(operation != Transaction::Load)] += 1;
        core.counters.annotated[0] += u64::from(annotation.deterministic);
        core.counters.annotated[1] += u64::from(annotation.buffering == Buffering::Bufferable);
        self.token += 1;
        // Requests past the caches are made at dispatch and others after the look-ups, some nanoseconds later: they queue.
        let asked = self.asked.max(asked);
        self.asked = asked;
        let access = MemoryAccess {
            operation,
            address: access.address / CACHE_LINE_BYTES * CACHE_LINE_BYTES,
            len_bytes: CACHE_LINE_BYTES as u32,
            program_counter: access.function.into(),
            hint: Hint::None,
            annotation,
        };
        match self.memory.access(asked, self.token, &access) {
            Completes::At(done) => done,
            Completes::Later => self.wait(asked, self.token),
        }
    }

    /// When an access completes whose time the memory did not know: nothing else is asked of it until then.
    #[cold]
    fn wait(&mut self, asked: SimTime, token: u64) -> SimTime {
        let (mut completed, mut now) = (Vec::new(), asked);
        while let Some(due) = self.memory.next_due() {
            now = now.max(due);
            self.memory.advance(due, &mut completed);
            if completed.contains(&token) {
                break;
            }
        }
        now
    }
}

impl Core {
    #[inline]
    fn advance_to(&mut self, time: SimTime) {
        if time > self.now {
            self.now = time;
            self.fraction = 0;
        }
    }

    /// Moves the clock on to the dispatch of an access.
    #[inline]
    fn dispatch(&mut self, access: &Access, step: u64) {
        let instructions = u64::from(access.gap) + 1;
        self.number += instructions;
        self.counters.instructions += instructions;
        self.fraction += instructions * step;
        self.now += SimSpan::from_ps(self.fraction >> 16);
        self.fraction &= 0xffff;
        let opens = self.queue.window_opens(self.number, self.now, step);
        self.counters.stalls.window += opens.since(self.now);
        self.advance_to(opens);
        let place = self.queue.place_at(self.now);
        self.counters.stalls.queue += place.since(self.now);
        self.advance_to(place);
        if access.depends && self.last_load > self.now {
            self.counters.stalls.dependence += self.last_load.since(self.now);
            self.advance_to(self.last_load);
        }
    }

    #[inline]
    fn finish(&mut self, is_load: bool, now: SimTime, done: SimTime) {
        self.queue.push(self.number, is_load, now, done);
        self.counters.latency += done.since(now);
        if is_load {
            self.counters.loads += 1;
            self.last_load = done;
        } else {
            self.counters.stores += 1;
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
