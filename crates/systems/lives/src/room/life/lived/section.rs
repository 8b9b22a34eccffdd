//! The `[life]` section of a scenario, and a scenario with it.

use crate::ffssd::Prediction;
use flashyard_describe::Purpose::Age;
use flashyard_describe::{Choice, Scenario, ScenarioError, Section, Size};
use flashyard_ftl::VictimTies;
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::{Deref, DerefMut};

/// The section, which scenarios of every system may have: their drive can be aged.
pub(crate) static LIFE: Section = Section::of::<LifeSection>("life", &[("life", &[Age])]).shared().with_moved(&[
    ("life.wear_leveling", "drive.wear_leveling", "for every drive has it"),
    ("life.allocation", "drive.allocation", "for every drive has it"),
    ("life.frontiers", "drive.frontiers", "for every drive has it"),
]);

/// The sections as they are read.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Sections {
    #[serde(default)]
    life: LifeSection,
}

/// The scenario of a life: what all scenarios have, and how the drive ages.
#[derive(Clone, Debug)]
pub(crate) struct LifeScenario {
    common: Scenario,
    /// How the drive ages.
    pub(crate) life: LifeSection,
}

impl LifeScenario {
    /// The scenario with its section read.
    ///
    /// Errors: a section that was not held against the schema.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let Sections { life } = scenario.own()?;
        Ok(Self { common: scenario.clone(), life })
    }
}

impl Deref for LifeScenario {
    type Target = Scenario;

    fn deref(&self) -> &Scenario {
        &self.common
    }
}

impl DerefMut for LifeScenario {
    fn deref_mut(&mut self) -> &mut Scenario {
        &mut self.common
    }
}

/// How the drive ages. Absent keys keep the defaults of the wear-leveling study.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LifeSection {
    /// Erases that a superblock is made for; 500 without it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endurance: Option<u32>,
    /// Whether superblocks are retired at that many erases; they are without it.
    pub retire: Option<bool>,
    /// Greedy victim of several with equally little data: oldest-first takes the one that has had so little longest, newest-first
    /// the one that came to it last, least-erased the one with the fewest erases. Without it the oldest is taken.
    pub ties: Option<Choice<VictimTies>>,
    /// End of life: fixed or variable.
    pub capacity: Option<CapacityName>,
    /// The capacity shrinks with every superblock retired, and the file system relocates at most so much.
    #[schemars(extend("x-minimum" = "0 B", "x-maximum" = "16 TiB"))]
    pub relocation_bound: Option<Size>,
    /// The file system keeps the data in extents of this size all over the drive.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 TiB"))]
    pub extent: Option<Size>,
    /// Whether the whole drive is written in order before the workload; it is without it.
    pub filled: Option<bool>,
    /// Random writes of the whole drive before the workload, after that; 3 without it.
    #[schemars(range(min = 0, max = 100))]
    pub random_fills: Option<u32>,
    /// Drive writes between two rows of the table; 5 without it.
    #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0))]
    pub sample_drive_writes: Option<f64>,
    /// Drive writes of an observation period of fast-forward ageing; without it a pass of the workload where it repeats one, else 0.5.
    #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0))]
    pub period_drive_writes: Option<f64>,
    /// Model of fast-forward ageing: two-point, grouped, devs or cml.
    pub prediction: Option<Choice<Prediction>>,
}

/// Capacity of an ageing drive by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityName {
    /// The drive is dead when it cannot keep what it exports.
    #[default]
    Fixed,
    /// It shrinks as superblocks are retired.
    Variable,
}
