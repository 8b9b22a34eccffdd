//! Figures of a server: its guests together are the run as a whole, virtual drives are its components.
//!
//! A row of a table here is a metric with the function that computes it; tables, JSON, Parquet and the page follow.

use crate::figures::{DriveFigures, ServerFigures};
use crate::marks::ServerReading;
use crate::tiers::ServiceCounts;
use flashyard_describe::figures::{buckets, percentiles, split_rows};
use flashyard_ftl::FtlCounters;
use flashyard_measure::Totals;
use flashyard_report::{
    ByKind, Cause, Component, ComponentTimeline, DRIVE, Declaration, DesignDetail, DesignResult, ExtraTable,
    FLASH_UTILIZATION, Figures, FioDisk, IOPS, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999,
    LATENCY_P9999, LatencySummary, Laws, Metric, Part, READ_BYTES, THROUGHPUT, Timeline, Unit, Value, WINDOW,
    WRITE_AMPLIFICATION, WRITE_BYTES,
};
use flashyard_units::{Named, SimSpan};

/// Where the time of a request goes: the ten causes of drives, and those of a stack.
pub static CAUSES: [Cause; crate::CAUSES] = [
    Cause { key: "host", label: "Host software", note: "software before a drive that is in no stack: none here" },
    Cause { key: "queue", label: "Submission queue", note: "waiting for a drive core" },
    Cause { key: "core", label: "Drive core", note: "firmware work, with stalls on the drive's own memory" },
    Cause { key: "mapping", label: "Mapping", note: "translation pages read from flash, and waiting for them" },
    Cause { key: "link", label: "Drive's link", note: "data over the drive's link, and waiting for its turn" },
    Cause { key: "bus", label: "Flash bus", note: "transfers on the channel, and waiting for the channel" },
    Cause { key: "die", label: "Flash die", note: "array time, and waiting for host commands on the same die" },
    Cause { key: "retry", label: "Read retry", note: "sensing a page again after an error" },
    Cause {
        key: "gc_wait",
        label: "Reclaim wait",
        note: "waiting behind garbage collection, or for the space it frees",
    },
    Cause { key: "inter_ssd", label: "Other drives", note: "messages and memory accesses between drives: none here" },
    Cause { key: "guest", label: "Guest", note: "the guest's driver and its interrupt" },
    Cause { key: "stack_host", label: "Stack on the host", note: "exits of the guest, system calls, polling cores" },
    Cause { key: "stack_card", label: "Card", note: "a card's engine, cores and buffer" },
    Cause { key: "network", label: "Network volume", note: "the network and the service behind it" },
    Cause { key: "stack_wait", label: "Stack queue", note: "waiting for a core, an engine or a link of the stack" },
    Cause { key: "service", label: "Held by service", note: "a service waits for room, or for others of its orders" },
];

/// Cores of the host that the stack takes.
pub static HOST_CORES: Metric = Metric::number(
    "host_cores",
    "Host cores",
    Unit::Count,
    "cores of the host that the stack takes, mean over the window: all of those that poll, others while they work",
)
.terminal("host\ncores", 1.0, 2);

/// The price of virtual drives.
pub static PRICE: Metric = Metric::maybe(
    "price",
    "Price",
    Unit::Ratio,
    "each month for 4 TB a virtual drive, in units of a drive behind ristretto, where network volumes are paid by what they do",
)
.or_absent("the source has no price");

/// Interrupts that completions could share.
pub static INTERRUPTS: Metric = Metric::maybe(
    "guest_interrupts_per_s",
    "Interrupts",
    Unit::PerSecond,
    "interrupts of guests that completions could share",
)
.or_absent("each completion has its own, or guests poll");

/// The busiest server of the stack.
pub static STACK_UTILIZATION: Metric = Metric::number(
    "stack_utilization",
    "Stack busy",
    Unit::Share,
    "busy share of the busiest cores, engine or link of the stack",
)
.percent("stack\nbusy %");

/// Hits of a service's reads.
pub static READ_HITS: Metric =
    Metric::maybe("read_hits", "Read hits", Unit::Share, "blocks read from the front end of a service, of all it read")
        .percent("read\nhits %")
        .or_absent("no service, or no read");

/// Where a service's writes go.
pub static FRONT_WRITES: Metric = Metric::maybe(
    "front_writes",
    "Writes to the front",
    Unit::Share,
    "blocks that guests wrote to the front end of a service, of all they wrote",
)
.percent("front\nwrites %")
.or_absent("no service, or no write");

/// Blocks that a service moves besides guests' requests.
pub static PROMOTED: Metric =
    Metric::maybe("promoted_blocks", "Promoted", Unit::Count, "blocks copied to the front end of services")
        .or_absent("no service");

