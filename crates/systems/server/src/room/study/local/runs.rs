//! The runs of the study and how each is set up.

use crate::database::{self, Connection};
use crate::room::SERVERS;
use crate::room::run::figures;
use crate::room::section::{config, of_server};
use crate::stack::{Part, Stack};
use crate::{CAUSES, Server, ServerConfig, ServerFigures};
use flashyard_blk::Operation;
use flashyard_describe::drive::drive;
use flashyard_describe::reproduce::NamedRun;
use flashyard_describe::{Files, PatternName, Scenario, ScenarioError, Size, Time, load};
use flashyard_kernel::Rng;
use flashyard_latte::{CachePolicy, Rule};
use flashyard_measure::{Pacing, RunPlan, StopRule, StreamSpec};
use flashyard_report::text_table;
use flashyard_stats::CAUSE_COUNT;
use flashyard_units::{Bytes, Named, SimSpan, VolumeId};
use flashyard_workload::Synthetic;
use serde::{Deserialize, Serialize};

/// State in which drives begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Written once in sequence.
    Filled,
    /// In the steady state of random overwrites.
    Steady,
}

/// One run: all virtual drives under the same load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackRun {
    pub(super) stack: Stack,
    /// Virtual drives.
    pub(super) drives: u32,
    /// Whether requests are reads; writes otherwise.
    pub(super) reads: bool,
    /// KiB of a request: 4 at random, 128 in sequence.
    pub(super) kib: u32,
    /// Requests in flight of each virtual drive.
    pub(super) depth: u32,
    pub(super) state: State,
    /// Queues of each guest: one for a single job.
    pub(super) queues: u32,
    /// Share of the volume that lies in the cache of a service, in percent; it keeps it.
    pub(super) hits: u32,
    /// Whether the drive is of PCIe 3.
    pub(super) gen3: bool,
    /// The part of the step of load that is measured, from 0: half the load in the first two, all of it in the last two.
    pub(super) part: Option<u32>,
    /// The rule for writes, where it is not the learned one.
    pub(super) rule: Option<FixedRule>,
    /// MB/s of the network volume, where it is not its class's.
    pub(super) network_mb: Option<u64>,
    /// Whether all virtual drives share one drive.
    pub(super) shared: bool,
    /// Reads of a few blocks again and again, with or without a scan beside them, in place of the load above.
    pub(super) scan: Option<Scan>,
    /// A recorded database in place of the load above.
    pub(super) database: Option<Phase>,
}

/// The part of a recording: reads, writes or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    ReadOnly,
    WriteOnly,
    Mixed,
}

impl Phase {
    pub(super) const ALL: [Self; 3] = [Self::ReadOnly, Self::WriteOnly, Self::Mixed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "reads",
            Self::WriteOnly => "writes",
            Self::Mixed => "reads and writes",
        }
    }

    /// Its recording: `tests/live/record-database.sh` makes it.
    const fn recording(self) -> &'static str {
        match self {
            Self::ReadOnly => include_str!("../../../../../../../scenarios/local-storage/databases/oltp_read_only.csv"),
            Self::WriteOnly => {
                include_str!("../../../../../../../scenarios/local-storage/databases/oltp_write_only.csv")
            }
            Self::Mixed => include_str!("../../../../../../../scenarios/local-storage/databases/oltp_read_write.csv"),
        }
    }
}

/// A load that a cache serves well, and perhaps one that it serves badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) policy: CachePolicy,
    /// Whether all blocks are read in sequence beside it.
    pub(super) scans: bool,
}

/// A rule that does not learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixedRule {
    /// The shorter predicted completion.
    Shortest,
    /// By the rates of the two ends, of which the drive's is 4,100 MB/s (\[P\] sheet §4).
    Split,
    /// The drive.
    Front,
}

impl FixedRule {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shortest => "shorter completion",
            Self::Split => "split by rates",
            Self::Front => "drive alone",
        }
    }
}

