//! Figures of a run over its measured window.

use super::bench::{Bench, DriveMarks, RebuildCounters};
use super::config::Design;
use super::enclosure::Enclosure;
use super::lending::SearchFigures;
use super::policy::Policy;
use super::sanity::sanity;
use super::timeline::Timeline;
use crate::xbof::{HarvestCounters, MemoryLoan};
use flashyard_flash::{MediumCounters, SLOT_BYTES};
use flashyard_ftl::{CacheCounters, FtlCounters};
use flashyard_measure::{SanityReport, Stream, StreamFigures};
use flashyard_ssd::WearStates;
use flashyard_stats::{LatencyHistogram, SplitHistogram};
use flashyard_units::{Picojoules, SimSpan, SimTime};
use flashyard_workload::ScalingNote;

/// Figures of one drive. Request figures are those of the streams that the drive serves: zero for idle ones.
#[derive(Clone, Debug)]
pub struct DriveFigures {
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Latency from the application's call to its return.
    pub latency: LatencyHistogram,
    /// Busy share of the cores.
    pub processor_utilization: f64,
    /// The part of the cores' time that served other drives.
    pub lent_utilization: f64,
    /// Busy share of the busier direction of the drive's link.
    pub link_utilization: f64,
    /// Busy share of the channel buses.
    pub bus_utilization: f64,
    /// Busy share of the dies: array and own transfers.
    pub die_utilization: f64,
    /// Busy share of the arrays: they sense, program or erase.
    pub array_utilization: f64,
    /// Mapping accesses by outcome.
    pub cache: CacheCounters,
    /// Redo records of changes to mapping entries in borrowed memory.
    pub redo_records: u64,
    /// Operations of redirected commands that its agent took from the message queues.
    pub agent_operations: u64,
    /// Flash operations.
    pub medium: MediumCounters,
    /// Translation layer counters.
    pub ftl: FtlCounters,
    /// Reads that did not wait for garbage collection.
    pub rebuilt: RebuildCounters,
    /// Energy by part.
    pub energy: DriveEnergy,
    /// The servers that its utilizations are shares of.
    pub servers: Servers,
    /// How often each superblock was erased since the drive was new.
    pub erase_counts: Vec<u32>,
    /// Wear states of its superblocks, at the end; `None` where wear makes no difference.
    pub wear: Option<WearStates>,
}

/// The servers of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// Cores.
    pub cores: u32,
    /// Channels.
    pub channels: u32,
    /// Dies.
    pub dies: u32,
}

/// Energy of a drive over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriveEnergy {
    /// Cores.
    pub cores: Picojoules,
    /// DRAM.
    pub dram: Picojoules,
    /// Link.
    pub link: Picojoules,
    /// Flash.
    pub flash: Picojoules,
}

impl DriveEnergy {
    /// All parts.
    pub fn total(&self) -> Picojoules {
        self.cores + self.dram + self.link + self.flash
    }
}

