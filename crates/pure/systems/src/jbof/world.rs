//! The world: host, drives and streams under one clock.

use super::aged::{AgedDrive, AgedDriveError};
use super::config::{Design, JbofConfig, JbofError, RunPlan, StopRule};
use super::faults::Resilience;
use super::live::Book;
use super::models::DriveModel;
use super::result::{JbofFigures, Marks};
use super::sanity::Ledger;
use super::scanning::SearchFigures;
use super::stream::{Stream, StreamSpec};
use super::timeline::{LendingLedger, Timeline, Totals};
use crate::vh::CopyBack;
use crate::xbof::{Harvest, MappingLocks, Message, Rings};
use flashyard_fabric::Fabric;
use flashyard_host::ProcessorPool;
use flashyard_kernel::{EventQueue, FreeRun, Machine, Nested, Rng, Runner, Wrap};
use flashyard_ssd::{Drive, DriveEffect, DriveEvent, Operation, Translation};
use flashyard_stats::{Shards, TimeSplit};
use flashyard_units::{SimSpan, SimTime};
use flashyard_workload::RequestSource;

/// Where a stream's requests come from.
pub type Source = Box<dyn RequestSource>;

/// Told how far a run is (0 to 1) every few milliseconds of wall time; returns false to stop it.
pub type Observer<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Everything that can happen later. Closed: a new kind of thing to wait for is a new line here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A drive has news for itself.
    Drive { drive: u16, generation: u16, event: DriveEvent },
    /// A command reaches its drive.
    Arrive { request: u32 },
    /// A lender looks again for room in the owner's message queue.
    Store { request: u32 },
    /// What a lender has stored is visible in the owner's message queue.
    Wrapped { owner: u16, lender: u16 },
    /// A completion reaches the application.
    Finished { request: u32 },
    /// A stream's next arrival.
    Issue { stream: u16 },
    /// A stream starts late, or goes on after a pause.
    Resume { stream: u16 },
    /// Monitors and descriptors of the drives.
    Tick,
    /// The host driver's look at the descriptors.
    HostTick,
    /// A compare-and-swap that a drive sent reaches the descriptor.
    Swap { drive: u16 },
    /// A drive has power again.
    PowerOn { drive: u16 },
    /// A drive has its link again.
    LinkUp { drive: u16 },
    /// Figures count from here.
    WarmupEnd,
    /// Streams stop issuing.
    Stop,
}

impl Event {
    /// The request that the event names, if it does.
    pub(super) fn request(&self) -> Option<u32> {
        match *self {
            Self::Arrive { request } | Self::Store { request } | Self::Finished { request } => Some(request),
            Self::Drive { .. }
            | Self::Wrapped { .. }
            | Self::Issue { .. }
            | Self::Resume { .. }
            | Self::Tick
            | Self::HostTick
            | Self::Swap { .. }
            | Self::PowerOn { .. }
            | Self::LinkUp { .. }
            | Self::WarmupEnd
            | Self::Stop => None,
        }
    }
}

