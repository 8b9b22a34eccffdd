//! Figures of a run of the memory machine.
//!
//! A row of a table here is a metric with the function that computes it; tables, JSON, Parquet and the page follow.

use crate::design::Design;
use crate::run::Figures;
use crate::series::Interval;
use flashyard_describe::figures::{buckets, percentiles};
use flashyard_report::{
    Better, ByKind, Cause, Component, ComponentTimeline, DRIVE, Declaration, DesignDetail, DesignResult, IOPS, IOS,
    LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999, LATENCY_P9999, LatencySummary, Laws, Metric,
    Part, SplitRow, Timeline, Unit, Value, WINDOW,
};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{Named, SimSpan};

static INSTRUCTIONS: Metric =
    Metric::count("instructions", "Instructions", "instructions of all cores, accesses among them");

static PACE: Metric = Metric::number(
    "instructions_per_ns",
    "Instructions a nanosecond",
    Unit::Ratio,
    "instructions of all cores in a nanosecond",
)
.better(Better::More)
.terminal("instr.\n/ns", 1.0, 4);

static ACCESS_LATENCY: Metric = Metric::number(
    "access_latency_ns",
    "Access, mean",
    Unit::Symbol("ns"),
    "mean time from dispatch to data in nanoseconds, over all loads and stores",
)
.better(Better::Less)
.terminal("access\nns", 1.0, 2);

static MISSES: Metric = Metric::number(
    "misses_per_thousand",
    "Misses",
    Unit::Ratio,
    "accesses that no cache answers in a thousand instructions",
)
.terminal("misses\n/1000", 1.0, 2);

static LAST_HITS: Metric = Metric::number(
    "last_level_hits",
    "Hits of the last level",
    Unit::Share,
    "share of the accesses to the last level of cache that it answers",
)
.percent("last\nlevel %");

static DEVICE_HITS: Metric = Metric::maybe(
    "device_hits",
    "Hits of the device",
    Unit::Share,
    "share of the requests whose page is in the internal DRAM or on its way there",
)
.percent("device\nDRAM %");

static COMPUTES: Metric = share("time.computes", "Computing", "share of the cores' time in which they dispatch");
static WINDOW_FULL: Metric =
    share("time.window", "Window full", "share of the cores' time lost to a full reorder window");
static QUEUE_FULL: Metric =
    share("time.queue", "Queue full", "share of the cores' time lost to a full load/store queue");
static REGISTERS: Metric =
    share("time.registers", "No register", "share of the cores' time lost to miss-status registers that are all taken");
static DEPENDENCE: Metric =
    share("time.dependence", "Address not known", "share of the cores' time lost to addresses that come from loads");
static ORDERED: Metric =
    share("time.ordered", "In order", "share of the cores' time lost to accesses that are waited for one at a time");

static FLASH_READS: Metric = Metric::maybe(
    "flash.reads",
    "Pages read",
    Unit::Count,
    "pages of 4 KiB read from flash for accesses, over the whole run",
);
static FLASH_WRITES: Metric = Metric::maybe(
    "flash.writes",
    "Pages written",
    Unit::Count,
    "pages of 4 KiB written to flash for accesses, over the whole run",
);
static ROUNDS: Metric = Metric::maybe(
    "flash.collection_rounds",
    "Rounds of garbage collection",
    Unit::Count,
    "rounds of garbage collection, over the whole run",
);

static COMMITS: Metric =
    Metric::count("commits.count", "Commits", "stores that persist, and flushes, that were waited for");
static COMMIT_MEAN: Metric = Metric::maybe(
    "commits.mean_us",
    "Commit, mean",
    Unit::Symbol("us"),
    "mean time until what a commit makes sure of would outlive a loss of power",
)
.better(Better::Less);
static COMMIT_P99: Metric =
    Metric::maybe("commits.p99_us", "Commit, p99", Unit::Symbol("us"), "the same at p99").better(Better::Less);
static HINTS: Metric = Metric::count("hints", "Hints", "hints that the root port has sent ahead of loads");
static METADATA: Metric = Metric::maybe(
    "device_metadata_reads",
    "Metadata reads",
    Unit::Count,
    "reads of the device's internal DRAM for metadata, by which pages are found",
);
static LENT_HITS: Metric = Metric::maybe(
    "lent.hits",
    "Hits of lent DRAM",
    Unit::Count,
    "requests whose page was in DRAM that an idle drive lends, over the whole run",
);
static LENT_WITHDRAWN: Metric = Metric::maybe(
    "lent.withdrawn",
    "Pages withdrawn",
    Unit::Count,
    "pages that were lost to lenders which became busy, over the whole run",
);

