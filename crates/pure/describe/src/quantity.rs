//! Quantities with units in text: `"30 us"`, `"14 GB/s"`, `"4 KiB"`.

use flashyard_units::{ByteRate, Bytes, SimSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

/// A span of time, written `"30 us"`; units ns, us, ms, s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("examples" = ["30 us"]))]
pub struct Time(pub SimSpan);

/// An amount of data, written `"4 KiB"`; units B, KiB, MiB, GiB, TiB, KB, MB, GB, TB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("examples" = ["4 KiB"]))]
pub struct Size(pub Bytes);

/// A data rate, written `"14 GB/s"`; units as for sizes, a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("examples" = ["14 GB/s"]))]
pub struct Rate(pub ByteRate);

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: [(&str, f64); 9] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];

/// Kind of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// [`Time`], in nanoseconds.
    Time,
    /// [`Size`], in bytes.
    Size,
    /// [`Rate`], in bytes a second.
    Rate,
}

impl Kind {
    /// The kind whose type is called `name`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "Time" => Some(Self::Time),
            "Size" => Some(Self::Size),
            "Rate" => Some(Self::Rate),
            _ => None,
        }
    }

    /// Its name for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Size => "size",
            Self::Rate => "data rate",
        }
    }

    /// One as it is written.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Time => "30 us",
            Self::Size => "4 KiB",
            Self::Rate => "14 GB/s",
        }
    }

    const fn scales(self) -> (&'static [(&'static str, f64)], &'static str) {
        match self {
            Self::Time => (&TIMES, ""),
            Self::Size => (&SIZES, ""),
            Self::Rate => (&SIZES, "/s"),
        }
    }

    /// Its units.
    pub(crate) fn units(self) -> String {
        let (scales, suffix) = self.scales();
        scales.iter().map(|(unit, _)| format!("{unit}{suffix}")).collect::<Vec<_>>().join(", ")
    }

    /// The number in nanoseconds, bytes or bytes a second.
    ///
    /// Errors: what is wrong and what is accepted.
    pub(crate) fn parse(self, text: &str) -> Result<f64, String> {
        let (scales, suffix) = self.scales();
        parse(text, self.name(), scales, suffix)
    }
}

/// Splits a text into number and unit, and scales the number; the error says what is accepted.
fn parse(text: &str, what: &str, units: &[(&str, f64)], suffix: &str) -> Result<f64, String> {
    let names: Vec<String> = units.iter().map(|(name, _)| format!("{name}{suffix}")).collect();
    let wrong =
        |why: &str| format!("{text:?} is not a {what}: {why}; write a number and a unit of {}", names.join(", "));
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().map_err(|_| wrong("the number cannot be read"))?;
    if unit.is_empty() {
        return Err(wrong("the unit is missing"));
    }
    let scale = units.iter().zip(&names).find(|(_, name)| *name == unit).map(|((_, scale), _)| *scale);
    let value = number * scale.ok_or_else(|| wrong("the unit is unknown"))?;
    if !value.is_finite() || !(0.0..1.8e16).contains(&value) {
        return Err(wrong("the value is negative or too large"));
    }
    Ok(value)
}

impl Time {
    /// The span of time that a text writes.
    ///
    /// Errors: the mistake, and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(SimSpan::from_ns_f64(Kind::Time.parse(text)?)))
    }
}

impl Rate {
    /// The data rate that a text writes.
    ///
    /// Errors: the mistake, and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bytes = Kind::Rate.parse(text)?;
        if bytes < 1.0 {
            return Err(format!("{text:?} is not a data rate: give at least 1 B/s"));
        }
        Ok(Self(ByteRate::new((bytes + 0.5) as u64)))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Kind::Size.parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)?;
        Ok(Self(Bytes::new((bytes + 0.5) as u64)))
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale_their_numbers() {
        assert_eq!(parse("1.5 ms", "time", &TIMES, ""), Ok(1.5e6));
        assert_eq!(parse("4KiB", "size", &SIZES, ""), Ok(4096.0));
        assert_eq!(parse("2.4 GB/s", "data rate", &SIZES, "/s"), Ok(2.4e9));
    }

    #[test]
    fn bare_and_wrong_units_are_refused_with_the_accepted_ones() {
        for text in ["30", "30 usec", "us", "-3 us", "14 GB"] {
            let error = parse(text, "time", &TIMES, "").expect_err("it is wrong");
            assert!(error.contains("ns, us, ms, s"), "{error}");
        }
    }
}