/// An event is copied a few times: it must not grow unnoticed.
const _: () = assert!(size_of::<Event>() <= 16);

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// On its way to, or on, the cores that run its firmware.
    Firmware,
    /// On the owner's cores, being taken from the message queue.
    Agent,
    /// With the data-end.
    Data,
    /// Completed at the drive; the application hears of it next.
    Completed,
    /// Kept by the driver until its drive is back.
    Held,
    /// It, or its completion, did not arrive.
    Lost,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An application's request.
    Foreground,
    /// One piece of a read that a virtual drive had to split; the parent waits for all.
    Part {
        /// The request that was split.
        parent: u32,
    },
    /// Copy-back: the read from the lender.
    CopyRead,
    /// Copy-back: the write to the owner.
    CopyWrite,
    /// A request from outside, of a world that serves.
    Asked {
        /// The number that the answer carries.
        token: u32,
    },
    /// The same, given up by whoever asked: it is not sent again.
    AskedOnce {
        /// The number that the answer carries.
        token: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) stream: u16,
    /// The busy drive that was asked.
    pub(super) home: u16,
    /// The drive that holds the data.
    pub(super) drive: u16,
    /// The drive whose cores run the firmware.
    pub(super) compute: u16,
    /// The lender's offer when `compute` is a lender.
    pub(super) offer: u16,
    /// The generation of the owner's ring that the lender knew when it took the command.
    pub(super) generation: u16,
    pub(super) phase: Phase,
    /// In a shadow queue, or on a lender's core from it.
    pub(super) in_shadow: bool,
    pub(super) purpose: Purpose,
    pub(super) operation: Operation,
    pub(super) first: u32,
    pub(super) count: u32,
    /// Bytes that the application asked for; zero for copies.
    pub(super) len_bytes: u32,
    /// Parts that have not completed.
    pub(super) parts: u32,
    pub(super) issued: SimTime,
    /// Payload of every slot written: no two writes have the same.
    pub(super) stamp: u64,
    /// Why its drive has not carried it out.
    pub(super) failure: Option<Failure>,
}

/// Why a drive has not carried a request out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is worn out and has not written it.
    WornOut,
    /// It could not correct what it read, from this slot on.
    Unread { slot: u32 },
}

/// Where the time of a request went so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Journey {
    pub(super) time: TimeSplit,
    /// When the firmware job under way would end if it never waited for a core.
    pub(super) unqueued: SimTime,
}

/// Streams at most: each has histograms of some 250 KiB for four operations, of which it touches a part.
const STREAMS_MAX: u64 = 4096;

/// A JBOF of one design, ready to run once.
pub struct Jbof {
    pub(super) config: JbofConfig,
    /// What each drive is before the design takes from it.
    pub(super) models: Vec<DriveModel>,
    pub(super) plan: RunPlan,
    pub(super) runner: Runner<Event>,
    pub(super) drives: Vec<Drive>,
    /// In the order of the drives that they stand in front of.
    pub(super) hosts: Vec<ProcessorPool>,
    pub(super) fabric: Fabric,
    pub(super) streams: Vec<Stream>,
    pub(super) requests: Vec<Request>,
    /// One for each of `requests`.
    pub(super) journeys: Vec<Journey>,
    pub(super) free: Vec<u32>,
    pub(super) effects: Vec<DriveEffect>,
    /// Whether drives may have news of that kind: they lend, or they break.
    pub(super) has_news: bool,
    /// Effects that concern a whole drive, with its number.
    pub(super) news: Vec<(u16, DriveEffect)>,
    pub(super) harvest: Option<Harvest>,
    /// The message queues, by owner and lender; for no drive when no processor is lent.
    pub(super) rings: Rings,
    /// What lenders found in owners' maps for commands that are in message queues, by request.
    pub(super) translations: Vec<Option<Translation>>,
    /// Room for the messages of one command.
    pub(super) messages: Vec<Message>,
    /// Locks of each drive's map; empty when no processor is lent.
    pub(super) locks: Vec<MappingLocks>,
    /// Commands of each drive whose firmware ran on lenders.
    pub(super) served_by_lenders: Vec<u64>,
    /// Commands that lenders sent back because the descriptor led nowhere.
    pub(super) refused: u64,
    /// Stamp of the last write.
    pub(super) last_stamp: u64,
    pub(super) curves: Vec<Shards>,
    /// Busy time that lenders gave to others, for each drive.
    pub(super) lent: Vec<SimSpan>,
    /// Time that jobs have waited for a core of each drive, of jobs that have run.
    pub(super) waited: Vec<SimSpan>,
    /// By lender and borrower.
    pub(super) lending: LendingLedger,
    pub(super) search: SearchFigures,
    pub(super) timeline: Timeline,
    /// Requests of each drive's streams.
    pub(super) totals: Vec<Totals>,
    pub(super) tick_marks: Vec<TickMark>,
    pub(super) copy_back: Option<CopyBack>,
    pub(super) vh_rng: Rng,
    pub(super) route_rng: Rng,
    /// Counters at the start and at the end of the measured window.
    pub(super) begun: Option<Marks>,
    pub(super) ended: Option<Marks>,
    pub(super) stopping: bool,
    /// Since when.
    pub(super) stopped: SimTime,
    /// When the first stream ended in the measured window.
    pub(super) first_end: Option<SimTime>,
    pub(super) redirected: u64,
    pub(super) ledger: Ledger,
    /// Events handled.
    pub(super) steps: u64,
    pub(super) resilience: Option<Box<Resilience>>,
    /// What a world that serves owes its owner.
    pub(super) book: Option<Box<Book>>,
    pub(super) fault: Option<JbofError>,
}

