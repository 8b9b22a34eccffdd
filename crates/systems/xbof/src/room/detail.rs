//! From a world's raw figures to the distributions and series of the report.

use super::result::{CAUSES, series};
use super::run::JbofRun;
use crate::jbof::{DriveFigures, JbofFigures, Reading};
use flashyard_describe::figures::{buckets, percentiles};
use flashyard_report::{ByKind, DRIVE, DesignDetail, EnergyParts, FlashDetail, Lending, LentResource, Timeline};
use flashyard_stats::CAUSE_COUNT;
use flashyard_units::{DriveId, Picojoules};
use std::collections::BTreeMap;

// The report names the causes that the models book: the same ones in the same order.
const _: () = assert!(CAUSES.len() == CAUSE_COUNT);

const BYTES_PER_MIB: f64 = (1 << 20) as f64;

/// Distributions and series of one design.
pub(crate) fn detail(run: &JbofRun) -> DesignDetail {
    let figures = &run.figures;
    let latency = figures.latency();
    let energy = |part: fn(&DriveFigures) -> Picojoules| -> f64 {
        figures.drives.iter().map(|drive| part(drive).as_joules()).sum()
    };
    DesignDetail {
        name: run.result.name.clone(),
        latency: buckets(&latency),
        percentiles: percentiles(&latency),
        timeline: timeline(run),
        lending: lending(figures),
        flash: figures.drives.iter().map(flash).collect(),
        energy_joules: EnergyParts {
            cores: energy(|drive| drive.energy.cores),
            dram: energy(|drive| drive.energy.dram),
            link: energy(|drive| drive.energy.link),
            flash: energy(|drive| drive.energy.flash),
        },
    }
}

fn flash(drive: &DriveFigures) -> FlashDetail {
    let mut counts = BTreeMap::new();
    drive.erase_counts.iter().for_each(|&erases| *counts.entry(erases).or_insert(0) += 1);
    FlashDetail {
        page_reads: drive.medium.page_reads,
        page_programs: drive.medium.page_programs,
        block_erases: drive.medium.block_erases,
        read_retries: drive.medium.read_retries,
        erase_counts: counts.into_iter().collect(),
    }
}

fn timeline(run: &JbofRun) -> Timeline {
    let figures = &run.figures;
    let readings = &figures.timeline.readings;
    let drives = run.result.components.of(&DRIVE).iter().enumerate();
    Timeline {
        interval_seconds: figures.timeline.interval.as_secs_f64(),
        begin_seconds: intervals(readings).map(|(begin, _)| begin.at.as_secs_f64()).collect(),
        end_seconds: readings.last().map_or(0.0, |last| last.at.as_secs_f64()),
        measured_from_seconds: figures.measured_from.as_secs_f64(),
        measured_to_seconds: figures.stopped.as_secs_f64(),
        components: ByKind::new(
            &DRIVE,
            drives.map(|(number, drive)| series::of_drive(figures, number, &drive.name)).collect(),
        ),
    }
}

fn intervals(readings: &[Reading]) -> impl Iterator<Item = (&Reading, &Reading)> {
    readings.windows(2).map(|pair| (&pair[0], &pair[1]))
}

/// One entry for each pair of drives that lent anything, core time first.
fn lending(figures: &JbofFigures) -> Vec<Lending> {
    let Some(last) = figures.timeline.readings.last() else { return Vec::new() };
    let segment_mib = figures.segment_bytes as f64 / BYTES_PER_MIB;
    let processor = last.processor_lent.iter().map(|&(pair, _)| {
        loan(figures, LentResource::Processor, pair, 1.0, |reading| find(&reading.processor_lent, pair).as_ps().into())
    });
    let memory = last.memory_lent.iter().map(|&(pair, _)| {
        loan(figures, LentResource::Memory, pair, segment_mib, |reading| find(&reading.memory_lent, pair))
    });
    processor.chain(memory).collect()
}

/// The amount lent to `pair` by a reading; the lists are in order of their pairs.
fn find<T: Copy + Default>(lent: &[((DriveId, DriveId), T)], pair: (DriveId, DriveId)) -> T {
    lent.binary_search_by_key(&pair, |entry| entry.0).map_or(T::default(), |index| lent[index].1)
}

/// From an amount times picoseconds since the beginning to the mean amount of each interval, times `scale`.
fn loan(
    figures: &JbofFigures,
    resource: LentResource,
    (lender, borrower): (DriveId, DriveId),
    scale: f64,
    lent: impl Fn(&Reading) -> u128,
) -> Lending {
    let mean = |begin: &Reading, end: &Reading| {
        let span = end.at.since(begin.at).as_ps();
        if span == 0 { 0.0 } else { (lent(end) - lent(begin)) as f64 / span as f64 * scale }
    };
    let readings = &figures.timeline.readings;
    let whole = readings.first().zip(readings.last()).map_or(0.0, |(first, last)| mean(first, last));
    Lending {
        resource,
        lender: lender.get().into(),
        borrower: borrower.get().into(),
        amount: intervals(readings).map(|(begin, end)| mean(begin, end)).collect(),
        mean: whole,
    }
}
