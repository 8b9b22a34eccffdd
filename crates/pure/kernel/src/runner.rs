//! Runs a world: takes the next due event, asks the pace, hands the event over.

use crate::EventQueue;
use flashyard_units::{SimSpan, SimTime};

/// Decides when the next due event may run. The only place where virtual and real time differ.
pub trait Pace {
    /// Waits until `deadline` may run.
    fn wait_until(&mut self, deadline: SimTime) -> Wake;
}

/// Why a pace returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Run everything due at the deadline or earlier.
    Due {
        /// How much later than the deadline the wall clock is; zero in virtual time.
        late: SimSpan,
    },
    /// Outside input arrived first; inject it at this time, then ask again.
    Input {
        /// The present on the paced clock.
        now: SimTime,
    },
}

/// The pace of virtual time: never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreeRun;

impl Pace for FreeRun {
    #[inline]
    fn wait_until(&mut self, _deadline: SimTime) -> Wake {
        Wake::Due { late: SimSpan::ZERO }
    }
}

/// One world's clock and pending events.
pub struct Runner<E> {
    /// Events to come.
    pub queue: EventQueue<E>,
    now: SimTime,
}

impl<E: Copy> Default for Runner<E> {
    fn default() -> Self {
        Self { queue: EventQueue::default(), now: SimTime::ZERO }
    }
}

impl<E: Copy> Runner<E> {
    /// The present.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Goes on to the time of the next event, once `pace` lets it happen; `None` when nothing is pending or when input
    /// arrived first. The event is then to be [taken](Self::take).
    #[inline(always)]
    pub fn advance(&mut self, pace: &mut (impl Pace + ?Sized)) -> Option<SimTime> {
        let deadline = self.queue.settle()?;
        match pace.wait_until(deadline) {
            Wake::Due { .. } => {
                debug_assert!(deadline >= self.now, "time went backwards from {:?} to {deadline:?}", self.now);
                self.now = deadline;
                Some(deadline)
            }
            Wake::Input { now } => {
                self.now = now;
                None
            }
        }
    }

    /// Takes the event that time has gone on to. Panics if there is none.
    #[inline(always)]
    pub fn take(&mut self) -> E {
        self.queue.take_first()
    }
}
