//! The result schema of `run --json` and `--out`, and what a system declares of its results.

use crate::carbon::{CARBON_EMBODIED, CARBON_OPERATIONAL, CARBON_PER_REQUEST, CARBON_TOTAL};
use crate::component::{ByKind, Component, MetricAbout, MetricList, Part};
use crate::explorer::Explorer;
use crate::figure::{Figures, Metric, Value};
use crate::seeds::Seeds;
use crate::split::{Cause, SplitRow};
use flashyard_stats::LatencyHistogram;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Result of a run: one entry for each design.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Scenario name.
    pub scenario: String,
    /// Subject of the scenario, in its own words.
    pub title: String,
    /// The command that repeats the run, as it was given; empty where no command line began it.
    pub command: String,
    /// Description of each design.
    pub about: Vec<DesignAbout>,
    /// Whether requests are issued as others complete: a slower design is then asked for less, and keeps fewer requests
    /// waiting on flash, so percentiles of its latency do not compare with those of a faster one.
    pub closed_loop: bool,
    /// Warnings for a reader who takes a figure of the window for that of a steady state.
    pub notes: Vec<String>,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated seconds, the longest design.
    pub simulated_seconds: f64,
    /// Wall seconds of the whole run. The only figure that two runs need not share.
    pub wall_seconds: f64,
    /// The workload, in words, with every scaling that was applied.
    pub workload: String,
    /// Changes that fitted recorded requests to each drive, with counts; empty for generated ones. Designs in which a
    /// drive's trace went equally far share an entry.
    pub scaling: Vec<String>,
    /// Whether every design was finished; false after Ctrl-C and where a run failed.
    pub complete: bool,
    /// Runs that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedRun>,
    /// Whether the program was stopped before all runs had ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// One entry a design, in the order asked for.
    pub designs: Vec<DesignResult>,
    /// Cost and energy of the runs against what they give; absent without a sweep of several points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explorer: Option<Explorer>,
    /// Means over several seeds; absent where one seed was run. Everything else is of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRun {
    /// Its design, point and, beside other seeds than the first, its seed.
    pub run: String,
    /// Its error.
    pub error: String,
}

/// A design for readers who do not know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DesignAbout {
    /// Its name.
    pub name: String,
    /// Its description in a line.
    pub text: String,
}

/// One half of the time in which load was offered in the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowHalf {
    /// Bytes read and written a second.
    pub throughput_bytes_per_s: f64,
    /// Slots written to flash for each slot written by the host; absent when nothing was written.
    pub write_amplification: Option<f64>,
}

/// Latency from the application's call to its return, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// Longest.
    pub max: f64,
}

impl LatencySummary {
    /// That of requests; of none there is no latency.
    pub fn of(latency: &LatencyHistogram) -> Option<Self> {
        (latency.count() > 0).then(|| latency.into())
    }
}

impl From<&LatencyHistogram> for LatencySummary {
    fn from(latency: &LatencyHistogram) -> Self {
        Self {
            mean: latency.mean_us(),
            p50: latency.percentile_us(0.5),
            p99: latency.percentile_us(0.99),
            p999: latency.percentile_us(0.999),
            p9999: latency.percentile_us(0.9999),
            max: latency.max_us(),
        }
    }
}

/// Laws that were checked on a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Laws {
    /// Whether all of them held.
    pub hold: bool,
    /// The broken laws, with both sides.
    pub broken: Vec<String>,
}

/// Figures of one design over the measured window. In JSON its figures and the arrays of its components stand beside the
/// other fields.
#[derive(Clone, Debug)]
pub struct DesignResult {
    /// Design name.
    pub name: String,
    /// The design without its point of a sweep.
    pub design: String,
    /// Whether the host computes what drives do in other designs. Energy and price are those of the drives, so such a
    /// design is not ranked by them.
    pub computes_on_host: bool,
    /// Its point of a sweep, as `section.key=value`; empty without a sweep.
    pub point: Vec<String>,
    /// Declaration of its system.
    pub declared: &'static Declaration,
    /// Its figures.
    pub figures: Figures,
    /// Where the time went: of the mean request, and of the requests in the histogram buckets of p50, p99 and p99.9.
    pub latency_split: Vec<SplitRow>,
    /// The meaning of the parts of these rows: the causes that the system declares, or in a document all of them.
    pub causes: Vec<Cause>,
    /// Both halves of the measured window; empty where it is too short to be halved.
    pub halves: Vec<WindowHalf>,
    /// Laws that must hold on every run.
    pub laws: Laws,
    /// Its components with their figures; drives with the busy ones first.
    pub components: ByKind<Component>,
}

impl DesignResult {
    /// Sets the parts of its rows in the order of `causes`, which has all of its own; the others took no time.
    pub(crate) fn split_by(&mut self, causes: &[Cause]) {
        let place = |cause: &Cause| self.causes.iter().position(|own| own.key == cause.key);
        let places: Vec<Option<usize>> = causes.iter().map(place).collect();
        for row in &mut self.latency_split {
            let part = |place: &Option<usize>| place.and_then(|place| row.parts_us.get(place)).copied().unwrap_or(0.0);
            row.parts_us = places.iter().map(part).collect();
        }
        self.causes = causes.to_vec();
    }
}

