//! Amounts of data and the rates at which they move.

use crate::SimSpan;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A data rate in bytes a second. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRate(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kib` times 1024 bytes.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// `mib` times 2^20 bytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// `gib` times 2^30 bytes.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl ByteRate {
    /// A rate of `bytes` a second. Panics on zero.
    pub const fn new(bytes: u64) -> Self {
        assert!(bytes > 0, "a data rate must be above zero");
        Self(bytes)
    }

    /// A rate of `mb` million bytes a second.
    pub const fn from_mb(mb: u64) -> Self {
        Self::new(mb * 1_000_000)
    }

    /// Bytes a second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How long `bytes` take, rounded up to a picosecond.
    pub const fn span_of(self, bytes: u64) -> SimSpan {
        // 18 MB times 10^12 still fits 64 bits; only larger transfers pay for the wide division.
        if bytes < 18_000_000 {
            SimSpan::from_ps((bytes * 1_000_000_000_000).div_ceil(self.0))
        } else {
            SimSpan::from_ps((bytes as u128 * 1_000_000_000_000).div_ceil(self.0 as u128) as u64)
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 { write!(f, "{} B", self.0) } else { write!(f, "{value:.1} {}", UNITS[unit]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_round_up_and_agree_on_both_sides_of_the_wide_path() {
        let channel = ByteRate::from_mb(2_400);
        assert_eq!(channel.span_of(16_384), SimSpan::from_ps(6_826_667));
        let small = channel.span_of(17_999_999).as_ps();
        let large = channel.span_of(18_000_000).as_ps();
        assert!(large - small <= 417);
    }

    #[test]
    fn multiples_of_bytes_are_powers_of_1024_and_add_up() {
        let amounts = [Bytes::from_kib(3), Bytes::from_mib(3), Bytes::from_gib(3)];
        assert_eq!(amounts.map(Bytes::get), [3 * 1024, 3 * 1024 * 1024, 3 * 1024 * 1024 * 1024]);
        let sum = 3 * (1024 + 1024 * 1024 + 1024 * 1024 * 1024);
        assert_eq!(amounts.into_iter().sum::<Bytes>(), Bytes::new(sum));
        let mut counted = Bytes::ZERO;
        amounts.into_iter().for_each(|amount| counted += amount);
        assert_eq!((counted, counted - Bytes::new(sum)), (Bytes::new(sum), Bytes::ZERO));
        assert_eq!((amounts[0] + Bytes::new(5), amounts[0] - Bytes::new(72)), (Bytes::new(3077), Bytes::new(3000)));
    }

    #[test]
    fn a_rate_is_what_passes_in_a_second() {
        let rate = ByteRate::from_mb(7);
        assert_eq!(rate.get(), 7_000_000);
        assert_eq!(rate.span_of(rate.get()), SimSpan::from_secs(1));
        // A terabyte takes the wide path.
        assert_eq!(rate.span_of(rate.get() * 150_000), SimSpan::from_secs(150_000));
        assert_eq!(rate.span_of(0), SimSpan::ZERO);
    }

    #[test]
    #[should_panic(expected = "above zero")]
    fn nothing_moves_at_no_rate() {
        let _ = ByteRate::new(0);
    }

    #[test]
    fn amounts_are_told_in_the_largest_unit_that_they_reach() {
        let told = |bytes| Bytes::new(bytes).to_string();
        assert_eq!([told(0), told(1023), told(1024), told(1536)], ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]);
        assert_eq!(
            [told(5 << 20), told(5 << 30), told(5 << 40), told(5 << 50)],
            ["5.0 MiB", "5.0 GiB", "5.0 TiB", "5120.0 TiB"]
        );
    }
}
