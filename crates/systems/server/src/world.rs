//! The world: virtual drives, the pools of their stack, and storage, under one clock.

use crate::config::{ServerConfig, ServerError};
use crate::marks::{Marks, ServerReading};
use crate::network::NetworkVolume;
use crate::request::{CAUSES, Event, Gathered, Request, Role, Waiting};
use crate::stack::Table;
use crate::tiers::Tiered;
use flashyard_blk::TraceRecord;
use flashyard_host::ProcessorPool;
use flashyard_kernel::{EventQueue, Machine, Nested, Rng, Runner, Slab, Wrap};
use flashyard_latte::Latte;
use flashyard_measure::{Bench, RunPlan, StopRule, StreamSpec, Streamed};
use flashyard_service::Orders;
use flashyard_ssd::{Drive, DriveEffect, DriveEvent};
use flashyard_units::{Hertz, SimSpan, SimTime, VolumeId};
use flashyard_workload::SourceError;

/// Names a drive's own events among the world's.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    drive: u16,
}

/// The part of a drive that a virtual drive has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfDrive {
    pub(crate) drive: u16,
    /// Its first block.
    pub(crate) from: u32,
}

impl Wrap<DriveEvent> for Named {
    type Parent = Event;

    #[inline]
    fn wrap(&self, event: DriveEvent) -> Event {
        Event::Drive { drive: self.drive, event }
    }
}

/// The outbox of a drive inside this world.
pub(crate) type Out<'a> = Nested<'a, EventQueue<Event>, Named, DriveEffect>;

/// A server, ready to run once.
pub struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) table: &'static Table,
    pub(crate) runner: Runner<Event>,
    /// Drives of the server; none behind network volumes alone.
    pub(crate) drives: Vec<Drive>,
    /// The part of a drive that each leg of each virtual drive has.
    pub(crate) parts: Vec<OfDrive>,
    /// Network volumes, one for each virtual drive; none behind drives alone.
    pub(crate) networks: Vec<NetworkVolume>,
    /// Services in front of the two.
    pub(crate) services: Vec<Tiered>,
    /// Wishes of a service in its last step.
    pub(crate) orders: Orders,
    /// Servers of each pool of the table, for each group of virtual drives that shares one.
    pub(crate) pools: Vec<Vec<ProcessorPool>>,
    /// Of each pool and group: requests that its next access brings.
    pub(crate) gathered: Vec<Vec<Gathered>>,
    /// Drives of a virtual drive.
    pub(crate) legs: u32,
    /// Time of a core of the host for the services of a request.
    pub(crate) services_time: SimSpan,
    /// Bytes of a virtual drive.
    pub(crate) capacity: u64,
    pub(crate) requests: Slab<Request>,
    /// Whether completions share interrupts.
    pub(crate) coalesces: bool,
    /// Completions that wait for one, by queue of each virtual drive.
    pub(crate) interrupts: Vec<Waiting>,
    /// Interrupts that were shared.
    pub(crate) interrupted: u64,
    pub(crate) effects: Vec<DriveEffect>,
    pub(crate) bench: Bench<Marks, ServerReading, CAUSES>,
    /// Stamp of the last write.
    pub(crate) last_stamp: u64,
    /// Events handled.
    pub(crate) steps: u64,
    pub(crate) fault: Option<ServerError>,
}

