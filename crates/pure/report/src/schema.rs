//! The result schema of `run --json` and `--out`.

use crate::wear::WearResult;
use crate::{Explorer, SplitRow};
use flashyard_stats::LatencyHistogram;
use serde::Serialize;

/// Result of a run: one entry for each design.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Scenario name.
    pub scenario: String,
    /// Subject of the scenario, in its own words.
    pub title: String,
    /// The command that repeats the run, as it was given; empty where no command line began it.
    pub command: String,
    /// Description of each design.
    pub about: Vec<DesignAbout>,
    /// Whether requests are issued as others complete: a slower design is then asked for less, and keeps fewer requests
    /// waiting on flash, so percentiles of its latency do not compare with those of a faster one.
    pub closed_loop: bool,
    /// Warnings for a reader who takes a figure of the window for that of a steady state.
    pub notes: Vec<String>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated seconds, the longest design.
    pub simulated_seconds: f64,
    /// Wall seconds of the whole run. The only figure that two runs need not share.
    pub wall_seconds: f64,
    /// The workload, in words, with every scaling that was applied.
    pub workload: String,
    /// Changes that fitted recorded requests to each drive, with counts; empty for generated ones. Designs in which a
    /// drive's trace went equally far share an entry.
    pub scaling: Vec<String>,
    /// Whether every design was finished; false after Ctrl-C.
    pub complete: bool,
    /// One entry a design, in the order asked for.
    pub designs: Vec<DesignResult>,
    /// Cost and energy of the runs against what they give; absent without a sweep of several points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explorer: Option<Explorer>,
}

/// A design for readers who do not know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DesignAbout {
    /// Its name.
    pub name: String,
    /// Its description in a line.
    pub text: String,
}

/// One half of the time in which load was offered in the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowHalf {
    /// Bytes read and written a second.
    pub throughput_bytes_per_s: f64,
    /// Slots written to flash for each slot written by the host; absent when nothing was written.
    pub write_amplification: Option<f64>,
}

/// Latency from the application's call to its return, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

impl From<&LatencyHistogram> for LatencySummary {
    fn from(latency: &LatencyHistogram) -> Self {
        Self {
            mean: latency.mean_us(),
            p50: latency.percentile_us(0.5),
            p99: latency.percentile_us(0.99),
            p999: latency.percentile_us(0.999),
            max: latency.max_us(),
        }
    }
}

/// Laws that were checked on a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Laws {
    /// Whether all of them held.
    pub hold: bool,
    /// The broken laws, with both sides.
    pub broken: Vec<String>,
}

/// Cost and yield of the search for processors to borrow, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SearchResult {
    /// Scans of peers' descriptors by drives.
    pub scans: u64,
    /// Share of the core time of the drives that scanned, in which a core waited for the lines of a scan.
    pub core_share: f64,
    /// Share of the hosts' core time, likewise.
    pub host_core_share: f64,
    /// Drives with a command that went to a lender.
    pub borrowers: u64,
    /// Mean over these of the time from the start of their stream to that command.
    pub first_redirected_seconds_mean: f64,
    /// The longest of these times.
    pub first_redirected_seconds_max: f64,
}

/// Lending and borrowing by the drives, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HarvestResult {
    /// Processor offers taken.
    pub processors_taken: u64,
    /// Processor offers given back or withdrawn.
    pub processors_returned: u64,
    /// Memory offers taken.
    pub memories_taken: u64,
    /// Memory offers given back, withdrawn or lost.
    pub memories_returned: u64,
    /// Offers that another drive had taken when the borrower's compare-and-swap arrived.
    pub contended: u64,
    /// Withdrawals whose borrower did not let go in time.
    pub forced: u64,
}

/// Figures of one design over the measured window.
#[derive(Clone, Debug, Serialize)]
pub struct DesignResult {
    /// Design name.
    pub name: String,
    /// The design without its point of a sweep.
    pub design: String,
    /// Whether the host computes what drives do in other designs. Energy and price are those of the drives, so such a
    /// design is not ranked by them.
    pub computes_on_host: bool,
    /// Its point of a sweep, as `section.key=value`; empty without a sweep.
    pub point: Vec<String>,
    /// Length of the measured window in seconds.
    pub window_seconds: f64,
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read and written a second.
    pub throughput_bytes_per_s: f64,
    /// Requests a second.
    pub iops: f64,
    /// Latency.
    pub latency_us: LatencySummary,
    /// Where the time went: of the mean request, and of the requests in the histogram buckets of p50, p99 and p99.9.
    pub latency_split: Vec<SplitRow>,
    /// Busy share of the drives' cores (of the host's for OC's firmware: see `host_utilization`).
    pub processor_utilization: f64,
    /// The busier of buses and dies, mean over drives.
    pub flash_utilization: f64,
    /// Mapping misses for each mapping access.
    pub mapping_miss_ratio: f64,
    /// Slots written to flash for each slot written by the host.
    pub write_amplification: f64,
    /// Energy of all drives, without the host.
    pub energy_joules: f64,
    /// Energy for each 10^9 bytes read or written; absent when nothing was moved.
    pub energy_joules_per_gb: Option<f64>,
    /// Both halves of the measured window; empty where it is too short to be halved.
    pub halves: Vec<WindowHalf>,
    /// Price of all drives, without the host.
    pub bom_dollars: f64,
    /// Throughput for each dollar.
    pub throughput_bytes_per_s_per_dollar: f64,
    /// Busy share of the host's cores.
    pub host_utilization: f64,
    /// Share of requests whose firmware or data went to another drive.
    pub redirected_share: f64,
    /// Segments of mapping memory lent at the end.
    pub lent_segments: u64,
    /// Lending and borrowing by the drives.
    pub harvest: HarvestResult,
    /// Cost and yield of the search for processors to borrow.
    pub search: SearchResult,
    /// Laws that must hold on every run.
    pub laws: Laws,
    /// One entry a drive, busy drives first.
    pub drives: Vec<DriveResult>,
}

/// Figures of one drive; the request figures are those of the workload it serves.
#[derive(Clone, Debug, Serialize)]
pub struct DriveResult {
    /// Drive name.
    pub name: String,
    /// Requests completed.
    pub ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes read and written a second.
    pub throughput_bytes_per_s: f64,
    /// Requests a second.
    pub iops: f64,
    /// Latency.
    pub latency_us: LatencySummary,
    /// Busy share of the cores.
    pub processor_utilization: f64,
    /// The part of it that served other drives.
    pub lent_utilization: f64,
    /// Share of its commands that the host's driver sends to lenders, mean over the measured window.
    pub redirected_share: f64,
    /// Swing of that share in the second half of the window: the most less the least of any interval of the timeline.
    pub redirected_swing: f64,
    /// Seconds from the beginning of the window until that share stays within 0.05 of its mean in the second half;
    /// absent when it does not settle.
    pub redirected_settled_seconds: Option<f64>,
    /// The busier of buses and dies.
    pub flash_utilization: f64,
    /// Mapping misses for each mapping access.
    pub mapping_miss_ratio: f64,
    /// Slots written to flash for each slot written to the drive.
    pub write_amplification: f64,
    /// Energy.
    pub energy_joules: f64,
    /// Price.
    pub bom_dollars: f64,
    /// Wear, where it decides how flash is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wear: Option<WearResult>,
}