/// The usual share of hits, in percent. Source: \[P\] sheet §4.
const USUAL_HITS: u32 = 75;
/// Queues of several jobs.
const SEVERAL: u32 = 4;
/// Time between two looks of the learned rule, and of a training: those published, 60 and 5 s, divided by a thousand, as are the
/// lengths of runs. Source: \[A\] requests a second are not scaled, so each period has a thousandth of the requests.
const CHECK: SimSpan = SimSpan::from_ms(60);
/// See [`CHECK`].
const TRAINING: SimSpan = SimSpan::from_ms(5);

impl StackRun {
    /// A run on drives that were written once, with several jobs.
    pub(super) const fn new(stack: Stack, drives: u32, reads: bool, kib: u32, depth: u32) -> Self {
        let (state, queues, hits) = (State::Filled, SEVERAL, USUAL_HITS);
        Self {
            stack,
            drives,
            reads,
            kib,
            depth,
            state,
            queues,
            hits,
            gen3: false,
            part: None,
            rule: None,
            network_mb: None,
            shared: false,
            scan: None,
            database: None,
        }
    }

    /// With one job.
    pub(super) const fn of_one_job(self) -> Self {
        Self { queues: 1, ..self }
    }

    /// On overwritten drives.
    pub(super) const fn steady(self) -> Self {
        Self { state: State::Steady, ..self }
    }

    /// With so many of 100 blocks in the cache.
    pub(super) const fn with_hits(self, hits: u32) -> Self {
        Self { hits, ..self }
    }
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StackRecord {
    /// Name of the run.
    pub(super) name: String,
    /// Thousands of requests a second, of all virtual drives.
    pub(super) thousand_per_second: f64,
    /// 10^9 bytes a second, of all virtual drives.
    pub(super) gigabytes_per_second: f64,
    /// Mean latency in microseconds.
    pub(super) mean_us: f64,
    /// Latency in microseconds that 99, 99.9 and 99.99 of 100 requests do not exceed.
    pub(super) percentiles_us: [f64; 3],
    /// Mean time in microseconds in the guest, on the host, in a card, in the network, waiting for one of them, and held by a service.
    pub(super) parts_us: [f64; 6],
    /// Cores of the host.
    pub(super) host_cores: f64,
    /// Price each month for 4 TB a virtual drive, in units of RISTRETTO's drive; `None` where the source has none.
    pub(super) price: Option<f64>,
    /// Mean latency in microseconds of the first stream, and requests a second of it in thousands.
    pub(super) first_stream: [f64; 2],
    /// Share of writes for which the learned rule is right, in percent; of none without one.
    pub(super) right_percent: Option<f64>,
}

impl StackRun {
    fn scenario(&self, base: &Scenario) -> Scenario {
        let mut scenario = base.clone();
        let is_small = self.kib == 4;
        // LATTE appends to its drive whatever its clients write: theirs are not the drive's random writes. [P] §6.2
        scenario.drive.drawn = self.state == State::Steady && self.stack != Stack::Latte;
        let load = &mut scenario.workload;
        load.pattern = Some(if is_small { PatternName::Uniform } else { PatternName::Sequential });
        load.size = Some(Size(Bytes::new(u64::from(self.kib) * 1024)));
        load.read_share = Some(if self.reads { 1.0 } else { 0.0 });
        load.depth = Some(self.depth);
        // [A] a steady drive for the rhythm of its collection, others for ten thousand requests
        let (warmup, measure) = match (self.state, self.drives) {
            (State::Steady, _) => (1000, 5000),
            // The learned rule trains before the window.
            (State::Filled, 1) if !self.reads && self.stack == Stack::Latte => (500, 200),
            (State::Filled, _) if self.shared => (500, 50),
            (State::Filled, 1) => (10, 200),
            (State::Filled, _) => (10, 50),
        };
        scenario.run.warmup = Some(Time(SimSpan::from_ms(warmup)));
        scenario.run.measure = Some(Time(SimSpan::from_ms(measure)));
        scenario
    }

