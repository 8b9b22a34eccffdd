//! Record of a run of the study: the figures that numbers are made of, and those that explain them.

use super::super::result::CAUSES;
use crate::jbof::{Design, DriveFigures, JbofFigures, StreamFigures};
use flashyard_describe::Choice;
use flashyard_stats::Cause;
use flashyard_units::SimSpan;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// One run. Shares and ratios are numbers from 0; times without a window are of a mean request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The run, by its name.
    pub(super) run: String,
    #[serde(serialize_with = "write_design", deserialize_with = "read_design")]
    pub(super) design: Design,
    /// Bytes a second over the measured window, all drives.
    throughput_bytes_per_s: f64,
    /// Requests completed in the window.
    pub(super) requests: u64,
    pub(super) latency_mean_us: f64,
    /// Microseconds on each cause of latency, by its key with the unit.
    latency_split: BTreeMap<String, f64>,
    pub(super) mapping_miss_ratio: f64,
    /// Requests that went to a lender, over the whole run.
    redirected_share: f64,
    host_busy_share: f64,
    energy_joules: f64,
    /// Loans of a processor over the whole run.
    processors_taken: u64,
    /// The measured window in picoseconds.
    window_ps: u64,
    /// Drives, busy ones first.
    pub(super) drives: Vec<DriveRecord>,
    /// Streams, where a number is made of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) streams: Vec<StreamRecord>,
}

/// One drive over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DriveRecord {
    throughput_bytes_per_s: f64,
    latency_mean_us: f64,
    pub(super) processor_busy_share: f64,
    /// The part of the cores' time that served other drives.
    pub(super) lent_busy_share: f64,
    pub(super) flash_busy_share: f64,
    mapping_miss_ratio: f64,
    /// Bytes read and written.
    pub(super) bytes: u64,
    pub(super) cores: u32,
    /// Mapping accesses that found their page in borrowed memory.
    pub(super) offsite_hits: u64,
    /// Redo records of changes to entries in borrowed memory.
    pub(super) redo_records: u64,
    /// Operations of redirected commands that its agent carried out.
    pub(super) agent_operations: u64,
    pub(super) energy_joules: f64,
    /// The part of it that cores take, working or not.
    pub(super) core_joules: f64,
}

/// One stream of a run whose streams end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StreamRecord {
    /// Bytes of all operations.
    pub(super) bytes: u64,
    /// The part of the window from its start to its last completion, in picoseconds.
    active_ps: u64,
}

impl RunRecord {
    /// The record of the run called `run`; with its streams if `streams` says so.
    pub(super) fn new(run: String, figures: &JbofFigures, streams: bool) -> Self {
        let parts = figures.split.mean().parts_us;
        Self {
            run,
            design: figures.design,
            throughput_bytes_per_s: figures.throughput(),
            requests: figures.ios(),
            latency_mean_us: figures.latency().mean_us(),
            latency_split: CAUSES.iter().zip(parts).map(|(cause, us)| (format!("{}_us", cause.key), us)).collect(),
            mapping_miss_ratio: figures.mapping_miss_ratio().unwrap_or_default(),
            redirected_share: figures.redirected as f64 / figures.requests.max(1) as f64,
            host_busy_share: figures.host_utilization,
            energy_joules: figures.energy().as_joules(),
            processors_taken: figures.harvest.processors_taken,
            window_ps: figures.window.as_ps(),
            drives: figures.drives.iter().map(|drive| DriveRecord::new(drive, figures.window)).collect(),
            streams: figures.streams.iter().filter(|_| streams).map(StreamRecord::new).collect(),
        }
    }

    /// Bytes a second over the window, all drives.
    pub(super) fn throughput(&self) -> f64 {
        self.throughput_bytes_per_s
    }

    /// Length of the measured window.
    pub(super) fn window(&self) -> SimSpan {
        SimSpan::from_ps(self.window_ps)
    }

