//! The world: two drives, the host in front of them, and what surrounds both, under one clock.

use crate::book::Book;
use crate::config::{MirrorConfig, MirrorError, VOLUME};
use crate::locks::Locks;
use crate::marks::{Marks, MirrorReading};
use crate::policy::Chooser;
use crate::request::{CAUSES, Command, Event, Failure, Request};
use crate::side::{OutageCounters, Resync, Side};
use flashyard_blk::TraceRecord;
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_kernel::{EventQueue, Machine, Nested, Rng, Runner, Slab, Wrap};
use flashyard_measure::{Bench, RunPlan, Source, StopRule, StreamSpec, Streamed};
use flashyard_ssd::{Drive, DriveEffect, DriveEvent};
use flashyard_units::{SimSpan, SimTime};
use flashyard_workload::SourceError;

/// Names a drive's own events among the world's.
#[derive(Clone, Copy)]
pub(crate) struct OfDrive {
    drive: u8,
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
pub(crate) type Out<'a> = Nested<'a, EventQueue<Event>, OfDrive, DriveEffect>;

/// A mirror, ready to run once.
pub struct Mirror {
    pub(crate) config: MirrorConfig,
    pub(crate) runner: Runner<Event>,
    pub(crate) drives: [Drive; 2],
    pub(crate) sides: [Side; 2],
    pub(crate) chooser: Chooser,
    pub(crate) requests: Slab<Request>,
    pub(crate) commands: Slab<Command>,
    pub(crate) locks: Locks,
    /// Requests that wait for a drive to return, or for blocks to be copied.
    pub(crate) held: Vec<u32>,
    /// Copying to each drive.
    pub(crate) resync: [Resync; 2],
    pub(crate) outages: OutageCounters,
    pub(crate) effects: Vec<DriveEffect>,
    pub(crate) bench: Bench<Marks, MirrorReading, CAUSES>,
    /// Effects and counts that a world that serves keeps for its owner.
    pub(crate) book: Option<Box<Book>>,
    /// Stamp of the last write.
    pub(crate) last_stamp: u64,
    /// Events handled.
    pub(crate) steps: u64,
    pub(crate) fault: Option<MirrorError>,
    /// A mistake that tests plant.
    #[cfg(test)]
    pub(crate) bug: Option<crate::small::Bug>,
}

impl Mirror {
    /// Builds the drives, with a stream for each source at the plan's depth.
    ///
    /// Errors: parameters outside their ranges; no stream, or more than 4096.
    pub fn new(config: MirrorConfig, plan: RunPlan, sources: Vec<Source>) -> Result<Self, MirrorError> {
        let mut streams = plan.streams(sources);
        streams.iter_mut().for_each(|stream| stream.volume = VOLUME);
        Self::with_streams(config, plan, streams)
    }

    /// Builds the drives, with any streams to volume 0. The plan's depth means nothing here.
    ///
    /// Errors: parameters outside their ranges; no stream, or more than 4096; a stream to another volume.
    pub fn with_streams(config: MirrorConfig, plan: RunPlan, streams: Vec<StreamSpec>) -> Result<Self, MirrorError> {
        config.validate()?;
        MirrorConfig::check_streams(streams.len())?;
        if let Some(value) = streams.iter().map(|stream| u64::from(stream.volume.get())).find(|&volume| volume > 0) {
            return Err(MirrorError::Range { name: "volume of a stream", value, least: 0, most: 0 });
        }
        let drives = Self::preconditioned(&config, plan.seed)?;
        Ok(Self::over(config, plan, streams, drives))
    }

    /// Drives as they are before the run.
    pub(crate) fn preconditioned(config: &MirrorConfig, seed: u64) -> Result<[Drive; 2], MirrorError> {
        let of = |number: usize| Drive::new(config.drives[number], &[1, 1], seed.wrapping_add(number as u64));
        let mut drives = Self::make(of)?;
        for (number, drive) in drives.iter_mut().enumerate() {
            let mut rng = Rng::named(seed, &format!("precondition.{number}"));
            drive.data.overwrite(config.overwrites[number], &mut rng);
        }
        Ok(drives)
    }

    /// Both drives.
    pub(crate) fn make(
        mut drive: impl FnMut(usize) -> Result<Drive, flashyard_ssd::DriveConfigError>,
    ) -> Result<[Drive; 2], MirrorError> {
        let mut make = |number| drive(number).map_err(|error| MirrorError::Drive { drive: number, error });
        Ok([make(0)?, make(1)?])
    }

    /// Puts a host and streams around drives.
    pub(crate) fn over(config: MirrorConfig, plan: RunPlan, streams: Vec<StreamSpec>, drives: [Drive; 2]) -> Self {
        Self {
            runner: Runner::default(),
            drives,
            sides: [Side::new(), Side::new()],
            chooser: Chooser::new(config.policy),
            requests: Slab::default(),
            commands: Slab::default(),
            locks: Locks::default(),
            held: Vec::new(),
            resync: [Resync::default(); 2],
            outages: OutageCounters::default(),
            effects: Vec::with_capacity(64),
            bench: Bench::new(plan, streams, 1),
            book: None,
            last_stamp: 0,
            steps: 0,
            fault: None,
            #[cfg(test)]
            bug: None,
            config,
        }
    }