    fn record(&self, figures: &ServerFigures) -> StackRecord {
        let latency = figures.latency();
        let learnt = figures.drives.iter().filter_map(|drive| drive.service).map(|counts| counts.learnt);
        let (right, decisions) = learnt.fold((0, 0), |sum, own| (sum.0 + own.right, sum.1 + own.decisions));
        let reads = figures.streams[0].of(Operation::Read);
        let mean = figures.split.mean().parts_us;
        StackRecord {
            name: self.name(),
            thousand_per_second: figures.per_second(figures.ios()) / 1e3,
            gigabytes_per_second: figures.per_second(figures.bytes()) / 1e9,
            mean_us: latency.mean_us(),
            percentiles_us: [0.99, 0.999, 0.9999].map(|share| latency.percentile_us(share)),
            parts_us: std::array::from_fn(|part| mean[CAUSE_COUNT + part]),
            host_cores: figures.host_cores,
            price: figures.price(),
            first_stream: [reads.latency.mean_us(), figures.per_second(reads.ios) / 1e3],
            right_percent: (decisions > 0).then(|| 100.0 * right as f64 / decisions as f64),
        }
    }
}

impl StackRecord {
    /// Mean time in a part of the stack, in microseconds.
    pub(super) fn part_us(&self, part: Part) -> f64 {
        self.parts_us[part as usize]
    }
}

impl NamedRun for StackRun {
    type Base = Scenario;
    type Record = StackRecord;

    fn name(&self) -> String {
        let operation = if self.reads { Operation::Read } else { Operation::Write };
        let order = if self.kib == 4 { "random" } else { "sequential" };
        let state = match self.state {
            State::Filled => "filled",
            State::Steady => "steady",
        };
        let Self { stack, drives, kib, depth, .. } = self;
        let (stack, operation) = (stack.name(), operation.name());
        let mut name =
            format!("{stack}, virtual drives {drives}, {order} {operation} of {kib} KiB, depth {depth}, {state}");
        if self.queues == 1 {
            name += ", one job";
        }
        if self.hits != USUAL_HITS {
            name += &format!(", hits {} %", self.hits);
        }
        if self.gen3 {
            name += ", PCIe 3";
        }
        if let Some(rule) = self.rule {
            name += &format!(", {}", rule.name());
        }
        if let Some(rate) = self.network_mb {
            name += &format!(", network {rate} MB/s");
        }
        if self.shared {
            name += ", on one drive";
        }
        if let Some(Scan { policy, scans }) = self.scan {
            let beside = if scans { ", beside a scan" } else { "" };
            name = format!("{stack}, few blocks read again and again, cache {}{beside}", name_of(policy));
        }
        if let Some(phase) = self.database {
            name = format!("{stack}, database, {}", phase.name());
        }
        if let Some(part) = self.part {
            name = format!("{stack}, random writes of 4 KiB, step of load, part {part}");
        }
        name
    }

