//! The lifetime of one drive, from new to dead, without timing.
//!
//! What it models: preconditioning, a workload that is repeated until death, wear and retirement of superblocks,
//! the two ends of a lifetime (fixed capacity and variable capacity), reduction of capacity with a bound on what the
//! file system may relocate, and jumps of fast-forward ageing.
//! The path of one write: the source says which slots, the placement where the file system keeps them, the drive's
//! own translation layer writes them on a medium that only counts; when the layer has no room left, or too many
//! superblocks are retired, the capacity shrinks or the drive is dead.
//! What it does not model: time and errors; reads, which wear nothing out; files: the file system does not need data
//! that the workload never wrote.
//!
//! Invariants: data that the workload wrote stays mapped until death; the capacity never grows; the same configuration
//! and source give the same lifetime.
//!
//! Source: [P] sheet wear-leveling §3.

mod ahead;
mod config;
mod forward;
mod life;
mod placement;
mod sample;

pub use config::{Capacity, LifeConfig, LifeError};
pub use forward::{ForwardPlan, Forwarded, fast_forward};
pub use life::Life;
pub use sample::{EndOfLife, LifeFigures, Sample};
