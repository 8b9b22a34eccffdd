//! Paging logs of a remote-memory block device. The sign of the time is the direction: below zero pages come in,
//! which reads; above zero they go out, which writes.

use super::fields::{MICROSECOND_PS, end, number, required, row, time};
use super::{LineFormat, Parsed};
use flashyard_blk::Operation;

pub(super) struct Rmem;

impl LineFormat for Rmem {
    fn name(&self) -> &'static str {
        "rmem"
    }

    fn description(&self) -> &'static str {
        "remote-memory paging log: microseconds (below zero for page-in), pages"
    }

    fn accepted(&self) -> &'static str {
        "ring index, time us (minus for page-in, a read), first page, pages, page size, separated by blanks"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        number(fields.next(), "ring index")?;
        let stamp = required(fields.next(), "time")?;
        let (operation, stamp) = match stamp.strip_prefix('-') {
            Some(rest) => (Operation::Read, rest),
            None => (Operation::Write, stamp),
        };
        let at = time(Some(stamp), MICROSECOND_PS)?;
        let page = number(fields.next(), "page")?;
        let pages = number(fields.next(), "count of pages")?;
        let page_bytes = number(fields.next(), "page size")?;
        end(fields.next())?;
        if !page_bytes.is_power_of_two() || page_bytes < 512 {
            return Err(format!("the page size {page_bytes} is no power of two from 512 on").into());
        }
        let start = page.checked_mul(page_bytes).ok_or_else(|| format!("the page {page} is beyond 2^64 bytes"))?;
        let size = pages.checked_mul(page_bytes).and_then(|bytes| u32::try_from(bytes).ok());
        row(at, 0, operation, start, size.ok_or_else(|| format!("{pages} pages make 4 GiB or more"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    #[test]
    fn the_sign_of_the_time_is_the_direction() {
        let row = expect_row(Rmem.parse("0 -1400000000000005 3 2 4096"));
        assert_eq!((row.time_ps, row.request.operation), (1_400_000_000_000_005_000_000, Operation::Read));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (12_288, 8_192));
        assert_eq!(expect_row(Rmem.parse("0 1400000000000005 3 2 4096")).request.operation, Operation::Write);
    }

    #[test]
    fn pages_that_make_no_sense_are_refused() {
        for line in ["0 5 3 2 1", "0 5 3 2 4095", "0 --5 3 2 4096", "0 5 3 1048576 4096", "0 5 4503599627370496 1 4096"]
        {
            assert!(Rmem.parse(line).is_err(), "{line}");
        }
    }
}
