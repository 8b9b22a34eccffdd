//! Energy and power.

use crate::SimSpan;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// An amount of energy in picojoules, kept as a floating-point figure: it is only ever reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Picojoules(f64);

/// Power in watts.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Watts(f64);

impl Picojoules {
    /// `pj` picojoules.
    pub const fn new(pj: f64) -> Self {
        Self(pj)
    }

    /// Joules.
    pub fn as_joules(self) -> f64 {
        self.0 / 1e12
    }
}

impl Watts {
    /// `watts` watts.
    pub const fn new(watts: f64) -> Self {
        Self(watts)
    }

    /// Watts.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Energy drawn over `span`.
    pub fn over(self, span: SimSpan) -> Picojoules {
        // A watt is a picojoule a picosecond.
        Picojoules(self.0 * span.as_ps() as f64)
    }
}

impl Add for Picojoules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Picojoules {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Picojoules {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watt_over_a_second_is_a_joule() {
        let second = Watts::new(5.0).over(SimSpan::from_secs(2));
        assert_eq!((Watts::new(5.0).get(), second.as_joules()), (5.0, 10.0));
        let mut counted = Picojoules::new(3e12);
        counted += second;
        assert_eq!(counted, second + Picojoules::new(3e12));
        assert_eq!([second, counted].into_iter().sum::<Picojoules>().as_joules(), 23.0);
    }
}