/// Counter readings at the last tick.
#[derive(Clone, Copy, Default)]
pub(super) struct TickMark {
    pub(super) busy: SimSpan,
    pub(super) waited: SimSpan,
    pub(super) jobs: u64,
    pub(super) lent: SimSpan,
    pub(super) bus: SimSpan,
    pub(super) die: SimSpan,
    pub(super) accesses: u64,
    pub(super) misses: u64,
    pub(super) executed: u64,
    pub(super) redirected: u64,
}

impl Jbof {
    /// Builds drives and host, with one source for each busy drive.
    ///
    /// Errors: parameters outside their ranges, a wrong number of sources.
    pub fn new(config: JbofConfig, plan: RunPlan, sources: Vec<Source>) -> Result<Self, JbofError> {
        if sources.len() != config.busy_drives as usize {
            return Err(JbofError::Streams { streams: sources.len(), busy_drives: config.busy_drives });
        }
        Self::with_streams(config, plan, plan.streams(sources))
    }

    /// Builds drives and host, with any number of streams for each busy drive. The plan's depth means nothing here.
    ///
    /// Errors: parameters outside their ranges, a stream for a drive that is not busy, more than 4096 streams.
    pub fn with_streams(config: JbofConfig, plan: RunPlan, streams: Vec<StreamSpec>) -> Result<Self, JbofError> {
        Self::with_models(config, Vec::new(), plan, streams)
    }

