//! Parameters of a fleet, and its predictors.

use flashyard_ftl::FtlConfigError;
use flashyard_nand::WearModelError;
use flashyard_units::{Named, SimSpan};

/// How the next month of a drive is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Predictor {
    /// As the last month; drives fail by their erases.
    Last,
    /// By exponential smoothing; drives fail by the spare that they used.
    Smoothed,
    /// By ridge regression over telemetry; drives fail by logistic regression.
    Learned,
}

impl Named for Predictor {
    const ALL: &'static [Self] = &[Self::Last, Self::Smoothed, Self::Learned];

    fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Smoothed => "smoothed",
            Self::Learned => "learned",
        }
    }
}

impl Predictor {
    /// The predictor in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Last => "the next month is as the last one; drives with most erases fail first",
            Self::Smoothed => {
                "the next month by exponential smoothing; drives that used most of their spare fail first"
            }
            Self::Learned => "ridge regression of latency and logistic regression of failure over all telemetry",
        }
    }
}

/// Which drive of an array takes which part of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each the same.
    Even,
    /// Reads by predicted speed.
    Reads,
    /// Writes by predicted remaining lifetime.
    Writes,
    /// Both.
    Both,
}

impl Named for Placement {
    const ALL: &'static [Self] = &[Self::Even, Self::Reads, Self::Writes, Self::Both];

    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Both => "both",
        }
    }
}

impl Placement {
    /// Whether reads, and whether writes, are placed by prediction.
    pub(super) const fn predicted(self) -> [bool; 2] {
        [matches!(self, Self::Reads | Self::Both), matches!(self, Self::Writes | Self::Both)]
    }
}

/// Times of a die.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashTimes {
    /// To sense a page once, with its transfer.
    pub read: SimSpan,
    /// To program a page.
    pub program: SimSpan,
    /// To erase a block.
    pub erase: SimSpan,
    /// Longest wait that a command has before its host holds others back.
    pub wait_max: SimSpan,
}

/// A fleet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetConfig {
    /// Arrays; every other one is learned from, the others are judged.
    pub arrays: u32,
    /// Drives of an array.
    pub drives: u32,
    /// Months.
    pub months: u32,
    /// Most months that a place was in use before the first one: each of 0 to so many is as likely.
    pub age_months: u32,
    /// Whether all places of an array were in use for as long.
    pub age_alike: bool,
    /// Mean drive writes a day.
    pub writes_per_day: f64,
    /// Reads of a page for each page that the host writes.
    pub reads_per_write: f64,
    /// Standard deviation of the logarithm of the load: by array, by drive, by month.
    pub spread: [f64; 3],
    /// Part of a month's deviation that the load keeps in the next one.
    pub persistence: f64,
    /// Erases that a superblock of mean quality is made for.
    pub endurance: u32,
    /// Standard deviation of the logarithm of error rates' age: by drive, by superblock of a drive.
    pub quality: [f64; 2],
    /// Wrong bits of 4 KiB that the code corrects without a retry.
    pub ecc_bits: u32,
    /// Retries beyond which a superblock is retired.
    pub retries_max: u32,
    /// Share of flash beyond what is exported.
    pub spare: f64,
    /// Share of drives that fail for other reasons in a year.
    pub other_failures: f64,
    /// One part in so many of a month is simulated; wear goes on for the rest.
    pub fast_forward: u32,
    /// Pages of a die.
    pub die_pages: f64,
    /// Pages of a block.
    pub block_pages: u32,
    /// Times of a die.
    pub times: FlashTimes,
    /// Commands that are drawn in a month.
    pub commands: u32,
    /// Months ahead within which a failure counts as predicted.
    pub horizon: u32,
    /// Share of months of drives that may be flagged.
    pub budget: f64,
    /// Which drive takes which part of the load.
    pub placement: Placement,
    /// Seed of all draws.
    pub seed: u64,
}

/// Why a fleet cannot live.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FleetError {
    /// A translation layer that cannot be.
    #[error(transparent)]
    Ftl(#[from] FtlConfigError),
    /// Wear that cannot be.
    #[error(transparent)]
    Wear(#[from] WearModelError),
    /// Too few arrays to learn from some and judge others.
    #[error("there are {0} arrays; give 2 or more, one to learn from and one to judge")]
    Arrays(u32),
    /// Superblocks that are retired before they are used.
    #[error("reads of a new superblock need more than {0} retries; give more, or a stronger code")]
    BornRetired(u32),
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
}