/// See [`PROMOTED`].
pub static FLUSHED: Metric =
    Metric::maybe("flushed_blocks", "Flushed", Unit::Count, "blocks flushed to the back end of services")
        .or_absent("no service");

/// The learned rule against the ends that it learns from.
pub static RIGHT_CHOICES: Metric = Metric::maybe(
    "right_choices",
    "Right choices",
    Unit::Share,
    "writes for which the trained rule names the end of the shorter predicted completion",
)
.percent("right\n%")
.or_absent("no learned rule, or no training so far");

/// The declaration of a server: its figures, components and causes.
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
        &HOST_CORES,
        &STACK_UTILIZATION,
        &READ_HITS,
        &FRONT_WRITES,
        &FLASH_UTILIZATION,
        &WRITE_AMPLIFICATION,
    ],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || OF_DRIVE.iter().map(|row| row.0).collect(),
        series: || OVER_TIME.iter().map(|row| row.0).collect(),
        timeline: "timeline",
        shown: &[&IOPS, &LATENCY_MEAN, &LATENCY_P99, &FLASH_UTILIZATION, &WRITE_AMPLIFICATION],
    }],
    causes: &CAUSES,
    tables: &[] as &[ExtraTable],
};

/// A run of a server, and what several of its figures are made of.
struct Whole<'a> {
    figures: &'a ServerFigures,
    latency: Option<LatencySummary>,
}

impl Whole<'_> {
    fn write_amplification(&self) -> Option<f64> {
        let ftl: FtlCounters = self.figures.drives.iter().map(|drive| drive.ftl).sum();
        ftl.amplification()
    }

    fn mean(&self, figure: fn(&DriveFigures) -> f64) -> f64 {
        self.figures.drives.iter().map(figure).sum::<f64>() / self.figures.drives.len() as f64
    }

    fn sum(&self, figure: fn(&DriveFigures) -> u64) -> u64 {
        self.figures.drives.iter().map(figure).sum()
    }

    /// The sum of a count of all services; absent without any.
    fn counted(&self, figure: fn(&ServiceCounts) -> u64) -> Option<u64> {
        let counts: Option<Vec<_>> = self.figures.drives.iter().map(|drive| drive.service.as_ref()).collect();
        counts.map(|counts| counts.into_iter().map(figure).sum())
    }

    /// One count of all services as a share of itself and another.
    fn share(&self, part: fn(&ServiceCounts) -> u64, other: fn(&ServiceCounts) -> u64) -> Value {
        match (self.counted(part), self.counted(other)) {
            (Some(part), Some(other)) if part + other > 0 => (part as f64 / (part + other) as f64).into(),
            _ => Value::Absent,
        }
    }
}

type OfWhole = (&'static Metric, fn(&Whole<'_>) -> Value);

/// The figures of all guests together, in the order of JSON.
static WHOLE: &[OfWhole] = &[
    (&WINDOW, |run| run.figures.window.as_secs_f64().into()),
    (&IOS, |run| run.figures.ios().into()),
    (&READ_BYTES, |run| run.sum(|drive| drive.read_bytes).into()),
    (&WRITE_BYTES, |run| run.sum(|drive| drive.write_bytes).into()),
    (&THROUGHPUT, |run| run.figures.per_second(run.figures.bytes()).into()),
    (&IOPS, |run| run.figures.per_second(run.figures.ios()).into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&HOST_CORES, |run| run.figures.host_cores.into()),
    (&PRICE, |run| run.figures.price().map_or(Value::Absent, Value::from)),
    (&INTERRUPTS, |run| match run.figures.interrupts {
        0 => Value::Absent,
        count => run.figures.per_second(count).into(),
    }),
    (&STACK_UTILIZATION, |run| run.figures.pools.iter().map(|pool| pool.1).fold(0.0, f64::max).into()),
    (&READ_HITS, |run| run.share(|counts| counts.blocks.hits, |counts| counts.blocks.misses)),
    (&FRONT_WRITES, |run| run.share(|counts| counts.blocks.front_writes, |counts| counts.blocks.back_writes)),
    (&PROMOTED, |run| run.counted(|counts| counts.blocks.promotions).map_or(Value::Absent, Value::from)),
    (&FLUSHED, |run| run.counted(|counts| counts.blocks.flushes).map_or(Value::Absent, Value::from)),
    (&RIGHT_CHOICES, |run| {
        run.share(|counts| counts.learnt.right, |counts| counts.learnt.decisions - counts.learnt.right)
    }),
    (&FLASH_UTILIZATION, |run| run.mean(|drive| drive.flash_utilization).into()),
    (&WRITE_AMPLIFICATION, |run| run.write_amplification().into()),
];

