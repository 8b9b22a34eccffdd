//! A run in the layout of fio's JSON.

use crate::fio::JobFiles;
use flashyard_blk::Operation;
use flashyard_measure::{OperationFigures, Samples, StreamFigures};
use flashyard_report::{FioDirection, FioDisk, FioReport, FioRun, FioSamples, FioStream};
use flashyard_units::{SimSpan, VolumeId};

/// The figures of a run as fio would print them: job by job, clone by clone, and each on all busy drives. Without a
/// job file, the stream of each drive is a job. `simulated` is the length of the run; streams lie volume by volume.
pub fn fio_report(
    simulated: SimSpan,
    streams: &[StreamFigures],
    jobs: Option<&JobFiles>,
    disks: Vec<FioDisk>,
) -> FioReport {
    let mut found = FioRun {
        version: format!("flashyard-{}", env!("CARGO_PKG_VERSION")),
        end_ms: simulated.as_ns() / 1_000_000,
        disks,
        ..FioRun::default()
    };
    let Some(jobs) = jobs else {
        let of_drive =
            |stream: &StreamFigures| FioStream { name: format!("drive-{}", stream.volume), ..of_stream(stream) };
        found.streams.extend(streams.iter().map(of_drive));
        return FioReport::new(found);
    };
    if let [only] = jobs.files() {
        found.globals.clone_from(&only.jobs.globals);
    }
    let volumes: Vec<VolumeId> = streams.iter().map(|stream| stream.volume).collect();
    let busy = volumes.last().map_or(0, |last| last.index() + 1);
    for (number, file) in jobs.files().iter().enumerate() {
        for (place, (_, job, _)) in file.clones().enumerate() {
            // Streams lie volume by volume.
            let begin = |volume: usize| volumes.partition_point(|other| other.index() < volume);
            let runs_it = (number..busy).step_by(jobs.files().len());
            found.streams.extend(runs_it.map(|volume| FioStream {
                name: job.name.clone(),
                group: job.group,
                group_reporting: job.group_reporting,
                options: job.options.clone(),
                depth: job.depth(),
                ..of_stream(&streams[begin(volume) + place])
            }));
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
