//! The clock on the wall as a pace, how late it lets things happen, and how still the machine is.

use flashyard_kernel::{Pace, Wake};
use flashyard_stats::LatencyHistogram;
use flashyard_units::{SimSpan, SimTime};
use std::time::{Duration, Instant};

/// How virtual time follows the clock on the wall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tempo {
    /// Simulated seconds for each second, above zero.
    Scaled(f64),
    /// As fast as possible while requests are in flight; without them time stands still.
    Off,
}

/// A server ends in time after so long on the wall: virtual time in picoseconds ends at 213 days.
pub const SERVED_MAX: Duration = Duration::from_secs(200 * 24 * 3600);

/// Time on the wall since a beginning as virtual time, of which one second is one second; the end of time where it has no more.
pub fn time_of(elapsed: Duration) -> SimTime {
    scaled(elapsed, 1.0)
}

/// Time on the wall since a beginning, for volumes whose completions come from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock(Instant);

impl WallClock {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// The time by the clock.
    pub(crate) fn now(&self) -> SimTime {
        time_of(self.0.elapsed())
    }

    /// The time that is left until `until`.
    pub(crate) fn left(&self, until: SimTime) -> Duration {
        Duration::from_nanos(until.saturating_since(self.now()).as_ns())
    }
}

/// A pace that follows the clock. It never waits itself: the owner of the sockets does.
#[derive(Debug)]
pub struct Paced {
    tempo: Tempo,
    began: Instant,
    /// Virtual time at the last look at the clock; what is due by then needs no other look.
    seen: SimTime,
    /// `Off`: whether any request is waited for.
    wanted: bool,
}

impl Paced {
    /// A pace that begins now, at virtual time zero.
    pub fn new(tempo: Tempo) -> Self {
        Self { tempo, began: Instant::now(), seen: SimTime::ZERO, wanted: false }
    }

    /// Virtual time by the clock; `None` where none rules.
    pub fn now(&self) -> Option<SimTime> {
        match self.tempo {
            Tempo::Scaled(scale) => Some(scaled(self.began.elapsed(), scale)),
            Tempo::Off => None,
        }
    }

    /// Time on the wall until virtual time `due`; `None` where no clock rules.
    pub fn until(&self, due: SimTime) -> Option<Duration> {
        let Tempo::Scaled(scale) = self.tempo else { return None };
        let now = scaled(self.began.elapsed(), scale);
        Some(Duration::from_secs_f64(due.saturating_since(now).as_secs_f64() / scale))
    }

    /// How late something due at `due` is now, on the wall; `None` where no clock rules.
    pub fn late(&self, due: SimTime) -> Option<SimSpan> {
        let Tempo::Scaled(scale) = self.tempo else { return None };
        let late = scaled(self.began.elapsed(), scale).saturating_since(due);
        Some(if scale == 1.0 { late } else { SimSpan::from_ps((late.as_ps() as f64 / scale) as u64) })
    }

    /// Without a clock: lets time pass while `wanted`.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Without a clock: virtual time has come to `time`.
    pub fn reach(&mut self, time: SimTime) {
        self.seen = self.seen.max(time);
    }

    /// The clock that rules.
    pub fn tempo(&self) -> Tempo {
        self.tempo
    }

    /// Time on the wall since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn scaled(elapsed: Duration, scale: f64) -> SimTime {
    let ps = if scale == 1.0 { elapsed.as_nanos() * 1000 } else { (elapsed.as_secs_f64() * scale * 1e12) as u128 };
    SimTime::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

impl Pace for Paced {
    #[inline]
    fn wait_until(&mut self, deadline: SimTime) -> Wake {
        if deadline <= self.seen {
            return Wake::Due { late: SimSpan::ZERO };
        }
        match self.now() {
            Some(now) => {
                self.seen = now;
                if deadline <= now { Wake::Due { late: now.since(deadline) } } else { Wake::Input { now } }
            }
            // Virtual time has reached what was done last, and goes no further.
            None if self.wanted => {
                self.seen = deadline;
                Wake::Due { late: SimSpan::ZERO }
            }
            None => Wake::Input { now: self.seen },
        }
    }
}

/// How late answers were handed out after they were due, on the wall, and how still the machine was before.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Of every answer.
    pub answers: LatencyHistogram,
    /// Gaps between looks at the clock on an otherwise idle thread: what the machine itself adds.
    pub noise: LatencyHistogram,
}

/// Looks at the clock over and over for `span`, and returns the gaps.
pub fn noise(span: Duration) -> LatencyHistogram {
    let mut gaps = LatencyHistogram::new();
    let began = Instant::now();
    let mut last = began;
    while last.duration_since(began) < span {
        let now = Instant::now();
        let gap = now.duration_since(last).as_nanos();
        gaps.record(SimSpan::from_ns(u64::try_from(gap).unwrap_or(u64::MAX / 1000)));
        last = now;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_clock_lets_happen_what_is_due_and_no_more() {
        let mut pace = Paced::new(Tempo::Scaled(1000.0));
        std::thread::sleep(Duration::from_millis(2));
        assert!(matches!(pace.wait_until(SimTime::from_ps(1_000_000_000_000)), Wake::Due { .. }), "1 s of 2 s");
        let Wake::Input { now } = pace.wait_until(SimTime::MAX) else { panic!("the end of time is not due") };
        assert!(now >= SimTime::from_ps(2_000_000_000_000));
        assert!(pace.until(now).is_some_and(|wait| wait == Duration::ZERO));
        assert!(pace.late(SimTime::ZERO) >= Some(SimSpan::from_ms(2)));
    }

    #[test]
    fn time_on_the_wall_stands_still_at_the_end_of_virtual_time() {
        let of_days = |days: u64| time_of(Duration::from_secs(days * 24 * 3600));
        assert_eq!(time_of(Duration::from_nanos(7)), SimTime::from_ps(7000));
        assert!(time_of(SERVED_MAX) == of_days(200) && of_days(200) < of_days(213));
        assert_eq!([of_days(214), of_days(40_000), time_of(Duration::MAX)], [SimTime::MAX; 3]);
    }

    #[test]
    fn without_a_clock_time_passes_only_while_somebody_waits() {
        let mut pace = Paced::new(Tempo::Off);
        assert!(matches!(pace.wait_until(SimTime::from_ps(1)), Wake::Input { .. }));
        pace.want(true);
        assert!(matches!(pace.wait_until(SimTime::from_ps(1)), Wake::Due { .. }));
        assert_eq!((pace.now(), pace.late(SimTime::ZERO), pace.until(SimTime::MAX)), (None, None, None));
    }
}
