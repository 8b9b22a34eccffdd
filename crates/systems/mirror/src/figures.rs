//! Figures of a run over its measured window, and the laws that it must obey.

use crate::marks::{DriveMarks, MirrorReading};
use crate::policy::ReadPolicy;
use crate::request::CAUSES;
use crate::side::OutageCounters;
use crate::world::Mirror;
use flashyard_flash::MediumCounters;
use flashyard_ftl::{CacheCounters, FtlCounters};
use flashyard_measure::{SanityCheck, SanityReport, StreamFigures, Timeline};
use flashyard_ssd::Drive;
use flashyard_stats::{LatencyHistogram, SplitHistogram};
use flashyard_units::{Picojoules, SimSpan, SimTime};

/// Figures of one drive.
#[derive(Clone, Debug)]
pub struct DriveFigures {
    /// Commands completed: reads, writes, others.
    pub commands: [u64; 3],
    /// Bytes to the host.
    pub read_bytes: u64,
    /// Bytes from the host.
    pub write_bytes: u64,
    /// From sending a command to hearing of its completion.
    pub latency: LatencyHistogram,
    /// Share of the reads of both drives that it served.
    pub read_share: f64,
    /// Commands under way, on average.
    pub depth: f64,
    /// Busy share of the cores.
    pub processor_utilization: f64,
    /// Busy share of the channel buses.
    pub bus_utilization: f64,
    /// Busy share of the dies: array and own transfers.
    pub die_utilization: f64,
    /// Busy share of the arrays: they sense, program or erase.
    pub array_utilization: f64,
    /// Mapping accesses by outcome.
    pub cache: CacheCounters,
    /// Flash operations.
    pub medium: MediumCounters,
    /// Translation layer counters, write amplification among them.
    pub ftl: FtlCounters,
    /// Energy of its flash; that of cores, memory and link is not modelled.
    pub flash_energy: Picojoules,
    /// Blocks whose copy there is not current, at the end.
    pub stale_blocks: u64,
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct MirrorFigures {
    /// The policy.
    pub policy: ReadPolicy,
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
    /// Requests of the volume completed.
    pub ios: u64,
    /// Bytes read from the volume.
    pub read_bytes: u64,
    /// Bytes written to the volume, each once.
    pub write_bytes: u64,
    /// From the application's call to its return.
    pub latency: LatencyHistogram,
    /// Where the time of requests went.
    pub split: SplitHistogram<CAUSES>,
    /// The drives, in order.
    pub drives: [DriveFigures; 2],
    /// Streams, in the order in which they were given.
    pub streams: Vec<StreamFigures>,
    /// Outages, over the whole run.
    pub outages: OutageCounters,
    /// Requests issued, over the whole run.
    pub requests: u64,
    /// Events scheduled, over the whole run.
    pub events: u64,
    /// Laws that must hold.
    pub sanity: SanityReport,
    /// How things went over time, warm-up included.
    pub timeline: Timeline<MirrorReading>,
}

impl MirrorFigures {
    /// The figures of a run that has ended.
    pub(crate) fn of(mut world: Mirror) -> Self {
        let (Some(begun), Some(ended)) = (&world.bench.begun, &world.bench.ended) else {
            unreachable!("a run ends with its window closed")
        };
        let (measured_from, end) = (begun.at, ended.at);
        let window = end.since(measured_from);
        let reads: u64 = (0..2)
            .map(|drive| ended.counters.drives[drive].commands[0] - begun.counters.drives[drive].commands[0])
            .sum();
        let drive = |number: usize| {
            let (from, to) = (&begun.counters.drives[number], &ended.counters.drives[number]);
            DriveFigures::of(&world, number, from, to, window, reads)
        };
        let (drives, sanity) = ([drive(0), drive(1)], sanity(&world));
        let timeline = std::mem::take(&mut world.bench.timeline);
        let bench = world.bench;
        let mut latency = LatencyHistogram::new();
        bench.streams.iter().for_each(|stream| latency.merge(&stream.latency()));
        let sum = |figure: fn(&flashyard_measure::Stream<CAUSES>) -> u64| bench.streams.iter().map(figure).sum();
        Self {
            policy: world.config.policy,
            window,
            measured_from,
            stopped: bench.stopped,
            simulated: end.since(SimTime::ZERO),
            first_end: bench.first_end_alone(),
            closed_loop: bench.streams.iter().any(|stream| stream.pacing.is_closed()),
            ios: sum(|stream| stream.ios),
            read_bytes: sum(|stream| stream.read_bytes),
            write_bytes: sum(|stream| stream.write_bytes),
            latency,
            split: bench.split(),
            drives,
            outages: world.outages,
            requests: sum(|stream| stream.issued),
            events: world.runner.queue.inserted(),
            sanity,
            timeline,
            streams: bench.streams.into_iter().map(|stream| stream.figures(measured_from)).collect(),
        }
    }

