//! Replay windows: time in ms, device, offset and size in bytes, 1 for read.
//!
//! DiskSim rows look the same, with sectors for bytes. Bytes come in multiples of 512; a file of DiskSim rows shows an
//! address or a size that is none within its first lines. A file that does not must be named.

use super::fields::{MILLISECOND_PS, SECTOR, direction, end, length, number, offset, row, time};
use super::{Line, LineFormat, Parsed};

pub(super) struct Replay;

impl LineFormat for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn description(&self) -> &'static str {
        "replay window: milliseconds, bytes"
    }

    fn accepted(&self) -> &'static str {
        "time ms, device, offset bytes, size bytes, 1 for read or 0 for write, separated by blanks"
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let at = time(fields.next(), MILLISECOND_PS)?;
        let device = number(fields.next(), "device")?;
        let start = offset(fields.next(), "offset", 1)?;
        let size = length(fields.next(), "size", 1)?;
        let operation = direction(fields.next(), "1", "0")?;
        end(fields.next())?;
        row(at, device, operation, start, size)
    }

    fn plausible(&self, rows: &[&str]) -> bool {
        rows.iter().all(|line| match self.parse(line) {
            Ok(Line::Row(row)) => {
                row.request.offset_bytes % SECTOR == 0 && u64::from(row.request.len_bytes) % SECTOR == 0
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_is_in_milliseconds_and_bytes_and_1_reads() {
        let row = expect_row(Replay.parse("223.412 2 3159347200 36864 1"));
        assert_eq!((row.time_ps, row.volume), (223_412_000_000, 2));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (3_159_347_200, 36_864));
        assert_eq!(row.request.operation, Operation::Read);
        assert!(Replay.parse("223.412 2 3159347200 36864 2").is_err());
    }

    #[test]
    fn rows_off_sector_boundaries_are_not_its_own() {
        assert!(Replay.plausible(&["0.0 0 1024 512 1"]));
        assert!(!Replay.plausible(&["0.0 0 1024 512 1", "0.0 0 1024 8 1"]));
    }
}
