//! Figures of a run, for tables, JSON, Parquet and the page.

use super::designs::map_bytes;
use super::runs::GIB;
use super::section::ParaidScenario;
use crate::{ArrayFigures, Design, MemberCounters};
use flashyard_describe::ScenarioError;
use flashyard_describe::figures::{buckets, percentiles};
use flashyard_report::{
    Better, ByKind, Component, DRIVE, Declaration, DesignDetail, DesignResult, Emission, IOPS, IOS, LATENCY_MAX,
    LATENCY_MEAN, LATENCY_P50, LATENCY_P99, LATENCY_P999, LatencySummary, Laws, Metric, Part, READ_BYTES, THROUGHPUT,
    Unit, Value, WINDOW, WRITE_BYTES,
};
use flashyard_units::Named;

static VOLUME: Metric = Metric::count("volume_bytes", "Volume", "bytes of the volume, at the scale of the run");
static MAP: Metric =
    Metric::count("map_bytes", "Map", "bytes of DRAM that the map of the array takes at its full size")
        .better(Better::Less);
static FULL: Metric = Metric::count("writes.full", "Full stripes", "writes of whole stripes");
static MODIFIED: Metric =
    Metric::count("writes.modify", "From old parity", "writes whose parity came from old parity and old chunks");
static REBUILT: Metric =
    Metric::count("writes.reconstruct", "From other chunks", "writes whose parity came from the chunks that they left");
static BARE: Metric =
    Metric::count("writes.no_parity", "Without parity", "writes of stripes whose parity was on a drive that is gone");
static REPLICATED: Metric = Metric::count("writes.replicate", "Replicated", "writes that were replicated first");
static JOINED: Metric = Metric::count("joined", "Joined", "requests that joined a write of their stripe");
static KNOWN: Metric = Metric::count("parity_hits", "Known parity", "writes that found old parity in memory");
static MOVED: Metric = Metric::count("moves", "Moves", "hot chunks that were moved to a fast drive");
static MOVED_BY_WRITES: Metric =
    Metric::count("moves_by_writes", "Moves by writes", "hot chunks that a write took to a fast drive");
static CONVERTED: Metric = Metric::count("converted", "Converted", "replicated stripes that got parity");
static REDIRECTED: Metric =
    Metric::count("redirected", "Redirected", "writes that went around a drive with a latency spike");
static COLLECTED: Metric = Metric::count("collected", "Stripes collected", "stripes that a log emptied");
static MOVED_BLOCKS: Metric = Metric::count("collected_blocks", "Blocks collected", "blocks of 4 KiB that a log moved");
static AMPLIFICATION: Metric = Metric::maybe(
    "write_amplification_of_array",
    "Write amplification of the array",
    Unit::Ratio,
    "bytes written to drives by bytes that requests wrote",
)
.better(Better::Less)
.terminal("written\n/asked", 1.0, 2);
static PROGRAMMED: Metric = Metric::maybe(
    "flash_bytes_per_byte",
    "Flash bytes by a byte asked",
    Unit::Ratio,
    "bytes that the array writes by bytes that requests wrote, times the write amplification of its drives, all of which are SSDs",
)
.or_absent("servers of rates have no flash")
.better(Better::Less);
static AMPLIFIED: Metric = Metric::maybe(
    "write_amplification",
    "Write amplification",
    Unit::Ratio,
    "slots written to flash for each slot written to the SSD, in the measured time",
)
.or_absent("a server of rates has no flash")
.better(Better::Less)
.terminal("write\nampl.", 1.0, 2);
static EMBODIED: Metric =
    emission("emission.making_kg", "Making", "CO2 of making flash and the map's DRAM, array of full size, in kg");
static OPERATION: Metric = emission(
    "emission.operation_kg",
    "Operation",
    "CO2 of the drives' energy over the years of use at this load, in kg",
);
static BY_WORK: Metric = Metric::maybe(
    "emission.kg_per_gib_per_s",
    "Emission by throughput",
    Unit::Ratio,
    "CO2 of making and operation in kg by throughput in GiB/s",
)
.better(Better::Less)
.terminal("kg CO2 a\nGiB/s", 1.0, 1);
static OPERATION_EACH: Metric = for_each(
    "emission.operation_g_per_request",
    "Operation of a request",
    "CO2 of the drives' energy in the measured time by requests completed in it, in g",
)
.terminal("operation\nngCO2e/IO", 1e-9, 1);
static MAKING_EACH: Metric = for_each(
    "emission.making_g_per_request",
    "Making of a request, by time",
    "CO2 of making, the part that the measured time has of the years of use, by requests completed in it, in g",
)
.terminal("making\nngCO2e/IO", 1e-9, 1);
static WEAR_EACH: Metric = for_each(
    "emission.wear_g_per_request",
    "Making of a request, by wear",
    "CO2 of making flash, the part that bytes written to drives have of their endurance, by requests completed, in g",
)
.terminal("wear\nngCO2e/IO", 1e-9, 1);
static BUSY: Metric =
    Metric::number("busy", "Busy", Unit::Share, "share of the time for which it worked").percent("busy\n%");

