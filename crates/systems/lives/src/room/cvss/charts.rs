//! The study as charts: capacity against performance.

use super::runs::CvssRun;
use crate::cvss::Design;
use flashyard_report::{CapacityRecord, ChartSection, Comparison, Placed, capacity_section};

pub(super) fn sections(lives: &[(CvssRun, CapacityRecord)], _: &[Comparison]) -> Vec<ChartSection> {
    // Lives with another code, other weights or another rule of degraded drives are beside the point.
    let plain: Vec<&(CvssRun, CapacityRecord)> =
        lives.iter().filter(|(run, _)| run.ecc_bits.is_none() && run.heavy.is_none() && !run.is_managed).collect();
    let rivals = |run: &CvssRun| plain.iter().filter(|(other, _)| panel(other) == panel(run)).count();
    let placed: Vec<Placed<'_, CapacityRecord>> = plain
        .iter()
        .filter(|(run, _)| rivals(run) > 1)
        .map(|(run, life)| (panel(run), run.name_in_panel(), life))
        .collect();
    let title = "What does it gain for the capacity that it gives up?";
    vec![capacity_section("capacity", title, finding(&plain), &placed)]
}

/// The load and file system that the lives of a panel share.
fn panel(run: &CvssRun) -> String {
    format!("{}, {}", run.load, run.below_in_words())
}

/// Whether a drive that gives capacity up writes more while it is fast, load by load.
fn finding(lives: &[&(CvssRun, CapacityRecord)]) -> String {
    let (mut all, mut longer) = (0, 0);
    for (run, life) in lives.iter().filter(|(run, _)| run.design == Design::Traditional) {
        let rivals = lives.iter().filter(|(other, _)| panel(other) == panel(run) && other.design.is_variable());
        let Some(best) = rivals.map(|(_, rival)| rival.written_bytes_at_80).reduce(f64::max) else { continue };
        all += 1;
        longer += u32::from(best > life.written_bytes_at_80);
    }
    format!(
        "On {longer} of {all} loads with their file systems some drive that gives capacity up writes more than the traditional one \
         while its performance is at least 80 % of the first."
    )
}
