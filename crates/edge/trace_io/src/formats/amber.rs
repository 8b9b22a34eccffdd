//! Amber (SimpleSSD) traces: four columns.

use super::fields::{MICROSECOND_PS, SECTOR, end, length, letter, offset, row, time};
use super::{LineFormat, Parsed};

pub(super) struct Amber;

impl LineFormat for Amber {
    fn name(&self) -> &'static str {
        "amber"
    }

    fn description(&self) -> &'static str {
        "Amber text: microseconds, sectors"
    }

    fn accepted(&self) -> &'static str {
        "time us, sector, sectors, R|W, separated by blanks"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let at = time(fields.next(), MICROSECOND_PS)?;
        let start = offset(fields.next(), "sector", SECTOR)?;
        let size = length(fields.next(), "count of sectors", SECTOR)?;
        let operation = letter(fields.next())?;
        end(fields.next())?;
        row(at, 0, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_is_in_microseconds_and_sectors() {
        let row = expect_row(Amber.parse("12.5 16 8 R"));
        assert_eq!((row.time_ps, row.volume, row.request.operation), (12_500_000, 0, Operation::Read));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 4_096));
        assert!(Amber.parse("12.5 16 8 Read").is_err());
        assert!(Amber.parse("12.5 16 8 R 1").is_err());
    }
}
