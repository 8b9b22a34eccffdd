//! Alibaba block traces: five columns, many volumes. A header with the columns' names is passed over.

use super::fields::{MICROSECOND_PS, end, length, letter, number, offset, row, time};
use super::{Line, LineFormat, Parsed, Skip};

/// First line of some copies.
const HEADER: &str = "device_id,opcode,offset,length,timestamp";

pub(super) struct Alibaba;

impl LineFormat for Alibaba {
    fn name(&self) -> &'static str {
        "alibaba"
    }

    fn description(&self) -> &'static str {
        "Alibaba block CSV: microseconds, bytes, many volumes"
    }

    fn accepted(&self) -> &'static str {
        "device,R|W,offset bytes,length bytes,timestamp us"
    }

    fn parse(&self, line: &str) -> Parsed {
        if self.claims(line) {
            return Ok(Line::Skip(Skip::Header));
        }
        let mut fields = line.split(',');
        let device = number(fields.next(), "device")?;
        let operation = letter(fields.next())?;
        let start = offset(fields.next(), "offset", 1)?;
        let size = length(fields.next(), "length", 1)?;
        let at = time(fields.next(), MICROSECOND_PS)?;
        end(fields.next())?;
        row(at, device, operation, start, size)
    }

    fn claims(&self, first: &str) -> bool {
        first.trim().eq_ignore_ascii_case(HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_is_in_bytes_and_microseconds() {
        let row = expect_row(Alibaba.parse("12,W,8192,4096,1577808000000017"));
        assert_eq!((row.time_ps, row.volume), (1_577_808_000_000_017 * MICROSECOND_PS, 12));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 4_096));
        assert_eq!(row.request.operation, Operation::Write);
        assert_eq!(Alibaba.parse(HEADER), Ok(Line::Skip(Skip::Header)));
        assert!(Alibaba.parse("12,W,8192,4096").is_err());
    }
}
