//! A run of a JBOF in the layout of fio's JSON.

use super::run::JbofRun;
use crate::jbof::{DriveFigures, OperationFigures};
use flashyard_blk::Operation;
use flashyard_report::{FioDisk, FioReport};

/// The figures of a run as fio would print them: job by job, clone by clone, and each on all busy drives. Without a
/// job file, the stream of each drive is a job.
pub fn fio_report(run: &JbofRun) -> FioReport {
    let figures = &run.figures;
    flashyard_describe::fio_report(figures.simulated, &figures.streams, run.jobs.as_ref(), disks(run))
}

fn disks(run: &JbofRun) -> Vec<FioDisk> {
    let disk = |(number, drive): (usize, &DriveFigures)| {
        let streams = || run.figures.streams.iter().filter(move |stream| stream.volume.index() == number);
        let both = [Operation::Read, Operation::Write];
        let ticks = |figures: &OperationFigures| figures.latency.mean_us() * figures.ios as f64 / 1e3;
        FioDisk {
            name: format!("drive-{number}"),
            ios: both.map(|operation| streams().map(|stream| stream.of(operation).ios).sum()),
            ticks_ms: both.map(|operation| streams().map(|stream| ticks(stream.of(operation))).sum()),
            utilization: drive.flash_utilization(),
        }
    };
    run.figures.drives.iter().enumerate().map(disk).collect()
}
