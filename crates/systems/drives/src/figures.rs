//! The published figures: under which load each is measured, and which figure of a run it is.

use crate::replays::{self, ReplayRun};
use crate::runs::Metric::{self, Longest, Mean, Percentile, Rate, Requests};
use crate::runs::State::{BeyondCache, Filled, Fresh, Steady};
use crate::runs::{DriveRun, Host};
use crate::study_run::{DriveNumber, StudyRun};
use flashyard_describe::reproduce::Number;
use flashyard_report::RealDriveRecord;

/// Requests in flight where the source does not say how many, for small requests and for those of 128 KiB. [A] enough for
/// every drive here
const fn load(
    profile: &'static str,
    reads: u32,
    kib: u32,
    depth: u32,
    sequential: bool,
    state: crate::runs::State,
) -> DriveRun {
    DriveRun { profile, reads, kib, depth, sequential, state, host: Host::Free }
}

/// Figures by their ids among the expectations. Percentages of reads and KiB of a request: [P] as the sources state them;
/// depths of 256 and of 32 for requests of 128 KiB are [A] where they do not.
const FIGURES: &[(&str, DriveRun, Metric)] = &[
    ("tlc-gen3-1920gb-random-read", load("tlc-gen3-1920gb", 100, 4, 256, false, Filled), Requests),
    ("tlc-gen3-1920gb-random-write", load("tlc-gen3-1920gb", 0, 4, 256, false, Steady), Requests),
    ("tlc-gen3-1920gb-read-latency-least", load("tlc-gen3-1920gb", 100, 4, 1, false, Filled), Mean),
    ("tlc-gen3-1920gb-read-latency-most", load("tlc-gen3-1920gb", 100, 4, 1, false, Filled), Mean),
    ("tlc-gen3-1920gb-write-latency", load("tlc-gen3-1920gb", 0, 4, 1, false, Steady), Mean),
    ("tlc-gen3-1920gb-longest-write", load("tlc-gen3-1920gb", 0, 4, 256, false, Steady), Longest),
    ("tlc-gen3-1920gb-mixed-p99-99", load("tlc-gen3-1920gb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("tlc-gen3-4tb-random-read", load("tlc-gen3-4tb", 100, 4, 256, false, Filled), Requests),
    ("tlc-gen3-4tb-random-write", load("tlc-gen3-4tb", 0, 4, 256, false, Steady), Requests),
    ("tlc-gen3-4tb-sequential-write", load("tlc-gen3-4tb", 0, 128, 32, true, Filled), Rate),
    ("tlc-gen3-4tb-read-latency", load("tlc-gen3-4tb", 100, 4, 1, false, Filled), Mean),
    ("tlc-gen3-4tb-read-latency-sequential", load("tlc-gen3-4tb", 100, 4, 1, true, Filled), Mean),
    ("tlc-gen3-4tb-write-latency", load("tlc-gen3-4tb", 0, 4, 1, false, Steady), Mean),
    ("tlc-gen3-4tb-write-latency-sequential", load("tlc-gen3-4tb", 0, 4, 1, true, Filled), Mean),
    ("tlc-gen3-4tb-longest-write", load("tlc-gen3-4tb", 0, 4, 256, false, Steady), Longest),
    ("tlc-gen3-4tb-mixed-p99-99", load("tlc-gen3-4tb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("tlc-gen4-1920gb-random-read", load("tlc-gen4-1920gb", 100, 4, 256, false, Filled), Requests),
    ("tlc-gen4-1920gb-random-write", load("tlc-gen4-1920gb", 0, 4, 256, false, Steady), Requests),
    ("tlc-gen4-1920gb-sequential-write", load("tlc-gen4-1920gb", 0, 128, 32, true, Filled), Rate),
    ("tlc-gen4-1920gb-longest-write", load("tlc-gen4-1920gb", 0, 4, 256, false, Steady), Longest),
    ("tlc-gen4-1920gb-mixed-p99-99", load("tlc-gen4-1920gb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("tlc-gen4-3840gb-random-read", load("tlc-gen4-3840gb", 100, 4, 256, false, Filled), Requests),
    ("tlc-gen4-3840gb-random-write", load("tlc-gen4-3840gb", 0, 4, 256, false, Steady), Requests),
    ("tlc-gen4-3840gb-sequential-write", load("tlc-gen4-3840gb", 0, 128, 32, true, Steady), Rate),
    ("tlc-gen4-3840gb-read-latency", load("tlc-gen4-3840gb", 100, 4, 1, false, Filled), Mean),
    ("tlc-gen4-3840gb-write-latency", load("tlc-gen4-3840gb", 0, 4, 1, false, Steady), Mean),
    ("tlc-gen4-3840gb-random-write-filled", load("tlc-gen4-3840gb", 0, 4, 256, false, Filled), Requests),
    ("tlc-gen4-3840gb-longest-write", load("tlc-gen4-3840gb", 0, 4, 256, false, Steady), Longest),
    ("tlc-gen4-3840gb-mixed-p99-99", load("tlc-gen4-3840gb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("tlc-gen5-1920gb-random-read", load("tlc-gen5-1920gb", 100, 4, 256, false, Filled), Requests),
    ("tlc-gen5-1920gb-random-write", load("tlc-gen5-1920gb", 0, 4, 256, false, Steady), Requests),
    ("tlc-gen5-1920gb-sequential-write", load("tlc-gen5-1920gb", 0, 128, 32, true, Filled), Rate),
    ("tlc-gen5-1920gb-longest-write", load("tlc-gen5-1920gb", 0, 4, 256, false, Steady), Longest),
    ("tlc-gen5-1920gb-mixed-p99-99", load("tlc-gen5-1920gb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("qlc-gen4-15360gb-random-read", load("qlc-gen4-15360gb", 100, 4, 256, false, Filled), Requests),
    ("qlc-gen4-15360gb-random-write", load("qlc-gen4-15360gb", 0, 4, 256, false, Steady), Requests),
    ("qlc-gen4-15360gb-sequential-write", load("qlc-gen4-15360gb", 0, 128, 32, true, Filled), Rate),
    ("qlc-gen4-15360gb-longest-write", load("qlc-gen4-15360gb", 0, 4, 256, false, Steady), Longest),
    ("qlc-gen4-15360gb-mixed-p99-99", load("qlc-gen4-15360gb", 70, 4, 256, false, Steady), Percentile(0.9999)),
    ("z-nand-800gb-random-read", load("z-nand-800gb", 100, 4, 256, false, Filled), Requests),
    ("z-nand-800gb-random-write", load("z-nand-800gb", 0, 4, 256, false, Steady), Requests),
    ("z-nand-800gb-read-latency-least", load("z-nand-800gb", 100, 4, 1, false, Filled), Mean),
    ("z-nand-800gb-read-latency-most", load("z-nand-800gb", 100, 4, 1, false, Filled), Mean),
    ("z-nand-800gb-write-latency", load("z-nand-800gb", 0, 4, 1, false, Steady), Mean),
    ("xpoint-750gb-random-read", load("xpoint-750gb", 100, 4, 16, false, Filled), Requests),
    ("xpoint-750gb-random-write", load("xpoint-750gb", 0, 4, 16, false, Steady), Requests),
    ("xpoint-750gb-mixed", load("xpoint-750gb", 70, 4, 16, false, Steady), Requests),
    ("xpoint-750gb-read-latency", load("xpoint-750gb", 100, 4, 1, false, Filled), Mean),
    ("xpoint-750gb-read-latency-measured", load("xpoint-750gb", 100, 4, 1, false, Filled), Mean),
    ("xpoint-750gb-random-read-measured", load("xpoint-750gb", 100, 4, 16, false, Filled), Requests),
    ("xpoint-750gb-read-p99-measured", load("xpoint-750gb", 100, 4, 16, false, Filled), Percentile(0.99)),
    ("xpoint-750gb-read-tail", load("xpoint-750gb", 100, 4, 1, false, Filled), Percentile(0.99999)),
    ("xpoint-750gb-read-tail-deep", load("xpoint-750gb", 100, 4, 16, false, Filled), Percentile(0.99999)),
    ("xpoint-750gb-write-tail", load("xpoint-750gb", 0, 4, 1, false, Steady), Percentile(0.99999)),
    ("xpoint-750gb-write-tail-deep", load("xpoint-750gb", 0, 4, 16, false, Steady), Percentile(0.99999)),
    ("client-gen3-1tb-random-read", load("client-gen3-1tb", 100, 4, 32, false, Filled), Requests),
    ("client-gen3-1tb-random-write", load("client-gen3-1tb", 0, 4, 32, false, Fresh), Requests),
    ("client-gen3-1tb-random-read-single", load("client-gen3-1tb", 100, 4, 1, false, Filled), Requests),
    ("client-gen3-1tb-random-write-single", load("client-gen3-1tb", 0, 4, 1, false, Fresh), Requests),
    ("client-gen3-1tb-sequential-write-beyond-cache", load("client-gen3-1tb", 0, 128, 32, true, BeyondCache), Rate),
];

/// Figures of depth 1 that are read behind Linux too: their sources measured them so, or may have.
const BEHIND_LINUX: &[&str] = &[
    "tlc-gen3-1920gb-write-latency",
    "tlc-gen3-4tb-read-latency",
    "tlc-gen3-4tb-read-latency-sequential",
    "tlc-gen3-4tb-write-latency",
    "tlc-gen3-4tb-write-latency-sequential",
    "tlc-gen4-3840gb-read-latency",
    "tlc-gen4-3840gb-write-latency",
    "z-nand-800gb-read-latency-least",
    "z-nand-800gb-read-latency-most",
    "z-nand-800gb-write-latency",
    "xpoint-750gb-read-latency",
    "xpoint-750gb-read-latency-measured",
    "client-gen3-1tb-random-read-single",
    "client-gen3-1tb-random-write-single",
];

pub(super) fn numbers() -> Vec<DriveNumber> {
    let number = |id: &str, run: DriveRun, metric: Metric| {
        Number::of(id, [StudyRun::Load(run)], move |records: &[&RealDriveRecord]| match records[0] {
            RealDriveRecord::Load(record) => metric.of(record),
            RealDriveRecord::Replay(_) => f64::NAN,
        })
    };
    let mut numbers: Vec<DriveNumber> = FIGURES.iter().map(|&(id, run, metric)| number(id, run, metric)).collect();
    for &(id, run, metric) in FIGURES.iter().filter(|figure| BEHIND_LINUX.contains(&figure.0)) {
        numbers.push(number(&format!("{id}-linux"), DriveRun { host: Host::Linux, ..run }, metric));
    }
    for run in ReplayRun::ALL {
        for (figure, value) in replays::FIGURES {
            let id = format!("tencent-{}-{figure}", run.name);
            numbers.push(Number::of(id, [StudyRun::Replay(run)], move |records: &[&RealDriveRecord]| {
                match records[0] {
                    RealDriveRecord::Replay(record) => value(record),
                    RealDriveRecord::Load(_) => f64::NAN,
                }
            }));
        }
    }
    numbers
}
