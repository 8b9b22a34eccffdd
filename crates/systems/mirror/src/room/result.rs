//! Figures of a mirror: its volume is the run as a whole, its drives are its components.
//!
//! A row of a table here is a metric with the function that computes it; tables, JSON, Parquet and the page follow.

use crate::{DriveCounters, DriveFigures, MirrorFigures, MirrorReading};
use flashyard_blk::Operation;
use flashyard_describe::figures::{buckets, percentiles, split_rows};
use flashyard_ftl::FtlCounters;
use flashyard_report::{
    ByKind, Cause, Component, ComponentTimeline, DRIVE, Declaration, DesignDetail, DesignResult, ExtraTable,
    FLASH_UTILIZATION, Figures, FioDisk, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999,
    LATENCY_P9999, LatencySummary, Laws, MAPPING_MISS_RATIO, Metric, PROCESSOR_UTILIZATION, Part, READ_BYTES,
    THROUGHPUT, Timeline, Unit, Value, WINDOW, WRITE_AMPLIFICATION, WRITE_BYTES,
};
use flashyard_units::{Named, SimSpan};

/// Where the time of a request goes: the ten causes of drives, and the mirror's own.
pub static CAUSES: [Cause; crate::CAUSES] = [
    Cause { key: "host", label: "Host software", note: "the way to the drive and back" },
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
    Cause { key: "inter_ssd", label: "Other drives", note: "messages and memory accesses between drives: none here" },
    Cause {
        key: "other_copy",
        label: "Other copy",
        note: "waiting for the slower copy of a write, or for an attempt that came to nothing",
    },
];

/// Blocks that were copied to a drive that had been away.
pub static BLOCKS_COPIED: Metric = Metric::count(
    "outages.blocks_copied",
    "Blocks copied back",
    "blocks of 4 KiB copied to a drive that had been away, over the whole run",
);

/// Commands that a drive had when its power went.
pub static SENT_AGAIN: Metric = Metric::count(
    "outages.sent_again",
    "Commands sent again",
    "commands that a drive had when its power went, over the whole run",
);

/// The drive's part of all reads.
pub static READ_SHARE: Metric =
    Metric::number("read_share", "Share of reads", Unit::Share, "share of the volume's reads that it served")
        .percent("of all\nreads %");

/// Commands under way.
pub static DEPTH: Metric =
    Metric::number("queue_depth", "Commands under way", Unit::Count, "commands under way, mean over the window")
        .terminal("queue\ndepth", 1.0, 2);

/// The declaration of a mirror: its figures, components and causes.
pub static DECLARATION: Declaration = Declaration {
    metrics: || WHOLE.iter().map(|row| row.0).collect(),
    shown: &[
        &THROUGHPUT,
        &IOPS,
        &LATENCY_MEAN,
        &LATENCY_P50,
        &LATENCY_P99,
        &LATENCY_P999,
        &LATENCY_P9999,
        &LATENCY_MAX,
        &FLASH_UTILIZATION,
        &WRITE_AMPLIFICATION,
    ],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || OF_DRIVE.iter().map(|row| row.0).collect(),
        series: || OVER_TIME.iter().map(|row| row.0).collect(),
        timeline: "timeline",
        shown: &[&READ_SHARE, &DEPTH, &LATENCY_MEAN, &LATENCY_P99, &PROCESSOR_UTILIZATION, &FLASH_UTILIZATION],
    }],
    causes: &CAUSES,
    tables: &[] as &[ExtraTable],
};

/// A run of a mirror, and what several of its figures are made of.
struct Whole<'a> {
    figures: &'a MirrorFigures,
    latency: Option<LatencySummary>,
}

impl Whole<'_> {
    fn write_amplification(&self) -> Option<f64> {
        let ftl: FtlCounters = self.figures.drives.iter().map(|drive| drive.ftl).sum();
        ftl.amplification()
    }

    fn mean(&self, figure: fn(&DriveFigures) -> f64) -> f64 {
        self.figures.drives.iter().map(figure).sum::<f64>() / 2.0
    }
}

type OfWhole = (&'static Metric, fn(&Whole<'_>) -> Value);

/// The figures of the volume, in the order of JSON.
static WHOLE: &[OfWhole] = &[
    (&WINDOW, |run| run.figures.window.as_secs_f64().into()),
    (&IOS, |run| run.figures.ios.into()),
    (&READ_BYTES, |run| run.figures.read_bytes.into()),
    (&WRITE_BYTES, |run| run.figures.write_bytes.into()),
    (&THROUGHPUT, |run| run.figures.throughput().into()),
    (&IOPS, |run| per_second(run.figures.ios, run.figures.window).into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&FLASH_UTILIZATION, |run| run.mean(flash_utilization).into()),
    (&WRITE_AMPLIFICATION, |run| run.write_amplification().into()),
    (&SENT_AGAIN, |run| run.figures.outages.sent_again.into()),
    (&BLOCKS_COPIED, |run| run.figures.outages.blocks_copied.into()),
];

/// A drive of a run.
struct One<'a> {
    drive: &'a DriveFigures,
    latency: Option<LatencySummary>,
    window: SimSpan,
}

type OfDrive = (&'static Metric, fn(&One<'_>) -> Value);

