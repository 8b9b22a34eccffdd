//! Fields of rows: numbers, lengths, offsets, times and directions, or their errors.

use super::{Line, Parsed, Row, RowError, Skip};
use flashyard_blk::{BlockRequest, Operation};

/// Bytes of a sector in every format that counts sectors.
pub(super) const SECTOR: u64 = 512;
/// Picoseconds of a microsecond.
pub(super) const MICROSECOND_PS: i128 = 1_000_000;
/// Picoseconds of a millisecond.
pub(super) const MILLISECOND_PS: i128 = 1_000 * MICROSECOND_PS;
/// Picoseconds of a second.
pub(super) const SECOND_PS: i128 = 1_000 * MILLISECOND_PS;
/// Picoseconds of the 100 ns in which Windows counts.
pub(super) const FILETIME_PS: i128 = MICROSECOND_PS / 10;

/// Bits of a minor device number, as Linux keeps them.
const MINOR_BITS: u32 = 20;

/// A field that has to be there.
pub(super) fn required<'a>(field: Option<&'a str>, name: &str) -> Result<&'a str, RowError> {
    field.map(str::trim).ok_or_else(|| RowError(format!("the {name} is missing")))
}

/// A field as an unsigned number.
pub(super) fn number(field: Option<&str>, name: &str) -> Result<u64, RowError> {
    let field = required(field, name)?;
    field.parse().map_err(|_| RowError(format!("the {name} {field:?} is no whole number")))
}

/// A length in bytes from a count of `unit` bytes.
pub(super) fn length(field: Option<&str>, name: &str, unit: u64) -> Result<u32, RowError> {
    let count = number(field, name)?;
    let bytes = count.checked_mul(unit).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| RowError(format!("the {name} {count} makes 4 GiB or more")))
}

/// An offset in bytes from a count of `unit` bytes.
pub(super) fn offset(field: Option<&str>, name: &str, unit: u64) -> Result<u64, RowError> {
    let count = number(field, name)?;
    count.checked_mul(unit).ok_or_else(|| RowError(format!("the {name} {count} is beyond 2^64 bytes")))
}

/// A time in picoseconds from a decimal number of units of `unit_ps`, which may have an exponent as programs write them. Digits below a
/// picosecond are cut off.
pub(super) fn time(field: Option<&str>, unit_ps: i128) -> Result<i128, RowError> {
    let field = required(field, "time")?;
    let wrong = || RowError(format!("the time {field:?} is no decimal number"));
    let (mantissa, exponent) = field.split_once(['e', 'E']).unwrap_or((field, "0"));
    let exponent: i32 = exponent.parse().map_err(|_| wrong())?;
    let shifted = if exponent == 0 { None } else { Some(shift(mantissa, exponent).ok_or_else(wrong)?) };
    let (whole, fraction) = match &shifted {
        Some((whole, fraction)) => (&whole[..], &fraction[..]),
        None => mantissa.split_once('.').unwrap_or((mantissa, "")),
    };
    // 19 and 12 digits of at most 10^12 ps stay far below 2^127.
    if whole.is_empty() || whole.len() > 19 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let fraction = &fraction[..fraction.len().min(12)];
    let digits = |text: &str| -> Result<i128, RowError> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| wrong()) }
    };
    let scale = 10_i128.pow(fraction.len() as u32);
    Ok(digits(whole)? * unit_ps + digits(fraction)? * unit_ps / scale)
}

/// The digits of a decimal number before and behind its point, once that is moved by `exponent`; `None` for what no time has.
fn shift(mantissa: &str, exponent: i32) -> Option<(String, String)> {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || digits.len() > 40 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let at = i32::try_from(whole.len()).ok()?.checked_add(exponent).filter(|at| (-40..=40).contains(at))?;
    let before = "0".repeat((1 - at).max(0) as usize);
    let behind = "0".repeat((at - digits.len() as i32).max(0) as usize);
    let point = at.max(1) as usize;
    let digits = format!("{before}{digits}{behind}");
    let (whole, fraction) = digits.split_at(point);
    let whole = whole.trim_start_matches('0');
    Some((if whole.is_empty() { "0".to_owned() } else { whole.to_owned() }, fraction.to_owned()))
}

/// A direction written as the word `read` or the word `write`.
pub(super) fn direction(field: Option<&str>, read: &str, write: &str) -> Result<Operation, RowError> {
    let text = required(field, "type")?;
    if text == read {
        Ok(Operation::Read)
    } else if text == write {
        Ok(Operation::Write)
    } else {
        Err(RowError(format!("the type {text:?} is neither {read} nor {write}")))
    }
}

