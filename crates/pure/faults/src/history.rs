//! A host's view, recorded: to be checked again, or read by a person.

use crate::oracle::{Action, Extent, OperationId, Oracle, OracleCounters, Violation};
use flashyard_units::{SimSpan, SimTime};
use std::fmt;

/// One thing that the host did or saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It issued an operation.
    Issue {
        /// Its id, which is free.
        id: OperationId,
        /// The action.
        action: Action,
        /// Its slots.
        extent: Extent,
    },
    /// A write or trim was acknowledged.
    Acknowledged(OperationId),
    /// A read returned a stamp for each of its slots.
    Returned(OperationId, Vec<u64>),
    /// It gave an operation up.
    Failed(OperationId),
    /// No operation that was given up on this drive can still happen.
    Settle(u32),
}

/// Events in their order, with their times, which never decrease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Slots of each drive.
    pub slots_by_drive: Vec<u64>,
    /// The events.
    pub events: Vec<(SimTime, Event)>,
}

impl Oracle {
    /// Takes in one event.
    ///
    /// Errors: the event is impossible. Panics where [`Oracle::issue`] does.
    pub fn tell(&mut self, at: SimTime, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Issue { id, action, extent } => {
                self.issue(at, *id, *action, *extent);
                Ok(())
            }
            Event::Acknowledged(id) => self.acknowledged(at, *id),
            Event::Returned(id, stamps) => self.returned(at, *id, stamps),
            Event::Failed(id) => self.failed(at, *id),
            Event::Settle(drive) => {
                self.settle(at, *drive);
                Ok(())
            }
        }
    }
}

impl History {
    /// Checks all events; operations still under way at the end are no violation.
    ///
    /// Errors: the first impossible event.
    pub fn check(&self) -> Result<OracleCounters, Violation> {
        let mut oracle = Oracle::new(&self.slots_by_drive);
        self.events.iter().try_for_each(|(at, event)| oracle.tell(*at, event))?;
        Ok(oracle.counters())
    }
}

impl fmt::Display for History {
    /// One line an event, beginning with the order number that violations name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (at, event)) in self.events.iter().enumerate() {
            write!(f, "#{} {}: ", index + 1, SimSpan::from_ps(at.as_ps()))?;
            match event {
                Event::Issue { id, action, extent: Extent { drive, first, count } } => {
                    match action {
                        Action::Read => write!(f, "read {id}")?,
                        Action::Write(stamp) => write!(f, "write {id} of {stamp}")?,
                        Action::Trim => write!(f, "trim {id}")?,
                    }
                    writeln!(f, " to drive {drive}, slots {first} to {}", first + u64::from(*count) - 1)?;
                }
                Event::Acknowledged(id) => writeln!(f, "{id} acknowledged")?,
                Event::Returned(id, stamps) => writeln!(f, "{id} returned {stamps:?}")?,
                Event::Failed(id) => writeln!(f, "{id} given up")?,
                Event::Settle(drive) => writeln!(f, "nothing of what drive {drive} was given up with is left")?,
            }
        }
        Ok(())
    }
}
