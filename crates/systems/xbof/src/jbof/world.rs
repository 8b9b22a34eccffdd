//! The world: an enclosure, what its design makes of it, and what surrounds it, under one clock.

use super::bench::{Bench, Marks};
use super::book::Book;
use super::config::{JbofConfig, JbofError, volume_of};
use super::enclosure::{Enclosure, Event};
use super::host_map;
use super::interrupts;
use super::models::DriveModel;
use super::policy::Policy;
use super::request::{Failure, Purpose};
use super::result::JbofFigures;
use super::spread::VirtualDrives;
use super::timeline::Reading;
use flashyard_blk::TraceRecord;
use flashyard_describe::{AgedDrive, AgedDriveError};
use flashyard_kernel::{FreeRun, Machine};
use flashyard_measure::{Observer, RunPlan, STREAMS_MAX, Source, StopRule, StreamSpec, Streamed};
use flashyard_ssd::{Drive, DriveEffect, DriveEvent};
use flashyard_stats::CAUSE_COUNT;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};
use flashyard_workload::{Program, SourceError};

/// A JBOF of one design, ready to run once.
pub struct Jbof {
    pub(super) enclosure: Enclosure,
    pub(super) policy: Policy,
    pub(super) bench: Bench,
    /// Effects and counts that a world that serves keeps for its owner.
    pub(super) book: Option<Box<Book>>,
    /// Events handled.
    pub(super) steps: u64,
    pub(super) fault: Option<JbofError>,
}

/// Like [`Jbof::with_models`], with programs in place of streams, each on the first blocks of a busy drive. Their threads are the
/// run's streams, program by program.
///
/// Errors: those of `with_models`.
pub(crate) fn with_programs(
    config: JbofConfig,
    models: Vec<DriveModel>,
    plan: RunPlan,
    programs: Vec<(VolumeId, Box<dyn Program>)>,
) -> Result<Jbof, JbofError> {
    let (mut streams, mut all) = (Vec::new(), Vec::new());
    for (place, (volume, program)) in (0..).zip(programs) {
        let threads = 0..program.threads();
        streams.extend(threads.map(|thread| StreamSpec::of_thread(volume, place, thread)));
        all.push(program);
    }
    let mut jbof = Jbof::with_models(config, models, plan, streams)?;
    jbof.bench.programs = all;
    Ok(jbof)
}

