//! The parts of every design: drives, hosts and links, the requests under way, and the queue of events.

use super::config::{Design, JbofConfig, JbofError};
use super::models::DriveModel;
use super::request::{Failure, Journey, Purpose, Request};
use super::resilience::Resilience;
use flashyard_fabric::Fabric;
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::SLOTS_PER_TRANSLATION_PAGE;
use flashyard_host::{Coalescer, ProcessorPool};
use flashyard_kernel::{EventQueue, Nested, Rng, Runner, Wrap};
use flashyard_measure::{Observer, RunPlan, Source};
use flashyard_ssd::{Drive, DriveEffect, DriveEvent, Job};
use flashyard_stats::Cause;
use flashyard_units::{DriveId, SimSpan, SimTime};

/// Everything that can happen later. Closed: a new kind of thing to wait for is a new line here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A drive has news for itself.
    Drive { drive: DriveId, generation: u16, event: DriveEvent },
    /// A command reaches its drive.
    Arrive { request: u32 },
    /// A lender looks again for room in the owner's message queue.
    Store { request: u32 },
    /// An entry that a lender has stored is visible in the owner's message queue.
    Wrapped { owner: DriveId, lender: DriveId },
    /// A completion entry reaches the host's memory, where interrupts are coalesced.
    Posted { request: u32 },
    /// The aggregation time of a drive's completions is over.
    Interrupt { drive: DriveId },
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
    /// Its look at the drives, where that has a period of its own.
    Look,
    /// A compare-and-swap that a drive sent reaches the descriptor.
    Swap { drive: DriveId },
    /// A drive has power again.
    PowerOn { drive: DriveId },
    /// A drive has its link again.
    LinkUp { drive: DriveId },
    /// Figures count from here.
    WarmupEnd,
    /// Streams stop issuing.
    Stop,
}

/// An event is copied a few times: it must not grow unnoticed.
const _: () = assert!(size_of::<Event>() <= 16);

impl Event {
    /// The request that the event names, if it does.
    fn request(&self) -> Option<u32> {
        match *self {
            Self::Arrive { request }
            | Self::Store { request }
            | Self::Posted { request }
            | Self::Finished { request } => Some(request),
            Self::Drive { .. }
            | Self::Wrapped { .. }
            | Self::Interrupt { .. }
            | Self::Issue { .. }
            | Self::Resume { .. }
            | Self::Tick
            | Self::HostTick
            | Self::Look
            | Self::Swap { .. }
            | Self::PowerOn { .. }
            | Self::LinkUp { .. }
            | Self::WarmupEnd
            | Self::Stop => None,
        }
    }
}

