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
}
