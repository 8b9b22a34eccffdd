//! A GPU: cores whose threads take turns in issuing, a last-level cache, and memory of one kind behind it.
//!
//! A thread goes on when its load has come; stores are on their way when the memory has taken them. A load of a line that the cache has asked
//! for already waits for that line. Source: \[P\] sheet micro-cxl-gpu §4; \[C\] caches of Vortex, whose registers of misses keep such loads
//! until their fill (`hw/rtl/cache/VX_cache_mshr.sv`); one instruction a cycle of a core, and the cache's size and time, are \[A\].

use crate::ExpanderConfig;
use crate::banks::Banks;
use crate::expander::{ExpanderCounters, MediaExpander};
use crate::kernels::{Kernel, Step, Walk};
use crate::root_port::{Answer, Far, PortCounters, Reply, RootPort};
use crate::runtime::{FaultConfig, Runtime};
use crate::stores::StoreStack;
use flashyard_memory::{DramConfig, Lookup, Medium, MemoryError, PathConfig, ReadAhead, SetAssociative};
use flashyard_units::{Hertz, SimSpan, SimTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The memory behind the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beyond {
    /// Memory of the GPU's own, as much as there is data.
    Own,
    /// The host's DRAM, by page faults.
    Faults,
    /// Storage, by page faults.
    Storage(ExpanderConfig),
    /// An expander of DRAM behind a root port.
    Dram,
    /// An expander of another medium behind a root port.
    Media(ExpanderConfig, ReadAhead, DeterministicStores),
}

/// Whether stores complete in the GPU's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeterministicStores {
    /// They go to the expander.
    No,
    /// They are kept while it is busy.
    Yes,
}

/// Parameters of a GPU and a kernel on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuConfig {
    /// The kernel.
    pub kernel: Kernel,
    /// Lines of its data.
    pub lines: u64,
    /// Steps of all threads together.
    pub steps: u64,
    /// Cores, and threads of each.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
    /// Clock of the cores.
    pub clock: Hertz,
    /// Bytes and ways of the last-level cache, and the time of a hit.
    pub cache_bytes: u64,
    /// Ways of the cache.
    pub cache_ways: u32,
    /// Time of a hit.
    pub cache_hit: SimSpan,
    /// DRAM: the GPU's own, the host's, and that of an expander.
    pub dram: DramConfig,
    /// The way to expanders.
    pub path: PathConfig,
    /// Page faults, over the way to the host and to storage.
    pub fault: FaultConfig,
    /// Part of the data that the GPU's own memory has room for, where the rest is elsewhere: one in so many.
    pub own_part: u64,
    /// Lines that deterministic stores may keep.
    pub kept_lines: usize,
    /// The memory.
    pub beyond: Beyond,
    /// Seed of the kernel.
    pub seed: u64,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuFigures {
    /// Time of all steps.
    pub time: SimSpan,
    /// Steps that were loads, and stores.
    pub loads: u64,
    /// See `loads`.
    pub stores: u64,
    /// Loads that the cache answered, at once or with a line that it had asked for before.
    pub cache_hits: u64,
    /// Page faults, and the batches in which the runtime worked for them.
    pub faults: u64,
    /// See `faults`.
    pub batches: u64,
    /// Time of loads beyond the cache together, and the longest.
    pub load_time: SimSpan,
    /// See `load_time`.
    pub longest_load: SimSpan,
    /// Loads beyond the cache.
    pub loads_beyond: u64,
    /// Of the port.
    pub port: PortCounters,
    /// Of an expander that is no DRAM.
    pub expander: ExpanderCounters,
    /// Stores that were still kept at the end.
    pub kept: usize,
}

impl GpuFigures {
    /// Laws that do not hold, in words.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.cache_hits + self.loads_beyond != self.loads {
            broken.push(format!("{} loads answered of {}", self.cache_hits + self.loads_beyond, self.loads));
        }
        if self.kept as u64 + self.port.flushed != self.port.diverted_lines {
            broken.push(format!(
                "{} lines kept or written of {}",
                self.kept as u64 + self.port.flushed,
                self.port.diverted_lines
            ));
        }
        broken
    }
}

enum Memory {
    Own(Banks),
    Runtime(Box<Runtime>),
    Port(Box<RootPort>),
}