impl DriveFigures {
    /// The busier of buses and arrays: an array is busy while it senses, programs or erases. Source: \[A\] xbof §8.2.
    pub fn flash_utilization(&self) -> f64 {
        self.bus_utilization.max(self.array_utilization)
    }
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub struct JbofFigures {
    /// The design.
    pub design: Design,
    /// Length of the measured window.
    pub window: SimSpan,
    /// Simulated time in all.
    pub simulated: SimSpan,
    /// Drives, busy ones first.
    pub drives: Vec<DriveFigures>,
    /// Streams, in the order in which they were given.
    pub streams: Vec<StreamFigures>,
    /// Cores of all hosts.
    pub host_cores: u64,
    /// Busy share of the hosts' cores.
    pub host_utilization: f64,
    /// Requests redirected to a lender, over the whole run.
    pub redirected: u64,
    /// Requests issued, over the whole run.
    pub requests: u64,
    /// Counters of harvesting, over the whole run.
    pub harvest: HarvestCounters,
    /// Cost and yield of looking for lenders, over the whole run.
    pub search: SearchFigures,
    /// Memory lent at the end.
    pub loans: Vec<MemoryLoan>,
    /// Events handled, over the whole run.
    pub events: u64,
    /// Laws that must hold.
    pub sanity: SanityReport,
    /// Where the time of the requests counted went.
    pub split: SplitHistogram,
    /// How things went over time, warm-up included.
    pub timeline: Timeline,
    /// When the measured window began.
    pub measured_from: SimTime,
    /// When streams stopped issuing: the end of the measured window, except where copying back belongs to it.
    pub stopped: SimTime,
    /// When the first of several streams ended, where the others went on without it in the measured window.
    pub first_end: Option<SimTime>,
    /// Whether streams issue when requests complete, so that a slower design is asked for less.
    pub closed_loop: bool,
    /// Bytes of a segment of lent memory.
    pub segment_bytes: u64,
    /// Scaling that fits each stream's recorded requests to its drive; `None` for generated ones.
    pub scaling: Vec<Option<ScalingNote>>,
}

impl JbofFigures {
    /// Requests completed in the window.
    pub fn ios(&self) -> u64 {
        self.drives.iter().map(|drive| drive.ios).sum()
    }

    /// Bytes read and written in the window.
    pub fn bytes(&self) -> u64 {
        self.drives.iter().map(|drive| drive.read_bytes + drive.write_bytes).sum()
    }

    /// Bytes a second over the window.
    pub fn throughput(&self) -> f64 {
        if self.window == SimSpan::ZERO { 0.0 } else { self.bytes() as f64 / self.window.as_secs_f64() }
    }

    /// Latency of all streams.
    pub fn latency(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        self.drives.iter().for_each(|drive| all.merge(&drive.latency));
        all
    }

    /// Mean of a figure over the first `count` drives.
    pub fn mean(&self, count: usize, figure: impl Fn(&DriveFigures) -> f64) -> f64 {
        self.drives.iter().take(count).map(figure).sum::<f64>() / count as f64
    }

    /// Misses for each mapping access, over all drives; absent without an access.
    pub fn mapping_miss_ratio(&self) -> Option<f64> {
        let mut all = CacheCounters::default();
        for drive in &self.drives {
            all.local_hits += drive.cache.local_hits;
            all.offsite_hits += drive.cache.offsite_hits;
            all.misses += drive.cache.misses;
        }
        all.misses_per_access()
    }

    /// Energy of all drives.
    pub fn energy(&self) -> Picojoules {
        self.drives.iter().map(|drive| drive.energy.total()).sum()
    }
}

impl JbofFigures {
    /// The figures of a run that has ended.
    pub(super) fn of(enclosure: &Enclosure, policy: &Policy, mut bench: Bench) -> Self {
        let begun = bench.begun.as_ref().map_or(SimTime::ZERO, |begun| begun.at);
        let timeline = std::mem::take(&mut bench.timeline);
        let figures = Self::without_streams(enclosure, policy, &bench);
        let split = bench.split();
        let streams = bench.streams.into_iter().map(|stream| stream.figures(begun)).collect();
        Self { streams, split, timeline, ..figures }
    }