    /// Bytes read and written in the window.
    pub(super) fn bytes(&self) -> u64 {
        self.drives.iter().map(|drive| drive.bytes).sum()
    }

    /// Mean of a figure over the first `count` drives.
    pub(super) fn mean(&self, count: usize, figure: impl Fn(&DriveRecord) -> f64) -> f64 {
        self.drives.iter().take(count).map(figure).sum::<f64>() / count as f64
    }

    /// Microseconds of a mean request that went to some causes.
    pub(super) fn spent_us(&self, causes: &[Cause]) -> f64 {
        causes.iter().map(|&cause| self.part_us(CAUSES[cause as usize].key)).sum()
    }

    /// Microseconds of a mean request, all causes together.
    pub(super) fn spent_in_all_us(&self) -> f64 {
        CAUSES.iter().map(|cause| self.part_us(cause.key)).sum()
    }

    fn part_us(&self, key: &str) -> f64 {
        self.latency_split.get(&format!("{key}_us")).copied().unwrap_or(f64::NAN)
    }

    /// Core time of all drives in the window, in seconds.
    pub(super) fn core_seconds(&self) -> f64 {
        self.busy_seconds(|drive| drive.processor_busy_share)
    }

    /// The part of it that served other drives.
    pub(super) fn lent_seconds(&self) -> f64 {
        self.busy_seconds(|drive| drive.lent_busy_share)
    }

    fn busy_seconds(&self, share: fn(&DriveRecord) -> f64) -> f64 {
        let seconds = self.window().as_secs_f64();
        self.drives.iter().map(|drive| share(drive) * f64::from(drive.cores) * seconds).sum()
    }
}

impl DriveRecord {
    fn new(drive: &DriveFigures, window: SimSpan) -> Self {
        Self {
            throughput_bytes_per_s: (drive.read_bytes + drive.write_bytes) as f64 / window.as_secs_f64(),
            latency_mean_us: drive.latency.mean_us(),
            processor_busy_share: drive.processor_utilization,
            lent_busy_share: drive.lent_utilization,
            flash_busy_share: drive.flash_utilization(),
            mapping_miss_ratio: drive.cache.miss_ratio(),
            bytes: drive.read_bytes + drive.write_bytes,
            cores: drive.servers.cores,
            offsite_hits: drive.cache.offsite_hits,
            redo_records: drive.redo_records,
            agent_operations: drive.agent_operations,
            energy_joules: drive.energy.total().as_joules(),
            core_joules: drive.energy.cores.as_joules(),
        }
    }
}

impl StreamRecord {
    fn new(stream: &StreamFigures) -> Self {
        let bytes = stream.operations.iter().map(|figures| figures.bytes).sum();
        Self { bytes, active_ps: stream.active.as_ps() }
    }

    /// The part of the window from its start to its last completion.
    pub(super) fn active(&self) -> SimSpan {
        SimSpan::from_ps(self.active_ps)
    }
}

/// A line for each run: throughput, mean latency, misses of the mapping cache and requests that went to lenders.
pub(super) fn table(records: &[RunRecord]) -> String {
    let width = records.iter().map(|record| record.run.chars().count()).max().unwrap_or(0).max("run".len());
    let mut lines = vec![format!("{:width$}  {:>8}  {:>10}  {:>8}  {:>8}", "run", "GB/s", "mean us", "misses", "lent")];
    lines.extend(records.iter().map(|record| {
        format!(
            "{:width$}  {:>8.3}  {:>10.2}  {:>6.1} %  {:>6.1} %",
            record.run,
            record.throughput_bytes_per_s / 1e9,
            record.latency_mean_us,
            100.0 * record.mapping_miss_ratio,
            100.0 * record.redirected_share,
        )
    }));
    lines.join("\n")
}

fn write_design<S: Serializer>(design: &Design, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(design.name())
}

fn read_design<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Design, D::Error> {
    Choice::deserialize(deserializer).map(|design| design.0)
}
