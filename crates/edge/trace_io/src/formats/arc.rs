//! Page references of the ARC paper (`.lis`): first block, blocks, a field that is ignored, request number.
//!
//! The file has no times and no directions. The rule: row n arrives n microseconds after the first, and all read.
//! Blocks are of 512 bytes, as the disk traces of the paper count; `arc-pages` takes them for pages of 4 KiB, as its
//! database and search traces count, and is never detected from the content.

use super::fields::{MICROSECOND_PS, SECTOR, end, length, number, offset, row};
use super::{Layout, LineParser, Parsed, TextFormat, TraceFormat};
use flashyard_blk::Operation;

/// Blocks of 512 bytes.
pub(super) static BLOCKS: Arc = Arc {
    name: "arc",
    description: "ARC page references (.lis): blocks of 512 bytes, no times",
    assumes: "no times: one request each microsecond; no directions: all read; blocks of 512 bytes",
    block_bytes: SECTOR,
};

/// Pages of 4 KiB.
pub(super) static PAGES: Arc = Arc {
    name: "arc-pages",
    description: "ARC page references (.lis): pages of 4 KiB, no times; only by name",
    assumes: "no times: one request each microsecond; no directions: all read; blocks of 4 KiB",
    block_bytes: 4096,
};

/// References to blocks of a size.
pub(super) struct Arc {
    name: &'static str,
    description: &'static str,
    assumes: &'static str,
    block_bytes: u64,
}

impl TraceFormat for Arc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        "first block, blocks, a number that is ignored, request number, separated by blanks"
    }

    fn assumes(&self) -> Option<&'static str> {
        Some(self.assumes)
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl TextFormat for Arc {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Parser { block_bytes: self.block_bytes, rows: 0 })
    }

    fn plausible(&self, _rows: &[&str]) -> bool {
        self.block_bytes == SECTOR
    }
}

struct Parser {
    block_bytes: u64,
    rows: u64,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let start = offset(fields.next(), "block", self.block_bytes)?;
        let size = length(fields.next(), "count of blocks", self.block_bytes)?;
        number(fields.next(), "third number")?;
        number(fields.next(), "request number")?;
        end(fields.next())?;
        let at = i128::from(self.rows) * MICROSECOND_PS;
        self.rows += 1;
        row(at, 0, Operation::Read, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    #[test]
    fn rows_read_one_a_microsecond_in_the_units_of_the_name() {
        for (format, bytes) in [(&BLOCKS, 512), (&PAGES, 4_096)] {
            let mut parser = format.parser();
            assert_eq!(expect_row(parser.parse("7 3 0 0")).time_ps, 0);
            let row = expect_row(parser.parse("9 1 0 1"));
            assert_eq!((row.time_ps, row.request.operation), (MICROSECOND_PS, Operation::Read));
            assert_eq!((row.request.offset_bytes, u64::from(row.request.len_bytes)), (9 * bytes, bytes));
            assert!(parser.parse("9 1 0").is_err());
            assert!(parser.parse("9 1 0 1 1").is_err());
        }
    }
}