    fn without_streams(enclosure: &Enclosure, policy: &Policy, bench: &Bench) -> Self {
        let sanity = sanity(bench, enclosure);
        let (Some(begun), Some(ended)) = (&bench.begun, &bench.ended) else {
            unreachable!("a run ends with its window closed")
        };
        let window = ended.at.since(begun.at);
        let (from, to) = (&begun.counters, &ended.counters);
        let host_cores = u64::from(enclosure.config.host.cores) * enclosure.hosts.len() as u64;
        let host = (to.host_busy - from.host_busy).ratio_of(window * host_cores);
        let drives = (0..enclosure.drives.len()).map(|number| {
            DriveFigures::of(enclosure, bench, number, (&from.drives[number], &to.drives[number]), window)
        });
        Self {
            design: enclosure.config.design,
            window,
            simulated: ended.at.since(SimTime::ZERO),
            drives: drives.collect(),
            streams: Vec::new(),
            host_cores,
            host_utilization: host.min(1.0),
            redirected: policy.redirected(),
            requests: bench.streams.iter().map(|stream| stream.issued).sum(),
            harvest: policy.lending().map(|lending| *lending.harvest.counters()).unwrap_or_default(),
            search: policy.search(enclosure.drives.len()),
            loans: policy.lending().map(|lending| lending.harvest.loans().to_vec()).unwrap_or_default(),
            events: enclosure.runner.queue.inserted(),
            sanity,
            split: SplitHistogram::default(),
            timeline: Timeline::default(),
            measured_from: begun.at,
            stopped: bench.stopped,
            first_end: bench.first_end_alone(),
            closed_loop: bench.streams.iter().any(|stream| stream.pacing.is_closed()),
            segment_bytes: u64::from(enclosure.config.harvest.pages_per_segment) * u64::from(SLOT_BYTES),
            scaling: bench.streams.iter().map(|stream| stream.source.scaling()).collect(),
        }
    }
}

impl DriveFigures {
    fn of(
        enclosure: &Enclosure,
        bench: &Bench,
        number: usize,
        (begun, ended): (&DriveMarks, &DriveMarks),
        window: SimSpan,
    ) -> Self {
        let drive = &enclosure.drives[number];
        let geometry = &drive.data.flash.nand.config().geometry;
        let cores = window * u64::from(drive.compute.cores());
        let dies = u64::from(geometry.dies());
        let share = |busy: SimSpan, servers: u64| busy.ratio_of(window * servers).min(1.0);
        let streams = || bench.streams.iter().filter(|stream| stream.volume.index() == number);
        let sum = |figure: fn(&Stream) -> u64| streams().map(figure).sum();
        let mut latency = LatencyHistogram::new();
        streams().for_each(|stream| latency.merge(&stream.latency()));
        let medium = difference(&begun.medium, &ended.medium);
        let cache = ended.cache.since(&begun.cache);
        Self {
            ios: sum(|stream| stream.ios),
            read_bytes: sum(|stream| stream.read_bytes),
            write_bytes: sum(|stream| stream.write_bytes),
            latency,
            processor_utilization: ended.busy.saturating_sub(begun.busy).ratio_of(cores).min(1.0),
            lent_utilization: ended.lent.saturating_sub(begun.lent).ratio_of(cores).min(1.0),
            link_utilization: (ended.link_busy - begun.link_busy).ratio_of(window).min(1.0),
            // Times are booked whole as work begins, so that more than the window may be booked in it.
            bus_utilization: share(ended.bus.saturating_sub(begun.bus), u64::from(geometry.channels)),
            die_utilization: share(ended.die.saturating_sub(begun.die), dies),
            array_utilization: share(ended.array.saturating_sub(begun.array), dies),
            cache,
            redo_records: ended.redo_records - begun.redo_records,
            agent_operations: ended.agent_operations - begun.agent_operations,
            medium,
            ftl: ended.ftl.since(&begun.ftl),
            rebuilt: ended.rebuilt.since(&begun.rebuilt),
            energy: energy(enclosure, number, begun, ended, window),
            servers: Servers { cores: drive.compute.cores(), channels: geometry.channels, dies: geometry.dies() },
            erase_counts: drive.data.ftl.erase_counts().collect(),
            wear: drive.data.wear_states(),
        }
    }
}

/// Cores always powered, DRAM by twice the data and the map, link and flash by use.
/// Source: [A] xbof §9.10 with [P] §4.1 figures.
fn energy(
    enclosure: &Enclosure,
    number: usize,
    begun: &DriveMarks,
    ended: &DriveMarks,
    window: SimSpan,
) -> DriveEnergy {
    let drive = &enclosure.drives[number];
    let config = &enclosure.models[number];
    let cores = config.core_power.over(window * u64::from(drive.compute.cores()));
    let moved = ended.moved_bytes - begun.moved_bytes;
    let lookups = 4 * moved / u64::from(SLOT_BYTES);
    let dram = (2 * moved + lookups) as f64 * 8.0 * config.dram_picojoules_per_bit;
    let link = (ended.link_bytes - begun.link_bytes) as f64 * 8.0 * config.link_picojoules_per_bit;
    let nand = drive.data.flash.nand.config();
    let dies = window * u64::from(nand.geometry.dies());
    let flash =
        nand.currents.energy(ended.array.saturating_sub(begun.array), ended.bus.saturating_sub(begun.bus), dies);
    DriveEnergy { cores, dram: Picojoules::new(dram), link: Picojoules::new(link), flash }
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

#[cfg(test)]
mod tests {
    use super::super::config::Design;
    use super::super::small;
    use super::*;

    /// Requests to each busy drive.
    const REQUESTS: u64 = 200;

    /// Figures of a run, and slots that each drive has sent and taken.
    fn figures(design: Design) -> (JbofFigures, Vec<u64>) {
        let world = small::drained(design, REQUESTS);
        let slots = |drive: &flashyard_ssd::Drive| {
            let counters = drive.data.counters();
            (counters.read_bytes + counters.write_bytes) / u64::from(SLOT_BYTES)
        };
        let moved = world.enclosure.drives.iter().map(slots).collect();
        (JbofFigures::of(&world.enclosure, &world.policy, world.bench), moved)
    }

    fn assert_picojoules(found: Picojoules, expected: f64, what: &str) {
        let found = found.as_joules() * 1e12;
        assert!((found - expected).abs() <= expected.abs() * 1e-9, "{what}: {found} pJ against {expected} pJ");
    }

    #[test]
    fn energy_of_cores_memory_and_links_is_that_of_its_closed_form() {
        for (design, cores) in [(Design::Conv, 2.0), (Design::Shrunk, 1.0), (Design::VhIdeal, 1.0)] {
            let (found, moved) = figures(design);
            assert!(moved[0] > REQUESTS && (moved[2] > 0) == design.is_virtual(), "{design:?}: {moved:?}");
            let seconds = found.window.as_secs_f64();
            for (drive, slots) in found.drives.iter().zip(moved) {
                // 0.4 W each, whether they work or not.
                assert_picojoules(drive.energy.cores, 0.4 * cores * seconds * 1e12, "cores");
                // A slot is written to memory and read from it, and its map entry of 4 bytes is looked up: 4 pJ/bit.
                assert_picojoules(drive.energy.dram, slots as f64 * (2.0 * 4096.0 + 4.0) * 8.0 * 4.0, "memory");
                // It crosses the drive's link once: 5 pJ/bit.
                assert_picojoules(drive.energy.link, slots as f64 * 4096.0 * 8.0 * 5.0, "link");
                let parts = [drive.energy.cores, drive.energy.dram, drive.energy.link, drive.energy.flash];
                assert_picojoules(
                    drive.energy.total(),
                    parts.iter().map(|part| part.as_joules() * 1e12).sum(),
                    "total",
                );
            }
        }
    }

    #[test]
    fn borrowing_costs_link_energy_at_both_ends_and_no_memory_of_the_lender() {
        let (found, moved) = figures(Design::Xbof);
        let link = |drive: usize| found.drives[drive].energy.link.as_joules() * 1e12;
        let payload = |drive: usize| moved[drive] as f64 * 4096.0 * 8.0 * 5.0;
        assert!((0..2).all(|drive| link(drive) > payload(drive)), "messages take the borrower's link");
        assert!((2..4).all(|drive| moved[drive] == 0 && link(drive) > 0.0), "and the lender's");
    }
}
