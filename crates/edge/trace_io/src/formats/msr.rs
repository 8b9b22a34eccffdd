//! MSR Cambridge: seven comma-separated columns, times in units of 100 ns.

use super::fields::{FILETIME_PS, direction, end, length, number, offset, required, row, time};
use super::{LineFormat, Parsed};

pub(super) struct Msr;

impl LineFormat for Msr {
    fn name(&self) -> &'static str {
        "msr"
    }

    fn description(&self) -> &'static str {
        "MSR Cambridge CSV: 100 ns, bytes, and what the original disk took"
    }

    fn accepted(&self) -> &'static str {
        "timestamp in 100 ns,host,disk,Read|Write,offset bytes,size bytes,response time in 100 ns"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split(',');
        let at = time(fields.next(), FILETIME_PS)?;
        required(fields.next(), "host")?;
        let disk = number(fields.next(), "disk")?;
        let operation = direction(fields.next(), "Read", "Write")?;
        let start = offset(fields.next(), "offset", 1)?;
        let size = length(fields.next(), "size", 1)?;
        number(fields.next(), "response time")?;
        end(fields.next())?;
        row(at, disk, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_of_seven_columns_reads() {
        let row = expect_row(Msr.parse("128166385295514663,hm,1,Write,9056014336,2048,2833"));
        assert_eq!((row.volume, row.request.operation), (1, Operation::Write));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (9_056_014_336, 2048));
        assert_eq!(row.time_ps, 128_166_385_295_514_663 * 100_000);
    }

    #[test]
    fn a_row_with_a_column_too_few_or_too_many_is_refused() {
        assert!(Msr.parse("128166385295514663,hm,1,Write,9056014336,2048").is_err());
        assert!(Msr.parse("128166385295514663,hm,1,Write,9056014336,2048,2833,1").is_err());
    }
}