/// Names a drive's own events among the world's.
#[derive(Clone, Copy)]
pub(super) struct OfDrive {
    drive: DriveId,
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

/// Drives, hosts and links, whatever the design makes of them.
pub(super) struct Enclosure {
    pub(super) config: JbofConfig,
    /// Model of each drive before the design takes from it.
    pub(super) models: Vec<DriveModel>,
    pub(super) runner: Runner<Event>,
    pub(super) drives: Vec<Drive>,
    /// In the order of the drives that they stand in front of.
    pub(super) hosts: Vec<ProcessorPool>,
    pub(super) fabric: Fabric,
    pub(super) requests: Vec<Request>,
    /// One for each of `requests`.
    pub(super) journeys: Vec<Journey>,
    pub(super) free: Vec<u32>,
    /// Requests under way that their drive has not carried out: rare.
    failures: Vec<(u32, Failure)>,
    pub(super) effects: Vec<DriveEffect>,
    /// Whether drives may be ready again, return segments or miss pages of the host's map: they lend, they break, or they have
    /// no map.
    pub(super) has_news: bool,
    /// Effects that concern a whole drive, with its number.
    pub(super) news: Vec<(DriveId, DriveEffect)>,
    /// Stamp of the last write.
    last_stamp: u64,
    /// Time of every command on a host's core; `None` where it depends on the command.
    command_time: Option<SimSpan>,
    /// From the driver to the drive.
    pub(super) submit_latency: SimSpan,
    /// From the drive to the application, without what coalescing adds.
    pub(super) complete_latency: SimSpan,
    /// Completions of each drive whose interrupt has not been sent.
    pub(super) interrupts: Vec<Coalescer>,
    /// Core time that was asked for.
    pub(super) demand: SimSpan,
    /// Faults, and what the driver does about them; `None` where nothing can break.
    pub(super) resilience: Option<Box<Resilience>>,
}

impl Enclosure {
    /// Drives as they are before the run.
    pub(super) fn preconditioned(
        config: &JbofConfig,
        models: &[DriveModel],
        plan: &RunPlan,
    ) -> Result<Vec<Drive>, JbofError> {
        let queues = config.queue_weights();
        let mut drives = (0..)
            .zip(models)
            .map(|(number, model)| {
                let mut placed = config.placed(model);
                // Idle drives are not overwritten either.
                placed.ftl.drawn &= number < u64::from(config.busy_drives);
                Drive::new(placed, &queues, plan.seed.wrapping_add(number))
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (number, drive) in drives.iter_mut().enumerate().take(config.busy_drives as usize) {
            drive
                .data
                .overwrite(models[number].overwrites, &mut Rng::named(plan.seed, &format!("precondition.{number}")));
        }
        Ok(drives)
    }

    /// Puts hosts and links around drives.
    ///
    /// Errors: a fabric that cannot be.
    pub(super) fn new(config: JbofConfig, models: Vec<DriveModel>, mut drives: Vec<Drive>) -> Result<Self, JbofError> {
        let fabric = Fabric::new(config.drives, config.fabric)?;
        if let Some(rate) = fabric.shared_rate() {
            drives.iter_mut().for_each(|drive| drive.data.link.share(rate));
        }
        Ok(Self {
            fabric,
            interrupts: vec![Coalescer::default(); drives.len()],
            hosts: vec![ProcessorPool::new(config.host.cores, config.host.clock); config.hosts() as usize],
            runner: Runner::default(),
            drives,
            requests: Vec::with_capacity(1024),
            journeys: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            failures: Vec::new(),
            effects: Vec::with_capacity(64),
            has_news: config.design.harvests_processors() || config.design == Design::Oc,
            news: Vec::new(),
            last_stamp: 0,
            command_time: (config.design != Design::Oc).then(|| config.host_time(&config.drive.firmware, 0)),
            submit_latency: config.submit_latency(),
            complete_latency: config.complete_latency(),
            demand: SimSpan::ZERO,
            resilience: None,
            models,
            config,
        })
    }

    /// Lets `act` work on one drive with an outbox that leads back here.
    #[inline(always)]
    pub(super) fn on_drive(
        &mut self,
        now: SimTime,
        number: DriveId,
        act: impl FnOnce(&mut Drive, SimTime, &mut Out<'_>),
    ) {
        let first = self.effects.len();
        let drive = &mut self.drives[number.index()];
        let wrap = OfDrive { drive: number, generation: drive.generation() as u16 };
        act(drive, now, &mut Nested::new(&mut self.runner.queue, wrap, &mut self.effects));
        if self.has_news && self.effects.len() != first {
            self.sign_news(number, first);
        }
    }

    /// Puts the drive's number into those of its effects that are not about a request.
    #[inline]
    fn sign_news(&mut self, number: DriveId, first: usize) {
        for effect in &self.effects[first..] {
            if let DriveEffect::Ready
            | DriveEffect::SegmentsReturned { .. }
            | DriveEffect::FetchPage { .. }
            | DriveEffect::StorePages { .. } = effect
            {
                self.news.push((number, *effect));
            }
        }
    }

    /// The number of the next write's payload.
    #[inline]
    pub(super) fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// Gives the request a number.
    #[inline]
    pub(super) fn new_request(&mut self, now: SimTime, request: Request) -> u32 {
        let id = match self.free.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                self.journeys[id as usize] = Journey::default();
                if !self.failures.is_empty() {
                    self.take_failure(id);
                }
                id
            }
            None => {
                self.requests.push(request);
                self.journeys.push(Journey::default());
                (self.requests.len() - 1) as u32
            }
        };
        if let Some(state) = &mut self.resilience {
            state.driver.begin(now, id);
        }
        id
    }

    /// The request's number is free.
    #[inline]
    pub(super) fn release(&mut self, id: u32) {
        if let Some(state) = &mut self.resilience {
            state.driver.end(id);
        }
        self.free.push(id);
    }

    /// The drive has not carried the request out.
    #[cold]
    pub(super) fn fail(&mut self, id: u32, failure: Failure) {
        self.take_failure(id);
        self.failures.push((id, failure));
    }

    /// Why the drive has not carried the request out, if it has not.
    #[inline]
    pub(super) fn failure(&self, id: u32) -> Option<Failure> {
        self.failures.iter().find(|failed| failed.0 == id).map(|failed| failed.1)
    }

    /// Why the drive has not carried the request out, once.
    #[inline]
    pub(super) fn take_failure(&mut self, id: u32) -> Option<Failure> {
        let place = self.failures.iter().position(|failed| failed.0 == id)?;
        Some(self.failures.swap_remove(place).1)
    }

    /// Time of a command on a host's core.
    #[inline]
    pub(super) fn host_time(&self, request: &Request) -> SimSpan {
        let firmware = |drive: DriveId| &self.models[drive.index()].drive.firmware;
        self.command_time.unwrap_or_else(|| self.config.host_time(firmware(request.drive), request.count))
    }

    /// Slices that firmware works through. Copy-back moves extents of whole flash pages: the 10 GB/s at
    /// which the source copies back cannot pay for slices of 4 KiB ([D] xbof §8.4).
    #[inline]
    pub(super) fn slices(&self, request: &Request) -> u32 {
        if matches!(request.purpose, Purpose::CopyRead | Purpose::CopyWrite) {
            let layout = self.drives[request.drive.index()].data.ftl.layout();
            request.count.div_ceil(layout.slots_per_page)
        } else {
            request.count
        }
    }

    /// The host in front of `drive`.
    #[inline]
    pub(super) fn host_of(&mut self, drive: DriveId) -> &mut ProcessorPool {
        match &mut self.hosts[..] {
            [only] => only,
            hosts => &mut hosts[(u32::from(drive.get()) / self.config.drives_per_host()) as usize],
        }
    }

    /// Accounts for a firmware job that waits for a core: `between` of its stall is spent on other drives.
    #[inline]
    pub(super) fn begin_job(&mut self, now: SimTime, job: &Job, between: SimSpan) {
        let journey = &mut self.journeys[job.tag as usize];
        journey.time.add(Cause::Core, job.busy + job.stall - between);
        journey.unqueued = now + job.busy + job.stall;
    }

    /// Queues a firmware job with `drive`.
    // Not in each caller: the code of a command must fit the instruction cache (docs/speed.md).
    #[inline(never)]
    pub(super) fn enqueue(&mut self, now: SimTime, drive: DriveId, queue: usize, job: Job) {
        self.demand += job.busy;
        self.on_drive(now, drive, |drive, now, out| drive.enqueue(now, queue, job, out));
    }

    /// Brings the mapping caches of drives to the state that `accesses` requests of each source leave, without timing.
    /// Does nothing where the whole map is in memory.
    ///
    /// Errors: a source that fails, an observer that stops it.
    pub(super) fn warm_mapping(
        &mut self,
        sources: Vec<Source>,
        accesses: u64,
        observer: Observer<'_>,
        mut accessed: impl FnMut(usize, u32),
    ) -> Result<(), JbofError> {
        let drives = self.drives.iter_mut().zip(&self.models).enumerate();
        for ((number, (drive, model)), mut source) in drives.zip(sources) {
            if drive.data.cache.is_complete() {
                continue;
            }
            let pages = model.map_pages();
            for access in 0..accesses {
                if access & 0xFFFF == 0 && !observer(0.0) {
                    return Err(JbofError::Interrupted);
                }
                let Some(record) = source.next_request()? else { break };
                let page = record.request.offset_bytes / u64::from(SLOT_BYTES * SLOTS_PER_TRANSLATION_PAGE);
                // The state of the drive before the run is clean: only the order of use matters.
                let page = (page as u32).min(pages - 1);
                drive.data.cache.access(page, false);
                accessed(number, page);
            }
            drive.data.cache.reset_counters();
        }
        Ok(())
    }

    /// The end of simulated time: the busy time of all dies, or of all cores, is added up in the same 64 bits.
    pub(super) fn horizon(&self) -> SimTime {
        let dies = self.models.iter().map(|model| model.drive.nand.geometry.dies()).max().unwrap_or(1);
        let cores: u32 = self.drives.iter().map(|drive| drive.compute.cores()).sum();
        let host_cores = self.config.host.cores * self.config.hosts();
        SimTime::from_ps(u64::MAX / u64::from(dies.max(cores).max(host_cores).max(2)))
    }

    /// Data that peers keep in the memory of `lender` is gone, or out of reach for good: it is not trusted again.
    pub(super) fn lose_memory(&mut self, lender: DriveId) {
        for borrower in DriveId::first(self.drives.len() as u16).filter(|&borrower| borrower != lender) {
            self.drives[borrower.index()].data.lose_segments(lender);
        }
    }

    /// Everything that `drive` keeps in the memory of peers is out of its reach.
    pub(super) fn lose_borrowed_memory(&mut self, drive: DriveId) {
        for lender in DriveId::first(self.drives.len() as u16) {
            self.drives[drive.index()].data.lose_segments(lender);
        }
    }

    /// Takes retired numbers back once enough are. Between two events: no effect is under way.
    pub(super) fn take_back_numbers(&mut self, commands: impl Iterator<Item = u32>) {
        if !self.resilience.as_ref().is_some_and(|state| state.driver.scan_is_due()) {
            return;
        }
        let named = self.named(commands);
        let Some(state) = &mut self.resilience else { return };
        let freed = state.driver.take_back(&named);
        freed.iter().for_each(|&id| state.forget_found(id));
        self.free.extend(freed);
    }

    /// By number: whether an event, a core's queue, a data-end or one of `commands` names that request.
    fn named(&self, commands: impl Iterator<Item = u32>) -> Vec<bool> {
        let mut named = vec![false; self.requests.len()];
        let mut name = |id: u32| {
            // Drives also run jobs that are no requests.
            if let Some(is_named) = named.get_mut(id as usize) {
                *is_named = true;
            }
        };
        self.runner.queue.events().filter_map(Event::request).for_each(&mut name);
        self.drives.iter().for_each(|drive| drive.tags().for_each(&mut name));
        self.interrupts.iter().for_each(|waiting| waiting.commands().for_each(&mut name));
        commands.for_each(&mut name);
        named
    }
}