const fn share(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::number(key, title, Unit::Share, about)
}

/// The declaration of the memory machine.
pub(super) static DECLARATION: Declaration = Declaration {
    metrics: || WHOLE.iter().map(|row| row.0).collect(),
    shown: &[
        &PACE,
        &ACCESS_LATENCY,
        &MISSES,
        &LAST_HITS,
        &DEVICE_HITS,
        &LATENCY_MEAN,
        &LATENCY_P50,
        &LATENCY_P99,
        &LATENCY_P999,
        &LATENCY_MAX,
    ],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || vec![&IOS, &LATENCY_MEAN],
        series: || OVER_TIME.iter().map(|row| row.0).collect(),
        timeline: "timeline",
        shown: &[],
    }],
    causes: &CAUSES,
    tables: &[],
};

/// Where the time of a request goes.
static CAUSES: [Cause; 5] = [
    Cause { key: "path", label: "Ports and switches", note: "there and back" },
    Cause { key: "link", label: "Link", note: "bytes of messages, and waiting for those before" },
    Cause { key: "controller", label: "Controller", note: "parsing, the look-up, and metadata that it reads" },
    Cause { key: "dram", label: "DRAM", note: "internal, lent, or all that there is" },
    Cause {
        key: "medium",
        label: "Medium",
        note: "flash or cells: reading, and waiting for programs, erases and collection",
    },
];

/// The mean request over a path by its parts.
fn split(figures: &Figures) -> Option<SplitRow> {
    let (times, requests) = figures.path.filter(|path| path.1 > 0)?;
    // DRAM behind CXL has no controller of a device.
    let [controller, dram, medium] = match &figures.endpoint {
        Some(endpoint) => [endpoint.controller, endpoint.dram, endpoint.medium],
        None => [SimSpan::ZERO, times.device, SimSpan::ZERO],
    };
    let parts = [times.path, times.link, controller, dram, medium];
    let us = |span: SimSpan| span.as_ps() as f64 / 1e6 / requests as f64;
    let parts_us: Vec<f64> = parts.into_iter().map(us).collect();
    Some(SplitRow { at: "mean".to_owned(), requests, latency_us: parts_us.iter().sum(), parts_us })
}

/// A run, and what several of its figures are made of.
struct Whole<'a> {
    figures: &'a Figures,
    latency: Option<LatencySummary>,
}

impl Whole<'_> {
    /// A part of the time of all cores.
    fn part(&self, span: SimSpan) -> f64 {
        span.ratio_of(self.figures.time * u64::from(self.figures.core_count).max(1))
    }
}

/// Latencies, where there are any.
fn some(latencies: &LatencyHistogram) -> Option<&LatencyHistogram> {
    (latencies.count() > 0).then_some(latencies)
}

type OfWhole = (&'static Metric, fn(&Whole<'_>) -> Value);

/// The figures of a run, in the order of JSON.
static WHOLE: &[OfWhole] = &[
    (&WINDOW, |run| run.figures.time.as_secs_f64().into()),
    (&IOS.about("requests to the memory"), |run| run.figures.requests().into()),
    (&INSTRUCTIONS, |run| run.figures.cores.instructions.into()),
    (&PACE, |run| (run.figures.cores.instructions as f64 / run.figures.time.as_ps().max(1) as f64 * 1e3).into()),
    (&ACCESS_LATENCY, |run| {
        let accesses = run.figures.cores.loads + run.figures.cores.stores;
        (run.figures.cores.latency.as_ps() as f64 / 1e3 / accesses.max(1) as f64).into()
    }),
    (&MISSES, |run| run.figures.misses_per_thousand().into()),
    (&LAST_HITS, |run| run.figures.last_level_hits().into()),
    (&DEVICE_HITS, |run| {
        let endpoint = run.figures.endpoint.filter(|endpoint| endpoint.requests > 0);
        endpoint.map(|endpoint| endpoint.hits as f64 / endpoint.requests as f64).into()
    }),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&COMPUTES, |run| {
        let stalls = &run.figures.cores.stalls;
        let lost = stalls.window + stalls.queue + stalls.misses + stalls.dependence + stalls.ordered;
        (1.0 - run.part(lost)).into()
    }),
    (&WINDOW_FULL, |run| run.part(run.figures.cores.stalls.window).into()),
    (&QUEUE_FULL, |run| run.part(run.figures.cores.stalls.queue).into()),
    (&REGISTERS, |run| run.part(run.figures.cores.stalls.misses).into()),
    (&DEPENDENCE, |run| run.part(run.figures.cores.stalls.dependence).into()),
    (&ORDERED, |run| run.part(run.figures.cores.stalls.ordered).into()),
    (&FLASH_READS, |run| run.figures.flash.map(|flash| flash.reads as f64).into()),
    (&FLASH_WRITES, |run| run.figures.flash.map(|flash| flash.writes as f64).into()),
    (&ROUNDS, |run| run.figures.flash.map(|flash| flash.rounds as f64).into()),
    (&COMMITS, |run| run.figures.commits.count().into()),
    (&COMMIT_MEAN, |run| some(&run.figures.commits).map(LatencyHistogram::mean_us).into()),
    (&COMMIT_P99, |run| some(&run.figures.commits).map(|commits| commits.percentile_us(0.99)).into()),
    (&HINTS, |run| run.figures.hinted[0].into()),
    (&METADATA, |run| run.figures.endpoint.map(|endpoint| endpoint.metadata_reads as f64).into()),
    (&LENT_HITS, |run| run.figures.lent.map(|lent| lent.hits as f64).into()),
    (&LENT_WITHDRAWN, |run| run.figures.lent.map(|lent| lent.withdrawn as f64).into()),
];

