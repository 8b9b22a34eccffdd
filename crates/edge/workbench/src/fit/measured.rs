//! Figures from fio's JSON.

use flashyard_workload::fio;
use serde_json::Value;
use std::fmt;

/// A load of which a figure is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureKind {
    /// Random reads, one at a time: mean latency in microseconds.
    ReadAlone,
    /// Random reads, many at a time: requests a second.
    ReadMany,
    /// Reads in sequence: bytes a second.
    ReadSequential,
    /// Random writes, one at a time: mean latency in microseconds.
    WriteAlone,
    /// Random writes, many at a time, on a drive in its steady state: requests a second.
    WriteMany,
    /// Writes in sequence: bytes a second.
    WriteSequential,
}

impl FigureKind {
    /// Its name and unit.
    pub const fn in_words(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadAlone => ("random reads, one at a time", "us"),
            Self::ReadMany => ("random reads, many at a time", "requests/s"),
            Self::ReadSequential => ("reads in sequence", "bytes/s"),
            Self::WriteAlone => ("random writes, one at a time", "us"),
            Self::WriteMany => ("random writes, many at a time", "requests/s"),
            Self::WriteSequential => ("writes in sequence", "bytes/s"),
        }
    }

    /// Whether it is of reads.
    pub(super) const fn reads(self) -> bool {
        matches!(self, Self::ReadAlone | Self::ReadMany | Self::ReadSequential)
    }

    /// Whether offsets follow each other.
    pub(super) const fn is_sequential(self) -> bool {
        matches!(self, Self::ReadSequential | Self::WriteSequential)
    }
}

impl fmt::Display for FigureKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.in_words().0)
    }
}

/// A figure of fio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The load.
    pub kind: FigureKind,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u32,
    /// The value, in the unit of its load.
    pub value: f64,
}

/// Latency, requests and bytes of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    latency_us: f64,
    requests_per_s: f64,
    bytes_per_s: f64,
}

impl Loaded {
    /// Of `read` or `write` of a job; `None` where nothing was moved.
    pub(super) fn of(direction: &Value) -> Option<Self> {
        let of = |value: &Value| value.as_f64().filter(|value| *value > 0.0);
        let latency = of(&direction["lat_ns"]["mean"]).or_else(|| of(&direction["clat_ns"]["mean"]))?;
        Some(Self {
            latency_us: latency / 1e3,
            requests_per_s: of(&direction["iops"])?,
            bytes_per_s: of(&direction["bw_bytes"])?,
        })
    }

    /// The value of a figure of this kind.
    pub(super) const fn value_of(self, kind: FigureKind) -> f64 {
        match kind {
            FigureKind::ReadAlone | FigureKind::WriteAlone => self.latency_us,
            FigureKind::ReadMany | FigureKind::WriteMany => self.requests_per_s,
            FigureKind::ReadSequential | FigureKind::WriteSequential => self.bytes_per_s,
        }
    }
}

/// Why a file has no figures.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// It is not JSON.
    #[error("this is no result of fio --output-format=json: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no jobs.
    #[error("this is no result of fio --output-format=json: it has no jobs")]
    NoJobs,
    /// A job that is none of those of which figures are read.
    #[error("job {job:?}: {message}")]
    Job {
        /// Its name.
        job: String,
        /// The mistake, and what is accepted.
        message: String,
    },
}

/// A job with the clones of it that ran at once.
struct Job {
    group: u64,
    kind: FigureKind,
    block_bytes: u64,
    depth: u32,
    loaded: Loaded,
    clones: u32,
}

/// The figures of a result of fio, one a job. Clones of a job are one load.
///
/// Errors: no result of fio, a job that mixes directions, has several block sizes or has moved nothing.
pub fn measured(text: &str) -> Result<Vec<Figure>, MeasuredError> {
    let document: Value = serde_json::from_str(text)?;
    let jobs = document["jobs"].as_array().filter(|jobs| !jobs.is_empty()).ok_or(MeasuredError::NoJobs)?;
    let mut found: Vec<Job> = Vec::new();
    for job in jobs {
        let next = read(&document["global options"], job)?;
        match found
            .iter_mut()
            .find(|one| (one.group, one.kind, one.depth / one.clones) == (next.group, next.kind, next.depth))
        {
            Some(one) => {
                let (sum, more, clones) = (&mut one.loaded, next.loaded, f64::from(one.clones));
                sum.latency_us = (sum.latency_us * clones + more.latency_us) / (clones + 1.0);
                sum.requests_per_s += more.requests_per_s;
                sum.bytes_per_s += more.bytes_per_s;
                one.depth += next.depth;
                one.clones += 1;
            }
            None => found.push(next),
        }
    }
    Ok(found.into_iter().map(Job::figure).collect())
}

impl Job {
    fn figure(self) -> Figure {
        // A clone of a lone request is no lone request.
        let kind = match self.kind {
            FigureKind::ReadAlone if self.depth > 1 => FigureKind::ReadMany,
            FigureKind::WriteAlone if self.depth > 1 => FigureKind::WriteMany,
            kind => kind,
        };
        Figure { kind, block_bytes: self.block_bytes, depth: self.depth, value: self.loaded.value_of(kind) }
    }
}