const fn emission(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::number(key, title, Unit::Symbol("kg"), about).better(Better::Less)
}

const fn for_each(key: &'static str, title: &'static str, about: &'static str) -> Metric {
    Metric::maybe(key, title, Unit::Symbol("gCO2e/IO"), about).or_absent("nothing was completed").better(Better::Less)
}

/// The declaration of an array.
pub(super) static DECLARATION: Declaration = Declaration {
    metrics: || ROWS.iter().map(|row| row.0).collect(),
    shown: &[
        &THROUGHPUT,
        &IOPS,
        &LATENCY_MEAN,
        &LATENCY_P50,
        &LATENCY_P99,
        &LATENCY_P999,
        &AMPLIFICATION,
        &BY_WORK,
        &OPERATION_EACH,
        &MAKING_EACH,
        &WEAR_EACH,
    ],
    parts: &[Part {
        kind: &DRIVE,
        metrics: || OF_DRIVE.iter().map(|row| row.0).collect(),
        series: Vec::new,
        timeline: "timeline",
        shown: &[&IOS, &READ_BYTES, &WRITE_BYTES, &BUSY, &AMPLIFIED],
    }],
    causes: &[],
    tables: &[],
};

/// A run with what follows from it.
struct Whole<'a> {
    figures: &'a ArrayFigures,
    latency: Option<LatencySummary>,
    emission: Emission,
    /// The part of the years of use that the window is.
    part: f64,
    /// Making of the flash that the window wore out, in kg.
    worn_kg: f64,
    map: f64,
}

impl Whole<'_> {
    fn per_second(&self, amount: u64) -> f64 {
        amount as f64 / self.figures.measured.as_secs_f64()
    }

    fn bytes(&self) -> u64 {
        self.figures.window.bytes.iter().sum()
    }

    fn requests(&self) -> u64 {
        self.figures.window.requests.iter().sum()
    }

    /// Grams for each request of so many kg of the window.
    fn for_each(&self, kg: f64) -> Value {
        let requests = self.requests();
        (requests > 0).then(|| kg * 1e3 / requests as f64).into()
    }
}

type Row = (&'static Metric, fn(&Whole<'_>) -> Value);

/// The figures of a run, in the order of JSON.
static ROWS: &[Row] = &[
    (&WINDOW, |run| run.figures.measured.as_secs_f64().into()),
    (&IOS, |run| run.requests().into()),
    (&READ_BYTES, |run| run.figures.window.bytes[0].into()),
    (&WRITE_BYTES, |run| run.figures.window.bytes[1].into()),
    (&THROUGHPUT, |run| run.per_second(run.bytes()).into()),
    (&IOPS, |run| run.per_second(run.requests()).into()),
    (&LATENCY_MEAN, |run| run.latency.map(|latency| latency.mean).into()),
    (&LATENCY_P50, |run| run.latency.map(|latency| latency.p50).into()),
    (&LATENCY_P99, |run| run.latency.map(|latency| latency.p99).into()),
    (&LATENCY_P999, |run| run.latency.map(|latency| latency.p999).into()),
    (&LATENCY_MAX, |run| run.latency.map(|latency| latency.max).into()),
    (&AMPLIFICATION, |run| {
        let written: u64 = run.figures.drives.iter().map(|drive| drive.bytes[1]).sum();
        let asked = run.figures.window.bytes[1];
        (asked > 0).then(|| written as f64 / asked as f64).into()
    }),
    (&PROGRAMMED, |run| {
        let asked = run.figures.window.bytes[1];
        let on_flash = |drive: &MemberCounters| amplification(drive).map(|by| by * drive.bytes[1] as f64);
        let sum: Option<f64> = run.figures.drives.iter().map(on_flash).sum();
        sum.filter(|_| asked > 0).map(|sum| sum / asked as f64).into()
    }),
    (&VOLUME, |run| run.figures.volume.into()),
    (&MAP, |run| (run.map as u64).into()),
    (&FULL, |run| run.figures.counters.ways[0].into()),
    (&MODIFIED, |run| run.figures.counters.ways[1].into()),
    (&REBUILT, |run| run.figures.counters.ways[2].into()),
    (&BARE, |run| run.figures.counters.ways[3].into()),
    (&REPLICATED, |run| run.figures.counters.ways[4].into()),
    (&JOINED, |run| run.figures.counters.joined.into()),
    (&KNOWN, |run| run.figures.counters.parity_hits.into()),
    (&MOVED, |run| run.figures.counters.exchanged[0].into()),
    (&MOVED_BY_WRITES, |run| run.figures.counters.exchanged[1].into()),
    (&CONVERTED, |run| run.figures.counters.converted.into()),
    (&REDIRECTED, |run| run.figures.counters.redirected.into()),
    (&COLLECTED, |run| run.figures.counters.collected[0].into()),
    (&MOVED_BLOCKS, |run| run.figures.counters.collected[1].into()),
    (&EMBODIED, |run| (run.emission.flash_kg + run.emission.dram_kg).into()),
    (&OPERATION, |run| run.emission.operation_kg.into()),
    (&BY_WORK, |run| {
        let rate = run.per_second(run.bytes()) / GIB;
        (rate > 0.0).then(|| run.emission.total_kg() / rate).into()
    }),
    (&OPERATION_EACH, |run| run.for_each(run.emission.operation_kg * run.part)),
    (&MAKING_EACH, |run| run.for_each((run.emission.flash_kg + run.emission.dram_kg) * run.part)),
    (&WEAR_EACH, |run| run.for_each(run.worn_kg)),
];

