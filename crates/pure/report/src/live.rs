//! Output of a running JBOF: one snapshot about every 100 ms, and the commands it takes.
//!
//! The dashboard streams snapshots as JSON and `/metrics` is made from them. Rates, latencies and utilizations are
//! those of the interval that the snapshot ends; totals count from the start of the run, so that a reader that
//! skipped snapshots has lost nothing. Figures that are not finite are written as missing.

use crate::{LatencySummary, LentResource};
use serde::{Deserialize, Serialize};

/// State and figures of a running JBOF.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Rises by one from snapshot to snapshot; smaller than before after a restart.
    pub number: u64,
    /// Scenario name.
    pub scenario: String,
    /// Simulated seconds since the start.
    pub time_seconds: f64,
    /// Wall seconds since the start.
    pub wall_seconds: f64,
    /// Simulated seconds that the interval covers.
    pub interval_seconds: f64,
    /// Simulated seconds that are to pass in a second of the wall clock; absent when the run is not paced.
    pub pace: Option<f64>,
    /// Whether drives lend and borrow.
    pub harvest: bool,
    /// Mapping memory in a segment, in MiB.
    pub segment_mib: f64,
    /// One entry a drive, always in the same order.
    pub drives: Vec<DriveSnapshot>,
    /// Loans: mean amounts over the interval, without the zeros.
    pub lending: Vec<Loan>,
    /// How late answers left, against the time that the model gave them. Wall clock, over the interval.
    pub lateness_us: Lateness,
    /// The machine's own noise: the longest time in which it did not let the engine run, in microseconds.
    pub noise_us: f64,
    /// Connections of hosts.
    pub connections: u32,
    /// Events since the snapshot before.
    pub events: Vec<LiveEvent>,
    /// Finer series inside the interval.
    pub points: Points,
}

/// Figures of one drive over the interval. Utilizations and shares go from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DriveSnapshot {
    /// Drive name, different for each drive.
    pub name: String,
    /// NVMe qualified name of the subsystem that exports it; empty when it is not exported.
    pub nqn: String,
    /// Whether it serves.
    pub state: DriveState,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Requests completed a second.
    pub iops: f64,
    /// Latency of the requests completed; all zero without any.
    pub latency_us: LatencySummary,
    /// Busy share of the cores.
    pub processor_utilization: f64,
    /// The part of it that served other drives.
    pub lent_utilization: f64,
    /// Busy share of the dies.
    pub die_utilization: f64,
    /// Busy share of the channel buses.
    pub bus_utilization: f64,
    /// Share of the mapping memory that holds something, the drive's own or a borrower's.
    pub dram_utilization: f64,
    /// Mapping misses for each mapping access; absent without any.
    pub mapping_miss_ratio: Option<f64>,
    /// Share of its commands that the host's driver sends to lenders.
    pub redirected_share: f64,
    /// Rated erases used up, in percent; may exceed 100.
    pub wear_percent: f64,
    /// Spare blocks left, in percent of those it began with.
    pub spare_percent: f64,
    /// Times that data could not be corrected, in the whole lifetime of the drive as its health log counts.
    pub media_errors: u64,
    /// Requests accepted and not yet answered.
    pub queue_depth: u32,
    /// Sums since the start.
    pub totals: DriveTotals,
}

/// Sums over a drive's requests since the start of the run; they never fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DriveTotals {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Latencies of all completed requests together, in seconds.
    pub latency_seconds: f64,
}

/// Whether a drive serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveState {
    /// It serves.
    #[default]
    Ready,
    /// It is pulled out of its slot.
    Away,
    /// It is in its slot, and there is no power.
    Off,
    /// It is in its slot with power, and its link is down.
    Unlinked,
    /// It is coming back and does not serve yet.
    Resetting,
}

/// A loan of one drive to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loan {
    /// The resource lent.
    pub resource: LentResource,
    /// Index of the lender among the drives.
    pub lender: u32,
    /// Index of the borrower among the drives.
    pub borrower: u32,
    /// Mean amount, in the unit of the resource.
    pub amount: f64,
}