    /// The same with a model for each drive, in order; none where all are alike.
    ///
    /// Errors: the same, not one model for each drive, a drive that cannot be, virtual drives over unequal ones.
    pub fn with_models(
        config: JbofConfig,
        models: Vec<DriveModel>,
        plan: RunPlan,
        streams: Vec<StreamSpec>,
    ) -> Result<Self, JbofError> {
        config.validate()?;
        let numbers = [
            ("streams", streams.len() as u64, 1, STREAMS_MAX),
            (
                "drive of a stream",
                streams.iter().map(|stream| u64::from(stream.drive)).max().unwrap_or(0),
                0,
                u64::from(config.busy_drives) - 1,
            ),
        ];
        for (name, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                return Err(JbofError::Range { name, value, least, most });
            }
        }
        let models = config.models(models)?;
        let drives = Self::preconditioned(&config, &models, &plan)?;
        Self::build(config, models, plan, streams, drives)
    }

    /// Lets drive `drive` begin as an aged one of the same shape, whatever was done to it before. To be called before the
    /// run, and before its mapping cache is warmed.
    ///
    /// Errors: a drive of another shape, a state that cannot be. Panics beyond the drives.
    pub fn restore(&mut self, drive: u16, aged: &AgedDrive) -> Result<(), JbofError> {
        let data = &mut self.drives[drive as usize].data;
        aged.check(data.config())?;
        data.restore(&aged.state).map_err(AgedDriveError::State)?;
        Ok(())
    }

    /// Drives as they are before the run.
    pub(super) fn preconditioned(
        config: &JbofConfig,
        models: &[DriveModel],
        plan: &RunPlan,
    ) -> Result<Vec<Drive>, JbofError> {
        let queues = config.queue_weights();
        let mut drives = (0..)
            .zip(models)
            .map(|(number, model)| Drive::new(config.placed(model), &queues, plan.seed.wrapping_add(number)))
            .collect::<Result<Vec<_>, _>>()?;
        for (number, drive) in drives.iter_mut().enumerate().take(config.busy_drives as usize) {
            drive
                .data
                .overwrite(models[number].overwritten, &mut Rng::named(plan.seed, &format!("precondition.{number}")));
        }
        Ok(drives)
    }

    /// Puts a host, links and managers around drives.
    pub(super) fn build(
        config: JbofConfig,
        models: Vec<DriveModel>,
        plan: RunPlan,
        streams: Vec<StreamSpec>,
        drives: Vec<Drive>,
    ) -> Result<Self, JbofError> {
        let harvest_config = crate::xbof::HarvestConfig {
            processors: config.harvest.processors && config.design.harvests_processors(),
            memory: config.harvest.memory && config.design.harvests_memory(),
            leaf_drives: config.fabric.radix,
            ..config.harvest
        };
        let harvest = config.design.harvests_processors().then(|| Harvest::new(config.drives, harvest_config));
        let keys = |(drive, model): (&Drive, &DriveModel)| {
            if harvest.is_some() && !drive.data.cache.is_complete() { model.map_pages() } else { 1 }
        };
        let curves = drives.iter().zip(&models).map(|pair| Shards::new(keys(pair), 8192)).collect();
        let count = config.drives as usize;
        Ok(Self {
            fabric: Fabric::new(config.drives, config.fabric)?,
            hosts: vec![ProcessorPool::new(config.host.cores, config.host.clock); config.hosts() as usize],
            streams: streams.into_iter().map(Stream::new).collect(),
            runner: Runner::default(),
            drives,
            requests: Vec::with_capacity(1024),
            journeys: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            effects: Vec::with_capacity(64),
            has_news: harvest.is_some(),
            news: Vec::new(),
            rings: Rings::new(if harvest.is_some() { count } else { 0 }),
            translations: Vec::new(),
            messages: Vec::new(),
            locks: (0..if harvest.is_some() { count } else { 0 }).map(|_| MappingLocks::default()).collect(),
            served_by_lenders: vec![0; count],
            refused: 0,
            last_stamp: 0,
            harvest,
            curves,
            lent: vec![SimSpan::ZERO; count],
            waited: vec![SimSpan::ZERO; count],
            lending: LendingLedger::new(count, config.design.harvests_processors()),
            search: SearchFigures::new(count),
            timeline: Timeline::default(),
            totals: vec![Totals::default(); count],
            tick_marks: vec![TickMark::default(); count],
            copy_back: config.design.is_virtual().then(|| CopyBack::new(config.busy_drives)),
            vh_rng: Rng::named(plan.seed, "vh.spread"),
            route_rng: Rng::named(plan.seed, "host.redirect"),
            begun: None,
            ended: None,
            stopping: false,
            stopped: SimTime::ZERO,
            first_end: None,
            redirected: 0,
            ledger: Ledger::default(),
            steps: 0,
            resilience: None,
            book: None,
            fault: None,
            models,
            config,
            plan,
        })
    }

    /// Runs to the end of the plan and returns the figures. `observer` hears of progress.
    ///
    /// Errors: a source that fails, a request beyond the drive, a drive that wears out, an observer that stops the run.
    pub fn run(mut self, observer: Observer<'_>) -> Result<JbofFigures, JbofError> {
        self.start();
        let horizon = self.horizon();
        if let StopRule::After(span) = self.plan.stop
            && SimTime::ZERO + self.plan.warmup + span > horizon
        {
            return Err(JbofError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
        }
        while let Some((now, event)) = self.runner.next_event(&mut FreeRun) {
            if self.timeline.due < now {
                // Beside the reading of figures, which is rare, this costs nothing.
                if now > horizon {
                    return Err(JbofError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
                }
                self.read_timeline(now);
            }
            self.handle(now, event);
            self.steps += 1;
            if self.steps & 0x3FFF == 0 && !observer(self.progress(now)) {
                return Err(JbofError::Interrupted);
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if self.is_over() {
                break;
            }
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        observer(1.0);
        Ok(self.figures())
    }

    /// The end of simulated time: the busy time of all dies, or of all cores, is added up in the same 64 bits.
    fn horizon(&self) -> SimTime {
        let dies = self.models.iter().map(|model| model.drive.nand.geometry.dies()).max().unwrap_or(1);
        let cores: u32 = self.drives.iter().map(|drive| drive.compute.cores()).sum();
        let host_cores = self.config.host.cores * self.config.hosts();
        SimTime::from_ps(u64::MAX / u64::from(dies.max(cores).max(host_cores).max(2)))
    }

    pub(super) fn start(&mut self) {
        let warmup = SimTime::ZERO + self.plan.warmup;
        self.runner.queue.push(warmup, Event::WarmupEnd);
        if let StopRule::After(span) = self.plan.stop {
            self.runner.queue.push(warmup + span, Event::Stop);
        }
        if self.harvest.is_some() || self.resilience.is_some() {
            let period = self.config.harvest.period;
            self.runner.queue.push(SimTime::ZERO + period, Event::Tick);
            // The host's periods are not those of the drives.
            let phase = SimSpan::from_ps((period.as_ps() as f64 * self.config.harvest.sensing.phase) as u64);
            self.runner.queue.push(SimTime::ZERO + period + phase, Event::HostTick);
        }
        if self.plan.warmup == SimSpan::ZERO {
            self.begin_window(SimTime::ZERO);
        }
        for drive in 0..self.config.busy_drives as u16 {
            self.start_stage(SimTime::ZERO, drive);
        }
        // Drives whose firmware takes no time have answered already: that must not wait for the first event.
        self.settle(SimTime::ZERO);
    }

    // Two loops run the world; the fast one wants all of this in one piece.
    #[inline(always)]
    pub(super) fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Drive { drive, generation, event: inner } => {
                if generation == self.drives[drive as usize].generation() as u16
                    && !self.waits_for_firmware(now, drive, event)
                {
                    self.on_drive(now, drive, |drive, now, out| drive.handle(now, inner, out));
                }
            }
            Event::Arrive { request } => self.arrive(now, request),
            Event::Store { request } => self.store_messages(now, request),
            Event::Wrapped { owner, lender } => self.take_messages(now, owner, lender),
            Event::Finished { request } => self.finish(now, request),
            Event::Issue { stream } => self.issue_pending(now, stream),
            Event::Resume { stream } => self.resume(now, stream),
            Event::Tick => self.tick(now),
            Event::HostTick => self.tick_host(now),
            Event::Swap { drive } => self.swap(now, drive),
            Event::PowerOn { drive } => self.power_on(now, drive),
            Event::LinkUp { drive } => self.link_up(drive),
            Event::WarmupEnd => self.begin_window(now),
            Event::Stop => self.stop(now),
        }
        self.settle(now);
    }

    /// Lets `act` work on one drive with an outbox that leads back here.
    #[inline(always)]
    pub(super) fn on_drive(&mut self, now: SimTime, number: u16, act: impl FnOnce(&mut Drive, SimTime, &mut Out<'_>)) {
        let first = self.effects.len();
        let drive = &mut self.drives[number as usize];
        let wrap = OfDrive { drive: number, generation: drive.generation() as u16 };
        act(drive, now, &mut Nested::new(&mut self.runner.queue, wrap, &mut self.effects));
        if self.has_news && self.effects.len() != first {
            self.sign_news(number, first);
        }
    }

    /// Puts the drive's number into those of its effects that are not about a request.
    #[inline]
    fn sign_news(&mut self, number: u16, first: usize) {
        for effect in &self.effects[first..] {
            if let DriveEffect::Ready | DriveEffect::SegmentsReturned { .. } = effect {
                self.news.push((number, *effect));
            }
        }
    }

    /// Follows the effects of drives until none is left.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: SimTime) {
        let mut index = 0;
        while index < self.effects.len() {
            match self.effects[index] {
                DriveEffect::FirmwareDone { tag } => self.firmware_done(now, tag),
                DriveEffect::WriteFailed { tag } => self.requests[tag as usize].failure = Some(Failure::WornOut),
                DriveEffect::ReadFailed { tag, slot } => {
                    self.requests[tag as usize].failure = Some(Failure::Unread { slot });
                }
                DriveEffect::Completed { tag, at, time } => self.completed(now, tag, at, &time),
                DriveEffect::SegmentsReturned { .. } | DriveEffect::SegmentsRecovered { .. } | DriveEffect::Ready => {}
            }
            index += 1;
            if index == self.effects.len() && !self.news.is_empty() {
                self.hear_news(now);
            }
        }
        self.effects.clear();
    }

    /// Follows the effects that concern whole drives; more effects may come of it.
    #[cold]
    fn hear_news(&mut self, now: SimTime) {
        while let Some((drive, news)) = self.news.pop() {
            match news {
                DriveEffect::SegmentsReturned { loan } => self.returned(now, drive, loan),
                _ => self.ready(now, drive),
            }
        }
    }

    fn begin_window(&mut self, now: SimTime) {
        if self.begun.is_none() {
            self.begun = Some(self.read_marks(now));
            if let Some(copy_back) = &mut self.copy_back {
                copy_back.forget();
            }
        }
    }

    /// Streams issue nothing more; the window ends here, unless copy-back belongs to it.
    pub(super) fn stop(&mut self, now: SimTime) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.stopped = now;
        if self.begun.is_none() {
            self.fault = Some(JbofError::NothingMeasured { warmup: self.plan.warmup });
            return;
        }
        if self.config.design == Design::Vh {
            self.copy_back_when_idle(now);
        } else {
            self.close_window(now);
        }
    }

    pub(super) fn close_window(&mut self, now: SimTime) {
        if self.ended.is_none() {
            self.begin_window(now);
            self.ended = Some(self.read_marks(now));
            // A world that nobody watches over time has no timeline to end.
            if !self.timeline.readings.is_empty() {
                self.finish_timeline(now);
            }
        }
    }

    /// Whether everything that counts has completed.
    pub(super) fn is_over(&self) -> bool {
        let idle = self.streams.iter().all(|stream| (stream.ended || self.stopping) && stream.in_flight == 0);
        let copying = self.copy_back.as_ref().is_some_and(CopyBack::is_running);
        idle && !copying && self.ended.is_some()
    }

    fn progress(&self, now: SimTime) -> f64 {
        match self.plan.stop {
            StopRule::After(span) => now.as_ps() as f64 / (self.plan.warmup + span).as_ps() as f64,
            StopRule::Requests(count) => {
                let issued = self.streams.iter().map(|stream| stream.issued.min(count));
                let (sum, most) = issued.fold((0, 0), |(sum, most), issued| (sum + issued, issued.max(most)));
                if self.plan.ends_together {
                    most as f64 / count as f64
                } else {
                    sum as f64 / (count * self.streams.len() as u64) as f64
                }
            }
            StopRule::StreamEnd => 0.5,
        }
        .min(1.0)
    }
}

/// Names a drive's own events among the world's.
#[derive(Clone, Copy)]
pub(super) struct OfDrive {
    drive: u16,
    generation: u16,
}

impl Wrap<DriveEvent> for OfDrive {
    type Parent = Event;

    #[inline]
    fn wrap(&self, event: DriveEvent) -> Event {
        Event::Drive { drive: self.drive, generation: self.generation, event }
    }
}

/// The outbox of a drive inside this world.
pub(super) type Out<'a> = Nested<'a, EventQueue<Event>, OfDrive, DriveEffect>;