type OfDrive = (&'static Metric, fn(&MemberCounters, f64) -> Value);

/// The figures of a drive; the number is the window in seconds.
static OF_DRIVE: &[OfDrive] = &[
    (&IOS, |drive, _| drive.commands.iter().sum::<u64>().into()),
    (&READ_BYTES, |drive, _| drive.bytes[0].into()),
    (&WRITE_BYTES, |drive, _| drive.bytes[1].into()),
    (&IOPS, |drive, seconds| (drive.commands.iter().sum::<u64>() as f64 / seconds).into()),
    (&BUSY, |drive, seconds| (drive.busy.as_secs_f64() / seconds).min(1.0).into()),
    (&AMPLIFIED, |drive, _| amplification(drive).into()),
];

/// Slots that an SSD programmed for each that its host wrote.
fn amplification(drive: &MemberCounters) -> Option<f64> {
    (drive.slots[0] > 0).then(|| drive.slots[1] as f64 / drive.slots[0] as f64)
}

/// The figures of a run.
///
/// Errors: an array that is none.
pub(super) fn result(
    base: &ParaidScenario,
    design: Design,
    figures: &ArrayFigures,
) -> Result<DesignResult, ScenarioError> {
    let array = &base.paraid.array;
    let map = map_bytes(base, array, design)?;
    let seconds = figures.measured.as_secs_f64();
    let busy: Vec<f64> = figures.drives.iter().map(|drive| (drive.busy.as_secs_f64() / seconds).min(1.0)).collect();
    let whole = Whole {
        figures,
        latency: LatencySummary::of(&figures.window.latency),
        emission: base.emission(array, &busy, map)?,
        part: base.part_of_use(seconds),
        worn_kg: base.worn_kg(array, figures.drives.iter().map(|drive| drive.bytes[1]))?,
        map,
    };
    let component = |(number, drive): (usize, &MemberCounters)| Component {
        name: format!("drive-{number}"),
        figures: OF_DRIVE.iter().map(|(metric, of)| (*metric, of(drive, seconds))).collect(),
    };
    Ok(DesignResult {
        point: Vec::new(),
        design: design.name().to_owned(),
        name: design.name().to_owned(),
        computes_on_host: true,
        declared: &DECLARATION,
        figures: ROWS.iter().map(|(metric, of)| (*metric, of(&whole))).collect(),
        latency_split: Vec::new(),
        causes: Vec::new(),
        halves: Vec::new(),
        laws: Laws { hold: figures.broken.is_empty(), broken: figures.broken.clone() },
        components: ByKind::new(&DRIVE, figures.drives.iter().enumerate().map(component).collect()),
    })
}

/// Distributions of a run.
pub(super) fn detail(design: Design, figures: &ArrayFigures) -> DesignDetail {
    DesignDetail {
        name: design.name().to_owned(),
        latency: buckets(&figures.window.latency),
        percentiles: percentiles(&figures.window.latency),
        ..DesignDetail::default()
    }
}