/// How late answers left, in microseconds of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveEvent {
    /// Rises by one from event to event.
    pub number: u64,
    /// Its time, in simulated seconds since the start.
    pub time_seconds: f64,
    /// Its subject.
    pub kind: LiveEventKind,
    /// Name of the drive it concerns; absent when it concerns all.
    pub drive: Option<String>,
    /// The event in words.
    pub text: String,
}

/// Subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveEventKind {
    /// A drive was pulled, lost power or lost its link.
    Lost,
    /// A drive is back.
    Back,
    /// Drives began or ceased to lend.
    Lending,
    /// A host came or went.
    Connection,
    /// A setting was changed: pace, error rate, harvesting.
    Setting,
}

/// Series in equal steps from `begin_seconds`. All arrays of all drives have the same length.
///
/// Steps of 10 ms show a change within 20 ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Points {
    /// Begin of the first step, in simulated seconds since the start.
    pub begin_seconds: f64,
    /// Length of a step in simulated seconds.
    pub step_seconds: f64,
    /// One entry a drive, in the order of the drives.
    pub drives: Vec<DrivePoints>,
}

/// One drive in fine steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DrivePoints {
    /// Bytes read a second.
    pub read_bytes_per_s: Vec<f64>,
    /// Bytes written a second.
    pub write_bytes_per_s: Vec<f64>,
    /// Mean latency of the requests completed in the step; absent without any.
    pub latency_mean_us: Vec<Option<f64>>,
    /// Busy share of the cores.
    pub processor_utilization: Vec<f64>,
    /// The part of it that served other drives.
    pub lent_utilization: Vec<f64>,
}

/// A command to a running JBOF. In JSON: `{"command": "link", "drive": "busy-0", "up": false}`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum LiveCommand {
    /// Pull a drive out of its slot.
    Pull {
        /// Drive name.
        drive: String,
    },
    /// Put a pulled drive back.
    Insert {
        /// Drive name.
        drive: String,
    },
    /// Cut the power of all drives, or restore it.
    Power {
        /// Whether there is to be power.
        on: bool,
    },
    /// Take the link of a drive down, or up again.
    Link {
        /// Drive name.
        drive: String,
        /// Whether the link is to be up.
        up: bool,
    },
    /// Set the raw bit error rate of a drive's flash: the effect of wear and retention.
    Age {
        /// Drive name.
        drive: String,
        /// Errors a bit, from 0 to [`RAW_BIT_ERROR_RATE_MAX`].
        raw_bit_error_rate: f64,
    },
    /// Let drives lend and borrow, or stop it.
    Harvest {
        /// Whether they may.
        on: bool,
    },
}

/// Highest rate that [`LiveCommand::Age`] takes: beyond it, the inverse would be read better.
pub const RAW_BIT_ERROR_RATE_MAX: f64 = 0.5;

impl LiveCommand {
    /// Name of the drive that the command is for; `None` when it is for all.
    pub fn drive(&self) -> Option<&str> {
        match self {
            Self::Pull { drive } | Self::Insert { drive } | Self::Link { drive, .. } | Self::Age { drive, .. } => {
                Some(drive)
            }
            Self::Power { .. } | Self::Harvest { .. } => None,
        }
    }

