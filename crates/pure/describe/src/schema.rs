//! The scenario file: every key, with its unit in its name or its value. One definition feeds parsing, the
//! JSON Schema and the resolved copy in every result.

use crate::drive::DriveSection;
use crate::error::{ScenarioError, value};
use crate::quantity::{Size, Time};
use crate::section::DRIVES;
use crate::serving::ServeSection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::Table;

/// A scenario with its profiles merged in: what the scenarios of all systems have.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, used in results.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// System that the scenario is of; the first that `flashyard systems` lists without it.
    #[serde(default)]
    pub system: Option<String>,
    /// Seed of all random streams.
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Designs of the system to run, in order; `flashyard systems` lists them.
    #[serde(default)]
    pub designs: Vec<String>,
    /// The drive; `profile` names a file of profiles/drives, other keys override it. Scenarios of a system whose drive is
    /// no part of them ([`crate::Room::has_drive`]) leave it out, and nothing reads this field of theirs.
    #[serde(default = "unread_drive")]
    pub drive: DriveSection,
    /// The load of the busy drives; a system that only serves has none.
    #[serde(default)]
    pub workload: WorkloadSection,
    /// How long to run.
    #[serde(default)]
    pub run: RunSection,
    /// How the system serves.
    #[serde(default)]
    pub serve: ServeSection,
    /// Keys to sweep, each with its values: `"drive.cores" = [2, 3, 6]`. Every combination is run.
    #[serde(default)]
    pub sweep: Sweep,
    /// The measure of the runs of a sweep.
    #[serde(default)]
    pub explore: ExploreSection,
    /// The whole scenario, for the sections that belong to its system.
    #[serde(skip)]
    pub(crate) own: Table,
}

impl Scenario {
    /// Refuses a scenario without a name, and designs that are named again.
    pub(crate) fn has_names(&self) -> Result<(), ScenarioError> {
        if self.name.trim().is_empty() {
            return Err(value("name", "it is empty; results go by it, give a short one".to_owned()));
        }
        let again = |&(place, design): &(usize, &String)| self.designs[..place].contains(design);
        match self.designs.iter().enumerate().find(again) {
            Some((_, design)) => Err(value("designs", format!("{design} is there twice; name each design once"))),
            None => Ok(()),
        }
    }

    /// The sections that belong to the scenario's system, as that reads them.
    ///
    /// Errors: a section that was not held against the schema of this system.
    pub fn own<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        self.own.clone().try_into().map_err(|error| ScenarioError::Program(format!("sections of a system: {error}")))
    }
}

impl Scenario {
    /// The numbers of the volumes that clients see, of as many as the system has.
    ///
    /// Errors: a volume that there is not, or none.
    pub fn exported(&self, volumes: u16) -> Result<Vec<u16>, ScenarioError> {
        let Some(list) = &self.serve.drives else { return Ok((0..volumes).collect()) };
        if let Some(beyond) = list.iter().find(|&&volume| volume >= volumes) {
            return Err(value("serve.drives", format!("there is no drive {beyond}, give 0 to {}", volumes - 1)));
        }
        let mut sorted = list.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() {
            return Err(value("serve.drives", "none is served; name some, or leave the key out for all".to_owned()));
        }
        Ok(sorted)
    }
}

/// A value of an axis, as it stands in the file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepValue {
    /// A switch.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A quantity with its unit, or a name.
    Text(String),
}

impl std::fmt::Display for SweepValue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch(value) => value.fmt(out),
            Self::Whole(value) => value.fmt(out),
            Self::Number(value) => value.fmt(out),
            Self::Text(value) => value.fmt(out),
        }
    }
}

/// Keys (`section.key`) with the values that each takes.
pub type Sweep = BTreeMap<String, Vec<SweepValue>>;

/// The measure of the explorer for the runs of a sweep.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExploreSection {
    /// How much less throughput and how much more p99 than the reference still counts as the same service, in percent.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub within_percent: f64,
    /// Design that is the reference; the first of the system without it.
    pub reference: Option<String>,
}

impl Default for ExploreSection {
    fn default() -> Self {
        // [A] a loss that a user would hardly notice
        Self { within_percent: 5.0, reference: None }
    }
}