/// A virtual drive of a run.
struct One<'a> {
    run: &'a ServerFigures,
    drive: &'a DriveFigures,
    latency: Option<LatencySummary>,
}

type OfDrive = (&'static Metric, fn(&One<'_>) -> Value);

/// The figures of a virtual drive, in the order of JSON and of columns.
static OF_DRIVE: &[OfDrive] = &[
    (&IOS.about("requests completed"), |one| one.drive.ios.into()),
    (&READ_BYTES.about("bytes read from it"), |one| one.drive.read_bytes.into()),
    (&WRITE_BYTES.about("bytes written to it"), |one| one.drive.write_bytes.into()),
    (&IOPS, |one| one.run.per_second(one.drive.ios).into()),
    (&LATENCY_MEAN, |one| one.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |one| one.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |one| one.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |one| one.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |one| one.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |one| one.latency.map(|latency| latency.max).into()),
    (&FLASH_UTILIZATION, |one| one.drive.flash_utilization.into()),
    (&WRITE_AMPLIFICATION, |one| one.drive.ftl.amplification().into()),
];

type Series = (&'static Metric, fn(&Totals, &Totals, SimSpan) -> Option<f64>);

/// The series of a virtual drive: from its counts at the beginning and at the end of an interval.
static OVER_TIME: &[Series] = &[
    (&IOPS, |begin, end, span| Some(per_second(end.ios - begin.ios, span))),
    (
        &Metric::number("read_bytes_per_s", "Read", Unit::BytesPerSecond, "bytes a second read from it"),
        |begin, end, span| Some(per_second(end.read_bytes - begin.read_bytes, span)),
    ),
    (
        &Metric::number("write_bytes_per_s", "Written", Unit::BytesPerSecond, "bytes a second written to it"),
        |begin, end, span| Some(per_second(end.write_bytes - begin.write_bytes, span)),
    ),
];

fn per_second(amount: u64, span: SimSpan) -> f64 {
    if span == SimSpan::ZERO { 0.0 } else { amount as f64 / span.as_secs_f64() }
}

fn name_of(number: usize) -> String {
    format!("drive-{number}")
}

/// The figures of a run.
pub(super) fn result(figures: &ServerFigures) -> DesignResult {
    let whole = Whole { figures, latency: LatencySummary::of(&figures.latency()) };
    let component = |(number, drive): (usize, &DriveFigures)| {
        let one = One { run: figures, drive, latency: LatencySummary::of(&drive.latency) };
        let figures: Figures = OF_DRIVE.iter().map(|(metric, of)| (*metric, of(&one))).collect();
        Component { name: name_of(number), figures }
    };
    let name = figures.stack.name().to_owned();
    DesignResult {
        point: Vec::new(),
        design: name.clone(),
        name,
        computes_on_host: figures.host_cores > 0.0,
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
pub(super) fn detail(figures: &ServerFigures, name: &str) -> DesignDetail {
    let readings = &figures.timeline.readings;
    let series = |number: usize| ComponentTimeline {
        name: name_of(number),
        series: OVER_TIME.iter().map(|(metric, of)| (*metric, over_time(readings, number, *of))).collect(),
    };
    let latency = figures.latency();
    DesignDetail {
        name: name.to_owned(),
        latency: buckets(&latency),
        percentiles: percentiles(&latency),
        timeline: Timeline {
            interval_seconds: figures.timeline.interval.as_secs_f64(),
            begin_seconds: readings.windows(2).map(|pair| pair[0].at.as_secs_f64()).collect(),
            end_seconds: readings.last().map_or(0.0, |last| last.at.as_secs_f64()),
            measured_from_seconds: figures.measured_from.as_secs_f64(),
            measured_to_seconds: figures.stopped.as_secs_f64(),
            components: ByKind::new(&DRIVE, (0..figures.drives.len()).map(series).collect()),
        },
        ..DesignDetail::default()
    }
}

fn over_time(
    readings: &[ServerReading],
    number: usize,
    of: fn(&Totals, &Totals, SimSpan) -> Option<f64>,
) -> Vec<Option<f64>> {
    let value = |pair: &[ServerReading]| {
        let (begin, end) = (&pair[0], &pair[1]);
        of(&begin.totals[number], &end.totals[number], end.at.since(begin.at))
    };
    readings.windows(2).map(value).collect()
}

/// Virtual drives as fio reports disks.
pub(super) fn disks(figures: &ServerFigures) -> Vec<FioDisk> {
    let disk = |(number, drive): (usize, &DriveFigures)| FioDisk {
        name: name_of(number),
        ios: [drive.ios, 0],
        ticks_ms: [drive.latency.mean_us() * drive.ios as f64 / 1e3, 0.0],
        utilization: drive.flash_utilization,
    };
    figures.drives.iter().enumerate().map(disk).collect()
}