    /// Whether the figures of the command are in range.
    pub fn is_in_range(&self) -> bool {
        match self {
            Self::Age { raw_bit_error_rate, .. } => (0.0..=RAW_BIT_ERROR_RATE_MAX).contains(raw_bit_error_rate),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::shape;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// Snapshot that the tests of the live page draw.
    const FIXTURE: &str = include_str!("../../../../web/dash/fixture/snapshot.json");

    /// One of everything, so that every key of the schema appears.
    fn snapshot() -> Snapshot {
        Snapshot {
            scenario: "live".to_owned(),
            pace: Some(1.0),
            drives: vec![DriveSnapshot { mapping_miss_ratio: Some(0.0), ..DriveSnapshot::default() }],
            lending: vec![Loan { resource: LentResource::Processor, lender: 0, borrower: 1, amount: 0.5 }],
            events: vec![LiveEvent {
                number: 1,
                time_seconds: 1.0,
                kind: LiveEventKind::Lost,
                drive: Some("busy-0".to_owned()),
                text: "pulled".to_owned(),
            }],
            points: Points {
                drives: vec![DrivePoints {
                    read_bytes_per_s: vec![1.0],
                    write_bytes_per_s: vec![1.0],
                    latency_mean_us: vec![None, Some(1.0)],
                    processor_utilization: vec![1.0],
                    lent_utilization: vec![1.0],
                }],
                ..Points::default()
            },
            ..Snapshot::default()
        }
    }

    /// Every word that stands under a key, anywhere in a document.
    fn words(value: &Value, key: &str, into: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| words(item, key, into)),
            Value::Object(fields) => {
                into.extend(fields.get(key).and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| words(field, key, into));
            }
            _ => {}
        }
    }

    #[test]
    fn the_fixture_of_the_live_page_has_exactly_the_keys_that_a_snapshot_has() {
        let fixture: Value = serde_json::from_str(FIXTURE).unwrap();
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        shape(&serde_json::to_value(snapshot()).unwrap(), "", &mut ours);
        shape(&fixture, "", &mut theirs);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn the_fixture_of_the_live_page_has_every_word_that_a_snapshot_may_have() {
        let fixture: Value = serde_json::from_str(FIXTURE).unwrap();
        let check = |key: &str, ours: Value| {
            let mut theirs = Vec::new();
            words(&fixture, key, &mut theirs);
            theirs.sort();
            theirs.dedup();
            let mut ours: Vec<String> = serde_json::from_value(ours).unwrap();
            ours.sort();
            assert_eq!(theirs, ours, "{key}");
        };
        use DriveState::{Away, Off, Ready, Resetting, Unlinked};
        use LiveEventKind::{Back, Connection, Lending, Lost, Setting};
        check("state", json!([Ready, Away, Off, Unlinked, Resetting]));
        check("kind", json!([Lost, Back, Lending, Connection, Setting]));
        check("resource", json!([LentResource::Processor, LentResource::Memory]));
    }

    #[test]
    fn commands_are_read_as_they_are_documented() {
        let read = |text: &str| serde_json::from_str::<LiveCommand>(text);
        let down = LiveCommand::Link { drive: "busy-0".to_owned(), up: false };
        assert_eq!(read(r#"{"command": "link", "drive": "busy-0", "up": false}"#).unwrap(), down);
        let all = LiveCommand::Power { on: true };
        assert_eq!(read(r#"{"command": "power", "on": true}"#).unwrap(), all);
        assert_eq!((down.drive(), all.drive()), (Some("busy-0"), None));
        assert_eq!(read(r#"{"command": "harvest", "on": true}"#).unwrap(), LiveCommand::Harvest { on: true });
    }

    #[test]
    fn commands_with_unknown_or_missing_parts_are_refused() {
        for text in [
            r#"{"command": "format", "drive": "busy-0"}"#,
            r#"{"command": "pull"}"#,
            r#"{"command": "pull", "drive": 3}"#,
            r#"{"command": "pull", "drive": "busy-0", "force": true}"#,
            r#"{"drive": "busy-0"}"#,
            "[]",
        ] {
            assert!(serde_json::from_str::<LiveCommand>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn error_rates_beyond_one_half_are_out_of_range() {
        let age =
            |raw_bit_error_rate| LiveCommand::Age { drive: "busy-0".to_owned(), raw_bit_error_rate }.is_in_range();
        assert!(age(0.0) && age(RAW_BIT_ERROR_RATE_MAX));
        assert!(!age(-0.1) && !age(0.51) && !age(f64::NAN));
        assert!(LiveCommand::Harvest { on: true }.is_in_range());
    }
}