/// The load of the busy drives: `fio`, or else `trace` or `traces`, or else `table2`, or else a pattern.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadSection {
    /// Job files of fio, from the directory of the scenario: one for all busy drives, or one each in order, given out
    /// again from the first when there are fewer. A drive runs all jobs of its file at once. No other key of this section
    /// goes with it.
    pub fio: Option<OneOrMany>,
    /// Trace files: one for all busy drives, or one each.
    pub trace: Option<OneOrMany>,
    /// Trace files, one a busy drive in order; fewer than drives are given out again from the first, each time at
    /// another place of the drive. `FILE#format` names the format.
    pub traces: Option<Vec<String>>,
    /// How often a trace is replayed; without it, as often as `[run]` asks for, and once where that gives no length. Also called `repeat`.
    #[serde(alias = "repeat")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub repetitions: Option<u64>,
    /// Multiplies the request sizes of a trace, to whole sectors of 512 bytes and at least one.
    #[schemars(range(max = 1000.0), extend("exclusiveMinimum" = 0))]
    pub size_factor: Option<f64>,
    /// Divides the arrival times of a trace; open loop only.
    #[schemars(range(max = 1e12), extend("exclusiveMinimum" = 0))]
    pub speed: Option<f64>,
    /// Name of a workload of the published Table 2, generated.
    pub table2: Option<String>,
    /// Name of a trace of the wear-leveling study, generated from its characteristics.
    pub surrogate: Option<String>,
    /// Surrogate: a pass writes its footprint so many times, each page at least once if it is that long, and is repeated request by
    /// request, as traces are that are read in a loop; without it the generator never repeats itself.
    #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0))]
    pub pass: Option<f64>,
    /// Pattern: sequential, uniform, zipf or hot-cold.
    pub pattern: Option<PatternName>,
    /// Pattern: request size.
    #[schemars(extend("x-minimum" = "1 B", "x-maximum" = "1 GiB"))]
    pub size: Option<Size>,
    /// Pattern: share of reads.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_share: Option<f64>,
    /// Pattern: Zipf exponent.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 10))]
    pub zipf_theta: Option<f64>,
    /// Pattern: hot share of the space.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub hot_space: Option<f64>,
    /// Pattern: share of requests that go there.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub hot_traffic: Option<f64>,
    /// Pattern and table2: addressed part of the drive, from its start; all of it without this.
    #[schemars(extend("x-minimum" = "1 B", "x-maximum" = "16 TiB"))]
    pub span: Option<Size>,
    /// Pattern and table2, open loop: requests a second of each drive, Poisson arrivals.
    #[schemars(range(min = 0.001, max = 1e8))]
    pub requests_per_second: Option<f64>,
    /// Burst length; arrivals then come in bursts.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "1000 s"))]
    pub burst: Option<Time>,
    /// Pause between bursts.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1000 s"))]
    pub pause: Option<Time>,
    /// Closed loop: requests in flight for each busy drive. Without it, arrival times are kept.
    #[schemars(range(min = 1, max = 65_536))]
    pub depth: Option<u32>,
}

/// One file or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// Address patterns by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternName {
    /// One after the other.
    Sequential,
    /// Anywhere.
    Uniform,
    /// Zipf.
    Zipf,
    /// A hot and a cold part.
    HotCold,
}

/// How long to run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSection {
    /// Simulated time before figures count; with a job file, in place of its `ramp_time`.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "864000 s"))]
    pub warmup: Option<Time>,
    /// Simulated time that figures cover; with a job file, the most that they cover.
    #[schemars(extend("x-minimum" = "1 us", "x-maximum" = "864000 s"))]
    pub measure: Option<Time>,
    /// Requests of each busy drive that warm its mapping cache before the run, without timing. A trace warms
    /// with one pass at most.
    #[schemars(range(min = 0, max = 100_000_000))]
    pub warm_mapping_requests: u64,
    /// Requests of each busy drive, when `measure` is absent: the run and its measured window end when the first drive
    /// has been asked for so many, since load falls from then on.
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub requests_per_drive: Option<u64>,
}

/// The first profile, which describes every key of a drive.
fn unread_drive() -> DriveSection {
    toml::from_str(DRIVES.builtin[0].1).expect("a profile is a complete drive")
}