/// A drive of an enclosure. Panics beyond its drives.
pub(crate) fn drive_of(jbof: &Jbof, drive: DriveId) -> &Drive {
    &jbof.enclosure.drives[drive.index()]
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

    /// Like [`Jbof::new`], with a model for each drive, in order; none where all are alike.
    ///
    /// Errors: those of `new`, not one model for each drive, a drive that cannot be, virtual drives over unequal ones.
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
                streams.iter().map(|stream| u64::from(stream.volume.get())).max().unwrap_or(0),
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
        let drives = Enclosure::preconditioned(&config, &models, &plan)?;
        Self::build(config, models, plan, streams, drives)
    }

    /// Lets drive `drive` begin as an aged one of the same shape, whatever was done to it before. To be called before
    /// the run, and before its mapping cache is warmed.
    ///
    /// Errors: a drive of another shape, a state that cannot be. Panics beyond the drives.
    pub fn restore(&mut self, drive: DriveId, aged: &AgedDrive) -> Result<(), JbofError> {
        let drive = &mut self.enclosure.drives[drive.index()];
        aged.check(drive.config())?;
        drive.data.restore(&aged.state).map_err(AgedDriveError::State)?;
        Ok(())
    }

    /// Puts hosts, links, a policy and streams around drives.
    pub(super) fn build(
        config: JbofConfig,
        models: Vec<DriveModel>,
        plan: RunPlan,
        streams: Vec<StreamSpec>,
        drives: Vec<Drive>,
    ) -> Result<Self, JbofError> {
        let enclosure = Enclosure::new(config, models, drives)?;
        Ok(Self {
            policy: Policy::new(&enclosure, plan.seed),
            bench: Bench::new(plan, streams, config.drives as usize),
            enclosure,
            book: None,
            steps: 0,
            fault: None,
        })
    }

    /// Brings the mapping caches of busy drives to the state that `accesses` requests of
    /// each source leave, without timing. Does nothing where the whole map is in memory.
    ///
    /// Errors: a source that fails, an observer that stops it.
    pub fn warm_mapping(
        &mut self,
        sources: Vec<Source>,
        accesses: u64,
        observer: Observer<'_>,
    ) -> Result<(), JbofError> {
        let mut lending = self.policy.lending_mut();
        self.enclosure.warm_mapping(sources, accesses, observer, |drive, page| {
            // A drive that knew nothing of these accesses would take pages that are used now and then for spare ones.
            if let Some(lending) = &mut lending {
                lending.warm_curve(drive, page);
            }
        })
    }

    /// Runs to the end of the plan and returns the figures. `observer` hears of progress.
    ///
    /// Errors: a source that fails, a request beyond the drive, a drive that wears out, an observer that stops the run.
    pub fn run(mut self, observer: Observer<'_>) -> Result<JbofFigures, JbofError> {
        self.start();
        let horizon = self.enclosure.horizon();
        if let StopRule::After(span) = self.bench.plan.stop
            && SimTime::ZERO + self.bench.plan.warmup + span > horizon
        {
            return Err(JbofError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
        }
        while let Some(now) = self.enclosure.runner.advance(&mut FreeRun) {
            let event = self.enclosure.runner.take();
            if self.bench.timeline.due() < now {
                // Beside the reading of figures, which is rare, this costs nothing.
                if now > horizon {
                    return Err(JbofError::BeyondTime { horizon: horizon.since(SimTime::ZERO) });
                }
                self.read_timeline(now);
            }
            self.handle(now, event);
            self.steps += 1;
            if self.steps & 0x3FFF == 0 && !observer(self.bench.progress(now)) {
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
        Ok(JbofFigures::of(&self.enclosure, &self.policy, self.bench))
    }

    pub(super) fn start(&mut self) {
        let warmup = SimTime::ZERO + self.bench.plan.warmup;
        self.enclosure.runner.queue.push(warmup, Event::WarmupEnd);
        if let StopRule::After(span) = self.bench.plan.stop {
            self.enclosure.runner.queue.push(warmup + span, Event::Stop);
        }
        if self.policy.lending().is_some() || self.enclosure.resilience.is_some() {
            let period = self.enclosure.config.harvest.period;
            self.enclosure.runner.queue.push(SimTime::ZERO + period, Event::Tick);
            // The host's periods are not those of the drives.
            let phase = SimSpan::from_ps((period.as_ps() as f64 * self.enclosure.config.harvest.sensing.phase) as u64);
            self.enclosure.runner.queue.push(SimTime::ZERO + period + phase, Event::HostTick);
            if self.enclosure.resilience.is_some() {
                self.next_period(SimTime::ZERO, Event::Look);
            }
        }
        if self.bench.plan.warmup == SimSpan::ZERO {
            self.begin_window(SimTime::ZERO);
        }
        for drive in DriveId::first(self.enclosure.config.busy_drives as u16) {
            self.start_stage(SimTime::ZERO, volume_of(drive));
        }
        // Drives whose firmware takes no time have answered already: that must not wait for the first event.
        self.settle(SimTime::ZERO);
    }

    // Three loops run the world (`run`, `run_until` with faults, that of a live enclosure); the fast one wants all of
    // this in one piece.
    #[inline(always)]
    pub(super) fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Drive { drive, generation, event: inner } => {
                if generation == self.enclosure.drives[drive.index()].generation() as u16
                    && !self.enclosure.waits_for_firmware(now, drive, event)
                {
                    self.enclosure.on_drive(now, drive, |drive, now, out| drive.handle(now, inner, out));
                }
            }
            Event::Arrive { request } => self.arrive(now, request),
            Event::Store { request } => self.store_messages(now, request),
            Event::Wrapped { owner, lender } => self.take_messages(now, owner, lender),
            Event::Posted { request } => interrupts::posted(&mut self.enclosure, now, request),
            Event::Interrupt { drive } => interrupts::aggregated(&mut self.enclosure, now, drive),
            Event::Finished { request } => self.finish(now, request),
            Event::Issue { stream } => self.issue_pending(now, stream),
            Event::Resume { stream } => self.resume(now, stream),
            Event::Tick => self.tick(now),
            Event::HostTick => self.tick_host(now),
            Event::Look => {
                self.detect(now);
                self.next_period(now, Event::Look);
            }
            Event::Swap { drive } => self.swap(now, drive),
            Event::PowerOn { drive } => self.enclosure.power_on(&mut self.policy, now, drive),
            Event::LinkUp { drive } => self.enclosure.link_up(&mut self.policy, drive),
            Event::WarmupEnd => self.begin_window(now),
            Event::Stop => self.stop_streams(now),
        }
        self.settle(now);
    }

    /// Follows the effects of drives until none is left.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: SimTime) {
        let mut index = 0;
        while index < self.enclosure.effects.len() {
            match self.enclosure.effects[index] {
                DriveEffect::FirmwareDone { tag } => self.firmware_done(now, tag),
                DriveEffect::WriteFailed { tag } => self.enclosure.fail(tag, Failure::WornOut),
                DriveEffect::ReadFailed { tag, slot } => {
                    self.enclosure.fail(tag, Failure::Unread { slot });
                }
                DriveEffect::Completed { tag, at, time } => self.completed(now, tag, at, &time),
                DriveEffect::SegmentsReturned { .. }
                | DriveEffect::SegmentsRecovered { .. }
                | DriveEffect::FetchPage { .. }
                | DriveEffect::StorePages { .. }
                | DriveEffect::Ready => {}
            }
            index += 1;
            if index == self.enclosure.effects.len() && !self.enclosure.news.is_empty() {
                self.hear_news(now);
            }
        }
        self.enclosure.effects.clear();
    }

    /// Follows the effects that concern whole drives; more effects may come of it.
    #[cold]
    fn hear_news(&mut self, now: SimTime) {
        while let Some((drive, news)) = self.enclosure.news.pop() {
            match news {
                DriveEffect::SegmentsReturned { loan } => {
                    if let Policy::Lending(lending) = &mut self.policy {
                        lending.returned(&mut self.enclosure, now, drive, loan);
                    }
                }
                DriveEffect::FetchPage { page } => {
                    host_map::send(&mut self.enclosure, now, drive, DriveEvent::FetchPage { page });
                }
                DriveEffect::StorePages { die } => {
                    host_map::send(&mut self.enclosure, now, drive, DriveEvent::StorePages { die });
                }
                _ => self.ready(now, drive),
            }
        }
    }

    /// Streams issue nothing more; the window ends here, unless copy-back belongs to it.
    pub(super) fn stop_streams(&mut self, now: SimTime) {
        if self.bench.stopping {
            return;
        }
        self.bench.stopping = true;
        self.bench.stopped = now;
        if self.bench.begun.is_none() {
            self.fault = Some(JbofError::NothingMeasured { warmup: self.bench.plan.warmup });
            return;
        }
        if self.policy.spread().is_some_and(VirtualDrives::copies_back) {
            self.copy_back_when_idle(now);
        } else {
            self.close_window(now);
        }
    }

    /// Whether everything that counts has completed.
    pub(super) fn is_over(&self) -> bool {
        // Asked after every event: first what is false nearly always.
        self.bench.ended.is_some()
            && self.bench.is_idle()
            && !self.policy.spread().is_some_and(VirtualDrives::is_copying)
    }

    /// One period of the drives.
    fn tick(&mut self, now: SimTime) {
        if let Policy::Lending(lending) = &mut self.policy {
            lending.tick(&mut self.enclosure, now);
        }
        self.next_period(now, Event::Tick);
    }

    /// One period of the hosts: they load the processor descriptors, and their drivers look at the drives unless these
    /// have a period of their own.
    fn tick_host(&mut self, now: SimTime) {
        if let Policy::Lending(lending) = &mut self.policy {
            lending.tick_host(&mut self.enclosure, now);
        }
        if self.enclosure.resilience.is_some() && self.enclosure.config.driver.period.is_none() {
            self.detect(now);
        }
        self.next_period(now, Event::HostTick);
    }

    fn next_period(&mut self, now: SimTime, event: Event) {
        let (harvest, driver) = (&self.enclosure.config.harvest, &self.enclosure.config.driver);
        // Only drivers may have a period of their own.
        let period = if matches!(event, Event::Look) { driver.period } else { Some(harvest.period) };
        if let Some(period) = period
            && (self.bench.ended.is_none() || self.enclosure.resilience.is_some())
        {
            self.enclosure.runner.queue.push(now + period, event);
        }
    }

    /// A compare-and-swap of `drive` reaches its descriptor.
    fn swap(&mut self, now: SimTime, drive: DriveId) {
        if self.enclosure.waits_for_firmware(now, drive, Event::Swap { drive }) {
            return;
        }
        let reaches = self.enclosure.is_reachable(drive);
        let Policy::Lending(lending) = &mut self.policy else { return };
        if reaches {
            lending.swap(&mut self.enclosure, now, drive);
        } else {
            // Its sender is gone: it never arrives.
            lending.harvest.forget_search(drive);
        }
    }
}