struct Thread {
    walk: Walk,
    core: usize,
    step: Step,
    /// When it asked for what it waits for.
    asked: SimTime,
    /// Until when its line is on its way to the cache: the end of time as long as that is not known.
    fetches_until: SimTime,
    /// Whether it waits for a line that another thread fetches.
    joins: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread takes its next step.
    Next(u32),
    /// A thread's access leaves the core.
    Access(u32),
    /// An answer has come, by its place in the table.
    Answer(u32),
}

/// A GPU that runs a kernel.
pub struct Gpu {
    config: GpuConfig,
    threads: Vec<Thread>,
    issued: Vec<SimTime>,
    cache: SetAssociative,
    memory: Memory,
    events: BinaryHeap<Reverse<(SimTime, u64, Event)>>,
    /// Numbers of events, which are carried out in that order when they are at one time.
    number: u64,
    answers: Vec<Answer>,
    free: Vec<u32>,
    cycle: SimSpan,
    left: u64,
    figures: GpuFigures,
}

impl Gpu {
    /// A GPU with empty caches.
    ///
    /// Errors: caches, DRAM or media that cannot be; data of less than 4096 lines, no core, no thread.
    pub fn new(config: GpuConfig) -> Result<Self, MemoryError> {
        let range = |name, value, range| Err(MemoryError::Range { name, value, range });
        if !(4096..1 << 32).contains(&config.lines) {
            return range("lines of data", config.lines, "4096 to 4294967295");
        }
        for (name, value) in [("cores", config.cores), ("threads", config.threads)] {
            if !(1..=1024).contains(&value) {
                return range(name, value.into(), "1 to 1024");
            }
        }
        for (name, value) in [
            ("own_part", config.own_part),
            ("lines of a fault", config.fault.lines),
            ("at_once", config.fault.at_once.into()),
        ] {
            if value == 0 {
                return range(name, 0, "at least 1");
            }
        }
        let dram = || Banks::new(config.dram);
        let own = config.lines / config.own_part;
        let runtime = |storage| -> Result<Memory, MemoryError> {
            Ok(Memory::Runtime(Box::new(Runtime::new(config.fault, own, dram()?, storage))))
        };
        let memory = match config.beyond {
            Beyond::Own => Memory::Own(dram()?),
            Beyond::Faults => runtime(None)?,
            Beyond::Storage(expander) => runtime(Some(Medium::new(&expander.medium)?))?,
            Beyond::Dram => {
                let far = Far::Dram(Box::new(dram()?));
                Memory::Port(Box::new(RootPort::new(ReadAhead::None, None, config.path, far)))
            }
            Beyond::Media(expander, read_ahead, stores) => {
                let stores = match stores {
                    DeterministicStores::No => None,
                    DeterministicStores::Yes => Some(StoreStack::new(dram()?, config.lines, config.kept_lines)),
                };
                let far = Far::Media(Box::new(MediaExpander::new(expander)?));
                Memory::Port(Box::new(RootPort::new(read_ahead, stores, config.path, far)))
            }
        };
        let thread = |number: u32| Thread {
            walk: Walk::new(
                config.kernel,
                config.lines,
                (number % config.threads, config.threads),
                (number / config.threads, config.cores),
                config.seed,
            ),
            core: (number / config.threads) as usize,
            step: Step { line: 0, is_store: false, instructions: 1 },
            asked: SimTime::ZERO,
            fetches_until: SimTime::ZERO,
            joins: false,
        };
        Ok(Self {
            config,
            threads: (0..config.cores * config.threads).map(thread).collect(),
            issued: vec![SimTime::ZERO; config.cores as usize],
            cache: SetAssociative::new(config.cache_bytes, config.cache_ways)?,
            memory,
            events: BinaryHeap::new(),
            number: 0,
            answers: Vec::new(),
            free: Vec::new(),
            cycle: config.clock.span_of(1),
            left: config.steps,
            figures: GpuFigures::default(),
        })
    }

