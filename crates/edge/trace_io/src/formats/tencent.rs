//! Tencent CBS: seconds and sectors, 0 for read. Whole seconds, so that many rows share one, not quite in order.

use super::fields::{SECOND_PS, SECTOR, direction, end, length, number, offset, row, time};
use super::{LineFormat, Parsed};

pub(super) struct Tencent;

impl LineFormat for Tencent {
    fn name(&self) -> &'static str {
        "tencent"
    }

    fn description(&self) -> &'static str {
        "Tencent CBS CSV: seconds, sectors, many volumes"
    }

    fn accepted(&self) -> &'static str {
        "timestamp s,offset sectors,size sectors,0 for read or 1 for write,volume"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split(',');
        let at = time(fields.next(), SECOND_PS)?;
        let start = offset(fields.next(), "offset", SECTOR)?;
        let size = length(fields.next(), "size", SECTOR)?;
        let operation = direction(fields.next(), "0", "1")?;
        let volume = number(fields.next(), "volume")?;
        end(fields.next())?;
        row(at, volume, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_is_in_seconds_and_sectors_and_1_writes() {
        let row = expect_row(Tencent.parse("1538323200,4247200,128,1,1058"));
        assert_eq!((row.time_ps, row.volume), (1_538_323_200 * SECOND_PS, 1058));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (4_247_200 * 512, 65_536));
        assert_eq!(row.request.operation, Operation::Write);
    }
}
