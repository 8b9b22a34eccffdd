//! Figures of a run of one kernel.
//!
//! A row of the table is a metric with the function that computes it; tables, JSON, Parquet and the page follow.

use crate::GpuFigures;
use flashyard_report::{
    Better, ByKind, Declaration, DesignResult, IOS, LATENCY_MAX, LATENCY_MEAN, Laws, Metric, Unit, Value, WINDOW,
};
use flashyard_units::SimSpan;

static PACE: Metric = Metric::number(
    "accesses_per_us",
    "Accesses a microsecond",
    Unit::Ratio,
    "accesses of all threads in a microsecond",
)
.better(Better::More)
.terminal("accesses\n/us", 1.0, 2);
static CACHE: Metric = Metric::number(
    "cache_hits",
    "Hits of the last level",
    Unit::Share,
    "share of loads that the last-level cache answers",
)
.percent("cache\n%");
static INTERNAL: Metric = Metric::maybe(
    "internal_hits",
    "Hits of internal DRAM",
    Unit::Share,
    "share of an expander's loads whose line was there when they came",
)
.percent("internal\nDRAM %");
static QUEUED: Metric = part("load.port_us", "Load, at the port", "mean time of a load in the queues of the root port");
static MEDIUM: Metric =
    part("load.medium_us", "Load, for the medium", "mean time for which a load waits for the medium of an expander");
static ELSEWHERE: Metric =
    part("load.way_us", "Load, on its way", "mean time of a load over the link, in controllers and in DRAM");
static STORE: Metric = part("store.us", "Store", "mean time for which a store takes a place of the memory queue");
static FULL: Metric = Metric::maybe(
    "memory_queue_full",
    "Memory queue full",
    Unit::Share,
    "share of the time for which the memory queue was full",
)
.percent("queue\nfull %");
static FAULTS: Metric = Metric::count("page_faults", "Page faults", "page faults of the run");
static BATCHES: Metric =
    Metric::count("fault_batches", "Batches of faults", "times that the host's runtime worked for faults");
static HINTS: Metric = Metric::count("hints", "Hints", "hints that the root port sent");
static READS: Metric =
    Metric::count("medium.reads", "Reads of the medium", "reads of the expander's medium, those for hints among them");
static HINTED: Metric =
    Metric::count("medium.hinted_reads", "Reads for hints", "reads of the expander's medium for hints");
static WRITES: Metric =
    Metric::count("medium.writes", "Writes of the medium", "changed frames that went to the medium");
static KEPT: Metric = Metric::count("kept_stores", "Stores kept", "stores that the GPU kept in its own memory");

const fn part(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::maybe(key, title, Unit::Symbol("us"), about).better(Better::Less)
}

/// The declaration of the GPU.
pub(super) static DECLARATION: Declaration = Declaration {
    metrics: || ROWS.iter().map(|row| row.0).collect(),
    shown: &[&PACE, &CACHE, &INTERNAL, &FULL, &LATENCY_MEAN, &LATENCY_MAX],
    parts: &[],
    causes: &[],
    tables: &[],
};

type Row = (&'static Metric, fn(&GpuFigures) -> Value);

fn of_loads(span: SimSpan, figures: &GpuFigures) -> Value {
    let is_port = figures.port.loads_away > SimSpan::ZERO;
    is_port.then(|| span.as_us_f64() / figures.loads_beyond.max(1) as f64).into()
}

fn of_all(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// The figures of a run, in the order of JSON.
static ROWS: &[Row] = &[
    (&WINDOW, |run| run.time.as_secs_f64().into()),
    (&IOS.about("loads and stores of all threads"), |run| (run.loads + run.stores).into()),
    (&PACE, |run| ((run.loads + run.stores) as f64 / run.time.as_us_f64()).into()),
    (&CACHE, |run| of_all(run.cache_hits, run.loads).unwrap_or(0.0).into()),
    (&INTERNAL, |run| of_all(run.expander.hits, run.expander.loads).into()),
    (&LATENCY_MEAN, |run| (run.load_time.as_us_f64() / run.loads_beyond.max(1) as f64).into()),
    (&LATENCY_MAX, |run| run.longest_load.as_us_f64().into()),
    (&QUEUED, |run| of_loads(run.port.loads_queued, run)),
    (&MEDIUM, |run| of_loads(run.expander.load_waited, run)),
    (&ELSEWHERE, |run| of_loads(run.port.loads_away - run.expander.load_waited, run)),
    (&STORE, |run| {
        let sent = run.expander.stores;
        (sent > 0).then(|| run.port.stores_away.as_us_f64() / sent as f64).into()
    }),
    (&FULL, |run| (run.port.loads_away > SimSpan::ZERO).then(|| run.port.full.ratio_of(run.time)).into()),
    (&FAULTS, |run| run.faults.into()),
    (&BATCHES, |run| run.batches.into()),
    (&HINTS, |run| run.port.hints.into()),
    (&READS, |run| run.expander.media_reads.into()),
    (&HINTED, |run| run.expander.hinted_reads.into()),
    (&WRITES, |run| run.expander.media_writes.into()),
    (&KEPT, |run| run.port.diverted.into()),
];

/// The figures of a run.
pub(super) fn result(name: &str, figures: &GpuFigures) -> DesignResult {
    let broken = figures.broken();
    DesignResult {
        point: Vec::new(),
        design: name.to_owned(),
        name: name.to_owned(),
        computes_on_host: true,
        declared: &DECLARATION,
        figures: ROWS.iter().map(|(metric, of)| (*metric, of(figures))).collect(),
        latency_split: Vec::new(),
        causes: Vec::new(),
        halves: Vec::new(),
        laws: Laws { hold: broken.is_empty(), broken },
        components: ByKind::default(),
    }
}
