//! Figures of the drives of a JBOF; those of requests are of the workload that a drive serves.

use super::super::steadiness::{Steadiness, steadiness};
use super::wear;
use crate::jbof::{DriveFigures, JbofFigures};
use flashyard_report::{
    ENERGY, FLASH_UTILIZATION, Figures, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999,
    LATENCY_P9999, LatencySummary, MAPPING_MISS_RATIO, Metric, PRICE, PROCESSOR_UTILIZATION, READ_BYTES, THROUGHPUT,
    Unit, Value, WRITE_AMPLIFICATION, WRITE_BYTES,
};
use flashyard_units::SimSpan;

/// Busy share of the cores that served other drives.
pub static LENT_UTILIZATION: Metric =
    Metric::number("lent_utilization", "Cores lent to others", Unit::Share, "the part of it that served other drives")
        .column("lent_busy_share");

/// Share of commands that went to lenders.
pub static REDIRECTED_SHARE: Metric = Metric::number(
    "redirected_share",
    "Commands sent to lenders",
    Unit::Share,
    "share of its commands that the host's driver sends to lenders, mean over the measured window",
);

/// How much that share changes.
pub static REDIRECTED_SWING: Metric = Metric::number(
    "redirected_swing",
    "Swing of this share",
    Unit::Share,
    "the most less the least of that share in any interval of the window's second half",
);

/// When that share has settled.
pub static REDIRECTED_SETTLED: Metric = Metric::maybe(
    "redirected_settled_seconds",
    "This share settled",
    Unit::Seconds,
    "from the window's beginning until the share stays within 0.05 of its mean in the second half; null when it does not \
     settle",
)
.or_absent("never");

/// A metric of a drive, and the function that computes it.
type Measure = (&'static Metric, fn(&DriveRun<'_>) -> Value);

/// The figures of a drive in the order of JSON and of columns; those of wear follow where there are any.
static MEASURES: &[Measure] = &[
    (&IOS.about("requests completed by the drive's workload"), |run| run.drive.ios.into()),
    (&READ_BYTES.about("bytes read by it"), |run| run.drive.read_bytes.into()),
    (&WRITE_BYTES.about("bytes written by it"), |run| run.drive.write_bytes.into()),
    (&THROUGHPUT, |run| run.per_second(run.drive.read_bytes + run.drive.write_bytes).into()),
    (&IOPS, |run| run.per_second(run.drive.ios).into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&PROCESSOR_UTILIZATION, |run| run.drive.processor_utilization.into()),
    (&LENT_UTILIZATION, |run| run.drive.lent_utilization.into()),
    (&REDIRECTED_SHARE, |run| run.redirected.mean.into()),
    (&REDIRECTED_SWING, |run| run.redirected.swing.into()),
    (&REDIRECTED_SETTLED, |run| run.redirected.settled.map(SimSpan::as_secs_f64).into()),
    (&FLASH_UTILIZATION, |run| run.drive.flash_utilization().into()),
    (&MAPPING_MISS_RATIO, |run| run.drive.cache.misses_per_access().into()),
    (&WRITE_AMPLIFICATION, |run| run.drive.ftl.amplification().into()),
    (&ENERGY.titled("Energy"), |run| run.drive.energy.total().as_joules().into()),
    (&PRICE.titled("Price"), |run| run.facts.price.into()),
];

/// A drive, and what several of its figures are made of.
struct DriveRun<'a> {
    facts: &'a DriveFacts,
    drive: &'a DriveFigures,
    latency: Option<LatencySummary>,
    redirected: Steadiness,
    /// Length of the window.
    seconds: f64,
}

impl DriveRun<'_> {
    fn per_second(&self, amount: u64) -> f64 {
        if self.seconds > 0.0 { amount as f64 / self.seconds } else { 0.0 }
    }
}

pub(super) fn metrics() -> Vec<&'static Metric> {
    MEASURES.iter().map(|(metric, _)| *metric).chain(wear::metrics()).collect()
}

/// Facts on a drive that its scenario knows.
pub(super) struct DriveFacts {
    /// Dollars.
    pub(super) price: f64,
    /// Bytes of a page of its flash.
    pub(super) page_bytes: u32,
}

/// The figures of drive `number`.
pub(super) fn figures(figures: &JbofFigures, number: usize, facts: &DriveFacts) -> Figures {
    let drive = &figures.drives[number];
    let run = DriveRun {
        facts,
        drive,
        latency: LatencySummary::of(&drive.latency),
        redirected: steadiness(figures, number),
        seconds: figures.window.as_secs_f64(),
    };
    let of_drive = MEASURES.iter().map(|(metric, of)| (*metric, of(&run)));
    of_drive.chain(wear::figures(drive, facts.page_bytes)).collect()
}
