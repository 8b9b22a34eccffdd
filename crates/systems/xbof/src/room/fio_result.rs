//! A run in the layout of fio's JSON.

use super::run::JbofRun;
use crate::jbof::{OperationFigures, Samples, StreamFigures};
use flashyard_blk::Operation;
use flashyard_report::{FioDirection, FioDisk, FioReport, FioRun, FioSamples, FioStream};

/// The figures of a run as fio would print them: job by job, clone by clone, and each on all busy drives. Without a
/// job file, the stream of each drive is a job.
pub fn fio_report(run: &JbofRun) -> FioReport {
    let figures = &run.figures;
    let mut found = FioRun {
        version: format!("flashyard-{}", env!("CARGO_PKG_VERSION")),
        end_ms: figures.simulated.as_ns() / 1_000_000,
        disks: disks(run),
        ..FioRun::default()
    };
    match &run.jobs {
        None => found.streams.extend(
            figures
                .streams
                .iter()
                .map(|stream| FioStream { name: format!("drive-{}", stream.drive), ..of_stream(stream) }),
        ),
        Some(jobs) => {
            if let [only] = jobs.files() {
                found.globals.clone_from(&only.jobs.globals);
            }
            let drives: Vec<u16> = figures.streams.iter().map(|stream| stream.drive).collect();
            let busy = drives.last().map_or(0, |&last| usize::from(last) + 1);
            for (number, file) in jobs.files().iter().enumerate() {
                for (place, (_, job, _)) in file.clones().enumerate() {
                    // Streams lie drive by drive.
                    let begin = |drive: usize| drives.partition_point(|&other| usize::from(other) < drive);
                    let runs_it = (number..busy).step_by(jobs.files().len());
                    found.streams.extend(runs_it.map(|drive| FioStream {
                        name: job.name.clone(),
                        group: job.group,
                        group_reporting: job.group_reporting,
                        options: job.options.clone(),
                        depth: job.depth(),
                        ..of_stream(&figures.streams[begin(drive) + place])
                    }));
                }
            }
        }
    }
    FioReport::new(found)
}

fn of_stream(stream: &StreamFigures) -> FioStream {
    FioStream {
        seconds: stream.active.as_secs_f64(),
        directions: [Operation::Read, Operation::Write, Operation::Trim]
            .map(|operation| direction(stream.of(operation))),
        flushes: stream.of(Operation::Flush).latency.clone(),
        depths: stream.depths,
        ..FioStream::default()
    }
}

fn direction(figures: &OperationFigures) -> FioDirection {
    FioDirection {
        ios: figures.ios,
        bytes: figures.bytes,
        latency: figures.latency.clone(),
        bandwidth: samples(&figures.bandwidth),
        rate: samples(&figures.rate),
    }
}

fn samples(samples: &Samples) -> FioSamples {
    let (min, max) = samples.range.unwrap_or_default();
    FioSamples {
        count: samples.mean.count(),
        min,
        max,
        mean: samples.mean.mean(),
        deviation: samples.mean.standard_deviation(),
    }
}

fn disks(run: &JbofRun) -> Vec<FioDisk> {
    let disk = |(number, drive): (usize, &crate::jbof::DriveFigures)| {
        let streams = || run.figures.streams.iter().filter(move |stream| usize::from(stream.drive) == number);
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