    fn at(&mut self, time: SimTime, event: Event) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, event)));
    }

    /// Runs all steps. `goes_on` is asked now and then with the share that is done; `None` when it says no.
    pub fn run(mut self, mut goes_on: impl FnMut(f64) -> bool) -> Option<GpuFigures> {
        let steps = self.left;
        (0..self.threads.len() as u32).for_each(|thread| self.at(SimTime::ZERO, Event::Next(thread)));
        let mut now = SimTime::ZERO;
        let mut told = 0_u64;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            now = time;
            match event {
                Event::Next(thread) => self.next(now, thread),
                Event::Access(thread) => self.access(now, thread),
                Event::Answer(place) => self.answer(now, place),
            }
            told += 1;
            if told.is_multiple_of(1 << 16) && !goes_on((steps - self.left) as f64 / steps as f64) {
                return None;
            }
        }
        let mut figures = GpuFigures { time: now.since(SimTime::ZERO), ..self.figures };
        match &self.memory {
            Memory::Own(_) => {}
            Memory::Runtime(runtime) => (figures.faults, figures.batches) = (runtime.faults, runtime.batches),
            Memory::Port(port) => {
                (figures.port, figures.kept) = (port.counters, port.kept());
                if let Far::Media(media) = port.memory.device() {
                    figures.expander = media.counters();
                }
            }
        }
        Some(figures)
    }

    /// A thread computes and issues its next access.
    fn next(&mut self, now: SimTime, number: u32) {
        if self.left == 0 {
            if let Memory::Port(port) = &mut self.memory {
                port.stop_flushing();
            }
            return;
        }
        self.left -= 1;
        let thread = &mut self.threads[number as usize];
        thread.step = thread.walk.step();
        let issued = &mut self.issued[thread.core];
        *issued = (*issued).max(now) + self.cycle * u64::from(thread.step.instructions);
        let at = *issued;
        self.at(at, Event::Access(number));
    }

    fn access(&mut self, now: SimTime, number: u32) {
        let Step { line, is_store, .. } = self.threads[number as usize].step;
        let is_hit = if is_store { false } else { matches!(self.cache.access(line, false), Lookup::Hit) };
        self.figures.loads += u64::from(!is_store);
        self.figures.stores += u64::from(is_store);
        if is_hit {
            self.figures.cache_hits += 1;
            let fetch = |other: &&Thread| other.fetches_until > now && other.step.line == line;
            match self.threads.iter().find(fetch).map(|other| other.fetches_until) {
                None => self.at(now + self.config.cache_hit, Event::Next(number)),
                Some(SimTime::MAX) => self.threads[number as usize].joins = true,
                Some(comes) => self.at(comes.max(now + self.config.cache_hit), Event::Next(number)),
            }
            return;
        }
        let thread = &mut self.threads[number as usize];
        thread.asked = now;
        if !is_store {
            thread.fetches_until = SimTime::MAX;
        }
        let done = match &mut self.memory {
            Memory::Own(dram) => {
                let done = dram.line(now, line);
                if is_store { now } else { done }
            }
            Memory::Runtime(runtime) => runtime.access(now, line, is_store),
            Memory::Port(port) => {
                let reply = port.ask(now, line, is_store, number);
                self.deliver(now);
                match reply {
                    Reply::Done(at) => at,
                    Reply::Waits => return,
                }
            }
        };
        self.end(done, number);
    }

    /// A thread goes on at a time, and those that wait for its line.
    fn end(&mut self, done: SimTime, number: u32) {
        let thread = &mut self.threads[number as usize];
        if !thread.step.is_store {
            thread.fetches_until = done;
            let (line, took) = (thread.step.line, done.since(thread.asked));
            for other in 0..self.threads.len() as u32 {
                let thread = &mut self.threads[other as usize];
                if thread.joins && thread.step.line == line {
                    thread.joins = false;
                    self.at(done, Event::Next(other));
                }
            }
            self.figures.loads_beyond += 1;
            self.figures.load_time += took;
            self.figures.longest_load = self.figures.longest_load.max(took);
        }
        self.at(done, Event::Next(number));
    }

    /// Answers of the port become events.
    fn deliver(&mut self, now: SimTime) {
        let Memory::Port(port) = &mut self.memory else { return };
        let (mut answers, mut goes_on) = (std::mem::take(&mut port.answers), std::mem::take(&mut port.goes_on));
        for (at, answer) in answers.drain(..) {
            let place = self.free.pop().unwrap_or(self.answers.len() as u32);
            if place as usize == self.answers.len() {
                self.answers.push(answer);
            } else {
                self.answers[place as usize] = answer;
            }
            self.at(at, Event::Answer(place));
        }
        goes_on.drain(..).for_each(|thread| self.end(now, thread));
        if let Memory::Port(port) = &mut self.memory {
            (port.answers, port.goes_on) = (answers, goes_on);
        }
    }

    fn answer(&mut self, now: SimTime, place: u32) {
        let answer = self.answers[place as usize];
        self.free.push(place);
        if let Memory::Port(port) = &mut self.memory {
            port.answered(now, &answer);
        }
        if let Some(thread) = answer.asked.thread {
            self.end(now, thread);
        }
        self.deliver(now);
    }
}

#[cfg(test)]
mod tests;
