//! The time integral of a level, such as requests in flight.

use flashyard_units::{SimSpan, SimTime};

/// A whole-number level and its exact integral over time.
///
/// By Little's law the mean level is the arrival rate times the mean time in the system.
/// Invariant: the integral is the sum of level times length over all stretches of constant level.
#[derive(Clone, Debug)]
pub struct LevelMeter {
    level: u32,
    peak: u32,
    /// Until when the integral is settled.
    settled: SimTime,
    /// In level-picoseconds. 32 bits of level and 64 bits of time need 96 bits: it cannot overflow.
    integral_ps: u128,
    began: SimTime,
}

/// A reading of a meter, from which a later mean counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelMark {
    at: SimTime,
    integral_ps: u128,
}

impl LevelMeter {
    /// A meter at level zero that begins at `now`.
    pub fn new(now: SimTime) -> Self {
        Self { level: 0, peak: 0, settled: now, integral_ps: 0, began: now }
    }

    /// The level goes up by one. Panics when `now` is before the last change.
    #[inline]
    pub fn rise(&mut self, now: SimTime) {
        self.set(now, self.level + 1);
    }

    /// The level goes down by one. Panics at level zero, and when `now` is before the last change.
    #[inline]
    pub fn fall(&mut self, now: SimTime) {
        let level = self.level.checked_sub(1).expect("every fall follows its rise");
        self.set(now, level);
    }

    /// The level becomes `level`. Panics when `now` is before the last change.
    #[inline]
    pub fn set(&mut self, now: SimTime, level: u32) {
        self.integral_ps = self.integral_ps(now);
        self.settled = now;
        self.level = level;
        self.peak = self.peak.max(level);
    }

    /// The present level.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The highest level so far.
    pub fn peak(&self) -> u32 {
        self.peak
    }

    /// Level times time in level-picoseconds up to `now`. Panics when `now` is before the last change.
    #[inline]
    pub fn integral_ps(&self, now: SimTime) -> u128 {
        self.integral_ps + u128::from(self.level) * u128::from(now.since(self.settled).as_ps())
    }

    /// A reading at `now`, to count from later.
    pub fn mark(&self, now: SimTime) -> LevelMark {
        LevelMark { at: now, integral_ps: self.integral_ps(now) }
    }

    /// The mean level from the meter's beginning to `now`; the present level when no time has passed.
    pub fn mean(&self, now: SimTime) -> f64 {
        self.mean_since(now, LevelMark { at: self.began, integral_ps: 0 })
    }

    /// The mean level from `mark` to `now`; the present level when no time has passed.
    ///
    /// Panics when `mark` is later than `now` or comes from a meter with a larger integral.
    pub fn mean_since(&self, now: SimTime, mark: LevelMark) -> f64 {
        let span = now.since(mark.at);
        if span == SimSpan::ZERO {
            return f64::from(self.level);
        }
        (self.integral_ps(now) - mark.integral_ps) as f64 / span.as_ps() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at_us(us: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_us(us)
    }

    #[test]
    fn the_mean_level_weighs_levels_by_their_time() {
        let mut meter = LevelMeter::new(at_us(10));
        meter.rise(at_us(10));
        meter.rise(at_us(20));
        meter.fall(at_us(30));
        // One for 10 us, two for 10 us, one for 20 us.
        assert_eq!(meter.integral_ps(at_us(50)), 50_000_000);
        assert_eq!(meter.mean(at_us(50)), 1.25);
        assert_eq!((meter.level(), meter.peak()), (1, 2));
    }

    #[test]
    fn a_mean_over_no_time_is_the_present_level() {
        let mut meter = LevelMeter::new(at_us(5));
        meter.set(at_us(5), 7);
        assert_eq!(meter.mean(at_us(5)), 7.0);
        assert_eq!(meter.mean_since(at_us(9), meter.mark(at_us(9))), 7.0);
    }

    #[test]
    #[should_panic(expected = "every fall follows its rise")]
    fn a_level_does_not_fall_below_zero() {
        LevelMeter::new(SimTime::ZERO).fall(at_us(1));
    }

    #[test]
    #[should_panic]
    fn changes_do_not_go_back_in_time() {
        let mut meter = LevelMeter::new(SimTime::ZERO);
        meter.rise(at_us(2));
        meter.rise(at_us(1));
    }

    proptest! {
        #[test]
        fn the_integral_is_the_sum_of_all_times_in_the_system(
            visits in prop::collection::vec((0_u64..1_000_000, 0_u64..100_000), 1..100),
        ) {
            // Little's law in its exact form: the integral of requests in flight is the sum of their latencies.
            let mut changes: Vec<(u64, bool)> = visits
                .iter()
                .flat_map(|&(start, length)| [(start, false), (start + length, true)])
                .collect();
            changes.sort_unstable();
            let mut meter = LevelMeter::new(SimTime::ZERO);
            for &(ps, leaves) in &changes {
                let now = SimTime::from_ps(ps);
                if leaves { meter.fall(now) } else { meter.rise(now) }
            }
            let total: u128 = visits.iter().map(|&(_, length)| u128::from(length)).sum();
            prop_assert_eq!(meter.integral_ps(SimTime::from_ps(2_000_000)), total);
            prop_assert_eq!(meter.level(), 0);
        }

        #[test]
        fn marks_split_the_integral_without_loss(
            steps in prop::collection::vec((1_u64..1000, 0_u32..50), 1..60), cut in 0_usize..60,
        ) {
            let mut meter = LevelMeter::new(SimTime::ZERO);
            let mut mark = meter.mark(SimTime::ZERO);
            let mut now = 0;
            for (index, &(step, level)) in steps.iter().enumerate() {
                now += step;
                meter.set(SimTime::from_ps(now), level);
                if index == cut {
                    mark = meter.mark(SimTime::from_ps(now));
                }
            }
            let end = SimTime::from_ps(now + 10);
            let after = meter.mean_since(end, mark) * end.since(mark.at).as_ps() as f64;
            let whole = meter.integral_ps(end) as f64;
            prop_assert!((mark.integral_ps as f64 + after - whole).abs() <= whole * 1e-12);
        }
    }
}