/// A direction written as a letter, small or large.
pub(super) fn letter(field: Option<&str>) -> Result<Operation, RowError> {
    match required(field, "type")? {
        "R" | "r" => Ok(Operation::Read),
        "W" | "w" => Ok(Operation::Write),
        other => Err(RowError(format!("the type {other:?} is neither R nor W"))),
    }
}

/// A little-endian number of two bytes at `at`. Panics beyond the record: formats know their records.
pub(super) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

/// A little-endian number of four bytes at `at`. Panics beyond the record.
pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// A little-endian number of eight bytes at `at`. Panics beyond the record.
pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | (u64::from(u32_at(record, at + 4)) << 32)
}

/// Major and minor number as one volume number, as Linux numbers devices: the minor in the lower 20 bits.
pub(super) fn device(major: u64, minor: u64) -> Option<u32> {
    let (major, minor) = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    (major < 1 << (32 - MINOR_BITS) && minor < 1 << MINOR_BITS).then_some((major << MINOR_BITS) | minor)
}

/// Checks that nothing follows.
pub(super) fn end(field: Option<&str>) -> Result<(), RowError> {
    field.map_or(Ok(()), |extra| Err(RowError(format!("there is {extra:?} after the last field"))))
}

/// A row, or a line to pass over when the request is for no bytes.
pub(super) fn row(time_ps: i128, volume: u64, operation: Operation, offset_bytes: u64, len_bytes: u32) -> Parsed {
    let volume = u32::try_from(volume).map_err(|_| RowError(format!("the volume {volume} is beyond 32 bits")))?;
    if len_bytes == 0 {
        return Ok(Line::Skip(Skip::NoRange));
    }
    let request = BlockRequest { operation, offset_bytes, len_bytes };
    if request.end_bytes().is_none() {
        return Err(RowError(format!("the request at byte {offset_bytes} ends beyond 2^64")));
    }
    Ok(Line::Row(Row { time_ps, volume, request, rounded: false }))
}

/// The row that a test expects in `parsed`.
#[cfg(test)]
pub(super) fn expect_row(parsed: Parsed) -> Row {
    match parsed {
        Ok(Line::Row(row)) => row,
        other => panic!("no row but {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_picosecond() {
        assert_eq!(time(Some("128166385295514663"), FILETIME_PS), Ok(12_816_638_529_551_466_300_000));
        assert_eq!(time(Some("0.000026421"), SECOND_PS), Ok(26_421_000));
        assert_eq!(time(Some(" 1. "), MILLISECOND_PS), Ok(MILLISECOND_PS));
        assert_eq!(time(Some("9999999999999999999.999999999999"), SECOND_PS), Ok(10_i128.pow(31) - 1));
        // As programs write floating-point numbers.
        assert_eq!(time(Some("0.30000000000000004"), SECOND_PS), Ok(300_000_000_000));
        for (text, expected) in [
            ("1e-06", 1_000_000),
            ("1E3", 1000 * SECOND_PS),
            ("1.5e+00", 3 * SECOND_PS / 2),
            ("12.25e-1", 1_225_000_000_000),
            ("0.00125e2", 125_000_000_000),
            ("3e-20", 0),
        ] {
            assert_eq!(time(Some(text), SECOND_PS), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            ".5",
            "-1",
            "1e",
            "e3",
            "1e99",
            "1e2.5",
            "-1e2",
            "1.2.3",
            "+1",
            "NaN",
            "99999999999999999999",
            "0.12345678901x3",
        ] {
            assert!(time(Some(text), SECOND_PS).is_err(), "{text:?}");
        }
        assert!(time(None, SECOND_PS).is_err());
    }

    #[test]
    fn requests_that_do_not_fit_are_refused() {
        assert!(length(Some("8388608"), "size", SECTOR).is_err());
        assert_eq!(length(Some("8388607"), "size", SECTOR), Ok(u32::MAX - 511));
        assert!(offset(Some("36028797018963968"), "sector", SECTOR).is_err());
        assert!(row(0, 0, Operation::Read, u64::MAX, 1).is_err());
        assert!(row(0, 1 << 32, Operation::Read, 0, 1).is_err());
    }

    #[test]
    fn a_request_for_no_bytes_is_passed_over() {
        assert_eq!(row(0, 0, Operation::Read, 8, 0), Ok(Line::Skip(Skip::NoRange)));
    }
}
