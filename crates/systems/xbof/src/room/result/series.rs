//! Figures of the drives of a JBOF over time.

use super::super::steadiness::redirected;
use super::drive::{LENT_UTILIZATION, REDIRECTED_SHARE};
use crate::jbof::{DriveCounters, JbofFigures, Reading, Servers};
use flashyard_report::{
    ComponentTimeline, IOPS, MAPPING_MISS_RATIO, Metric, PROCESSOR_UTILIZATION, Unit, WRITE_AMPLIFICATION,
};
use flashyard_units::SimSpan;

/// Bytes a second read by the drive's workload.
pub static READ_RATE: Metric = Metric::number(
    "read_bytes_per_s",
    "Data read",
    Unit::BytesPerSecond,
    "bytes a second read by the drive's workload",
);

/// Bytes a second written by the drive's workload.
pub static WRITE_RATE: Metric = Metric::number(
    "write_bytes_per_s",
    "Data written",
    Unit::BytesPerSecond,
    "bytes a second written by the drive's workload",
);

/// Superblocks that garbage collection and writes can take.
pub static ERASED_SUPERBLOCKS: Metric = Metric::number(
    "erased_superblocks",
    "Erased superblocks",
    Unit::Count,
    "superblocks without data at the end of the interval; garbage collection works while they are few",
);

/// A metric of an interval, and the function that computes it.
type Measure = (&'static Metric, fn(&Interval<'_>) -> Option<f64>);

/// The series of a drive in the order of JSON and of columns.
static MEASURES: &[Measure] = &[
    (&READ_RATE, |one| one.rate(|drive| drive.totals.read_bytes)),
    (&WRITE_RATE, |one| one.rate(|drive| drive.totals.write_bytes)),
    (&IOPS.about("requests a second completed by the drive's workload"), |one| one.rate(|drive| drive.totals.ios)),
    (
        &Metric::maybe(
            "latency_mean_us",
            "Latency, mean",
            Unit::Microseconds,
            "mean latency in microseconds of the requests completed in the interval",
        )
        .or_absent("no request"),
        |one| {
            let ios = one.count(|drive| drive.totals.ios);
            let waited = (one.after.totals.latency_ps - one.before.totals.latency_ps) as f64 / 1e6;
            (ios > 0).then(|| waited / ios as f64)
        },
    ),
    (&PROCESSOR_UTILIZATION.titled("Cores busy"), |one| one.share(|drive| drive.busy, one.servers.cores)),
    (&LENT_UTILIZATION, |one| one.share(|drive| drive.lent, one.servers.cores)),
    (&REDIRECTED_SHARE.about("share of its commands that the host's driver sends to lenders"), |one| {
        Some(redirected(one.begin, one.end, one.number))
    }),
    (
        &Metric::number("bus_utilization", "Buses busy", Unit::Share, "busy share of the channel buses")
            .column("bus_busy_share"),
        |one| one.share(|drive| drive.bus, one.servers.channels),
    ),
    (
        &Metric::number("die_utilization", "Dies busy", Unit::Share, "busy share of the dies").column("die_busy_share"),
        |one| one.share(|drive| drive.die, one.servers.dies),
    ),
    (&MAPPING_MISS_RATIO.or_absent("no mapping access"), |one| {
        ratio(one.count(|drive| drive.misses), one.count(|drive| drive.accesses))
    }),
    (
        &WRITE_AMPLIFICATION
            .about("slots programmed for each slot written by the host")
            .or_absent("nothing was written"),
        |one| ratio(one.count(|drive| drive.programmed_slots), one.count(|drive| drive.host_slots)),
    ),
    (&ERASED_SUPERBLOCKS, |one| Some(f64::from(one.after.erased))),
];

pub(super) fn metrics() -> Vec<&'static Metric> {
    MEASURES.iter().map(|(metric, _)| *metric).collect()
}

/// A drive between two readings.
struct Interval<'a> {
    begin: &'a Reading,
    end: &'a Reading,
    number: usize,
    servers: Servers,
    before: &'a DriveCounters,
    after: &'a DriveCounters,
}

impl Interval<'_> {
    fn span(&self) -> SimSpan {
        self.end.at.since(self.begin.at)
    }

    fn count(&self, counter: fn(&DriveCounters) -> u64) -> u64 {
        counter(self.after) - counter(self.before)
    }

    fn rate(&self, counter: fn(&DriveCounters) -> u64) -> Option<f64> {
        Some(self.count(counter) as f64 / self.span().as_secs_f64())
    }

    fn share(&self, clock: fn(&DriveCounters) -> SimSpan, servers: u32) -> Option<f64> {
        Some(clock(self.after).saturating_sub(clock(self.before)).ratio_of(self.span() * u64::from(servers)).min(1.0))
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The series of drive `number`, called `name`.
pub(crate) fn of_drive(figures: &JbofFigures, number: usize, name: &str) -> ComponentTimeline {
    let servers = figures.drives[number].servers;
    let intervals: Vec<Interval<'_>> = figures
        .timeline
        .readings
        .windows(2)
        .map(|pair| {
            let (begin, end) = (&pair[0], &pair[1]);
            let (before, after) = (&begin.drives[number], &end.drives[number]);
            Interval { begin, end, number, servers, before, after }
        })
        .collect();
    let series = MEASURES.iter().map(|(metric, of)| (*metric, intervals.iter().map(of).collect()));
    ComponentTimeline { name: name.to_owned(), series: series.collect() }
}
