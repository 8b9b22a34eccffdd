//! Numbers, amounts of data and times as fio writes them. Errors are messages; the caller knows the option.

use flashyard_units::SimSpan;

/// An amount of data, or a share of something known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Percent, 0 to 100.
    Percent(u64),
}

impl Extent {
    /// The amount in bytes, for a whole of `whole` bytes; a share is rounded down.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Units of data with `kb_base=1024`, fio's default: letters, with or without b, count in 1024, and those with i,
/// against the international usage, in 1000. `kb_base=1000` turns it round.
const LETTERS: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// Meaning of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KbBase(pub(super) u64);

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn wrong(text: &str, accepted: &str) -> String {
    format!("{text:?} cannot be read, give {accepted}")
}

/// A whole number, without suffix.
pub(super) fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let range = format!("a whole number from {least} to {most}");
    let value: u64 = text.parse().map_err(|_| wrong(text, &range))?;
    if (least..=most).contains(&value) { Ok(value) } else { Err(format!("{value} is outside its range, give {range}")) }
}

/// A fraction.
pub(super) fn fraction(text: &str, accepted: &str, fits: impl Fn(f64) -> bool) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| wrong(text, accepted))?;
    if fits(value) { Ok(value) } else { Err(format!("{value} is outside its range, give {accepted}")) }
}

/// An amount of data.
pub(super) fn bytes(text: &str, base: KbBase) -> Result<u64, String> {
    let accepted = "a number of bytes with at most one suffix of k, m, g, t, p (or kb, mb, ...; kib, mib, ...)";
    let (digits, suffix) = split(text);
    let suffix = suffix.to_ascii_lowercase();
    let (letter, is_international) = match suffix.strip_suffix("ib") {
        Some(letter) if !letter.is_empty() => (letter, true),
        Some(_) => return Err(wrong(text, accepted)),
        None => (suffix.strip_suffix('b').unwrap_or(&suffix), false),
    };
    let power = LETTERS.iter().position(|&name| name == letter).ok_or_else(|| wrong(text, accepted))?;
    let step: u64 = if is_international == (base.0 == 1000) { 1024 } else { 1000 };
    let unit = step.pow(power as u32);
    let value = match digits.parse::<u64>() {
        Ok(value) => value.checked_mul(unit),
        Err(_) => digits.parse::<f64>().ok().map(|value| (value * unit as f64) as u64),
    };
    value.filter(|&value| value < 1 << 60).ok_or_else(|| wrong(text, accepted))
}

/// An amount of data or a percentage.
pub(super) fn extent(text: &str, base: KbBase) -> Result<Extent, String> {
    match text.strip_suffix('%') {
        Some(percent) => number(percent, 0, 100).map(Extent::Percent),
        None => bytes(text, base).map(Extent::Bytes),
    }
}

/// A time: parts with a suffix each; a number without one is in `unit`.
pub(super) fn time(text: &str, unit: SimSpan) -> Result<SimSpan, String> {
    let accepted = "a time, for example 30s, 500ms, 20us or 1m30s";
    let mut rest = text;
    let mut sum_ns = 0.0;
    loop {
        let (digits, behind) = split(rest);
        let end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let ns = match behind[..end].trim() {
            "" if end == behind.len() => unit.as_ps() as f64 / 1e3,
            "us" | "usec" => 1e3,
            "ms" | "msec" => 1e6,
            "s" | "sec" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => return Err(wrong(text, accepted)),
        };
        sum_ns += digits.parse::<f64>().map_err(|_| wrong(text, accepted))? * ns;
        rest = &behind[end..];
        if rest.is_empty() {
            break;
        }
    }
    // Simulated time ends after 213 days.
    if sum_ns < 1e16 {
        Ok(SimSpan::from_ns_f64(sum_ns))
    } else {
        Err(format!("{text:?} is too long, give less than 100d"))
    }
}

/// A switch: alone, 1 or 0.
pub(super) fn switch(value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(text) => Err(wrong(text, "1, 0 or the option alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEFAULT: KbBase = KbBase(1024);

    #[test]
    fn suffixes_count_as_fio_counts_them() {
        for (text, expected) in [
            ("512", 512),
            ("4096b", 4096),
            ("4k", 4096),
            ("4KB", 4096),
            ("1mib", 1_000_000),
            ("1.5g", 3 << 29),
            ("2t", 2 << 40),
        ] {
            assert_eq!(bytes(text, DEFAULT), Ok(expected), "{text}");
        }
        assert_eq!(bytes("1m", KbBase(1000)), Ok(1_000_000));
        assert_eq!(bytes("1mib", KbBase(1000)), Ok(1 << 20));
        assert_eq!(extent("20%", DEFAULT), Ok(Extent::Percent(20)));
        assert_eq!(Extent::Percent(20).of(1 << 40), (1_u64 << 40) / 5);
    }

    #[test]
    fn times_have_suffixes_parts_and_a_unit_of_their_own() {
        let second = SimSpan::from_secs(1);
        for (text, expected) in [
            ("30", SimSpan::from_secs(30)),
            ("1.5", SimSpan::from_ms(1500)),
            ("500ms", SimSpan::from_ms(500)),
            ("20us", SimSpan::from_us(20)),
            ("1m30s", SimSpan::from_secs(90)),
        ] {
            assert_eq!(time(text, second), Ok(expected), "{text}");
        }
        assert_eq!(time("10", SimSpan::from_us(1)), Ok(SimSpan::from_us(10)));
        for text in ["", "s", "3 weeks", "5-10", "-3", "200d", "1m30s4x"] {
            assert!(time(text, second).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_quoted_with_what_can() {
        for text in ["", "k", "4x", "4 k k", "4kk", "ib", "-1", "99999999p", "1m 2m"] {
            let error = bytes(text, DEFAULT).expect_err(text);
            assert!(error.starts_with(&format!("{text:?} cannot be read, give a number of bytes")), "{error}");
        }
        assert_eq!(number("200", 0, 100), Err("200 is outside its range, give a whole number from 0 to 100".into()));
        assert_eq!(extent("101%", DEFAULT), Err("101 is outside its range, give a whole number from 0 to 100".into()));
        assert_eq!(switch(Some("yes")), Err("\"yes\" cannot be read, give 1, 0 or the option alone".into()));
    }

    proptest! {
        #[test]
        fn what_is_read_of_any_text_is_in_its_range_and_what_is_not_is_quoted(
            text in "\\PC{0,12}|[0-9]{1,4}[.]?[0-9]{0,3}(%|[kmgtp]i?b?|us|ms|s|h|d)?",
        ) {
            for outcome in [bytes(&text, DEFAULT).map(Extent::Bytes), extent(&text, DEFAULT)] {
                match outcome {
                    Ok(Extent::Bytes(amount)) => prop_assert!(amount < 1 << 60, "{text:?} is {amount}"),
                    Ok(Extent::Percent(share)) => prop_assert!(share <= 100, "{text:?} is {share} %"),
                    Err(error) => prop_assert!(error.contains(", give "), "{error}"),
                }
            }
            match time(&text, SimSpan::from_secs(1)) {
                Ok(span) => prop_assert!(span < SimSpan::from_secs(10_000_001), "{text:?} is {span}"),
                Err(error) => prop_assert!(error.contains(&format!("{text:?} ")) && error.contains(", give "), "{error}"),
            }
        }

        #[test]
        fn plain_numbers_are_themselves(value in 0_u64..1 << 59) {
            prop_assert_eq!(bytes(&value.to_string(), DEFAULT), Ok(value));
        }
    }
}
