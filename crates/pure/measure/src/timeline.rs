//! How a run went over simulated time: counters read at equal intervals.
//!
//! The length of a run is not known when it begins. Readings start close together; whenever there are too many,
//! every other one is dropped and the interval doubles. Counters only ever grow, so what is left tells the same
//! story in less detail, and a run costs the same memory whether it lasts a millisecond or a day.

use flashyard_units::{SimSpan, SimTime};

/// Readings kept at most; half as many after each doubling.
const READINGS_MAX: usize = 256;

/// The first interval.
const FIRST_INTERVAL: SimSpan = SimSpan::from_us(100);

/// Counters of a system at one instant.
pub trait Dated {
    /// When they were read.
    fn at(&self) -> SimTime;
}

/// Readings over a run.
#[derive(Clone, Debug)]
pub struct Timeline<R> {
    /// Simulated time between readings.
    pub interval: SimSpan,
    /// Readings in order of time, the first at the beginning. The last one may follow sooner.
    pub readings: Vec<R>,
    due: SimTime,
}

impl<R> Default for Timeline<R> {
    fn default() -> Self {
        Self { interval: FIRST_INTERVAL, readings: Vec::new(), due: SimTime::ZERO }
    }
}

impl<R: Dated> Timeline<R> {
    /// When the next reading is due: the counters are read before the first event after it.
    #[inline]
    pub fn due(&self) -> SimTime {
        self.due
    }

    /// Adds a reading of [`Self::due`], or a last one.
    pub fn add(&mut self, reading: R) {
        self.readings.push(reading);
        if self.readings.len() > READINGS_MAX {
            // The reading at the beginning has number 0 and stays.
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.interval = self.interval * 2;
        }
        let last = self.readings.last().map_or(SimTime::ZERO, Dated::at);
        self.due = last.saturating_add(self.interval);
    }

    /// Whether the last reading is from before `now`.
    pub fn ends_before(&self, now: SimTime) -> bool {
        self.readings.last().is_none_or(|last| last.at() < now)
    }

    /// Nothing more is read.
    pub fn close(&mut self) {
        self.due = SimTime::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Dated for SimTime {
        fn at(&self) -> SimTime {
            *self
        }
    }

    #[test]
    fn a_long_run_keeps_equal_intervals_and_bounded_readings() {
        let mut timeline = Timeline::default();
        for _ in 0..2_000 {
            timeline.add(timeline.due());
        }
        assert!((READINGS_MAX / 2..=READINGS_MAX).contains(&timeline.readings.len()), "{}", timeline.readings.len());
        assert_eq!(timeline.readings[0], SimTime::ZERO);
        let gaps = timeline.readings.windows(2).map(|pair| pair[1].since(pair[0]));
        assert!(gaps.into_iter().all(|gap| gap == timeline.interval));
    }
}
