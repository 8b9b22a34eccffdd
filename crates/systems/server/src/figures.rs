//! Figures of a run over its measured window, and the laws that it must obey.

use crate::marks::{Marks, ServerReading};
use crate::request::CAUSES;
use crate::stack::{Cores, Stack};
use crate::tiers::{ServiceCounts, Tiered};
use crate::world::Server;
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::FtlCounters;
use flashyard_latte::Counters;
use flashyard_measure::{SanityCheck, SanityReport, StreamFigures, Timeline};
use flashyard_ssd::Drive;
use flashyard_stats::{LatencyHistogram, SplitHistogram};
use flashyard_units::{SimSpan, SimTime};

/// Figures of a virtual drive and of the drives behind it.
#[derive(Clone, Debug)]
pub struct DriveFigures {
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// From the application's call to its return.
    pub latency: LatencyHistogram,
    /// The busier of buses and dies, a mean over the drives behind; zero behind a network volume.
    pub flash_utilization: f64,
    /// Counters of the translation layers of all drives behind; zero behind a network volume.
    pub ftl: FtlCounters,
    /// Counts of its service, if it has one.
    pub service: Option<ServiceCounts>,
    /// Requests that its network volume has carried out.
    pub networked: u64,
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct ServerFigures {
    /// The stack.
    pub stack: Stack,
    /// Length of the measured window.
    pub window: SimSpan,
    /// When it began.
    pub measured_from: SimTime,
    /// When streams stopped issuing.
    pub stopped: SimTime,
    /// Simulated time in all.
    pub simulated: SimSpan,
    /// When the first of several streams ended, where the others went on without it in the measured window.
    pub first_end: Option<SimTime>,
    /// Whether streams issue when requests complete.
    pub closed_loop: bool,
    /// Virtual drives, in order.
    pub drives: Vec<DriveFigures>,
    /// Cores of the host that the stack took, on average.
    pub host_cores: f64,
    /// Interrupts of guests that completions could share; none where each has its own, or guests poll.
    pub interrupts: u64,
    /// Busy share of each pool, with its name.
    pub pools: Vec<(&'static str, f64)>,
    /// Where the time of requests went.
    pub split: SplitHistogram<CAUSES>,
    /// Streams, in the order in which they were given.
    pub streams: Vec<StreamFigures>,
    /// Requests issued, over the whole run.
    pub requests: u64,
    /// Events scheduled, over the whole run.
    pub events: u64,
    /// Laws that must hold.
    pub sanity: SanityReport,
    /// Requests over time, warm-up included.
    pub timeline: Timeline<ServerReading>,
}

impl ServerFigures {
    /// The figures of a run that has ended.
    pub(crate) fn of(mut world: Server) -> Self {
        let (Some(begun), Some(ended)) = (&world.bench.begun, &world.bench.ended) else {
            unreachable!("a run ends with its window closed")
        };
        let (measured_from, end) = (begun.at, ended.at);
        let window = end.since(measured_from);
        let drives = (0..world.config.drives as usize).map(|number| DriveFigures::of(&world, number, window)).collect();
        let servers = |number: usize| {
            let pool = &world.table.pools[number];
            let of_queues = if pool.for_each_queue { world.config.queues } else { 1 };
            u64::from(pool.servers * of_queues) * world.pools[number].len() as u64
        };
        let share = |number: usize| {
            let busy = ended.counters.pools[number] - begun.counters.pools[number];
            (world.table.pools[number].name, busy.ratio_of(window * servers(number)))
        };
        let pools: Vec<_> = (0..world.table.pools.len()).map(share).collect();
        let cores = (0..).zip(world.table.pools).zip(&pools).map(|((number, pool), (_, busy))| {
            let servers = servers(number) as f64;
            match pool.cores {
                Cores::None => 0.0,
                Cores::WhileBusy => servers * busy,
                Cores::Always => servers,
            }
        });
        // The sum of nothing is a negative zero.
        let host_cores = cores.fold(0.0, |sum, own| sum + own);
        let interrupts = ended.counters.interrupts - begun.counters.interrupts;
        let sanity = sanity(&world);
        let timeline = std::mem::take(&mut world.bench.timeline);
        let bench = world.bench;
        Self {
            stack: world.config.stack,
            window,
            measured_from,
            stopped: bench.stopped,
            simulated: end.since(SimTime::ZERO),
            first_end: bench.first_end_alone(),
            closed_loop: bench.streams.iter().any(|stream| stream.pacing.is_closed()),
            drives,
            host_cores,
            interrupts,
            pools,
            split: bench.split(),
            requests: bench.streams.iter().map(|stream| stream.issued).sum(),
            events: world.runner.queue.inserted(),
            sanity,
            timeline,
            streams: bench.streams.into_iter().map(|stream| stream.figures(measured_from)).collect(),
        }
    }

    /// Requests completed by all virtual drives.
    pub fn ios(&self) -> u64 {
        self.drives.iter().map(|drive| drive.ios).sum()
    }

    /// Bytes that all virtual drives have read and written.
    pub fn bytes(&self) -> u64 {
        self.drives.iter().map(|drive| drive.read_bytes + drive.write_bytes).sum()
    }

    /// Latency of all requests.
    pub fn latency(&self) -> LatencyHistogram {
        let mut latency = LatencyHistogram::new();
        self.drives.iter().for_each(|drive| latency.merge(&drive.latency));
        latency
    }

    /// The price of all virtual drives each month for 4 TB, in units of RISTRETTO's drive, with the requests of the window; `None` where
    /// the source has no price.
    pub fn price(&self) -> Option<f64> {
        let price = self.stack.table().price?;
        let of = |drive: &DriveFigures| price.at(self.per_second(drive.networked));
        Some(self.drives.iter().map(of).sum())
    }

    /// `amount` a second over the window.
    pub fn per_second(&self, amount: u64) -> f64 {
        if self.window == SimSpan::ZERO { 0.0 } else { amount as f64 / self.window.as_secs_f64() }
    }
}

impl DriveFigures {
    fn of(world: &Server, number: usize, window: SimSpan) -> Self {
        let mut latency = LatencyHistogram::new();
        let own = || world.bench.streams.iter().filter(|stream| stream.volume.index() == number);
        own().for_each(|stream| latency.merge(&stream.latency()));
        let legs = world.config.legs() as usize;
        let behind = world.parts[number * legs..][..legs].iter().map(|part| usize::from(part.drive));
        let of_legs: Vec<_> = behind.filter_map(|drive| of_drive(world, drive, window)).collect();
        // The sum of nothing is a negative zero.
        let flash_utilization = of_legs.iter().fold(0.0, |sum, &(own, _)| sum + own) / legs as f64;
        let ftl = of_legs.iter().map(|&(_, ftl)| ftl).sum();
        let networked = |marks: &Marks| marks.networks.get(number).copied().unwrap_or(0);
        let (networked, service) = match (&world.bench.begun, &world.bench.ended) {
            (Some(begun), Some(ended)) => {
                let of = ended.counters.services.get(number).zip(begun.counters.services.get(number));
                let carried = networked(&ended.counters) - networked(&begun.counters);
                (carried, of.map(|(to, from)| to.since(from)))
            }
            _ => (0, None),
        };
        Self {
            ios: own().map(|stream| stream.ios).sum(),
            read_bytes: own().map(|stream| stream.read_bytes).sum(),
            write_bytes: own().map(|stream| stream.write_bytes).sum(),
            latency,
            flash_utilization,
            ftl,
            service,
            networked,
        }
    }
}

/// Busy share of the busier of a drive's buses and dies over the window, and its counts of the translation layer; `None` without marks.
fn of_drive(world: &Server, drive: usize, window: SimSpan) -> Option<(f64, FtlCounters)> {
    let (begun, ended) = (world.bench.begun.as_ref()?, world.bench.ended.as_ref()?);
    let geometry = world.drives.get(drive)?.config().nand.geometry;
    let (from, to) = (&begun.counters.drives[drive], &ended.counters.drives[drive]);
    let share = |busy: SimSpan, servers: u32| busy.ratio_of(window * u64::from(servers)).min(1.0);
    let bus = share(to.bus.saturating_sub(from.bus), geometry.channels);
    let die = share(to.die.saturating_sub(from.die), geometry.dies());
    Some((bus.max(die), to.ftl.since(&from.ftl)))
}

/// Checks the laws on a run that has drained.
fn sanity(world: &Server) -> SanityReport {
    let bench = &world.bench;
    let mut checks = bench.ledger.laws().to_vec();
    if world.table.tiers.is_some() {
        let counts = || world.services.iter().filter_map(Tiered::counts);
        let sum = |figure: fn(&Counters) -> u64| counts().map(|of| figure(&of.blocks)).sum::<u64>();
        checks.push(SanityCheck::new(
            "bytes written by guests = bytes of services to either end",
            bench.ledger.write_bytes,
            sum(|counters| counters.front_writes + counters.back_writes) * u64::from(SLOT_BYTES),
        ));
    } else if !world.drives.is_empty() {
        let sum = |figure: fn(&Drive) -> u64| world.drives.iter().map(figure).sum::<u64>();
        // Versions have a map of their own on the drive.
        let copied = (!world.config.chain.keeps_versions()).then(|| {
            SanityCheck::new(
                "bytes written by guests, on each of their copies = bytes taken by drives",
                bench.ledger.write_bytes * u64::from(world.config.chain.copies()),
                sum(|drive| drive.data.counters().write_bytes),
            )
        });
        checks.extend(copied);
        checks.extend([
            SanityCheck::new(
                "bytes read by guests = bytes sent by drives",
                bench.ledger.read_bytes,
                sum(|drive| drive.data.counters().read_bytes),
            ),
            SanityCheck::new(
                "commands executed by drives = commands completed by drives",
                sum(|drive| drive.data.counters().executed),
                sum(|drive| drive.data.counters().completed),
            ),
        ]);
    }
    if let (Some(begun), Some(ended)) = (&bench.begun, &bench.ended) {
        checks.extend(begun.ledger.laws_until(&ended.ledger));
        checks.extend(bench.figure_laws());
    }
    SanityReport { checks }
}
