//! UMass and SPC: five comma-separated columns, perhaps with others after them.

use super::fields::{SECOND_PS, SECTOR, length, letter, number, offset, row, time};
use super::{LineFormat, Parsed};

pub(super) struct Spc;

impl LineFormat for Spc {
    fn name(&self) -> &'static str {
        "spc"
    }

    fn description(&self) -> &'static str {
        "SPC CSV (UMass Financial and WebSearch): seconds, sectors, bytes"
    }

    fn accepted(&self) -> &'static str {
        "application unit,sector,size bytes,r|w,time s"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split(',');
        let unit = number(fields.next(), "application unit")?;
        let start = offset(fields.next(), "sector", SECTOR)?;
        let size = length(fields.next(), "size", 1)?;
        let operation = letter(fields.next())?;
        let at = time(fields.next(), SECOND_PS)?;
        row(at, unit, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn addresses_are_sectors_and_sizes_bytes() {
        for line in ["3,20,1536,w,0.250000", "3,20,1536,W,0.25,extra"] {
            let row = expect_row(Spc.parse(line));
            assert_eq!((row.time_ps, row.volume), (SECOND_PS / 4, 3));
            assert_eq!((row.request.offset_bytes, row.request.len_bytes), (10_240, 1_536));
            assert_eq!(row.request.operation, Operation::Write);
        }
        assert!(Spc.parse("3,20,1536,w").is_err());
        assert!(Spc.parse("3,20,1536,x,0.25").is_err());
    }
}
