//! Traces that others replayed on a real drive, with the latency of each request: ours are set beside them as
//! distributions.
//!
//! Source: [C] FlashNet, rannnayy/flashnet-trovi, data/trace_profile/nvme0n1: windows of 50,000 requests of volumes of
//! Tencent's cloud storage. Its authors say "our NVMe device" and name neither the drive nor its state; the replayer is
//! not in the repository. Requests lie below 100 MiB.
//!
//! Definition: a filled drive of data centres of PCIe 3 behind a plain server takes each request at the time at which the
//! replayer submitted it, however many are in flight.

use crate::runs::{Drives, Host, base};
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_describe::{Files, ScenarioError};
use flashyard_report::{ReplayRecord, ReplaySide};
use flashyard_units::SimTime;
use flashyard_workload::{Records, SourceError, records};
use flashyard_xbof::jbof::Design;
use flashyard_xbof::room::{measure_design, of_laws};

/// Directory of the traces, beside the repository.
const TRACES: &str = "../shared/traces/tencent-flashnet";

/// More than a trace unpacks to. [X]
const TRACE_BYTES_MOST: u64 = 1 << 26;

/// The drive that stands for the one that is not named. [A] of its interface and of its years, and no client drive
const PROFILE: &str = "tlc-gen3-1920gb";

/// Quantiles at which two distributions are compared, of a whole. [A] finer than any tolerance
const STEPS: usize = 1000;

/// The replay of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayRun {
    /// Its number among the authors' windows.
    pub(super) name: &'static str,
    window: &'static str,
}

/// Shares of the percentiles. [X]
const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A figure of a replay, with the end of its id.
type Figure = (&'static str, fn(&ReplayRecord) -> f64);

/// All figures. [A] those that the distributions are judged by
pub(super) const FIGURES: [Figure; 10] = [
    ("read-p50", |record| record.replayed_reads.ours_us[0]),
    ("read-p90", |record| record.replayed_reads.ours_us[1]),
    ("read-p99", |record| record.replayed_reads.ours_us[2]),
    ("read-p99-9", |record| record.replayed_reads.ours_us[3]),
    ("read-distance", |record| record.replayed_reads.distance),
    ("write-p50", |record| record.replayed_writes.ours_us[0]),
    ("write-p90", |record| record.replayed_writes.ours_us[1]),
    ("write-p99", |record| record.replayed_writes.ours_us[2]),
    ("write-p99-9", |record| record.replayed_writes.ours_us[3]),
    ("write-distance", |record| record.replayed_writes.distance),
];

/// A row of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    submitted: SimTime,
    measured_us: f64,
    request: BlockRequest,
}

impl ReplayRun {
    /// The traces that there are.
    pub(super) const ALL: [Self; 3] = [
        Self { name: "222", window: "most_size_thpt.222" },
        Self { name: "211", window: "rw_65_35.211" },
        Self { name: "379", window: "rw_75_25.379" },
    ];

    pub(super) fn name(&self) -> String {
        format!("{PROFILE}, replay of Tencent's window {}, filled, behind Linux", self.window)
    }

    fn path(&self) -> String {
        format!("{TRACES}/tencent.cut.per_50k.{}.trace.zst", self.window)
    }

    /// Whether the trace is there.
    pub(super) fn is_there(&self, files: &dyn Files) -> bool {
        files.bytes(&self.path(), TRACE_BYTES_MOST).is_ok()
    }

    pub(super) fn carry_out(
        &self,
        drives: &Drives,
        files: &'static dyn Files,
        observer: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Option<ReplayRecord>, ScenarioError> {
        let mut scenario = base(drives, PROFILE, Host::Linux)?;
        scenario.drive.filled = 1.0;
        let load = &mut scenario.workload;
        (load.pattern, load.size, load.read_share, load.depth) = (None, None, None, None);
        (load.traces, load.repetitions) = (Some(vec![self.path()]), Some(1));
        (scenario.run.warmup, scenario.run.measure) = (None, None);
        // Files live as long as the program; there are three replays.
        let submitted: &'static Submitted = Box::leak(Box::new(Submitted(files)));
        let finished = ScenarioError::unless_stopped(measure_design(&scenario, Design::Conv, submitted, observer))?;
        let Some(figures) = finished else { return Ok(None) };
        of_laws(&figures)?;
        let rows = rows(files, &self.path()).map_err(ScenarioError::Program)?;
        let side = |operation: Operation| {
            let latency = &figures.streams[0].of(operation).latency;
            let mut measured: Vec<f64> =
                rows.iter().filter(|row| row.request.operation == operation).map(|row| row.measured_us).collect();
            measured.sort_by(f64::total_cmp);
            ReplaySide {
                ours_us: SHARES.map(|share| latency.percentile_us(share)),
                measured_us: SHARES.map(|share| quantile(&measured, share)),
                distance: distance(&measured, |share| latency.percentile_us(share)),
            }
        };
        let (replayed_reads, replayed_writes) = (side(Operation::Read), side(Operation::Write));
        Ok(Some(ReplayRecord { name: self.name(), replayed_reads, replayed_writes }))
    }
}

/// The smallest of sorted values that a share of them does not exceed; 0 of none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (whole_from(share * sorted.len() as f64) as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(0.0)
}

