//! The runs of a sweep as points: cost, energy and service of each, their loads and their fronts.

use crate::pareto::front;
use serde::Serialize;
use std::collections::BTreeSet;

/// The runs of a sweep side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explorer {
    /// Name of the design whose service the others are held against.
    pub reference: String,
    /// Distance of throughput below and of p99 above the reference that still counts as the same service, in percent.
    pub within_percent: f64,
    /// One entry a run, in the order of `RunReport::designs`.
    pub points: Vec<ExplorerPoint>,
    /// One entry a load, in the order in which they were first run.
    pub loads: Vec<ExplorerLoad>,
    /// Whether runs of the same load differ in price. Where none do, as in a sweep of one drive's load, there is
    /// nothing to weigh, and neither terminal nor page draws fronts.
    pub is_a_choice: bool,
    /// Runs to show in full, as places among the designs: all of a small sweep; of a large one the reference of each
    /// load and the cheapest run of the same service, or without a reference the front; at most twelve.
    pub shown: Vec<usize>,
}

/// Equipment and load of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Equipment {
    /// Design.
    pub design: String,
    /// Whether the host computes what drives do in other designs. Cost and energy are those of the drives, so such a
    /// run is on no front and never the cheapest.
    pub computes_on_host: bool,
    /// Settings of the sweep that are no equipment, as `section.key=value`: load, host, prices.
    pub load: Vec<String>,
    /// Cores of a drive.
    pub cores: u32,
    /// Share of its map that a drive's own memory holds, 0 to 1; for OC, its part of the host's memory.
    pub memory_share: f64,
    /// Idle drives for each busy one.
    pub lenders_per_busy: f64,
}

/// Cost, energy and service of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplorerPoint {
    /// Name of the run.
    pub name: String,
    /// Its equipment and load.
    #[serde(flatten)]
    pub equipment: Equipment,
    /// Price of one drive.
    pub drive_dollars: f64,
    /// Price of all drives.
    pub jbof_dollars: f64,
    /// Energy of all drives in the measured window.
    pub energy_joules: f64,
    /// Energy for each 10^9 bytes read or written; `None` when nothing was moved.
    pub energy_joules_per_gb: Option<f64>,
    /// Bytes read and written a second.
    pub throughput_bytes_per_s: f64,
    /// 99th percentile of latency; `None` when no request was completed.
    pub latency_p99_us: Option<f64>,
    /// Fronts of its load that it is on.
    pub fronts: BTreeSet<Front>,
}

/// Figures that a front weighs against each other. Cost is that of all drives, energy that for each gigabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Front {
    /// Cost, p99 and throughput: the front that counts as not dominated.
    CostP99Throughput,
    /// Cost and p99.
    CostP99,
    /// Cost and throughput.
    CostThroughput,
    /// Energy, p99 and throughput.
    EnergyP99Throughput,
    /// Energy and p99.
    EnergyP99,
    /// Energy and throughput.
    EnergyThroughput,
}

impl Front {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CostP99Throughput,
        Self::CostP99,
        Self::CostThroughput,
        Self::EnergyP99Throughput,
        Self::EnergyP99,
        Self::EnergyThroughput,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CostP99Throughput => "cost_p99_throughput",
            Self::CostP99 => "cost_p99",
            Self::CostThroughput => "cost_throughput",
            Self::EnergyP99Throughput => "energy_p99_throughput",
            Self::EnergyP99 => "energy_p99",
            Self::EnergyThroughput => "energy_throughput",
        }
    }

    /// Whether each of `points` is on it.
    pub(super) fn members(self, points: &[&ExplorerPoint]) -> Vec<bool> {
        let figures = |point: &ExplorerPoint| {
            let known = |figure: Option<f64>| figure.unwrap_or(f64::NAN);
            let price = match self {
                Self::CostP99Throughput | Self::CostP99 | Self::CostThroughput => point.jbof_dollars,
                Self::EnergyP99Throughput | Self::EnergyP99 | Self::EnergyThroughput => {
                    known(point.energy_joules_per_gb)
                }
            };
            // A price without the host's share is none.
            let price = if point.equipment.computes_on_host { f64::NAN } else { price };
            // More throughput is better.
            (price, known(point.latency_p99_us), -point.throughput_bytes_per_s)
        };
        let figures = points.iter().map(|point| figures(point));
        match self {
            Self::CostP99Throughput | Self::EnergyP99Throughput => {
                front(&figures.map(|(price, p99, throughput)| [price, p99, throughput]).collect::<Vec<_>>())
            }
            Self::CostP99 | Self::EnergyP99 => front(&figures.map(|(price, p99, _)| [price, p99]).collect::<Vec<_>>()),
            Self::CostThroughput | Self::EnergyThroughput => {
                front(&figures.map(|(price, _, throughput)| [price, throughput]).collect::<Vec<_>>())
            }
        }
    }
}

/// The runs that serve one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplorerLoad {
    /// Its settings, as `section.key=value`; empty where the sweep changes equipment only.
    pub settings: Vec<String>,
    /// Its runs, as places among the designs.
    pub points: Vec<usize>,
    /// Points that another one beats in cost, p99 and throughput, without those whose host computes.
    pub dominated: usize,
    /// The reference: its design with most throughput. `None` when it was not run.
    pub reference: Option<usize>,
    /// The cheapest run of the same service as the reference, which may be the reference.
    pub cheapest: Option<usize>,
}

impl ExplorerLoad {
    /// Whether its runs differ in price, so that there is something to weigh against service.
    pub(super) fn is_a_choice(&self, points: &[ExplorerPoint]) -> bool {
        let mut prices = self.points.iter().map(|&place| points[place].jbof_dollars);
        let first = prices.next();
        self.is_priced(points) && prices.any(|price| Some(price) != first)
    }

    /// Whether its systems have prices. Where the host does part of the work the price may be unknown.
    pub(super) fn is_priced(&self, points: &[ExplorerPoint]) -> bool {
        let own = || self.points.iter().map(|&place| &points[place]).filter(|point| !point.equipment.computes_on_host);
        own().next().is_some() && own().all(|point| point.jbof_dollars.is_finite())
    }
}
