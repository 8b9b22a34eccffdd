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

    /// The next event and its time, once `pace` lets it run; `None` when nothing is pending or when
    /// input arrived first.
    #[inline(always)]
    pub fn next_event(&mut self, pace: &mut (impl Pace + ?Sized)) -> Option<(SimTime, E)> {
        let deadline = self.queue.next_time()?;
        match pace.wait_until(deadline) {
            Wake::Due { .. } => {
                let (time, event) = self.queue.pop()?;
                debug_assert!(time >= self.now, "time went backwards from {:?} to {time:?}", self.now);
                self.now = time;
                Some((time, event))
            }
            Wake::Input { now } => {
                self.now = now;
                None
            }
        }
    }
}