impl Serialize for DesignResult {
    /// The order of fields is that of earlier versions, in which all of them were written by hand: rows of times follow
    /// latency, and halves of the window energy.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("design", &self.design)?;
        map.serialize_entry("computes_on_host", &self.computes_on_host)?;
        map.serialize_entry("point", &self.point)?;
        let (mut split, mut halves) = (Some(&self.latency_split), Some(&self.halves));
        self.figures.write_all(&mut map, |field, map| match field {
            "latency_us" => split.take().map_or(Ok(()), |split| map.serialize_entry("latency_split", split)),
            "energy_joules_per_gb" => halves.take().map_or(Ok(()), |halves| map.serialize_entry("halves", halves)),
            _ => Ok(()),
        })?;
        split.map_or(Ok(()), |split| map.serialize_entry("latency_split", split))?;
        halves.map_or(Ok(()), |halves| map.serialize_entry("halves", halves))?;
        map.serialize_entry("laws", &self.laws)?;
        self.components.write_all(&mut map)?;
        map.end()
    }
}

impl RunReport {
    /// Declarations of the systems of its runs, each thing once.
    pub(crate) fn declared(&self) -> Declared {
        Declared::by(self.declarations())
    }

    /// The declarations of its systems, and that of emission where a run has it.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = &'static Declaration> {
        let emits = |design: &DesignResult| design.figures.get(&CARBON_TOTAL) != Value::Absent;
        let emission = self.designs.iter().any(emits).then_some(&CARBON_DECLARATION);
        self.designs.iter().map(|design| design.declared).chain(emission)
    }
}

/// A table of the terminal that only one system has.
#[derive(Clone, Copy, Debug)]
pub struct ExtraTable {
    /// The line above it.
    pub about: &'static str,
    /// The table, at most so many characters wide; `None` where a report has nothing for it.
    pub text: fn(&RunReport, usize) -> Option<String>,
}

/// All that a system declares of its reports.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Figures of a run as a whole.
    pub metrics: MetricList,
    /// Those of them that terminal and page show, in their order.
    pub shown: &'static [&'static Metric],
    /// Its components.
    pub parts: &'static [Part],
    /// Where the time of a request goes, in the order in which a request meets them.
    pub causes: &'static [Cause],
    /// Tables of the terminal beside the common ones.
    pub tables: &'static [ExtraTable],
}

impl Declaration {
    /// Every metric, those that are shown first and in their order.
    fn abouts(&self) -> Vec<MetricAbout> {
        let mut all = listed(None, self.metrics, self.shown);
        for part in self.parts {
            all.extend(listed(Some(part.kind.id), part.metrics, part.shown));
            let about = |metric| MetricAbout { component: Some(part.kind.id), series: true, shown: false, metric };
            all.extend((part.series)().into_iter().map(about));
        }
        all
    }
}

/// The declaration that stands beside that of a system where a scenario has factors.
static CARBON_DECLARATION: Declaration = Declaration {
    metrics: || vec![&CARBON_EMBODIED, &CARBON_OPERATIONAL, &CARBON_TOTAL, &CARBON_PER_REQUEST],
    shown: &[&CARBON_TOTAL, &CARBON_PER_REQUEST, &CARBON_EMBODIED, &CARBON_OPERATIONAL],
    parts: &[],
    causes: &[],
    tables: &[],
};

/// Metrics with those that are shown first.
fn listed(component: Option<&'static str>, metrics: MetricList, shown: &[&'static Metric]) -> Vec<MetricAbout> {
    let place = |metric: &Metric| shown.iter().position(|other| other.key == metric.key);
    let about = |metric| MetricAbout { component, series: false, shown: place(metric).is_some(), metric };
    let mut all: Vec<MetricAbout> = metrics().into_iter().map(about).collect();
    all.sort_by_key(|about| place(about.metric).unwrap_or(shown.len()));
    all
}

/// Declarations of several systems as one: each metric, part and cause once, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    pub(crate) metrics: Vec<MetricAbout>,
    pub(crate) shown: Vec<&'static Metric>,
    pub(crate) parts: Vec<Part>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) tables: Vec<ExtraTable>,
}

impl Declared {
    pub(crate) fn by(systems: impl IntoIterator<Item = &'static Declaration>) -> Self {
        let mut all = Self::default();
        let mut known: Vec<*const Declaration> = Vec::new();
        for system in systems {
            if known.iter().any(|&other| std::ptr::eq(other, system)) {
                continue;
            }
            known.push(system);
            add(&mut all.metrics, system.abouts(), |one| (one.component, one.series, one.metric.key));
            add(&mut all.shown, system.shown.iter().copied(), |metric| metric.key);
            add(&mut all.parts, system.parts.iter().copied(), |part| part.kind.id);
            add(&mut all.causes, system.causes.iter().copied(), |cause| cause.key);
            all.tables.extend(system.tables);
        }
        all
    }
}

/// Adds what is not there yet by its name.
fn add<T, N: PartialEq>(to: &mut Vec<T>, more: impl IntoIterator<Item = T>, name: fn(&T) -> N) {
    for one in more {
        if to.iter().all(|other| name(other) != name(&one)) {
            to.push(one);
        }
    }
}
