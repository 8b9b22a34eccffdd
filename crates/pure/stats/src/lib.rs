//! Figures: latencies, levels and busy time over time, series, means with their uncertainty, and reuse of keys.
//!
//! What it models: nothing; it counts records of models. The path of one figure: a model records into a meter
//! ([`LatencyHistogram`], [`SplitHistogram`], [`BusyMeter`], [`LevelMeter`], [`Series`], [`MeanEstimate`]), and the
//! report asks the meter once, after the run or at the end of a window. The hits of caches on a stream of keys are
//! counted by [`ReuseDistances`], exactly, or by [`Shards`], from a sample.
//!
//! Invariants: recording allocates nothing, but for keys that are new; time is an argument and never goes
//! backwards; level and busy integrals are exact integers; a latency histogram does not depend on the order of its records. Series
//! and means add floating-point numbers, so the same records in the same order give the same bits.
//!
//! What it does not model: confidence from one run's correlated samples; a mean estimate is for independent
//! values, such as one figure a seed.

mod busy;
mod latency;
mod level;
mod mean;
mod reuse;
mod series;
mod split;

pub use busy::BusyMeter;
pub use latency::LatencyHistogram;
pub use level::{LevelMark, LevelMeter};
pub use mean::{ConfidenceInterval, MeanEstimate};
pub use reuse::{AnchoredCurve, DistanceHistogram, ReuseDistances, Shards};
pub use series::{Series, SeriesKind, SeriesPoint};
pub use split::{CAUSE_COUNT, Cause, MeanSplit, SplitHistogram, SplitPart, TimeSplit};