    /// Brings the mapping caches of both drives to the state that `accesses` requests of a source leave, without timing.
    /// Does nothing where the whole map is in memory.
    ///
    /// Errors: a source that fails.
    pub fn warm_mapping(&mut self, mut source: Source, accesses: u64) -> Result<(), MirrorError> {
        let page_bytes = u64::from(SLOT_BYTES) * u64::from(SLOTS_PER_TRANSLATION_PAGE);
        let last = (self.config.blocks() - 1) / SLOTS_PER_TRANSLATION_PAGE;
        for _ in 0..accesses {
            let Some(record) = source.next_request()? else { break };
            for drive in self.drives.iter_mut().filter(|drive| !drive.data.cache.is_complete()) {
                let page = (record.request.offset_bytes / page_bytes) as u32;
                // The state of the drive before the run is clean: only the order of use matters.
                drive.data.cache.access(page.min(last), false);
            }
        }
        self.drives.iter_mut().for_each(|drive| drive.data.cache.reset_counters());
        Ok(())
    }

    pub(crate) fn start(&mut self) {
        let warmup = SimTime::ZERO + self.bench.plan.warmup;
        self.runner.queue.push(warmup, Event::WarmupEnd);
        if let StopRule::After(span) = self.bench.plan.stop {
            self.runner.queue.push(warmup + span, Event::Stop);
        }
        if self.bench.plan.warmup == SimSpan::ZERO {
            self.begin_window(SimTime::ZERO);
        }
        self.start_stage(SimTime::ZERO, VOLUME);
        self.settle(SimTime::ZERO);
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Drive { drive, generation, event } => {
                if self.is_of_now(drive, generation) {
                    self.on_drive(now, drive.into(), |drive, now, out| drive.handle(now, event, out));
                }
            }
            Event::Arrive { drive, generation, command } => {
                if self.is_of_now(drive, generation) {
                    self.arrive(now, command);
                }
            }
            Event::Heard { drive, generation, command } => {
                if self.is_of_now(drive, generation) {
                    self.heard(now, command);
                }
            }
            Event::Issue { stream } => self.issue_pending(now, stream),
            Event::Resume { stream } => self.resume(now, stream),
            Event::PowerOn { drive } => self.power_on(now, drive.into()),
            Event::WarmupEnd => self.begin_window(now),
            Event::Stop => self.stop(now),
        }
        self.settle(now);
    }

    /// Whether nothing has made the drive forget its commands since `generation`.
    #[inline]
    fn is_of_now(&self, drive: u8, generation: u16) -> bool {
        self.drives[usize::from(drive)].generation() as u16 == generation
    }

    /// Follows the effects of drives until none is left.
    #[inline]
    pub(crate) fn settle(&mut self, now: SimTime) {
        let mut index = 0;
        while index < self.effects.len() {
            match self.effects[index] {
                DriveEffect::FirmwareDone { tag } => self.execute(now, tag),
                DriveEffect::WriteFailed { tag } => self.commands[tag as usize].failure = Some(Failure::WornOut),
                DriveEffect::ReadFailed { tag, slot } => {
                    self.commands[tag as usize].failure = Some(Failure::Unread { block: slot });
                }
                DriveEffect::Completed { tag, at, time } => self.completed(tag, at, &time),
                DriveEffect::Ready => self.drives_ready(now),
                DriveEffect::SegmentsReturned { .. }
                | DriveEffect::SegmentsRecovered { .. }
                | DriveEffect::FetchPage { .. }
                | DriveEffect::StorePages { .. } => {}
            }
            index += 1;
        }
        self.effects.clear();
    }

    /// Lets `act` work on one drive with an outbox that leads back here.
    #[inline]
    pub(crate) fn on_drive(
        &mut self,
        now: SimTime,
        number: usize,
        act: impl FnOnce(&mut Drive, SimTime, &mut Out<'_>),
    ) {
        let drive = &mut self.drives[number];
        let wrap = OfDrive { drive: number as u8, generation: drive.generation() as u16 };
        act(drive, now, &mut Nested::new(&mut self.runner.queue, wrap, &mut self.effects));
    }

    /// Whether everything that counts has completed.
    pub(crate) fn is_over(&self) -> bool {
        self.bench.is_idle() && self.bench.ended.is_some()
    }
}

impl Streamed<CAUSES> for Mirror {
    type Marks = Marks;
    type Reading = MirrorReading;

    #[inline]
    fn bench(&self) -> &Bench<Marks, MirrorReading, CAUSES> {
        &self.bench
    }

    #[inline]
    fn bench_mut(&mut self) -> &mut Bench<Marks, MirrorReading, CAUSES> {
        &mut self.bench
    }

    #[inline]
    fn issue(&mut self, now: SimTime, stream: u16, record: &TraceRecord) {
        self.issue_record(now, stream, record);
    }

    fn issue_at(&mut self, when: SimTime, stream: u16) {
        self.runner.queue.push(when, Event::Issue { stream });
    }

    fn resume_at(&mut self, when: SimTime, stream: u16) {
        self.runner.queue.push(when, Event::Resume { stream });
    }

    fn stop(&mut self, now: SimTime) {
        if self.bench.stopping {
            return;
        }
        self.bench.stopping = true;
        self.bench.stopped = now;
        if self.bench.begun.is_none() {
            self.fault = Some(MirrorError::NothingMeasured { warmup: self.bench.plan.warmup });
            return;
        }
        self.close_window(now);
    }

    fn fail(&mut self, error: SourceError) {
        self.fault = Some(error.into());
    }

    fn under_way(&self) -> impl Iterator<Item = SimTime> {
        self.requests.iter().filter(|(_, request)| request.is_of_stream()).map(|(_, request)| request.issued)
    }

    fn marks(&self, now: SimTime) -> Marks {
        Marks::of(&self.drives, &self.sides, now)
    }

    fn reading(&mut self, at: SimTime) -> MirrorReading {
        MirrorReading::of(self.bench.totals[0], &self.drives, &self.sides, at)
    }
}
