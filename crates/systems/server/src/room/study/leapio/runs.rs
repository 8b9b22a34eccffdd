//! The runs of the study and how each is set up.

use super::loads::{Load, RECOVERY};
use crate::chain::Link;
use crate::room::section::{config, of_server};
use crate::room::services::VERSION_LOG;
use crate::stack::Stack;
use crate::{CAUSES, Server, ServerConfig, ServerFigures};
use flashyard_describe::reproduce::NamedRun;
use flashyard_describe::{Files, Scenario, ScenarioError};
use flashyard_measure::{RunPlan, StopRule};
use flashyard_report::text_table;
use flashyard_services::{Shares, VersionRoom};
use flashyard_stats::{CAUSE_COUNT, LatencyHistogram};
use flashyard_units::{Named, SimSpan};
use serde::{Deserialize, Serialize};

/// Services of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Services {
    None,
    Priority,
    PriorityStripe,
    PriorityMirror,
    /// So many that pass everything on, for their cost.
    Priorities(u32),
    /// Without any, on a volume as long as those with versions.
    Short,
    Versions,
    PriorityVersions,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeapRun {
    pub(super) stack: Stack,
    pub(super) load: Load,
    pub(super) services: Services,
}

/// Drives under stripes and mirrors. Source: \[P\] §5.3 (d), two.
const LEGS: u8 = 2;
/// Blocks of a stripe's chunk: 64 KiB. Source: \[A\] a common default of software RAID.
const CHUNK: u32 = 16;

/// A version, and 4 GiB for what it has alone. \[A\]
const VERSIONS: Link = Link::Versions(VersionRoom { slots: 1, store: 1 << 20, log: VERSION_LOG });
/// Blocks of a drive whose map is in memory: 16 GiB. \[A\]
const SHORT: u32 = 4 << 20;

impl Services {
    /// Whether runs have a short volume.
    fn is_short(self) -> bool {
        matches!(self, Self::Short | Self::Versions | Self::PriorityVersions)
    }

    fn links(self) -> Vec<Link> {
        // The guest's first stream is the search engine.
        let priority = Link::Priority(Shares::published(1));
        // All streams are interactive.
        let open = Link::Priority(Shares { most: 65_536, ..Shares::published(u16::MAX) });
        match self {
            Self::None | Self::Short => Vec::new(),
            Self::Versions => vec![VERSIONS],
            Self::PriorityVersions => vec![priority, VERSIONS],
            Self::Priority => vec![priority],
            Self::PriorityStripe => vec![priority, Link::Stripe { legs: LEGS, chunk: CHUNK }],
            Self::PriorityMirror => vec![priority, Link::Mirror(LEGS)],
            Self::Priorities(count) => vec![open; count as usize],
        }
    }

    fn name(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Short => ", a short volume".to_owned(),
            Self::Versions => ", a version".to_owned(),
            Self::PriorityVersions => ", a version and priority".to_owned(),
            Self::Priority => ", priority".to_owned(),
            Self::PriorityStripe => ", priority and two stripes".to_owned(),
            Self::PriorityMirror => ", priority and two copies".to_owned(),
            Self::Priorities(count) => format!(", {count} services"),
        }
    }
}

impl LeapRun {
    pub(super) const fn new(stack: Stack, load: Load) -> Self {
        Self { stack, load, services: Services::None }
    }

    pub(super) const fn with(self, services: Services) -> Self {
        Self { services, ..self }
    }

    /// 4 KiB reads of one guest.
    pub(super) const fn reads(stack: Stack, depth: u32) -> Self {
        Self::new(stack, Load::Polling { guests: 1, depth, read_percent: 100 })
    }