/// The figures of a drive, in the order of JSON and of columns.
static OF_DRIVE: &[OfDrive] = &[
    (&IOS.about("commands completed by the drive"), |one| one.drive.commands.iter().sum::<u64>().into()),
    (&READ_BYTES.about("bytes read from it"), |one| one.drive.read_bytes.into()),
    (&WRITE_BYTES.about("bytes written to it"), |one| one.drive.write_bytes.into()),
    (&IOPS, |one| per_second(one.drive.commands.iter().sum(), one.window).into()),
    (&READ_SHARE, |one| one.drive.read_share.into()),
    (&DEPTH, |one| one.drive.depth.into()),
    (&LATENCY_MEAN, |one| one.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |one| one.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |one| one.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |one| one.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |one| one.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |one| one.latency.map(|latency| latency.max).into()),
    (&PROCESSOR_UTILIZATION, |one| one.drive.processor_utilization.into()),
    (&FLASH_UTILIZATION, |one| flash_utilization(one.drive).into()),
    (&MAPPING_MISS_RATIO, |one| one.drive.cache.misses_per_access().into()),
    (&WRITE_AMPLIFICATION, |one| one.drive.ftl.amplification().into()),
];

type Series = (&'static Metric, fn(&DriveCounters, &DriveCounters, SimSpan) -> Option<f64>);

/// The series of a drive: from its counters at the beginning and at the end of an interval.
static OVER_TIME: &[Series] = &[
    (&IOPS, |begin, end, span| Some(per_second(end.commands - begin.commands, span))),
    (
        &Metric::number("read_bytes_per_s", "Read", Unit::BytesPerSecond, "bytes a second read from it"),
        |begin, end, span| Some(per_second(end.read_bytes - begin.read_bytes, span)),
    ),
    (
        &Metric::number("write_bytes_per_s", "Written", Unit::BytesPerSecond, "bytes a second written to it"),
        |begin, end, span| Some(per_second(end.write_bytes - begin.write_bytes, span)),
    ),
    (&DEPTH, |begin, end, span| Some((end.depth - begin.depth) as f64 / span.as_ps().max(1) as f64)),
    (
        &Metric::count("stale_blocks", "Stale blocks", "blocks of 4 KiB whose copy there is not current, at its end"),
        |_, end, _| Some(end.stale as f64),
    ),
];

fn per_second(amount: u64, span: SimSpan) -> f64 {
    if span == SimSpan::ZERO { 0.0 } else { amount as f64 / span.as_secs_f64() }
}

/// The busier of buses and arrays.
fn flash_utilization(drive: &DriveFigures) -> f64 {
    drive.bus_utilization.max(drive.array_utilization)
}

fn name_of(number: usize) -> String {
    format!("drive-{number}")
}

/// The figures of a run.
pub(super) fn result(figures: &MirrorFigures) -> DesignResult {
    let whole = Whole { figures, latency: LatencySummary::of(&figures.latency) };
    let component = |(number, drive): (usize, &DriveFigures)| {
        let one = One { drive, latency: LatencySummary::of(&drive.latency), window: figures.window };
        let figures: Figures = OF_DRIVE.iter().map(|(metric, of)| (*metric, of(&one))).collect();
        Component { name: name_of(number), figures }
    };
    let name = figures.policy.name().to_owned();
    DesignResult {
        point: Vec::new(),
        design: name.clone(),
        name,
        computes_on_host: false,
        declared: &DECLARATION,
        figures: WHOLE.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: split_rows(&figures.split),
        causes: CAUSES.to_vec(),
        halves: Vec::new(),
        laws: Laws { hold: figures.sanity.holds(), broken: figures.sanity.broken().map(ToString::to_string).collect() },
        components: ByKind::new(&DRIVE, figures.drives.iter().enumerate().map(component).collect()),
    }
}

/// Distributions and series of a run.
pub(super) fn detail(figures: &MirrorFigures, name: &str) -> DesignDetail {
    let readings = &figures.timeline.readings;
    let series = |number: usize| ComponentTimeline {
        name: name_of(number),
        series: OVER_TIME.iter().map(|(metric, of)| (*metric, over_time(readings, number, *of))).collect(),
    };
    DesignDetail {
        name: name.to_owned(),
        latency: buckets(&figures.latency),
        percentiles: percentiles(&figures.latency),
        timeline: Timeline {
            interval_seconds: figures.timeline.interval.as_secs_f64(),
            begin_seconds: readings.windows(2).map(|pair| pair[0].at.as_secs_f64()).collect(),
            end_seconds: readings.last().map_or(0.0, |last| last.at.as_secs_f64()),
            measured_from_seconds: figures.measured_from.as_secs_f64(),
            measured_to_seconds: figures.stopped.as_secs_f64(),
            components: ByKind::new(&DRIVE, vec![series(0), series(1)]),
        },
        ..DesignDetail::default()
    }
}

fn over_time(
    readings: &[MirrorReading],
    number: usize,
    of: fn(&DriveCounters, &DriveCounters, SimSpan) -> Option<f64>,
) -> Vec<Option<f64>> {
    let value = |pair: &[MirrorReading]| {
        let (begin, end) = (&pair[0], &pair[1]);
        of(&begin.drives[number], &end.drives[number], end.at.since(begin.at))
    };
    readings.windows(2).map(value).collect()
}

/// The drives as fio reports disks: every stream is one of the volume, so it has no figures of single disks.
pub(super) fn disks(figures: &MirrorFigures) -> Vec<FioDisk> {
    let ios = |drive: &DriveFigures, operation: Operation| match operation {
        Operation::Read => drive.commands[0],
        _ => drive.commands[1],
    };
    let disk = |(number, drive): (usize, &DriveFigures)| {
        let both = [Operation::Read, Operation::Write].map(|operation| ios(drive, operation));
        FioDisk {
            name: name_of(number),
            ios: both,
            ticks_ms: both.map(|ios| drive.latency.mean_us() * ios as f64 / 1e3),
            utilization: flash_utilization(drive),
        }
    };
    figures.drives.iter().enumerate().map(disk).collect()
}
