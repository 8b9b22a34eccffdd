//! Figures: latency histograms and their percentiles.
//!
//! Recording allocates nothing; results depend on what was recorded only, never on its order.

mod latency;

pub use latency::LatencyHistogram;
