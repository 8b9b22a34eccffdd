//! A fleet of arrays whose drives age apart, and light predictors of their latency and failure, judged against what came.
//! Source: \[P\] sheet paraid §9, phases 1 and 3; populations and predictors are \[A\].
//!
//! What it models: years of months. Each drive has the translation layer of crate `ftl` on a small piece of flash, which is written for a
//! part of each month and taken forward for the rest; superblocks with error rates of crate `nand`, weaker or stronger by drive and by
//! superblock, which are retired when their reads need too many retries; a queue of commands at one die, drawn again each month, which says what
//! latencies its host sees; an end by wear, or by chance. A drive that fails is replaced by a new one. A fleet may begin in use: each place then
//! lived for some months under its mean load, with replacement, before the first one.
//!
//! The path of a month: `life` says how much each array is asked for and the placement which drive takes which part → `drive` writes, ages,
//! retires and draws latencies → its [`Reading`] is what predictors may see → `predict` learns from half of the arrays → `judge` compares
//! with the other half.
//!
//! What it does not model: data, rebuilds and their load, temperature, retention, firmware; drives of different capacities.
//!
//! Invariants: predictors see readings and nothing else of a drive; a drive's random numbers depend on its place and number only, so that
//! what one drive suffers changes no other.

mod config;
mod drive;
mod judge;
mod least_squares;
mod life;
mod months;
mod predict;
mod record;
pub mod room;
mod sampled;
#[cfg(test)]
mod tests;

pub use config::{FlashTimes, FleetConfig, FleetError, Placement, Predictor};
pub use drive::{AgeingDrive, Cause, Load, Reading};
pub use judge::{Judged, auc, judge};
pub use life::live;
pub use predict::{Model, train};
pub use record::{DriveLife, FleetLife};
