//! Moments of events, as the oracle heard of them.

use flashyard_units::SimTime;

/// An instant, and its place among the events reported to the oracle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Number of the event: 1, 2, 3 and so on. 0 is the beginning.
    pub order: u64,
    /// Simulated time.
    pub time: SimTime,
}
