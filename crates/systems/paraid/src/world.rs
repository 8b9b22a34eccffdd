//! An array under requests: its state and its events.

use crate::config::{ArrayConfig, ArrayRunError, CHUNK_BYTES, Design};
use crate::exchange::Exchanges;
use crate::fusion::Fusion;
use crate::log::Log;
use crate::member::{Member, MemberCounters, RateMember};
use crate::places::Places;
use crate::stripe::{NONE, Part, StripeOp};
use flashyard_kernel::{FreeRun, Runner, Slab};
use flashyard_measure::Source;
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};

/// What comes later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The software takes a request up.
    Start(u32),
    /// A request is complete.
    Answer(u32),
    /// A stripe's first commands go out.
    Begun(u32),
    /// What it reads is there.
    Read(u32),
    /// Its parity is there.
    Combined(u32),
    /// What it writes is on drives.
    Written(u32),
    /// Its software is done with it.
    Ended(u32),
    /// The profiler's interval is over.
    Interval,
    /// The thread of moves looks for idle drives.
    Look,
    /// Both chunks of a move are read.
    MoveRead(u32),
    /// Both are written.
    Moved(u32),
    /// What is valid of a victim of a group is read.
    VictimRead(u8),
    /// It is written elsewhere.
    Collected(u8),
    /// Figures count from here.
    Measure,
}

/// A request of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) issued: SimTime,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) is_write: bool,
    /// Writes of stripes that are not done.
    pub(crate) left: u32,
}

/// Requests that count.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Requests, reads and writes.
    pub requests: [u64; 2],
    /// Their bytes.
    pub bytes: [u64; 2],
    /// Times of all.
    pub latency: LatencyHistogram,
}

/// What software did in all of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes of stripes, by full ones, from old parity, from the other chunks, without parity, replicated.
    pub ways: [u64; 5],
    /// Requests that joined a write of their stripe.
    pub joined: u64,
    /// Parities that were known.
    pub parity_hits: u64,
    /// Chunks that were exchanged, by moves and by writes.
    pub exchanged: [u64; 2],
    /// Stripes of which FusionRAID made parity.
    pub converted: u64,
    /// Writes that went elsewhere because of a spike.
    pub redirected: u64,
    /// Stripes that a log collected, and blocks that it moved.
    pub collected: [u64; 2],
    /// Requests issued, and completed.
    pub requests: [u64; 2],
}

/// An array.
pub struct Array {
    pub(crate) config: ArrayConfig,
    pub(crate) places: Places,
    pub(crate) drives: Vec<RateMember>,
    pub(crate) runner: Runner<Event>,
    pub(crate) requests: Slab<Request>,
    pub(crate) ops: Slab<StripeOp>,
    pub(crate) parts: Slab<Part>,
    /// By stripe: what occupies it.
    pub(crate) active: Vec<u32>,
    /// When the thread of each of MD's arrays is free.
    pub(crate) daemons: Vec<SimTime>,
    /// Stripes whose parity is known, by their remainder.
    pub(crate) parity_cache: Vec<u32>,
    pub(crate) exchanges: Option<Exchanges>,
    pub(crate) fusion: Option<Fusion>,
    pub(crate) log: Option<Log>,
    pub(crate) counters: Counters,
    source: Option<Source>,
    is_measuring: bool,
    window: Window,
    begun: Vec<MemberCounters>,
    failed: Option<ArrayRunError>,
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct ArrayFigures {
    /// Requests that count.
    pub window: Window,
    /// For how long.
    pub measured: SimSpan,
    /// Of drives in that time.
    pub drives: Vec<MemberCounters>,
    /// What software did, from the beginning.
    pub counters: Counters,
    /// Bytes of the volume.
    pub volume: u64,
    /// Bytes of the map that look-ups need, beside what a real array of this size has.
    pub map_bytes: u64,
    /// Requests under way at the end.
    pub under_way: u64,
    /// Laws that do not hold.
    pub broken: Vec<String>,
}

impl Array {
    /// An array that nothing was asked of.
    ///
    /// Errors: parameters that do not go together, drives that make no array.
    pub fn new(config: ArrayConfig) -> Result<Self, ArrayRunError> {
        config.validate()?;
        let places = Places::new(&config)?;
        let stripes = places.stripes() as usize;
        let log = if config.design.is_log() { Some(Log::new(&config, &places)?) } else { None };
        let exchanges = (config.design == Design::Paraid).then(|| Exchanges::new(&config, stripes));
        let fusion = (config.design == Design::FusionRaid).then(|| Fusion::new(stripes));
        let caches = matches!(config.design, Design::Straid | Design::ParaidStatic | Design::Paraid);
        Ok(Self {
            drives: config.drives.iter().map(|&drive| RateMember::new(drive)).collect(),
            active: vec![NONE; stripes],
            daemons: vec![SimTime::ZERO; 256],
            parity_cache: vec![NONE; if caches { config.software.parity_cache as usize } else { 0 }],
            runner: Runner::default(),
            requests: Slab::default(),
            ops: Slab::default(),
            parts: Slab::default(),
            counters: Counters::default(),
            source: None,
            is_measuring: false,
            window: Window::default(),
            begun: Vec::new(),
            failed: None,
            config,
            places,
            exchanges,
            fusion,
            log,
        })
    }

