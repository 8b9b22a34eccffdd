//! Instants and spans of simulated time, and clock frequencies.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant of simulated time: picoseconds since the world began. Range: 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

/// A length of simulated time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimSpan(u64);

/// A clock frequency in hertz. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hertz(u64);

impl SimTime {
    /// The beginning of the world.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the beginning.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the beginning.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `span` later, or the end of time (213 days) where that comes first.
    pub const fn saturating_add(self, span: SimSpan) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Time passed since `earlier`.
    ///
    /// Panics when `earlier` is later: time never goes backwards.
    pub const fn since(self, earlier: Self) -> SimSpan {
        SimSpan(self.0 - earlier.0)
    }

    /// Time passed since `earlier`, or zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> SimSpan {
        SimSpan(self.0.saturating_sub(earlier.0))
    }
}

impl SimSpan {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000_000)
    }

    /// A span of `ns` nanoseconds, rounded to the nearest picosecond.
    ///
    /// Panics when `ns` is negative, not finite or beyond the range.
    pub fn from_ns_f64(ns: f64) -> Self {
        assert!(ns.is_finite() && (0.0..1.8e16).contains(&ns), "span of {ns} ns is outside the range");
        // The multiplication and the addition are exactly rounded by IEEE 754, so every machine agrees.
        Self((ns * 1_000.0 + 0.5) as u64)
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// Microseconds, for reports.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// This span without another one; nothing where that is longer. Clocks of work that is booked ahead may go back when it is
    /// suspended.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span as a share of `whole`; zero when `whole` is zero.
    pub fn ratio_of(self, whole: Self) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }
}

impl Hertz {
    /// A clock of `hz` cycles a second. Panics on zero.
    pub const fn new(hz: u64) -> Self {
        assert!(hz > 0, "a clock needs a frequency above zero");
        Self(hz)
    }

    /// Cycles a second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How long `cycles` take, rounded to the nearest picosecond.
    pub const fn span_of(self, cycles: u64) -> SimSpan {
        let ps = (cycles as u128 * 1_000_000_000_000 + self.0 as u128 / 2) / self.0 as u128;
        SimSpan(ps as u64)
    }
}

impl Add<SimSpan> for SimTime {
    type Output = Self;
    fn add(self, span: SimSpan) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<SimSpan> for SimTime {
    fn add_assign(&mut self, span: SimSpan) {
        self.0 += span.0;
    }
}

impl Add for SimSpan {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for SimSpan {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for SimSpan {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for SimSpan {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<u64> for SimSpan {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Sum for SimSpan {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for SimSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000_000 => write!(f, "{:.1} ns", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} us", self.0 as f64 / 1e6),
            1_000_000_000..1_000_000_000_000 => write!(f, "{:.2} ms", self.0 as f64 / 1e9),
            _ => write!(f, "{:.3} s", self.0 as f64 / 1e12),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_round_to_the_nearest_picosecond() {
        assert_eq!(Hertz::new(1_000_000_000).span_of(2_264), SimSpan::from_ns(2_264));
        assert_eq!(Hertz::new(3).span_of(1), SimSpan::from_ps(333_333_333_333));
    }

    #[test]
    fn fractional_nanoseconds_keep_their_picoseconds() {
        assert_eq!(SimSpan::from_ns_f64(114.2), SimSpan::from_ps(114_200));
    }

    #[test]
    #[should_panic]
    fn time_does_not_run_backwards() {
        let _ = SimTime::ZERO.since(SimTime::from_ps(1));
    }

    #[test]
    fn units_of_time_are_thousands_of_each_other() {
        let spans = [SimSpan::from_ns(7), SimSpan::from_us(7), SimSpan::from_ms(7), SimSpan::from_secs(7)];
        assert_eq!(spans.map(SimSpan::as_ps), [7_000, 7_000_000, 7_000_000_000, 7_000_000_000_000]);
        assert_eq!((SimSpan::from_ps(7_999).as_ns(), SimSpan::from_ps(7_000).as_ns()), (7, 7));
        assert_eq!((SimSpan::from_ns(2_500).as_us_f64(), SimSpan::from_ms(2_500).as_secs_f64()), (2.5, 2.5));
        assert_eq!(SimTime::from_ps(2_500_000_000_000).as_secs_f64(), 2.5);
        assert_eq!(spans.into_iter().sum::<SimSpan>().as_ps(), 7_007_007_007_000);
    }

    #[test]
    fn spans_are_added_to_instants_and_lie_between_them() {
        let (early, late) = (SimTime::from_ps(30), SimTime::from_ps(100));
        assert_eq!((early.as_ps(), late.as_ps()), (30, 100));
        assert_eq!((late.since(early), late.saturating_since(early)), (SimSpan::from_ps(70), SimSpan::from_ps(70)));
        assert_eq!((early.saturating_since(late), late.since(late)), (SimSpan::ZERO, SimSpan::ZERO));
        let mut now = early;
        now += SimSpan::from_ps(70);
        assert_eq!((now, early + SimSpan::from_ps(70), early.saturating_add(SimSpan::from_ps(70))), (late, late, late));
        assert_eq!(late.saturating_add(SimSpan::from_ps(u64::MAX)), SimTime::MAX);
    }

    #[test]
    fn spans_are_numbers() {
        let mut span = SimSpan::from_ps(100);
        span += SimSpan::from_ps(20);
        assert_eq!(
            [span + span, span - SimSpan::from_ps(50), span * 3, span / 7].map(SimSpan::as_ps),
            [240, 70, 360, 17]
        );
        assert_eq!((span.ratio_of(SimSpan::from_ps(480)), span.ratio_of(SimSpan::ZERO)), (0.25, 0.0));
    }

    #[test]
    fn a_frequency_is_cycles_a_second() {
        assert_eq!((Hertz::new(7).get(), Hertz::new(7).span_of(14)), (7, SimSpan::from_secs(2)));
        // 3.5 ps round up.
        assert_eq!(Hertz::new(2_000_000_000_000).span_of(7), SimSpan::from_ps(4));
    }

    #[test]
    #[should_panic(expected = "above zero")]
    fn no_clock_stands_still() {
        let _ = Hertz::new(0);
    }

    #[test]
    fn fractions_of_a_picosecond_are_rounded_to_the_nearest() {
        assert_eq!([0.0, 0.000_4, 0.000_5, 1.000_6].map(|ns| SimSpan::from_ns_f64(ns).as_ps()), [0, 0, 1, 1_001]);
        for wrong in [-1e-9, 1.8e16, f64::INFINITY, f64::NAN] {
            assert!(std::panic::catch_unwind(|| SimSpan::from_ns_f64(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_are_told_in_the_largest_unit_that_they_reach() {
        let told = |ps| SimSpan::from_ps(ps).to_string();
        assert_eq!([told(0), told(1_500), told(999_949)], ["0.0 ns", "1.5 ns", "999.9 ns"]);
        assert_eq!([told(1_000_000), told(1_500_000_000), told(1_500_000_000_000)], ["1.00 us", "1.50 ms", "1.500 s"]);
    }
}
