//! A fleet month by month: which drives ended, and the latencies of all drives.

use super::config::FleetConfig;
use super::drive::{Cause, Reading};
use super::record::FleetLife;
use flashyard_report::{ByKind, Component, ComponentKind, ComponentTimeline, Metric, Part, Timeline, Unit};

/// A month. \[X\]
pub(super) const SECONDS_OF_MONTH: f64 = 30.0 * 86_400.0;

static FLEET: ComponentKind = ComponentKind { id: "fleet", plural: "fleets", title: "Fleet" };

/// Reports on the fleet as a whole.
pub(super) const FLEET_PART: Part = Part {
    kind: &FLEET,
    metrics: || ENDS.to_vec(),
    series: || {
        let quantiles = QUANTILES.iter().flat_map(|(_, metrics)| metrics);
        ENDS.into_iter().chain([&AGE]).chain(quantiles).collect()
    },
    timeline: "months",
    shown: &[],
};

static ENDS: [&Metric; 4] = [&ORIGINALS, &WORN, &OTHERS, &TWO_ENDS];

static ORIGINALS: Metric = Metric::number(
    "originals",
    "Drives of the first month",
    Unit::Count,
    "drives of the first month that are still in use at the end",
);
static WORN: Metric = Metric::number("ended.wear", "Worn out", Unit::Count, "drives that wore out");
static OTHERS: Metric =
    Metric::number("ended.other", "Other failures", Unit::Count, "drives that failed for other reasons");
static TWO_ENDS: Metric = Metric::number(
    "arrays_with_two_ends",
    "Coinciding ends",
    Unit::Count,
    "arrays of which two or more drives ended in one month",
);
static AGE: Metric = Metric::number(
    "age_months",
    "Age",
    Unit::Symbol("months"),
    "months that drives had been in use before this one, in the mean",
);

/// Parts of all drives with the metrics of their mean latency and of its 99th percentile.
static QUANTILES: [(f64, [Metric; 2]); 6] = [
    (0.05, [of_mean("mean_us.p5"), of_p99("p99_us.p5")]),
    (0.25, [of_mean("mean_us.p25"), of_p99("p99_us.p25")]),
    (0.5, [of_mean("mean_us.p50"), of_p99("p99_us.p50")]),
    (0.75, [of_mean("mean_us.p75"), of_p99("p99_us.p75")]),
    (0.95, [of_mean("mean_us.p95"), of_p99("p99_us.p95")]),
    (0.99, [of_mean("mean_us.p99"), of_p99("p99_us.p99")]),
];

const fn of_mean(key: &'static str) -> Metric {
    let about = "mean latency of reads that so many percent of drives do not exceed";
    Metric::maybe(key, "Mean latency over drives", Unit::Microseconds, about).or_absent("all drives ended")
}

const fn of_p99(key: &'static str) -> Metric {
    let about = "99th percentile of reads that so many percent of drives do not exceed";
    Metric::maybe(key, "99th percentile over drives", Unit::Microseconds, about).or_absent("all drives ended")
}

/// The value that a part of all does not exceed; nothing where there are none. Source: \[X\] nearest rank.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let rank = libm::ceil(part * sorted.len() as f64) as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Series of a fleet.
pub(super) struct Months {
    months: u32,
    series: Vec<(&'static Metric, Vec<Option<f64>>)>,
}

impl Months {
    /// Counts what happened in each month.
    pub(super) fn of(config: &FleetConfig, fleet: &FleetLife) -> Self {
        let mut series: Vec<(&'static Metric, Vec<Option<f64>>)> =
            (FLEET_PART.series)().into_iter().map(|metric| (metric, Vec::new())).collect();
        for month in 0..config.months {
            for ((_, values), value) in series.iter_mut().zip(figures(config, fleet, month)) {
                values.push(value);
            }
        }
        Self { months: config.months, series }
    }

    /// Ends of the whole run, and the drives of its first month that are left.
    pub(super) fn whole(&self) -> Component {
        let of = |metric: &'static Metric| {
            let values = self.series.iter().find(|one| one.0.key == metric.key).map_or(&[][..], |one| &one.1);
            let is_left = metric.key == ORIGINALS.key;
            let value = if is_left { values.last().copied().flatten() } else { Some(values.iter().flatten().sum()) };
            (metric, value.unwrap_or(0.0).into())
        };
        Component { name: "fleet".to_owned(), figures: ENDS.into_iter().map(of).collect() }
    }

    /// The series on the axis of time.
    pub(super) fn timeline(self) -> Timeline {
        let end_seconds = f64::from(self.months) * SECONDS_OF_MONTH;
        let all = vec![ComponentTimeline { name: "fleet".to_owned(), series: self.series }];
        Timeline {
            interval_seconds: SECONDS_OF_MONTH,
            begin_seconds: (0..self.months).map(|month| f64::from(month) * SECONDS_OF_MONTH).collect(),
            end_seconds,
            measured_from_seconds: 0.0,
            measured_to_seconds: end_seconds,
            components: ByKind::new(&FLEET, all),
        }
    }
}

/// Figures of a month, in the order of the series.
fn figures(config: &FleetConfig, fleet: &FleetLife, month: u32) -> Vec<Option<f64>> {
    let (mut originals, mut worn, mut others, mut ages) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut ends = vec![0_u32; config.arrays as usize];
    let mut readings: Vec<&Reading> = Vec::new();
    for life in fleet.drives.iter().filter(|life| life.born <= month) {
        let lived = (month - life.born) as usize;
        if let Some(reading) = life.readings.get(lived) {
            originals += u32::from(life.born == 0);
            ages += life.age + month - life.born;
            readings.push(reading);
        } else if lived == life.readings.len() && life.end.is_some() {
            ends[life.array as usize] += 1;
            match life.end {
                Some(Cause::Wear) => worn += 1,
                _ => others += 1,
            }
        }
    }
    let two_ends = ends.iter().filter(|&&ends| ends > 1).count() as u32;
    let age = f64::from(ages) / readings.len().max(1) as f64;
    let sorted = |of: fn(&Reading) -> f64| {
        let mut all: Vec<f64> = readings.iter().copied().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let [means, p99s] = [sorted(|reading| reading.mean_us), sorted(|reading| reading.p99_us)];
    let counts = [originals, worn, others, two_ends].map(|count| Some(f64::from(count)));
    let quantiles = QUANTILES.iter().flat_map(|&(part, _)| [quantile(&means, part), quantile(&p99s, part)]);
    counts.into_iter().chain([Some(age)]).chain(quantiles).collect()
}
