//! The explorer: cost of the runs of a sweep, in money and energy, against their service.
//!
//! Runs are compared only where they serve the same load: a drive that is asked for less is not a better drive.

mod points;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use crate::common::{ENERGY, ENERGY_PER_GB, IOS, LATENCY_P99, PRICE, THROUGHPUT};
use crate::component::DRIVE;
use crate::schema::DesignResult;
use std::collections::BTreeSet;

pub use points::{Equipment, Explorer, ExplorerLoad, ExplorerPoint, Front};
pub use table::explorer_text;

/// Runs that a page shows in full where there are too many to show all.
const SHOWN_MAX: usize = 12;

impl Explorer {
    /// Compares the runs `designs`, equipped as the entry of `equipment` at the same place says. `None` where
    /// there are fewer than two points of a sweep, hence nothing to explore.
    pub fn new(
        designs: &[DesignResult],
        equipment: &[Equipment],
        reference: &str,
        within_percent: f64,
    ) -> Option<Self> {
        let first = designs.first()?;
        if designs.iter().all(|design| design.point == first.point) {
            return None;
        }
        let mut points: Vec<ExplorerPoint> =
            designs.iter().zip(equipment).map(|(design, equipment)| point(design, equipment.clone())).collect();
        let mut loads: Vec<ExplorerLoad> = Vec::new();
        for (place, settings) in points.iter().map(|point| &point.equipment.load).enumerate() {
            match loads.iter_mut().find(|load| load.settings == *settings) {
                Some(load) => load.points.push(place),
                None => loads.push(ExplorerLoad {
                    settings: settings.clone(),
                    points: vec![place],
                    dominated: 0,
                    reference: None,
                    cheapest: None,
                }),
            }
        }
        for load in &mut loads {
            compare(load, &mut points, reference, within_percent);
        }
        let shown = shown(&points, &loads);
        let is_a_choice = loads.iter().any(|load| load.is_a_choice(&points));
        Some(Self { reference: reference.to_owned(), within_percent, points, loads, is_a_choice, shown })
    }
}

fn point(design: &DesignResult, equipment: Equipment) -> ExplorerPoint {
    let figures = &design.figures;
    ExplorerPoint {
        name: design.name.clone(),
        equipment,
        drive_dollars: figures.number(&PRICE) / design.components.of(&DRIVE).len().max(1) as f64,
        jbof_dollars: figures.number(&PRICE),
        energy_joules: figures.number(&ENERGY),
        energy_joules_per_gb: figures.get(&ENERGY_PER_GB).number(),
        throughput_bytes_per_s: figures.number(&THROUGHPUT),
        latency_p99_us: (figures.count(&IOS) > 0).then(|| figures.number(&LATENCY_P99)),
        fronts: BTreeSet::new(),
    }
}

/// Finds fronts, reference and cheapest run of a load.
fn compare(load: &mut ExplorerLoad, points: &mut [ExplorerPoint], reference: &str, within_percent: f64) {
    if !load.is_priced(points) {
        return;
    }
    for kind in Front::ALL {
        let own: Vec<&ExplorerPoint> = load.points.iter().map(|&place| &points[place]).collect();
        let members = kind.members(&own);
        for (&place, _) in load.points.iter().zip(members).filter(|(_, member)| *member) {
            points[place].fronts.insert(kind);
        }
    }
    let beaten = |&&place: &&usize| {
        let point = &points[place];
        !point.equipment.computes_on_host && !point.fronts.contains(&Front::CostP99Throughput)
    };
    load.dominated = load.points.iter().filter(beaten).count();
    let throughput = |place: usize| points[place].throughput_bytes_per_s;
    load.reference = load
        .points
        .iter()
        .copied()
        .filter(|&place| points[place].equipment.design == reference)
        // Of equals the first.
        .reduce(|kept, place| if throughput(place) > throughput(kept) { place } else { kept });
    load.cheapest = load.reference.and_then(|reference| cheapest(load, points, reference, within_percent));
}

/// The cheapest of the runs whose throughput and p99 are within `within_percent` of those of `reference`; of equally
/// cheap ones the one with most throughput, then with least p99, then the first.
fn cheapest(load: &ExplorerLoad, points: &[ExplorerPoint], reference: usize, within_percent: f64) -> Option<usize> {
    let slack = within_percent / 100.0;
    let least = points[reference].throughput_bytes_per_s * (1.0 - slack);
    let longest = points[reference].latency_p99_us? * (1.0 + slack);
    let figures = |place: usize| {
        let point = &points[place];
        let p99 = point.latency_p99_us.unwrap_or(f64::INFINITY);
        let serves = point.throughput_bytes_per_s >= least && p99 <= longest;
        (serves && !point.equipment.computes_on_host).then_some([
            point.jbof_dollars,
            -point.throughput_bytes_per_s,
            p99,
        ])
    };
    let serving = load.points.iter().filter_map(|&place| figures(place).map(|figures| (place, figures)));
    serving.reduce(|kept, one| if one.1 < kept.1 { one } else { kept }).map(|(place, _)| place)
}

/// Places of the runs to show in full, rising.
fn shown(points: &[ExplorerPoint], loads: &[ExplorerLoad]) -> Vec<usize> {
    if points.len() <= SHOWN_MAX {
        return (0..points.len()).collect();
    }
    let chosen: BTreeSet<usize> = loads.iter().flat_map(|load| [load.reference, load.cheapest]).flatten().collect();
    if chosen.is_empty() {
        let on_front = |&place: &usize| points[place].fronts.contains(&Front::CostP99Throughput);
        let is_any = (0..points.len()).any(|place| on_front(&place));
        return (0..points.len()).filter(|place| !is_any || on_front(place)).take(SHOWN_MAX).collect();
    }
    chosen.into_iter().take(SHOWN_MAX).collect()
}
