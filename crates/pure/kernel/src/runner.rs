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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, Nested, Outbox, Schedule};

    /// Two timers, at 10 and at 25 ps, then a report of how many have come.
    struct Timers(u32);

    impl Machine for Timers {
        type Event = SimSpan;
        type Effect = u32;

        fn handle(&mut self, now: SimTime, next: SimSpan, out: &mut impl Outbox<SimSpan, u32>) {
            self.0 += 1;
            if self.0 < 3 {
                out.at(now + next, SimSpan::from_ps(15));
            }
            out.emit(self.0);
        }
    }

    /// Lets nothing happen before its input has come.
    struct InputFirst(Option<SimTime>);

    impl Pace for InputFirst {
        fn wait_until(&mut self, _deadline: SimTime) -> Wake {
            self.0.take().map_or(Wake::Due { late: SimSpan::from_ns(1) }, |now| Wake::Input { now })
        }
    }

    #[test]
    fn a_child_is_woken_and_heard_through_its_parents_queue_in_order_of_time() {
        let mut runner: Runner<(u8, SimSpan)> = Runner::default();
        let mut children = [Timers(0), Timers(1)];
        runner.queue.at(SimTime::ZERO, (0, SimSpan::from_ps(10)));
        runner.queue.at(SimTime::from_ps(5), (1, SimSpan::from_ps(15)));
        let mut heard = Vec::new();
        while let Some(now) = runner.advance(&mut FreeRun) {
            let (child, event) = runner.take();
            let mut effects = Vec::new();
            let out = &mut Nested::new(&mut runner.queue, |event| (child, event), &mut effects);
            children[usize::from(child)].handle(now, event, out);
            assert_eq!(runner.now(), now);
            heard.extend(effects.into_iter().map(|count| (now.as_ps(), child, count)));
        }
        assert_eq!(heard, [(0, 0, 1), (5, 1, 2), (10, 0, 2), (20, 1, 3), (25, 0, 3)]);
        assert_eq!((runner.now(), runner.queue.inserted()), (SimTime::from_ps(25), 5));
    }

    #[test]
    fn input_comes_before_the_event_that_the_pace_waits_for() {
        let mut runner: Runner<u8> = Runner::default();
        runner.queue.push(SimTime::from_ps(40), 1);
        let pace = &mut InputFirst(Some(SimTime::from_ps(30)));
        assert_eq!((runner.advance(pace), runner.now()), (None, SimTime::from_ps(30)));
        // An event that follows from the input is due at once.
        runner.queue.push(SimTime::from_ps(30), 2);
        assert_eq!((runner.advance(pace), runner.take()), (Some(SimTime::from_ps(30)), 2));
        assert_eq!((runner.advance(pace), runner.take()), (Some(SimTime::from_ps(40)), 1));
        assert_eq!((runner.advance(pace), runner.now()), (None, SimTime::from_ps(40)));
    }
}
