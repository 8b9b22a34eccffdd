//! Figures of a tier under a program, for `flashyard run ginkgo`.

use crate::tiered::{Replayed, TieredFigures};
use flashyard_describe::figures::{buckets, percentiles};
use flashyard_report::{
    Better, ByKind, Declaration, DesignDetail, DesignResult, IOS, LATENCY_MAX, LATENCY_MEAN, LATENCY_P50, LATENCY_P99,
    LATENCY_P999, LATENCY_P9999, LatencySummary, Laws, Metric, Unit, Value, WINDOW,
};
use flashyard_units::{Named, SimSpan};

static MEAN: Metric = Metric::number(
    "mean_ns",
    "Mean latency",
    Unit::Symbol("ns"),
    "mean time of an access in nanoseconds, metadata and index among it",
)
.better(Better::Less)
.terminal("mean\nns", 1.0, 2);

static MISSES: Metric =
    Metric::number("miss_ratio", "Misses", Unit::Share, "share of accesses whose block was in no line of DRAM")
        .better(Better::Less)
        .percent("misses\n%");

static CONFLICTS: Metric = Metric::number(
    "conflict_ratio",
    "Misses beyond first touches",
    Unit::Share,
    "share of accesses that missed and were not the first to their block",
)
.better(Better::Less)
.percent("beyond\nfirst %");

static DOUBLE_READS: Metric = Metric::number(
    "double_reads",
    "Double reads",
    Unit::Share,
    "share of accesses that read DRAM once more for metadata",
)
.better(Better::Less)
.percent("double\nreads %");

static ROW_HITS: Metric =
    Metric::number("row_hits", "Open rows", Unit::Share, "share of the lines of DRAM that were read in an open row")
        .percent("open\nrows %");

static METADATA: Metric =
    Metric::number("metadata_bytes", "Metadata", Unit::Bytes, "bytes of all metadata of the index").terminal(
        "metadata\nKB",
        1e3,
        2,
    );

static SURPLUS: Metric = Metric::maybe(
    "surplus",
    "Pages with room to spare",
    Unit::Share,
    "share of the huge pages of DRAM whose touched blocks fit into them: only those are mapped by a learned index",
)
.percent("surplus\n%");

static RECORD: Metric =
    Metric::maybe("record_bytes", "Record", Unit::Bytes, "mean bytes of a huge page's record, of those that have one");

static TOUCHED: Metric = Metric::count("touched_blocks", "Touched blocks", "blocks of 64 bytes that were touched");

static BLOAT: Metric = Metric::number(
    "bloat_2mb",
    "Memory in huge pages",
    Unit::Ratio,
    "memory in touched huge pages by that in touched blocks",
);

static DRAM_PAGES: Metric =
    Metric::count("dram_pages", "Huge pages of DRAM", "huge pages of DRAM that cache those of CXL memory");

static WRITE_BACKS: Metric =
    Metric::count("write_backs", "Lines written back", "changed lines that left DRAM for CXL memory");

static BYPASSES: Metric =
    Metric::count("bypasses", "Bypasses", "accesses to blocks that no line of DRAM may have: untouched in training");

/// The declaration of tiers.
pub(super) static DECLARATION: Declaration = Declaration {
    metrics: || WHOLE.iter().map(|row| row.0).collect(),
    shown: &[&MEAN, &MISSES, &CONFLICTS, &DOUBLE_READS, &ROW_HITS, &METADATA, &SURPLUS],
    parts: &[],
    causes: &[],
    tables: &[],
};

/// A run, and what several of its figures are made of.
struct Whole<'a> {
    replayed: &'a Replayed,
    tier: &'a TieredFigures,
    mean_ns: f64,
    latency: Option<LatencySummary>,
}

impl Whole<'_> {
    fn share(&self, count: u64) -> Value {
        (count as f64 / self.tier.counters.accesses.max(1) as f64).into()
    }
}

type OfWhole = (&'static Metric, fn(&Whole<'_>) -> Value);

/// The figures of a run, in the order of JSON.
static WHOLE: &[OfWhole] = &[
    (&WINDOW, |run| (run.mean_ns * 1e-9 * run.tier.counters.accesses as f64).into()),
    (&IOS.about("accesses to the tier"), |run| run.tier.counters.accesses.into()),
    (&MEAN, |run| run.mean_ns.into()),
    (&MISSES, |run| run.tier.counters.miss_ratio().into()),
    (&CONFLICTS, |run| run.share(run.tier.counters.conflicts())),
    (&DOUBLE_READS, |run| run.share(run.tier.double_reads.first().map_or(0, |sram| sram.1))),
    (&ROW_HITS, |run| run.tier.row_hits.into()),
    (&METADATA, |run| (run.tier.metadata_bytes as f64).into()),
    (&SURPLUS, |run| run.tier.learned.map(|learned| learned.0).into()),
    (&RECORD, |run| run.tier.learned.map(|learned| learned.1).into()),
    (&TOUCHED, |run| run.replayed.touched.into()),
    (&BLOAT, |run| run.replayed.bloat[1].into()),
    (&DRAM_PAGES, |run| run.replayed.pages[1].into()),
    (&WRITE_BACKS, |run| run.tier.counters.write_backs.into()),
    (&BYPASSES, |run| run.tier.counters.bypasses.into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_P9999, |run| run.latency.map(|latency| latency.p9999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
];

/// The figures of a tier whose accesses take so long on average.
pub(super) fn result(replayed: &Replayed, tier: &TieredFigures, mean_ns: f64) -> DesignResult {
    let whole = Whole { replayed, tier, mean_ns, latency: LatencySummary::of(&tier.latencies) };
    let broken = tier.broken();
    let name = tier.kind.name();
    DesignResult {
        point: Vec::new(),
        design: name.to_owned(),
        name: name.to_owned(),
        computes_on_host: true,
        declared: &DECLARATION,
        figures: WHOLE.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: Vec::new(),
        causes: Vec::new(),
        halves: Vec::new(),
        laws: Laws { hold: broken.is_empty(), broken },
        components: ByKind::default(),
    }
}

/// Distributions of a run.
pub(super) fn detail(tier: &TieredFigures) -> DesignDetail {
    DesignDetail {
        name: tier.kind.name().to_owned(),
        latency: buckets(&tier.latencies),
        percentiles: percentiles(&tier.latencies),
        ..DesignDetail::default()
    }
}

/// Time of all accesses, one after the other.
pub(super) fn time(tier: &TieredFigures, mean_ns: f64) -> SimSpan {
    SimSpan::from_ps((mean_ns * 1e3 * tier.counters.accesses as f64) as u64)
}