    fn config(&self, base: &Scenario) -> Result<ServerConfig, ScenarioError> {
        let mut config = ServerConfig { drives: self.load.guests(), ..config(base, self.stack)? };
        config.per_drive = config.drives;
        for (place, link) in config.chain.links.iter_mut().zip(self.services.links()) {
            *place = Some(link);
        }
        if self.services.is_short() {
            config.drive.ftl.logical_slots = SHORT;
            config.drive.ftl.filled_slots = config.drive.ftl.filled_slots.min(SHORT);
        }
        if let Load::Neighbours { isolated: true, .. } = self.load {
            // Half of the channels is half of the drive, for each guest.
            config.per_drive = 1;
            config.drive.nand.geometry.channels /= 2;
            config.drive.ftl.logical_slots /= 2;
            config.drive.ftl.filled_slots = config.drive.ftl.filled_slots.min(config.drive.ftl.logical_slots);
        }
        Ok(config)
    }
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeapRecord {
    /// Name of the run.
    name: String,
    /// Thousands of requests a second of those that are watched.
    pub(super) thousand_per_second: f64,
    /// 10^9 bytes a second of those that are watched, and of batch work.
    pub(super) gigabytes_per_second: [f64; 2],
    /// Mean latency in microseconds of those that are watched.
    pub(super) mean_us: f64,
    /// Latency in microseconds that 50, 99, 99.9 and 99.99 of 100 requests do not exceed.
    pub(super) percentiles_us: [f64; 4],
    /// Mean time in microseconds of all requests: in the guest, on the host, in a card, in the network, waiting for one of them, and held
    /// by a service.
    pub(super) parts_us: [f64; 6],
    /// Busy share of the runtime's core, in percent.
    pub(super) runtime_percent: f64,
    /// Cores of the host.
    pub(super) host_cores: f64,
}

impl LeapRun {
    fn record(&self, figures: &ServerFigures) -> LeapRecord {
        let (watched, batch) = figures.streams.split_at(self.load.watched());
        let all = || watched.iter().flat_map(|stream| &stream.operations);
        let mut latency = LatencyHistogram::new();
        all().for_each(|operation| latency.merge(&operation.latency));
        let bytes = |streams: &[flashyard_measure::StreamFigures]| {
            let bytes = streams.iter().flat_map(|stream| &stream.operations).map(|operation| operation.bytes).sum();
            figures.per_second(bytes) / 1e9
        };
        let mean = figures.split.mean().parts_us;
        LeapRecord {
            name: self.name(),
            thousand_per_second: figures.per_second(all().map(|operation| operation.ios).sum()) / 1e3,
            gigabytes_per_second: [bytes(watched), bytes(batch)],
            mean_us: latency.mean_us(),
            percentiles_us: [0.5, 0.99, 0.999, 0.9999].map(|share| latency.percentile_us(share)),
            parts_us: std::array::from_fn(|part| mean[CAUSE_COUNT + part]),
            runtime_percent: figures.pools.first().map_or(0.0, |(_, busy)| 100.0 * busy),
            host_cores: figures.host_cores,
        }
    }
}

impl NamedRun for LeapRun {
    type Base = Scenario;
    type Record = LeapRecord;

    fn name(&self) -> String {
        format!("{}, {}{}", self.stack.name(), self.load.name(), self.services.name())
    }

    fn carry_out(
        &self,
        base: &Scenario,
        _files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<LeapRecord>, ScenarioError> {
        let config = self.config(base)?;
        let blocks = config.capacity() / 4096;
        let keeps = matches!(self.services, Services::Versions | Services::PriorityVersions);
        let (blocks, window) = if keeps { (blocks / 2, blocks / 2) } else { (blocks, 0) };
        let streams = self.load.streams(blocks, window, base.seed);
        // [A] tails of ten thousand requests and more
        let (warmup, measured) =
            (SimSpan::from_ms(20) + if keeps { RECOVERY } else { SimSpan::ZERO }, SimSpan::from_ms(400));
        let plan =
            RunPlan { warmup, stop: StopRule::After(measured), ends_together: false, depth: None, seed: base.seed };
        let world = Server::new(config, plan, streams).map_err(of_server)?;
        let finished = ScenarioError::unless_stopped(world.run(observer).map_err(of_server))?;
        Ok(finished.map(|figures| self.record(&figures)))
    }

    fn table(records: &[LeapRecord]) -> String {
        let header =
            ["run", "requests\nk/s", "rate\nGB/s", "batch\nGB/s", "mean\nus", "p99\nus", "p99.9\nus", "runtime\n%"];
        let row = |record: &LeapRecord| {
            let [_, p99, p999, _] = record.percentiles_us;
            let mut row = vec![record.name.clone(), format!("{:.1}", record.thousand_per_second)];
            row.extend(record.gigabytes_per_second.map(|rate| format!("{rate:.2}")));
            row.extend([record.mean_us, p99, p999, record.runtime_percent].map(|value| format!("{value:.1}")));
            row
        };
        text_table(&header, records.iter().map(row).collect(), 160)
    }
}

const _: () = assert!(CAUSES == CAUSE_COUNT + 6, "a record has a place for each part of a stack");
