//! The report of a run beyond the figures of `run --json`: distributions, causes of latency and series over time. The
//! files of `--out` and the HTML page are made from this.

use crate::component::{ByKind, ComponentKind, MetricAbout, Part};
use crate::figure::Metric;
use crate::schema::{Declaration, Declared, RunReport};
use crate::split::Cause;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// All that the HTML page and the files of `--out` show.
#[derive(Clone, Debug, Serialize)]
pub struct ReportDocument {
    /// The figures.
    pub report: RunReport,
    /// One entry a design, in the order of `report.designs`.
    pub details: Vec<DesignDetail>,
    /// The meaning of the columns of every split: all causes that the systems of the runs declare.
    pub causes: Vec<Cause>,
    /// The meaning of every figure.
    pub metrics: Vec<MetricAbout>,
    /// Kinds of the components.
    pub components: Vec<ComponentKind>,
    /// Declarations of these components.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// The scenario with its profiles, as TOML with a provenance mark on every number.
    pub resolved: String,
    /// Version of the program that wrote the report.
    pub version: String,
}

impl ReportDocument {
    /// The document of `report`, whose runs are of `system`. Reports of several systems have the metrics, components and
    /// causes of all of them. `resolved` is the scenario with its profiles, `version` the program's.
    pub fn new(
        system: &'static Declaration,
        mut report: RunReport,
        details: Vec<DesignDetail>,
        resolved: &str,
        version: &str,
    ) -> Self {
        let all = std::iter::once(system).chain(report.declarations());
        let Declared { metrics, parts, causes, .. } = Declared::by(all);
        report.designs.iter_mut().for_each(|design| design.split_by(&causes));
        Self {
            report,
            details,
            causes,
            metrics,
            components: parts.iter().map(|part| *part.kind).collect(),
            parts,
            resolved: resolved.to_owned(),
            version: version.to_owned(),
        }
    }
}

/// Distributions and series of one design.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DesignDetail {
    /// Design name.
    pub name: String,
    /// Latency histogram of the measured window.
    pub latency: Vec<LatencyBucket>,
    /// Latency at the percentiles that the report draws, p50 to p99.99.
    pub percentiles: Vec<Percentile>,
    /// Series over simulated time, warm-up included.
    pub timeline: Timeline,
    /// Loans, by lender and borrower.
    pub lending: Vec<Lending>,
    /// Flash operations and wear of each drive.
    pub flash: Vec<FlashDetail>,
    /// Energy of each part of all drives, in joules: cores, DRAM, link, flash.
    pub energy_joules: EnergyParts,
}

/// One bucket of a latency histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyBucket {
    /// Longest latency in the bucket, in microseconds.
    pub up_to_us: f64,
    /// Requests in it.
    pub requests: u64,
}

/// A latency that a share of the requests does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Share, in percent.
    pub percent: f64,
    /// Latency in microseconds.
    pub latency_us: f64,
}

/// Series over simulated time, in equal intervals from the start of the run to the end of the measured window. All
/// arrays have the length of `begin_seconds`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// Length of an interval in simulated seconds. The last one may be shorter: see `end_seconds`.
    pub interval_seconds: f64,
    /// Begin of each interval.
    pub begin_seconds: Vec<f64>,
    /// End of the last interval.
    pub end_seconds: f64,
    /// When the measured window begins; intervals before it are warm-up.
    pub measured_from_seconds: f64,
    /// When streams stopped issuing: the end of the timeline, except where copying back follows.
    pub measured_to_seconds: f64,
    /// Series of each component.
    #[serde(flatten)]
    pub components: ByKind<ComponentTimeline>,
}

/// One component over time.
#[derive(Clone, Debug, Default)]
pub struct ComponentTimeline {
    /// Its name.
    pub name: String,
    /// A value for each interval, `None` where there was nothing to measure; metrics in the order in which they were
    /// declared.
    pub series: Vec<(&'static Metric, Vec<Option<f64>>)>,
}

impl ComponentTimeline {
    /// The series of `metric`; empty where the system does not record it.
    pub fn of(&self, metric: &Metric) -> &[Option<f64>] {
        self.series.iter().find(|(known, _)| known.key == metric.key).map_or(&[], |(_, values)| values)
    }
}

impl Serialize for ComponentTimeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.series.len()))?;
        map.serialize_entry("name", &self.name)?;
        self.series.iter().try_for_each(|(metric, values)| map.serialize_entry(metric.key, values))?;
        map.end()
    }
}

/// A loan of one drive to another over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lending {
    /// The resource lent.
    pub resource: LentResource,
    /// Index of the lender among the drives.
    pub lender: u32,
    /// Index of the borrower among the drives.
    pub borrower: u32,
    /// Mean amount in each interval of the timeline, in the unit of the resource.
    pub amount: Vec<f64>,
    /// Mean amount over the whole run.
    pub mean: f64,
}

/// A resource that drives lend each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LentResource {
    /// Core time, in cores: 0.5 is half of one core's time.
    Processor,
    /// Mapping memory, in MiB.
    Memory,
}

/// Flash operations of one drive in the measured window, and its wear.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlashDetail {
    /// Pages read.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Page reads repeated after an error.
    pub read_retries: u64,
    /// Erases of superblocks since the drive was new: `(erases, superblocks with that count)`, in rising order.
    pub erase_counts: Vec<(u32, u32)>,
}

/// Energy by part, in joules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EnergyParts {
    /// Drive cores.
    pub cores: f64,
    /// Drive DRAM.
    pub dram: f64,
    /// Links.
    pub link: f64,
    /// Flash.
    pub flash: f64,
}
