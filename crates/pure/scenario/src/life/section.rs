//! The `[life]` section of a scenario.

use crate::names::{Choice, Policy};
use crate::quantity::Size;
use flashyard_ftl::{Allocation, Frontiers, WearLeveling};
use flashyard_systems::ffssd::Prediction;
use schemars::JsonSchema;
use serde::Deserialize;

/// How the drive ages. Absent keys keep the defaults of the wear-leveling study.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LifeSection {
    /// Erases that a superblock is made for; 500 without it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub endurance: Option<u32>,
    /// Whether superblocks are retired at that many erases; they are without it.
    pub retire: Option<bool>,
    /// Wear leveling: none, hot-cold-swap(TH), obp(TH,PT), dp(TH), pwl(PERCENT) or uneven(PERCENT); that of the drive without it.
    pub wear_leveling: Option<Policy<WearLeveling>>,
    /// Which erased superblock is opened next: fifo, youngest-first, oldest-first or wear-focusing; that of the drive
    /// without it.
    pub allocation: Option<Choice<Allocation>>,
    /// Whether host data and moved data share superblocks: shared or separate; as the drive says without it, and
    /// shared where neither does.
    pub frontiers: Option<Choice<Frontiers>>,
    /// End of life: fixed or variable.
    pub capacity: Option<CapacityName>,
    /// The capacity shrinks with every superblock retired, and the file system relocates at most so much.
    #[schemars(extend("x-minimum" = "0 B", "x-maximum" = "16 TiB"))]
    pub relocation_bound: Option<Size>,
    /// The file system keeps the data in extents of this size all over the drive.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 TiB"))]
    pub extent: Option<Size>,
    /// Random writes of the whole drive before the workload; 3 without it.
    #[schemars(range(min = 0, max = 100))]
    pub random_fills: Option<u32>,
    /// Drive writes between two rows of the table; 5 without it.
    #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0))]
    pub sample_drive_writes: Option<f64>,
    /// Drive writes of an observation period of fast-forward ageing; 0.5 without it.
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
