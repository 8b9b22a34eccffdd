//! A GPU: cores whose warps take turns in issuing, a last-level cache, and memory of one kind behind it.
//!
//! A warp goes on when the last of its loads has come; stores are on their way when the memory has taken them. A load of a line that the
//! cache has asked for already waits for that line. Source: \[P\] sheet micro-cxl-gpu §4; \[C\] warps of Vortex, and its caches, whose
//! registers of misses keep such loads until their fill (`hw/rtl/cache/VX_cache_mshr.sv`); one instruction a cycle of a core, and the
//! cache's size and time, are \[A\]. The cache asks memory for a line a cycle: \[P\] memory is behind "the memory interface" of the GPU,
//! \[C\] which takes a request a cycle (`mem_req_valid` and `mem_req_ready` of `hw/rtl/Vortex.sv`, commit 00cc8486; `NUM_MEM_PORTS`, one
//! by default, of `hw/rtl/VX_config.vh`, commit 1e4583ac). Loads come back in the order in which they left, as `in_order` has it.

use crate::ExpanderConfig;
use crate::banks::Banks;
use crate::expander::{ExpanderCounters, MediaExpander};
use crate::in_order::InOrder;
use crate::kernels::{Kernel, Place};
use crate::root_port::{Answer, Far, PortCounters, Reply, RootPort};
use crate::runtime::{FaultConfig, Runtime};
use crate::stores::StoreStack;
use crate::warp::{Request, Warp};
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
    /// Accesses of all warps together, each to a line.
    pub steps: u64,
    /// Cores.
    pub cores: u32,
    /// Warps of a core, which hide each other's waits.
    pub warps: u32,
    /// Lanes of a warp, which carry out one instruction together.
    pub lanes: u32,
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
    /// Lines that deterministic stores may keep: all that the GPU's own memory has room for at most.
    pub kept_lines: usize,
    /// The memory.
    pub beyond: Beyond,
    /// Seed of the kernel.
    pub seed: u64,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuFigures {
    /// Time of all accesses.
    pub time: SimSpan,
    /// Accesses of lanes, before those of a warp to one line became one.
    pub lane_accesses: u64,
    /// Accesses to lines that were loads, and stores.
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

impl GpuConfig {
    /// Lanes of all warps.
    fn all_lanes(&self) -> u64 {
        u64::from(self.cores) * u64::from(self.warps) * u64::from(self.lanes)
    }

    fn check(&self) -> Result<(), MemoryError> {
        let range = |name, value, range| Err(MemoryError::Range { name, value, range });
        if !(4096..1 << 32).contains(&self.lines) {
            return range("lines of data", self.lines, "4096 to 4294967295");
        }
        for (name, value) in [("cores", self.cores), ("warps", self.warps), ("lanes", self.lanes)] {
            if !(1..=1024).contains(&value) {
                return range(name, value.into(), "1 to 1024");
            }
        }
        // Lanes share lines of eight words, and arrays are divided by them.
        if !self.lanes.is_power_of_two() {
            return range("lanes", self.lanes.into(), "a power of two up to 1024");
        }
        let all_lanes = self.all_lanes();
        // A row of path, a tenth of the lines, has more columns than a core's lanes then.
        if all_lanes > self.lines / 10 {
            return range("lanes of all warps", all_lanes, "at most one for ten lines of data");
        }
        for (name, value) in [
            ("own_part", self.own_part),
            ("lines of a fault", self.fault.lines),
            ("at_once", self.fault.at_once.into()),
        ] {
            if value == 0 {
                return range(name, 0, "at least 1");
            }
        }
        Ok(())
    }
}

impl GpuFigures {
    /// Laws that do not hold, in words.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.cache_hits + self.loads_beyond != self.loads {
            broken.push(format!("{} loads answered of {}", self.cache_hits + self.loads_beyond, self.loads));
        }
        if self.lane_accesses < self.loads + self.stores {
            broken.push(format!("{} accesses of {} of lanes", self.loads + self.stores, self.lane_accesses));
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

/// A place for one access of a warp: as many as it has lanes.
#[derive(Clone, Copy)]
struct Slot {
    request: Request,
    /// When it asked for what it waits for.
    asked: SimTime,
    /// Until when its line is on its way to the cache: the end of time as long as that is not known.
    fetches_until: SimTime,
    /// Whether it waits for a line that another one fetches.
    joins: bool,
}

/// A warp and what it waits for.
struct Running {
    warp: Warp,
    core: usize,
    /// Accesses whose end is not known, and the last end of the others.
    open: u32,
    until: SimTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A warp takes its next step.
    Next(u32),
    /// A warp's accesses leave the core.
    Access(u32),
    /// An access that the cache does not answer leaves the GPU for its memory, by its slot.
    Leave(u32),
    /// An answer has come, by its place in the table.
    Answer(u32),
}

/// A GPU that runs a kernel.
pub struct Gpu {
    config: GpuConfig,
    warps: Vec<Running>,
    /// Those of each warp in turn, and how many of all join.
    slots: Vec<Slot>,
    joining: u32,
    issued: Vec<SimTime>,
    cache: SetAssociative,
    /// When the cache may ask memory next.
    asks_from: SimTime,
    /// Loads that memory has been asked for, until they are answered.
    loads: InOrder,
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
    /// Errors: caches, DRAM or media that cannot be; data of less than 4096 lines, or of less than eight for each lane; no core, warp or lane.
    pub fn new(config: GpuConfig) -> Result<Self, MemoryError> {
        config.check()?;
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
                    DeterministicStores::Yes => {
                        // They are kept in a part of the GPU's own memory. [P] sheet micro-cxl-gpu §3.5
                        let kept = config.kept_lines.min(own as usize);
                        Some(StoreStack::new(dram()?, config.lines, kept))
                    }
                };
                let far = Far::Media(Box::new(MediaExpander::new(expander)?));
                Memory::Port(Box::new(RootPort::new(read_ahead, stores, config.path, far)))
            }
        };
        let warp = |number: u32| {
            let (core, warp) = (number / config.warps, number % config.warps);
            let first = Place { core, cores: config.cores, warp, warps: config.warps, lane: 0, lanes: config.lanes };
            let warp = Warp::new(config.kernel, config.lines, first, config.seed);
            Running { warp, core: core as usize, open: 0, until: SimTime::ZERO }
        };
        let idle = Slot {
            request: Request { line: 0, is_store: false },
            asked: SimTime::ZERO,
            fetches_until: SimTime::ZERO,
            joins: false,
        };
        Ok(Self {
            config,
            warps: (0..config.cores * config.warps).map(warp).collect(),
            slots: vec![idle; config.all_lanes() as usize],
            joining: 0,
            issued: vec![SimTime::ZERO; config.cores as usize],
            cache: SetAssociative::new(config.cache_bytes, config.cache_ways)?,
            asks_from: SimTime::ZERO,
            loads: InOrder::new(config.all_lanes() as usize, config.clock.span_of(1)),
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
        (0..self.warps.len() as u32).for_each(|warp| self.at(SimTime::ZERO, Event::Next(warp)));
        let mut now = SimTime::ZERO;
        let mut told = 0_u64;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            now = time;
            match event {
                Event::Next(warp) => self.next(now, warp),
                Event::Access(warp) => self.accesses(now, warp),
                Event::Leave(slot) => self.beyond(now, slot),
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

    /// A warp computes and issues its next accesses, one for each line that its lanes ask for.
    fn next(&mut self, now: SimTime, number: u32) {
        if self.left == 0 {
            if let Memory::Port(port) = &mut self.memory {
                port.stop_flushing();
            }
            return;
        }
        let running = &mut self.warps[number as usize];
        let (instructions, accesses) = running.warp.step(self.left.min(self.config.lanes.into()) as usize);
        let requests = running.warp.requests();
        let first = (number * self.config.lanes) as usize;
        for (slot, &request) in self.slots[first..].iter_mut().zip(requests) {
            slot.request = request;
        }
        self.left -= requests.len() as u64;
        self.figures.lane_accesses += u64::from(accesses);
        (running.open, running.until) = (requests.len() as u32, SimTime::ZERO);
        let issued = &mut self.issued[running.core];
        *issued = (*issued).max(now) + self.cycle * u64::from(instructions);
        let at = *issued;
        self.at(at, Event::Access(number));
    }

    /// The accesses of a warp leave it together.
    fn accesses(&mut self, now: SimTime, number: u32) {
        let first = number * self.config.lanes;
        let end = first + self.warps[number as usize].open;
        (first..end).for_each(|slot| self.access(now, slot));
    }

    fn access(&mut self, now: SimTime, number: u32) {
        let Request { line, is_store } = self.slots[number as usize].request;
        let is_hit = if is_store { false } else { matches!(self.cache.access(line, false), Lookup::Hit) };
        self.figures.loads += u64::from(!is_store);
        self.figures.stores += u64::from(is_store);
        if is_hit {
            self.figures.cache_hits += 1;
            let fetch = |other: &&Slot| other.fetches_until > now && other.request.line == line;
            match self.slots.iter().find(fetch).map(|other| other.fetches_until) {
                None => self.ended(now + self.config.cache_hit, number),
                Some(SimTime::MAX) => {
                    self.slots[number as usize].joins = true;
                    self.joining += 1;
                }
                Some(comes) => self.ended(comes.max(now + self.config.cache_hit), number),
            }
            return;
        }
        let slot = &mut self.slots[number as usize];
        slot.asked = now;
        if !is_store {
            slot.fetches_until = SimTime::MAX;
        }
        let leaves = self.asks_from.max(now);
        self.asks_from = leaves + self.cycle;
        if leaves > now {
            self.at(leaves, Event::Leave(number));
        } else {
            self.beyond(now, number);
        }
    }

    /// An access asks the memory behind the cache.
    fn beyond(&mut self, now: SimTime, number: u32) {
        let Request { line, is_store } = self.slots[number as usize].request;
        if !is_store {
            self.loads.leaves(number);
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

    /// A store is on its way by then, or the line of a load has come: loads are answered that have none before them.
    fn end(&mut self, done: SimTime, number: u32) {
        if self.slots[number as usize].request.is_store {
            self.ended(done, number);
            return;
        }
        self.loads.comes(number, done);
        while let Some((slot, at)) = self.loads.next() {
            self.answered(at, slot);
        }
    }

    /// The end of a load, and of those that wait for its line.
    fn answered(&mut self, done: SimTime, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.fetches_until = done;
        let (line, took) = (slot.request.line, done.since(slot.asked));
        for other in 0..self.slots.len() as u32 {
            if self.joining == 0 {
                break;
            }
            let slot = &mut self.slots[other as usize];
            if slot.joins && slot.request.line == line {
                slot.joins = false;
                self.joining -= 1;
                self.ended(done, other);
            }
        }
        self.figures.loads_beyond += 1;
        self.figures.load_time += took;
        self.figures.longest_load = self.figures.longest_load.max(took);
        self.ended(done, number);
    }

    /// An access of a warp ends at a time; the warp goes on when the last one has.
    fn ended(&mut self, done: SimTime, slot: u32) {
        let number = slot / self.config.lanes;
        let running = &mut self.warps[number as usize];
        running.open -= 1;
        running.until = running.until.max(done);
        if running.open == 0 {
            let until = running.until;
            self.at(until, Event::Next(number));
        }
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
        goes_on.drain(..).for_each(|slot| self.end(now, slot));
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
        if let Some(slot) = answer.asked.thread {
            self.end(now, slot);
        }
        self.deliver(now);
    }
}

#[cfg(test)]
mod tests;
