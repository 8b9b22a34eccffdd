//! Nexus 5 logs of the eMMC driver (BIOtracer). Requests arrive when they were generated; the file is in another
//! order, and a phone's clock is set while it boots: the clock rule of the crate page applies.

use super::fields::{SECOND_PS, SECTOR, end, length, number, offset, row, time};
use super::{LineFormat, Parsed};
use flashyard_blk::Operation;

pub(super) struct Nexus;

impl LineFormat for Nexus {
    fn name(&self) -> &'static str {
        "nexus"
    }

    fn description(&self) -> &'static str {
        "Nexus 5 eMMC log: seconds, sectors, four times a request"
    }

    fn accepted(&self) -> &'static str {
        "sector, sectors, the same in bytes, type (bit 0 set for write), and times in s at which it was generated, \
         fetched, submitted and finished, separated by tabs"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let start = offset(fields.next(), "sector", SECTOR)?;
        let size = length(fields.next(), "count of sectors", SECTOR)?;
        let bytes = number(fields.next(), "size in bytes")?;
        if bytes != u64::from(size) {
            return Err(format!("{bytes} bytes are not the {size} of the sectors").into());
        }
        let kind = number(fields.next(), "type")?;
        if kind > 7 {
            return Err(format!("the type {kind} is not 0 to 7").into());
        }
        let operation = if kind & 1 == 0 { Operation::Read } else { Operation::Write };
        let at = time(fields.next(), SECOND_PS)?;
        for _ in 0..3 {
            time(fields.next(), SECOND_PS)?;
        }
        end(fields.next())?;
        row(at, 0, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    #[test]
    fn bit_0_of_the_type_writes() {
        for (kind, operation) in [(0, Operation::Read), (1, Operation::Write), (4, Operation::Read)] {
            let row = expect_row(Nexus.parse(&format!("24\t\t8\t\t4096\t\t{kind}\t\t2.5\t\t2.6\t\t2.7\t\t2.8")));
            assert_eq!((row.time_ps, row.request.operation), (SECOND_PS * 5 / 2, operation));
            assert_eq!((row.request.offset_bytes, row.request.len_bytes), (12_288, 4_096));
        }
    }

    #[test]
    fn sizes_that_disagree_and_missing_times_are_refused() {
        for line in ["24 8 4095 0 2.5 2.6 2.7 2.8", "24 8 4096 0 2.5 2.6 2.7", "24 8 4096 8 2.5 2.6 2.7 2.8"] {
            assert!(Nexus.parse(line).is_err(), "{line}");
        }
    }
}