/// The next whole number from `value` on, which is positive.
fn whole_from(value: f64) -> f64 {
    let whole = value as u64 as f64;
    if value - whole > 1e-9 { whole + 1.0 } else { whole }
}

/// The largest difference between the share of measured values that do not exceed one of our quantiles, and the share that
/// the quantile is of.
fn distance(measured: &[f64], ours: impl Fn(f64) -> f64) -> f64 {
    let apart = |step: usize| {
        let share = step as f64 / STEPS as f64;
        let below = measured.partition_point(|&us| us <= ours(share));
        (below as f64 / measured.len().max(1) as f64 - share).abs()
    };
    (1..STEPS).map(apart).fold(0.0, f64::max)
}

/// Rows of a trace in the order of their submission: arrival in ms, measured latency in us, 1 for reads, bytes, offset,
/// submission in ms, bytes returned.
///
/// Errors: a file that cannot be read, and a row with its line.
fn rows(files: &dyn Files, name: &str) -> Result<Vec<Row>, String> {
    let bytes = files.bytes(name, TRACE_BYTES_MOST)?;
    let text = String::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))?;
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let row = row(line).ok_or_else(|| format!("{name}, line {}: no row of a replay: {line:?}", number + 1))?;
        rows.push(row);
    }
    rows.sort_by_key(|row| row.submitted);
    Ok(rows)
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let &[_, latency, kind, len, offset, submitted, _] = fields.as_slice() else { return None };
    let milliseconds: f64 = submitted.parse().ok()?;
    let operation = match kind {
        "1" => Operation::Read,
        "0" => Operation::Write,
        _ => return None,
    };
    Some(Row {
        submitted: SimTime::from_ps((milliseconds * 1e9) as u64),
        measured_us: latency.parse().ok()?,
        request: BlockRequest { operation, offset_bytes: offset.parse().ok()?, len_bytes: len.parse().ok()? },
    })
}

/// Files whose traces are read as replays: requests arrive when they were submitted.
struct Submitted(&'static dyn Files);

impl Files for Submitted {
    fn profile(&self, kind: &str, name: &str) -> Result<Option<String>, String> {
        self.0.profile(kind, name)
    }

    fn open_trace(&self, name: &str) -> Result<Records, String> {
        let rows = rows(self.0, name)?;
        let record = |row: Row| TraceRecord { arrival: row.submitted, volume: 0, request: row.request };
        Ok(records(rows.into_iter().map(move |row| Ok::<_, SourceError>(record(row)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_with_its_submission() {
        let row = row("77000.000,2505,1,12288,11403264,77000.281,12288").expect("it is a row");
        assert_eq!((row.submitted.as_ps() / 1_000_000, row.measured_us), (77_000_281, 2505.0));
        assert_eq!(row.request.operation, Operation::Read);
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (11_403_264, 12_288));
        assert!(super::row("77000.000,2505,2,12288,11403264,77000.281,12288").is_none());
        assert!(super::row("1,2,3").is_none());
    }

    #[test]
    fn a_distance_is_that_of_kolmogorov_and_smirnov() {
        let measured: Vec<f64> = (1..=1000).map(f64::from).collect();
        let same = distance(&measured, |share| share * 1000.0);
        assert!(same < 0.002, "{same}");
        // A quarter of ours lies below all that was measured.
        let shifted = distance(&measured, |share| share * 1000.0 - 250.0);
        assert!((shifted - 0.25).abs() < 0.002, "{shifted}");
        assert!(distance(&measured, |_| 5000.0) > 0.99);
        assert!((quantile(&measured, 0.5) - 500.0).abs() < 1e-9 && (quantile(&measured, 0.999) - 999.0).abs() < 1e-9);
    }
}
