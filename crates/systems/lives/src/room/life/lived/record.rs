//! The record of a lifetime.

use crate::lifetime::{EndOfLife, LifeFigures, Sample};
use flashyard_report::{LifeRecord, LifeSample};

/// Erases above which the study counts superblocks. Source: [P] sheet wear-leveling §7, row 4.
const MANY_ERASES: u32 = 1200;

/// The record of a life that is called `name`.
pub(crate) fn record(name: &str, figures: &LifeFigures) -> LifeRecord {
    let mut counts = figures.erase_counts.clone();
    counts.sort_unstable();
    let last = counts.len().saturating_sub(1);
    let above = counts.iter().filter(|&&erases| erases > MANY_ERASES).count();
    let again = figures.oldest_reentries.filter(|again| again.all > 0);
    LifeRecord {
        name: name.to_owned(),
        death: figures.death.map(EndOfLife::name).map(str::to_owned),
        drive_slots: figures.logical_slots,
        last: sample(&figures.last),
        samples: figures.samples.iter().map(sample).collect(),
        erase_percentiles: (0..=100).filter_map(|rank| counts.get(last * rank / 100).copied()).collect(),
        above_1200: above as f64 / counts.len().max(1) as f64,
        reentered_soon: again.map(|again| f64::from(again.soon) / f64::from(again.all)),
    }
}

pub(super) fn sample(sample: &Sample) -> LifeSample {
    LifeSample {
        host_slots: sample.host_slots,
        skipped_slots: sample.skipped_slots,
        moved_slots: sample.moved_slots,
        leveled_slots: sample.leveled_slots,
        retired: sample.retired,
        logical_slots: sample.logical_slots,
        relocated_slots: sample.relocated_slots,
        erases_mean: sample.erases_mean,
        erases_deviation: sample.erases_deviation,
        erases_min: sample.erases_min,
        erases_max: sample.erases_max,
    }
}