/// The figures of a run.
pub(super) fn result(design: Design, figures: &Figures) -> DesignResult {
    let whole = Whole { figures, latency: LatencySummary::of(&figures.latencies) };
    let broken = figures.broken();
    let memory = Component {
        name: MEMORY.to_owned(),
        figures: [(&IOS, figures.requests().into()), (&LATENCY_MEAN, whole.latency.map(|latency| latency.mean).into())]
            .into_iter()
            .collect(),
    };
    DesignResult {
        point: Vec::new(),
        design: design.name().to_owned(),
        name: design.name().to_owned(),
        computes_on_host: true,
        declared: &DECLARATION,
        figures: WHOLE.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: split(figures).into_iter().collect(),
        causes: CAUSES.to_vec(),
        halves: Vec::new(),
        laws: Laws { hold: broken.is_empty(), broken },
        components: ByKind::new(&DRIVE, vec![memory]),
    }
}

/// The memory, which the page of a run shows as it shows drives.
const MEMORY: &str = "memory";

type OverTime = (&'static Metric, fn(&Interval, f64) -> Option<f64>);

static OVER_TIME: &[OverTime] = &[
    (&IOPS, |interval, seconds| Some(interval.requests as f64 / seconds)),
    (
        &Metric::number(
            "read_bytes_per_s",
            "Lines",
            Unit::BytesPerSecond,
            "bytes a second of the lines that were asked for",
        ),
        |interval, seconds| Some(interval.bytes() as f64 / seconds),
    ),
    (
        &Metric::number(
            "write_bytes_per_s",
            "Written",
            Unit::BytesPerSecond,
            "none: lines that leave the caches are not waited for",
        ),
        |_, _| Some(0.0),
    ),
    (
        &Metric::maybe("latency_mean_us", "Mean latency", Unit::Symbol("us"), "of the requests of the interval"),
        |interval, _| interval.mean_us(),
    ),
    (
        &Metric::maybe("latency_longest_us", "Longest latency", Unit::Symbol("us"), "the longest of the interval"),
        |interval, _| interval.longest_us(),
    ),
];

fn timeline(figures: &Figures) -> Timeline {
    let (intervals, interval) = (figures.series.intervals(), figures.series.interval().as_secs_f64());
    let [from, to] = figures.measured.map(|time| time.as_secs_f64());
    let begin = |place: usize| place as f64 * interval;
    let series = |(metric, of): &OverTime| {
        let value = |(place, one): (usize, &Interval)| of(one, (begin(place + 1).min(to) - begin(place)).max(1e-12));
        (*metric, intervals.iter().enumerate().map(value).collect())
    };
    let component = ComponentTimeline { name: MEMORY.to_owned(), series: OVER_TIME.iter().map(series).collect() };
    Timeline {
        interval_seconds: interval,
        begin_seconds: (0..intervals.len()).map(begin).collect(),
        end_seconds: to,
        measured_from_seconds: from,
        measured_to_seconds: to,
        components: ByKind::new(&DRIVE, vec![component]),
    }
}

/// Distributions and series of a run.
pub(super) fn detail(figures: &Figures, name: &str) -> DesignDetail {
    DesignDetail {
        name: name.to_owned(),
        latency: buckets(&figures.latencies),
        percentiles: percentiles(&figures.latencies),
        timeline: timeline(figures),
        ..DesignDetail::default()
    }
}
