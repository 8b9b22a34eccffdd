//! A whole model as one thing: what runners, servers and replays know of any of them.

use crate::Pace;
use flashyard_units::SimTime;

/// A model with its clock and its pending events.
///
/// Callers hold it as `dyn World`, and one call handles hundreds of events: the loop over them and the type of the events
/// stay inside, where the compiler sees both.
pub trait World {
    /// Handles the events that `pace` lets happen, at most `events_max` of them, and returns how many those were.
    fn run(&mut self, pace: &mut dyn Pace, events_max: u64) -> u64;

    /// The time of the last event.
    fn now(&self) -> SimTime;

    /// When the next event is due; `None` if none is pending.
    fn next_due(&self) -> Option<SimTime>;

    /// Events handled since the beginning. With the time, this is the place in the run at which something was done to it.
    fn steps(&self) -> u64;
}