    /// Bytes of the volume a second over the window.
    pub fn throughput(&self) -> f64 {
        let bytes = (self.read_bytes + self.write_bytes) as f64;
        if self.window == SimSpan::ZERO { 0.0 } else { bytes / self.window.as_secs_f64() }
    }
}

impl DriveFigures {
    fn of(world: &Mirror, number: usize, begun: &DriveMarks, ended: &DriveMarks, window: SimSpan, reads: u64) -> Self {
        let (drive, side) = (&world.drives[number], &world.sides[number]);
        let nand = drive.data.flash.nand.config();
        let (channels, dies) = (u64::from(nand.geometry.channels), u64::from(nand.geometry.dies()));
        let commands = [0, 1, 2].map(|kind: usize| ended.commands[kind] - begun.commands[kind]);
        // A power cut takes back what was booked for work that did not come about.
        let since = |after: SimSpan, before: SimSpan| SimSpan::from_ps(after.as_ps().saturating_sub(before.as_ps()));
        let share = |after, before, servers: u64| since(after, before).ratio_of(window * servers).min(1.0);
        let (array, bus) = (since(ended.array, begun.array), since(ended.bus, begun.bus));
        Self {
            commands,
            read_bytes: ended.read_bytes - begun.read_bytes,
            write_bytes: ended.write_bytes - begun.write_bytes,
            latency: side.latency.clone(),
            read_share: if reads == 0 { 0.0 } else { commands[0] as f64 / reads as f64 },
            depth: (ended.depth - begun.depth) as f64 / window.as_ps().max(1) as f64,
            processor_utilization: share(ended.busy, begun.busy, u64::from(drive.compute.cores())),
            bus_utilization: share(ended.bus, begun.bus, channels),
            die_utilization: share(ended.die, begun.die, dies),
            array_utilization: share(ended.array, begun.array, dies).min(1.0),
            cache: ended.cache.since(&begun.cache),
            medium: difference(&begun.medium, &ended.medium),
            ftl: ended.ftl.since(&begun.ftl),
            flash_energy: nand.currents.energy(array, bus, window * dies),
            stale_blocks: side.stale.len(),
        }
    }
}

/// Checks the laws on a run that has drained.
fn sanity(world: &Mirror) -> SanityReport {
    let (bench, outages) = (&world.bench, &world.outages);
    let mut checks = bench.ledger.laws().to_vec();
    let of = |figure: fn(&Drive) -> u64| world.drives.each_ref().map(figure);
    // A drive may have taken part of a command that vanished, or moved a block once more to copy it: then these do not hold.
    if *outages == OutageCounters::default() {
        let [first, second] = of(|drive| drive.data.counters().write_bytes);
        let read: u64 = of(|drive| drive.data.counters().read_bytes).iter().sum();
        let written = bench.ledger.write_bytes;
        checks.extend([
            SanityCheck::new("bytes written to the volume = bytes taken by the first drive", written, first),
            SanityCheck::new("bytes written to the volume = bytes taken by the second drive", written, second),
            SanityCheck::new("bytes read from the volume = bytes sent by drives", bench.ledger.read_bytes, read),
        ]);
        let [executed, completed] =
            [of(|drive| drive.data.counters().executed), of(|drive| drive.data.counters().completed)];
        let (executed, completed) = (executed.iter().sum::<u64>(), completed.iter().sum::<u64>());
        checks.push(SanityCheck::new(
            "commands executed by drives = commands completed by drives",
            executed,
            completed,
        ));
    }
    if let (Some(begun), Some(ended)) = (&bench.begun, &bench.ended) {
        checks.extend(begun.ledger.laws_until(&ended.ledger));
        checks.extend(bench.figure_laws());
    }
    SanityReport { checks }
}

fn difference(before: &MediumCounters, after: &MediumCounters) -> MediumCounters {
    MediumCounters {
        page_reads: after.page_reads - before.page_reads,
        page_programs: after.page_programs - before.page_programs,
        block_erases: after.block_erases - before.block_erases,
        read_retries: after.read_retries - before.read_retries,
        bus_bytes: after.bus_bytes - before.bus_bytes,
    }
}