impl Streamed<CAUSE_COUNT> for Jbof {
    type Marks = Marks;
    type Reading = Reading;

    #[inline]
    fn bench(&self) -> &Bench {
        &self.bench
    }

    #[inline]
    fn bench_mut(&mut self) -> &mut Bench {
        &mut self.bench
    }

    #[inline]
    fn issue(&mut self, now: SimTime, stream: u16, record: &TraceRecord) {
        self.issue_record(now, stream, record);
    }

    fn issue_at(&mut self, when: SimTime, stream: u16) {
        self.enclosure.runner.queue.push(when, Event::Issue { stream });
    }

    fn resume_at(&mut self, when: SimTime, stream: u16) {
        self.enclosure.runner.queue.push(when, Event::Resume { stream });
    }

    fn stop(&mut self, now: SimTime) {
        self.stop_streams(now);
    }

    fn fail(&mut self, error: SourceError) {
        self.fault = Some(error.into());
    }

    fn under_way(&self) -> impl Iterator<Item = SimTime> {
        let enclosure = &self.enclosure;
        let mut lives = vec![true; enclosure.requests.len()];
        enclosure.free.iter().for_each(|&id| lives[id as usize] = false);
        let requests = enclosure.requests.iter().zip(lives);
        requests.filter(|(one, lives)| *lives && one.purpose == Purpose::Foreground).map(|(request, _)| request.issued)
    }

    fn marks(&self, now: SimTime) -> Marks {
        Marks::of(&self.enclosure, &self.policy, now)
    }

    fn reading(&mut self, at: SimTime) -> Reading {
        Reading::of(&self.enclosure, &mut self.policy, &self.bench.totals, at)
    }

    fn window_begun(&mut self) {
        if let Policy::Virtual(spread) = &mut self.policy {
            spread.forget();
        }
    }
}
