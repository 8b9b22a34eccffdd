//! Failures of what must be done: it is tried again for about a second.

use flashyard_service::Failure;
use flashyard_units::{SimSpan, SimTime};

/// Failures in a row before a service gives up, and the wait after the first, which doubles. Source: \[A\].
const TRIES: u32 = 10;
const RETRY: SimSpan = SimSpan::from_ms(1);

/// How often it has failed, and when it is tried again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    failures: u32,
    pause: Option<SimTime>,
    broken: Option<Failure>,
}

impl Patience {
    pub(crate) fn broken(&self) -> Option<Failure> {
        self.broken
    }

    pub(crate) fn break_down(&mut self, failure: Failure) {
        self.broken.get_or_insert(failure);
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It has ended; if that is a failure, it is tried again.
    pub(crate) fn ended(&mut self, now: SimTime, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.failed(now, failure);
        }
    }

    pub(crate) fn failed(&mut self, now: SimTime, failure: Failure) {
        self.failures += 1;
        if failure == Failure::Gone || self.failures > TRIES {
            self.break_down(failure);
        } else {
            self.pause = Some(now + RETRY * (1 << (self.failures - 1)));
        }
    }

    /// The end of the pause, if there is one.
    pub(crate) fn pause(&mut self, now: SimTime) -> Option<SimTime> {
        self.pause = self.pause.filter(|&until| until > now);
        self.pause
    }
}