    fn carry_out(
        &self,
        base: &Scenario,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<StackRecord>, ScenarioError> {
        let scenario = self.scenario(base);
        let drives = if self.gen3 { drive(&gen3(files)?.drive)? } else { drive(&scenario.drive)? };
        let mut config =
            ServerConfig { drives: self.drives, queues: self.queues, drive: drives, ..config(&scenario, self.stack)? };
        config.latte.cache_slots = (config.latte.blocks / 100 * self.hits).max(1);
        config.latte.promotes = false;
        config.is_warm = self.hits > 0;
        if let Rule::Learned(plan) = &mut config.latte.rule {
            (plan.check_every, plan.training) = (CHECK, TRAINING);
        }
        config.limits.bytes_per_us = self.network_mb;
        let network_mb = self.network_mb.or(self.stack.table().network.map(|network| network.bytes_per_us));
        match self.rule {
            Some(FixedRule::Shortest) => config.latte.rule = Rule::Shortest,
            Some(FixedRule::Split) => config.latte.rule = Rule::Split(4100, network_mb.unwrap_or(0)),
            Some(FixedRule::Front) => config.latte.rule = Rule::Front,
            None => {}
        }
        if self.shared {
            config.per_drive = self.drives;
        }
        let finished = match (self.part, self.scan, self.database) {
            (Some(part), ..) => step(&scenario, config, part, observer),
            (None, Some(scan), _) => scanned(&scenario, config, scan, observer),
            (None, None, Some(phase)) => database(&scenario, config, phase, observer),
            (None, None, None) => figures(&scenario, config, None, files, observer),
        };
        let finished = ScenarioError::unless_stopped(finished)?;
        Ok(finished.map(|figures| self.record(&figures)))
    }

    fn table(records: &[StackRecord]) -> String {
        let header = ["run", "requests\nk/s", "rate\nGB/s", "mean\nus", "p99\nus", "p99.9\nus", "host\ncores"];
        let row = |record: &StackRecord| {
            let [p99, p999, _] = record.percentiles_us;
            let mut row = vec![record.name.clone(), format!("{:.1}", record.thousand_per_second)];
            row.push(format!("{:.2}", record.gigabytes_per_second));
            row.extend([record.mean_us, p99, p999, record.host_cores].map(|value| format!("{value:.1}")));
            row
        };
        text_table(&header, records.iter().map(row).collect(), 160)
    }
}

/// The base of runs on drives of PCIe 3: 490 thousand reads a second of a drive, an input. Source: \[P\] sheet §4, drives of 2017.
fn gen3(files: &'static dyn Files) -> Result<Scenario, ScenarioError> {
    let text = include_str!("../../../../../../../scenarios/local-storage/scenario.toml");
    let settings = ["drive.profile=tlc-gen3-4tb", "drive.commands_per_second=490000"].map(str::to_owned);
    let resolved = SERVERS.resolve(text, "scenarios/local-storage/scenario.toml", &settings, files);
    Ok(resolved?.scenario)
}

/// The name of a policy in tables and charts.
pub(super) fn name_of(policy: CachePolicy) -> &'static str {
    match policy {
        CachePolicy::InMap => "s3-fifo in the map",
        CachePolicy::Apart(kind) => kind.name(),
    }
}

/// Connections of the database. Source: \[P\] sheet §4: four threads.
const CONNECTIONS: usize = 4;
/// Blocks of its volume: 3 GiB, which hold the recorded one. \[A\]
const DATABASE: u32 = 3 << 18;

/// Four connections that replay a recording, each from another place on.
fn database(
    scenario: &Scenario,
    mut config: ServerConfig,
    phase: Phase,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<ServerFigures, ScenarioError> {
    config.latte.blocks = DATABASE;
    (config.latte.log_slots, config.latte.cache_slots) = (DATABASE, DATABASE / 100 * USUAL_HITS);
    (config.latte.promotes, config.is_warm) = (true, true);
    let steps =
        database::parse(phase.recording()).map_err(|error| ScenarioError::value("database", error.to_string()))?;
    let connection = |number: usize| Connection::new(steps.clone(), number, CONNECTIONS);
    let stream = |source| StreamSpec::new(VolumeId::new(0), Box::new(source), Pacing::Thinking);
    let streams = (0..CONNECTIONS).filter_map(connection).map(stream).collect();
    let (warmup, measured) = (SimSpan::from_ms(200), SimSpan::from_secs(1));
    let plan =
        RunPlan { warmup, stop: StopRule::After(measured), ends_together: false, depth: None, seed: scenario.seed };
    Server::new(config, plan, streams).map_err(of_server)?.run(observer).map_err(of_server)
}

/// Blocks of the volume of a scan: a twentieth of them are the cache, and the scan goes over them twice within the run. \[A\]
const SCANNED: u32 = 1 << 16;
/// Shares of the blocks that are hot, and of the reads that are for them: a cache holds all that is hot. \[A\]
const HOT: [f64; 2] = [0.04, 0.9];
/// Reads a second of the scan, of 128 KiB: 131 MB/s. Source: \[A\] a backup beside a database.
const SCAN_RATE: f64 = 1000.0;

/// 32 reads of 4 KiB in flight, and beside them perhaps a scan. Blocks are hot or cold: by Zipf's law the hottest ones lie on few
/// dies, which would be all that is seen.
fn scanned(
    scenario: &Scenario,
    mut config: ServerConfig,
    Scan { policy, scans }: Scan,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<ServerFigures, ScenarioError> {
    config.latte.blocks = SCANNED;
    (config.latte.log_slots, config.latte.cache_slots) = (SCANNED, SCANNED / 20);
    (config.latte.promotes, config.latte.policy, config.is_warm) = (true, policy, false);
    let source = |number: u64, pattern, kib: u64, rate: Option<f64>| {
        let mut load = scenario.workload.clone();
        (load.pattern, load.size) = (Some(pattern), Some(Size(Bytes::new(kib << 10))));
        (load.hot_space, load.hot_traffic) = (Some(HOT[0]), Some(HOT[1]));
        (load.read_share, load.requests_per_second) = (Some(1.0), rate);
        load.depth = if rate.is_some() { None } else { Some(32) };
        let spec = load::spec(&load, config.capacity())?;
        let rng = Rng::named(scenario.seed, &format!("scan.{number}"));
        let source = Box::new(Synthetic::new(spec, rng).expect("the load is complete"));
        let pacing = if rate.is_some() { Pacing::Open } else { Pacing::Closed { depth: 32 } };
        Ok::<_, ScenarioError>(StreamSpec::new(VolumeId::new(0), source, pacing))
    };
    let mut streams = vec![source(0, PatternName::HotCold, 4, None)?];
    if scans {
        streams.push(source(1, PatternName::Sequential, 128, Some(SCAN_RATE))?);
    }
    let (warmup, measured) = (SimSpan::from_secs(3), SimSpan::from_secs(1));
    let plan =
        RunPlan { warmup, stop: StopRule::After(measured), ends_together: false, depth: None, seed: scenario.seed };
    Server::new(config, plan, streams).map_err(of_server)?.run(observer).map_err(of_server)
}

/// Requests a second of half the load. Source: \[P\] figure 10: 800 MB/s, then 1.6 GB/s, of random writes of 4 KiB.
const HALF_LOAD: f64 = 800e6 / 4096.0;

/// A part of the step of load: a period of the learned rule each, of writes alone. A second stream of as many requests starts
/// after two of them. Source: \[P\] figure 10: the step comes after two periods.
fn step(
    scenario: &Scenario,
    config: ServerConfig,
    part: u32,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<ServerFigures, ScenarioError> {
    let mut load = scenario.workload.clone();
    load.depth = None;
    load.requests_per_second = Some(HALF_LOAD);
    let spec = load::spec(&load, config.capacity())?;
    let stream = |number: u64| {
        let rng = Rng::named(scenario.seed, &format!("step.{number}"));
        let source = Box::new(Synthetic::new(spec.clone(), rng).expect("the load is complete"));
        let delay = CHECK * (2 * number);
        StreamSpec { delay, ..StreamSpec::new(VolumeId::new(0), source, Pacing::Open) }
    };
    let plan = RunPlan {
        warmup: CHECK * u64::from(part),
        stop: StopRule::After(CHECK),
        ends_together: false,
        depth: None,
        seed: scenario.seed,
    };
    Server::new(config, plan, vec![stream(0), stream(1)]).map_err(of_server)?.run(observer).map_err(of_server)
}

const _: () = assert!(CAUSES == CAUSE_COUNT + 6, "a record has a place for each part of a stack");