impl Server {
    /// Builds storage, pools and streams, each of which asks the virtual drive of its volume.
    ///
    /// Errors: parameters outside their ranges; no stream, or more than 4096; a stream to a volume that is not there.
    pub fn new(config: ServerConfig, plan: RunPlan, streams: Vec<StreamSpec>) -> Result<Self, ServerError> {
        config.validate()?;
        let last = streams.iter().map(|stream| u64::from(stream.volume.get())).max().unwrap_or(0);
        config.check_streams(streams.len(), last)?;
        let (table, legs) = (config.stack.table(), config.legs());
        let numbers = 0..config.drives;
        let drive = |number: u32| {
            let mut drive = Drive::new(config.drive, &[1], plan.seed.wrapping_add(number.into()))?;
            let mut rng = Rng::named(plan.seed, &format!("precondition.{number}"));
            drive.data.overwrite(config.overwrites, &mut rng);
            Ok::<_, ServerError>(drive)
        };
        let drives = match (table.network, table.tiers) {
            (Some(_), None) => Vec::new(),
            _ => (0..config.drives.div_ceil(config.per_drive) * legs).map(drive).collect::<Result<_, _>>()?,
        };
        let part = |number: u32| {
            let from = number % config.per_drive * config.part_slots();
            (0..legs).map(move |leg| OfDrive { drive: (number / config.per_drive * legs + leg) as u16, from })
        };
        let network = |network| {
            let rng = |number: u32| Rng::named(plan.seed, &format!("network.{number}"));
            numbers.clone().map(|number| NetworkVolume::new(network, rng(number))).collect()
        };
        let class = table.network.map(|class| config.limits.apply(class));
        let networks = class.map_or_else(Vec::new, network);
        let service = |number: u32| match table.tiers {
            Some(_) => Tiered::latte(Latte::new(config.tiers(number)), config.starts_warm()),
            None => Tiered::chain(config.chain.build(&config.leg_info()), config.chain.keeps_versions()),
        };
        let has_services = table.tiers.is_some() || table.is_remote() || !config.chain.is_empty();
        let services = if has_services { numbers.clone().map(service).collect() } else { Vec::new() };
        let pools = table.pools.iter().map(|pool| {
            let of_legs = if pool.for_each_leg { legs } else { 1 };
            let groups = (config.drives * of_legs).div_ceil(pool.drives);
            let servers = if pool.for_each_queue { pool.servers * config.queues } else { pool.servers };
            vec![ProcessorPool::new(servers, Hertz::new(1)); groups as usize]
        });
        let pools: Vec<_> = pools.collect();
        Ok(Self {
            table,
            gathered: pools.iter().map(|groups| vec![Gathered::default(); groups.len()]).collect(),
            pools,
            capacity: config.capacity(),
            legs,
            services_time: config.chain.time(),
            runner: Runner::default(),
            drives,
            parts: numbers.clone().flat_map(part).collect(),
            networks,
            services,
            orders: Orders::default(),
            requests: Slab::default(),
            coalesces: config.coalescing.completions > 1,
            interrupts: vec![Waiting::default(); (config.drives * config.queues) as usize],
            interrupted: 0,
            effects: Vec::with_capacity(64),
            bench: Bench::new(plan, streams, config.drives as usize),
            last_stamp: 0,
            steps: 0,
            fault: None,
            config,
        })
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
        self.start_services();
        for drive in 0..self.config.drives {
            self.start_stage(SimTime::ZERO, VolumeId::new(drive as u16));
        }
        self.settle(SimTime::ZERO);
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, now: SimTime, event: Event) {
        match event {
            Event::Drive { drive, event } => self.on_drive(now, drive, |drive, now, out| drive.handle(now, event, out)),
            Event::Next { request } => self.go_through(now, request),
            Event::Wake { drive } => self.wake(now, drive),
            Event::Interrupt { place, number } => self.interrupt_due(now, place, number),
            Event::Issue { stream } => self.issue_pending(now, stream),
            Event::Resume { stream } => self.resume(now, stream),
            Event::WarmupEnd => self.begin_window(now),
            Event::Stop => self.stop(now),
        }
        self.settle(now);
    }

    /// Follows the effects of drives until none is left.
    #[inline]
    fn settle(&mut self, now: SimTime) {
        let mut index = 0;
        while index < self.effects.len() {
            match self.effects[index] {
                DriveEffect::FirmwareDone { tag } => self.execute(now, tag),
                DriveEffect::WriteFailed { tag } | DriveEffect::ReadFailed { tag, .. } => {
                    self.fault = Some(ServerError::Failed { drive: self.requests[tag as usize].drive });
                }
                DriveEffect::Completed { tag, at, time } => self.completed(tag, at, &time),
                DriveEffect::Ready
                | DriveEffect::FetchPage { .. }
                | DriveEffect::StorePages { .. }
                | DriveEffect::SegmentsReturned { .. }
                | DriveEffect::SegmentsRecovered { .. } => {}
            }
            index += 1;
        }
        self.effects.clear();
    }

    /// Lets `act` work on one drive with an outbox that leads back here.
    #[inline]
    pub(crate) fn on_drive(&mut self, now: SimTime, number: u16, act: impl FnOnce(&mut Drive, SimTime, &mut Out<'_>)) {
        let wrap = Named { drive: number };
        act(
            &mut self.drives[usize::from(number)],
            now,
            &mut Nested::new(&mut self.runner.queue, wrap, &mut self.effects),
        );
    }

    /// Whether everything that counts has completed.
    pub(crate) fn is_over(&self) -> bool {
        self.bench.is_idle() && self.bench.ended.is_some()
    }
}

impl Streamed<CAUSES> for Server {
    type Marks = Marks;
    type Reading = ServerReading;

    #[inline]
    fn bench(&self) -> &Bench<Marks, ServerReading, CAUSES> {
        &self.bench
    }

    #[inline]
    fn bench_mut(&mut self) -> &mut Bench<Marks, ServerReading, CAUSES> {
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
            self.fault = Some(ServerError::NothingMeasured { warmup: self.bench.plan.warmup });
            return;
        }
        self.close_window(now);
    }

    fn fail(&mut self, error: SourceError) {
        self.fault = Some(error.into());
    }

    fn under_way(&self) -> impl Iterator<Item = SimTime> {
        self.requests.iter().filter(|(_, request)| request.role == Role::Guest).map(|(_, request)| request.issued)
    }

    fn marks(&self, now: SimTime) -> Marks {
        Marks {
            interrupts: self.interrupted,
            ..Marks::of(&self.drives, &self.services, &self.networks, &self.pools, now)
        }
    }

    fn reading(&mut self, at: SimTime) -> ServerReading {
        ServerReading::of(&self.bench.totals, at)
    }
}