    /// Bytes of the volume.
    pub fn volume(&self) -> u64 {
        match &self.log {
            Some(log) => log.volume(),
            None => self.places.stripes() * self.config.data() as u64 * u64::from(CHUNK_BYTES),
        }
    }

    /// Lets the workers take requests of `source` in turn, each the next one when its last is complete, until the measured time is over.
    /// The observer hears of the share that is done and may stop the run.
    ///
    /// Errors: a source that fails, an observer that stops.
    pub fn run(mut self, source: Source, observer: &mut dyn FnMut(f64) -> bool) -> Result<ArrayFigures, ArrayRunError> {
        self.source = Some(source);
        let end = SimTime::ZERO + self.config.warmup + self.config.measure;
        self.runner.queue.push(SimTime::ZERO + self.config.warmup, Event::Measure);
        if self.exchanges.is_some() {
            self.runner.queue.push(SimTime::ZERO + self.config.moves.interval, Event::Interval);
            self.runner.queue.push(SimTime::ZERO + self.config.moves.look, Event::Look);
        }
        for _ in 0..self.config.workers {
            self.issue(SimTime::ZERO);
        }
        let mut events = 0_u64;
        while let Some(now) = self.runner.advance(&mut FreeRun) {
            if now >= end {
                break;
            }
            events += 1;
            if events.is_multiple_of(1 << 16) && !observer(now.as_ps() as f64 / end.as_ps() as f64) {
                return Err(ArrayRunError::Interrupted);
            }
            let event = self.runner.take();
            self.handle(now, event);
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
        }
        Ok(self.figures(end))
    }

    fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Start(request) => self.start(now, request),
            Event::Answer(request) => self.answer(now, request),
            Event::Begun(op) => self.begun(now, op),
            Event::Read(op) => self.read_done(now, op),
            Event::Combined(op) => self.combined(now, op),
            Event::Written(op) => self.written(now, op),
            Event::Ended(op) => self.ended(now, op),
            Event::Interval => self.end_interval(now),
            Event::Look => self.look(now),
            Event::MoveRead(number) => self.move_read(now, number),
            Event::Moved(number) => self.moved(now, number),
            Event::VictimRead(group) => self.victim_read(now, group),
            Event::Collected(group) => self.collected(now, group),
            Event::Measure => {
                self.is_measuring = true;
                self.begun = self.drives.iter().map(Member::counters).collect();
            }
        }
    }

    /// A worker takes the next request.
    fn issue(&mut self, now: SimTime) {
        let Some(source) = &mut self.source else { return };
        match source.next_request() {
            Ok(Some(record)) => {
                let of = record.request;
                let volume = self.volume();
                let len = u64::from(of.len_bytes).clamp(1, volume) as u32;
                let offset = of.offset_bytes.min(volume - u64::from(len));
                let is_write = of.operation == flashyard_blk::Operation::Write;
                let request = Request { issued: now, offset, len, is_write, left: 0 };
                let number = self.requests.insert(request) as u32;
                self.counters.requests[0] += 1;
                self.runner.queue.push(now + self.config.software.request, Event::Start(number));
            }
            Ok(None) => {}
            Err(error) => self.failed = Some(error.into()),
        }
    }

    #[inline]
    fn start(&mut self, now: SimTime, number: u32) {
        let is_write = self.requests[number as usize].is_write;
        match (self.log.is_some(), is_write) {
            (false, false) => self.read(now, number),
            (false, true) => self.write(now, number),
            (true, false) => self.read_log(now, number),
            (true, true) => self.write_log(now, number),
        }
    }

    /// A request is complete: its worker goes on.
    fn answer(&mut self, now: SimTime, number: u32) {
        let Some(request) = self.requests.remove(number as usize) else { return };
        self.counters.requests[1] += 1;
        if self.is_measuring {
            let kind = usize::from(request.is_write);
            self.window.requests[kind] += 1;
            self.window.bytes[kind] += u64::from(request.len);
            self.window.latency.record(now.since(request.issued));
        }
        self.issue(now);
    }

    fn figures(self, end: SimTime) -> ArrayFigures {
        let measured = self.config.measure;
        let since = |(drive, begun): (&RateMember, &MemberCounters)| {
            let now = drive.counters();
            MemberCounters {
                busy: now.busy - begun.busy,
                commands: [0, 1].map(|kind| now.commands[kind] - begun.commands[kind]),
                bytes: [0, 1].map(|kind| now.bytes[kind] - begun.bytes[kind]),
            }
        };
        let drives: Vec<MemberCounters> = self.drives.iter().zip(&self.begun).map(since).collect();
        let mut broken = Vec::new();
        let under_way = self.requests.len() as u64;
        let [issued, completed] = self.counters.requests;
        if issued != completed + under_way {
            broken.push(format!("{issued} requests were issued, {completed} completed, {under_way} are under way"));
        }
        for (number, drive) in self.drives.iter().enumerate() {
            let busy = drive.counters().busy;
            if busy > end.since(SimTime::ZERO) + drive.backlog(end) {
                broken.push(format!("drive {number} worked for {busy} of {}", end.since(SimTime::ZERO)));
            }
        }
        let map_bytes = match &self.places {
            Places::Learned(map) => map.bytes() as u64,
            _ => 0,
        };
        ArrayFigures {
            measured,
            drives,
            counters: self.counters,
            volume: self.volume(),
            map_bytes,
            under_way,
            broken,
            window: self.window,
        }
    }
}
