//! FF-SSD: ages a drive fast by alternating simulation with prediction of each block's erase count.
//!
//! What it models: the five phases simulate, observe, train, predict and project; two-point lines for each block,
//! or lines for groups of blocks; a fixed acceleration factor, or one that follows how steady write amplification
//! is; the rivals DEVS and CML; accuracy against full simulation.
//! The path of one period: [`FastForward::next`] says whether to simulate the next period or to jump; after a
//! simulated one the caller hands the erase counts to [`FastForward::observe`], for a jump it sets those that
//! [`FastForward::project`] returns.
//! What it does not model: data placement, which a jump leaves as it is; the time that prediction takes.
//!
//! Invariants: no prediction exceeds the endurance, and a block that reached it stays there. Others may be set back by a model that is
//! not a line through its last point.
//!
//! Source: [P] sheet ff-ssd §3 and §5; assumptions are marked.

mod accuracy;
mod forward;
mod groups;
mod predictors;
mod skew_normal;
mod steadiness;

pub use accuracy::{accuracy, distribution_accuracy};
pub use forward::{FastForward, ForwardConfig, Step};
pub use predictors::Prediction;
pub use skew_normal::{Fit, SkewNormal};
pub use steadiness::Acceleration;
