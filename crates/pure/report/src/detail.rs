//! The report of a run beyond the figures of `run --json`: distributions, causes of latency and series over time. The
//! files of `--out` and the HTML page are made from this.

use crate::RunReport;
use serde::Serialize;

/// Where the time of a request goes, in the order in which a request meets them.
pub const CAUSES: [Cause; 10] = [
    Cause { key: "host", label: "Host software", note: "submission and completion on host cores, and waiting for one" },
    Cause { key: "queue", label: "Submission queue", note: "waiting for a drive core" },
    Cause { key: "core", label: "Drive core", note: "firmware work, with stalls on the drive's own memory" },
    Cause { key: "mapping", label: "Mapping", note: "translation pages read from flash, and waiting for them" },
    Cause { key: "link", label: "Host link", note: "host data over the drive's link, and waiting for its turn" },
    Cause { key: "bus", label: "Flash bus", note: "transfers on the channel, and waiting for the channel" },
    Cause { key: "die", label: "Flash die", note: "array time, and waiting for host commands on the same die" },
    Cause { key: "retry", label: "Read retry", note: "sensing a page again after an error" },
    Cause {
        key: "gc_wait",
        label: "Reclaim wait",
        note: "waiting behind garbage collection, or for the space it frees",
    },
    Cause { key: "inter_ssd", label: "Other drives", note: "messages and memory accesses between drives" },
];

/// A place where requests spend time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Name in files.
    pub key: &'static str,
    /// Name for readers.
    pub label: &'static str,
    /// Time that counts as it.
    pub note: &'static str,
}

/// All that the HTML page and the files of `--out` show.
#[derive(Clone, Debug, Serialize)]
pub struct ReportDocument {
    /// The figures.
    pub report: RunReport,
    /// One entry a design, in the order of `report.designs`.
    pub details: Vec<DesignDetail>,
    /// The meaning of the columns of every split.
    pub causes: [Cause; 10],
    /// The scenario with its profiles, as TOML with a provenance mark on every number.
    pub resolved: String,
    /// Version of the program that wrote the report.
    pub version: String,
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

/// Where the time of requests of one kind went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitRow {
    /// `mean`, `near p50`, `near p99` or `near p99.9`.
    pub at: String,
    /// Requests that the row averages over: all, or those in the histogram bucket of the percentile.
    pub requests: u64,
    /// Their mean latency in microseconds; the parts add up to it. The mean of a bucket is
    /// not the percentile itself: the bucket has faster and slower requests.
    pub latency_us: f64,
    /// Microseconds spent in each of [`CAUSES`].
    pub parts_us: [f64; 10],
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
    /// One entry a drive, busy drives first.
    pub drives: Vec<DriveTimeline>,
}

/// One drive over time. Utilizations are shares from 0 to 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DriveTimeline {
    /// Drive name.
    pub name: String,
    /// Bytes a second read by the drive's workload.
    pub read_bytes_per_s: Vec<f64>,
    /// Bytes a second written by the drive's workload.
    pub write_bytes_per_s: Vec<f64>,
    /// Requests a second completed by the drive's workload.
    pub iops: Vec<f64>,
    /// Mean latency of the requests completed in the interval; `None` when there were none.
    pub latency_mean_us: Vec<Option<f64>>,
    /// Busy share of the cores.
    pub processor_utilization: Vec<f64>,
    /// The part of it that served other drives.
    pub lent_utilization: Vec<f64>,
    /// Share of the drive's commands that the host's driver sends to lenders.
    pub redirected_share: Vec<f64>,
    /// Busy share of the channel buses.
    pub bus_utilization: Vec<f64>,
    /// Busy share of the dies.
    pub die_utilization: Vec<f64>,
    /// Mapping misses for each mapping access; `None` when there were none.
    pub mapping_miss_ratio: Vec<Option<f64>>,
    /// Slots programmed for each slot written by the host; `None` when nothing was written.
    pub write_amplification: Vec<Option<f64>>,
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