fn read(globals: &Value, job: &Value) -> Result<Job, MeasuredError> {
    let name = job["jobname"].as_str().unwrap_or_default().to_owned();
    let wrong = |message: String| MeasuredError::Job { job: name.clone(), message };
    let option = |key: &str| job["job options"][key].as_str().or_else(|| globals[key].as_str());
    let order = option("rw").or_else(|| option("readwrite")).unwrap_or("read");
    let kind = match order {
        "randread" => FigureKind::ReadAlone,
        "randwrite" => FigureKind::WriteAlone,
        "read" => FigureKind::ReadSequential,
        "write" => FigureKind::WriteSequential,
        _ => return Err(wrong(format!("rw={order} is not read; give randread, randwrite, read or write, one a job"))),
    };
    let number = |key: &str, default: u64| match option(key) {
        None => Ok(default),
        Some(text) => bytes(text).ok_or_else(|| wrong(format!("{key}={text} is no number"))),
    };
    let block_bytes = number("bs", 4096)?.max(1);
    // fio keeps to one request where its engine waits for each, and prints the depth that was asked for all the same.
    let waits = fio::waits(option("ioengine").unwrap_or("psync"));
    let depth = if waits { 1 } else { number("iodepth", 1)?.clamp(1, 65_536) as u32 };
    // With group_reporting fio prints one entry for all clones.
    let grouped = option("group_reporting").is_some_and(|switch| switch != "0");
    let clones = if grouped { number("numjobs", 1)?.clamp(1, 65_536) as u32 } else { 1 };
    let direction = &job[if kind.reads() { "read" } else { "write" }];
    let loaded = Loaded::of(direction).ok_or_else(|| wrong(format!("nothing was measured of rw={order}")))?;
    let depth = depth.saturating_mul(clones);
    let kind = match kind {
        FigureKind::ReadAlone if depth > 1 => FigureKind::ReadMany,
        FigureKind::WriteAlone if depth > 1 => FigureKind::WriteMany,
        kind => kind,
    };
    let group = job["groupid"].as_u64().unwrap_or(0);
    Ok(Job { group, kind, block_bytes, depth, loaded, clones: 1 })
}

/// A number with fio's suffix: `4k`, `128KiB`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match suffix.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn direction(iops: f64, bytes: f64, mean_ns: f64) -> Value {
        json!({ "iops": iops, "bw_bytes": bytes, "lat_ns": { "mean": mean_ns } })
    }

    fn job(name: &str, group: u64, options: Value, read: Value, write: Value) -> Value {
        json!({ "jobname": name, "groupid": group, "job options": options, "read": read, "write": write })
    }

    #[test]
    fn each_job_is_a_figure_and_clones_are_one() {
        let none = direction(0.0, 0.0, 0.0);
        let text = json!({
            "global options": { "bs": "4k", "ioengine": "libaio" },
            "jobs": [
                job("alone", 0, json!({ "rw": "randread", "iodepth": "1" }), direction(1e4, 4.096e7, 1e5), none.clone()),
                job("many", 1, json!({ "rw": "randread", "iodepth": "64" }), direction(2e5, 8e8, 3e5), none.clone()),
                job("many", 1, json!({ "rw": "randread", "iodepth": "64" }), direction(3e5, 1.2e9, 2e5), none.clone()),
                job("grouped", 2, json!({ "rw": "randwrite", "iodepth": "8", "numjobs": "4", "group_reporting": "1" }), none.clone(), direction(1e5, 4e8, 1e6)),
                job("seq", 3, json!({ "rw": "write", "bs": "128k", "iodepth": "32" }), none.clone(), direction(1e4, 1.3e9, 3e6)),
                job("waits", 4, json!({ "rw": "randread", "ioengine": "psync", "iodepth": "32" }), direction(9800.0, 4e7, 102e3), none.clone()),
            ],
        });
        let found = measured(&text.to_string()).expect("it is a result");
        let expected = [
            Figure { kind: FigureKind::ReadAlone, block_bytes: 4096, depth: 1, value: 100.0 },
            Figure { kind: FigureKind::ReadMany, block_bytes: 4096, depth: 128, value: 5e5 },
            Figure { kind: FigureKind::WriteMany, block_bytes: 4096, depth: 32, value: 1e5 },
            Figure { kind: FigureKind::WriteSequential, block_bytes: 131_072, depth: 32, value: 1.3e9 },
            Figure { kind: FigureKind::ReadAlone, block_bytes: 4096, depth: 1, value: 102.0 },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_job_of_which_nothing_can_be_read_says_so() {
        let mixed =
            json!({ "jobs": [job("mixed", 0, json!({ "rw": "randrw" }), direction(1.0, 1.0, 1.0), Value::Null)] });
        let told = measured(&mixed.to_string()).expect_err("it mixes").to_string();
        assert!(told.contains("\"mixed\"") && told.contains("randread, randwrite, read or write"), "{told}");
        let idle = json!({ "jobs": [job("idle", 0, json!({ "rw": "read" }), direction(0.0, 0.0, 0.0), Value::Null)] });
        assert!(measured(&idle.to_string()).expect_err("it is idle").to_string().contains("nothing was measured"));
        assert!(matches!(measured("{}"), Err(MeasuredError::NoJobs)));
        assert!(matches!(measured("fio-3.33"), Err(MeasuredError::Json(_))));
    }
}
