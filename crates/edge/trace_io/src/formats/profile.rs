//! Replay profiles: rows of a Tencent volume with the latency that a real drive showed. The measured columns
//! are checked, not kept.

use super::fields::{MILLISECOND_PS, direction, end, length, number, offset, row, time};
use super::{LineFormat, Parsed};

pub(super) struct Profile;

impl LineFormat for Profile {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn description(&self) -> &'static str {
        "replay profile CSV: milliseconds, bytes, measured latency"
    }

    fn accepted(&self) -> &'static str {
        "arrival ms,latency us,1 for read or 0 for write,size bytes,offset bytes,submit ms,bytes done"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split(',');
        let at = time(fields.next(), MILLISECOND_PS)?;
        number(fields.next(), "latency")?;
        let operation = direction(fields.next(), "1", "0")?;
        let size = length(fields.next(), "size", 1)?;
        let start = offset(fields.next(), "offset", 1)?;
        time(fields.next(), MILLISECOND_PS)?;
        number(fields.next(), "bytes done")?;
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
    fn size_stands_before_offset_and_1_reads() {
        let row = expect_row(Profile.parse("77000.000,2505,1,12288,11403264,77000.281,12288"));
        assert_eq!((row.time_ps, row.volume), (77 * 1_000 * MILLISECOND_PS, 0));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (11_403_264, 12_288));
        assert_eq!(row.request.operation, Operation::Read);
    }
}
