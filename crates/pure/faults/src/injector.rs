//! When the next fault of a plan is due: the world asks before each event.

use crate::plan::{At, Fault, FaultPlan};
use flashyard_units::SimTime;

/// Walks through a plan beside the event loop of a world.
///
/// Before it handles an event, the world asks [`Self::due`] until the answer is `None`, and injects what it gets;
/// then it handles the event and calls [`Self::handled`]. When no event is left, it asks with [`SimTime::MAX`], so that
/// a fault at a time after the last event still strikes.
#[derive(Clone, Debug)]
pub struct Injector<'a> {
    faults: &'a [(At, Fault)],
    events: u64,
    taken: Vec<u64>,
}

impl<'a> Injector<'a> {
    /// At the beginning of the plan.
    pub fn new(plan: &'a FaultPlan) -> Self {
        Self { faults: &plan.faults, events: 0, taken: Vec::new() }
    }

    /// The fault that strikes before the next event, which is due at `next`, and its time where the plan gives one.
    #[inline]
    pub fn due(&mut self, next: SimTime) -> Option<(Fault, Option<SimTime>)> {
        let &(at, fault) = self.faults.get(self.taken.len())?;
        let since = self.events - self.taken.last().copied().unwrap_or(0);
        let time = match at {
            At::Event(event) if event <= self.events => None,
            At::After(events) if events <= since => None,
            At::Time(time) if time <= next => Some(time),
            _ => return None,
        };
        self.taken.push(self.events);
        Some((fault, time))
    }

    /// An event was handled.
    #[inline]
    pub fn handled(&mut self) {
        self.events += 1;
    }

    /// Events handled so far, which is the number of the next one.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// For each fault that has struck, the number of the event before which it did.
    pub fn into_taken(self) -> Vec<u64> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events a microsecond apart: those before which a fault strikes.
    fn taken(plan: &str, events: u64) -> Vec<u64> {
        let case: crate::Case = format!("seed=0;{plan}").parse().expect("a plan");
        let mut injector = Injector::new(&case.plan);
        for event in 0..events {
            while injector.due(SimTime::from_ps(event * 1_000_000)).is_some() {}
            injector.handled();
        }
        while injector.due(SimTime::MAX).is_some() {}
        injector.into_taken()
    }

    #[test]
    fn faults_strike_at_events_at_times_and_after_the_fault_before() {
        assert_eq!(taken("lose1@e3;lose1@r2;lose1@r0;lose1@e9", 20), [3, 5, 5, 9]);
        assert_eq!(taken("lose1@t4us;lose1@t4500ns;lose1@r1", 20), [4, 5, 6]);
        assert_eq!(taken("lose1@r2", 20), [2], "the beginning counts as a fault");
    }

    #[test]
    fn no_fault_overtakes_the_one_before_it() {
        assert_eq!(taken("lose1@e7;lose1@e3;lose1@t1us", 20), [7, 7, 7]);
    }

    #[test]
    fn a_time_after_the_last_event_still_comes_and_an_event_does_not() {
        assert_eq!(taken("lose1@t1s;lose1@r0", 4), [4, 4]);
        assert_eq!(taken("lose1@e5", 4), []);
    }
}
