//! MSR Cambridge reduced to four columns. A spreadsheet has rounded some offsets (`1.82083E+11`): they are
//! read as the whole number that they print, and the row is marked.

use super::fields::{FILETIME_PS, direction, end, length, required, row, time};
use super::{Line, LineFormat, Parsed, Row, RowError};

pub(super) struct Web3;

impl LineFormat for Web3 {
    fn name(&self) -> &'static str {
        "web3"
    }

    fn description(&self) -> &'static str {
        "MSR Cambridge reduced to four columns, offsets perhaps rounded by a spreadsheet"
    }

    fn accepted(&self) -> &'static str {
        "timestamp in 100 ns, Read|Write, offset bytes, size bytes, separated by blanks"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let at = time(fields.next(), FILETIME_PS)?;
        let operation = direction(fields.next(), "Read", "Write")?;
        let text = required(fields.next(), "offset")?;
        let (start, rounded) = match text.parse::<u64>() {
            Ok(exact) => (exact, false),
            Err(_) => (scientific(text)?, true),
        };
        let size = length(fields.next(), "size", 1)?;
        end(fields.next())?;
        Ok(match row(at, 0, operation, start, size)? {
            Line::Row(row) => Line::Row(Row { rounded, ..row }),
            skip => skip,
        })
    }
}

/// The whole number that a spreadsheet printed as `d.dddE+nn`, in integers: no digit is invented.
fn scientific(text: &str) -> Result<u64, RowError> {
    let exact = || {
        let (mantissa, exponent) = text.split_once(['E', 'e'])?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.len() > 19 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let exponent: u32 = exponent.strip_prefix('+')?.parse().ok()?;
        let zeros = exponent.checked_sub(u32::try_from(fraction.len()).ok()?)?;
        digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(zeros)?)
    };
    exact().ok_or_else(|| RowError(format!("the offset {text:?} is no whole number of bytes")))
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_of_four_columns_reads() {
        let row = expect_row(Web3.parse("128166465299149000 \tWrite\t3221282304\t4096"));
        assert_eq!((row.volume, row.request.operation, row.rounded), (0, Operation::Write, false));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (3_221_282_304, 4096));
    }

    #[test]
    fn a_spoilt_offset_is_read_as_printed_and_marked() {
        let row = expect_row(Web3.parse("128166465299119000 \tRead\t1.82083E+11\t4096"));
        assert_eq!((row.request.offset_bytes, row.rounded), (182_083_000_000, true));
        assert_eq!(scientific("4E+3"), Ok(4_000));
    }

    #[test]
    fn what_only_resembles_a_number_is_refused() {
        for text in
            ["12x", "1.82083E-11", "1.82083", "-1E+3", "1.5E+0", "1E+20", "1E+4294967295", "E+3", "inf", "é1E+1"]
        {
            assert!(Web3.parse(&format!("1 Read {text} 4096")).is_err(), "{text}");
        }
    }
}
