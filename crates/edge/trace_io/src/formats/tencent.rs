//! Tencent CBS: seconds and sectors, 0 for read; and replay profiles of its volumes with measured latencies.

use super::{Parsed, SECTOR, direction, end, length, number, offset, row, time};

const SECOND_PS: i128 = 1_000_000_000_000;
const MILLISECOND_PS: i128 = 1_000_000_000;

pub(super) fn parse(line: &str) -> Parsed {
    let mut fields = line.split(',');
    let at = time(fields.next(), SECOND_PS)?;
    let start = offset(fields.next(), "offset", SECTOR)?;
    let size = length(fields.next(), "size", SECTOR)?;
    let operation = direction(fields.next(), "0", "1")?;
    let volume = number(fields.next(), "volume")?;
    end(fields.next())?;
    row(at, volume, operation, start, size)
}

pub(super) fn parse_profile(line: &str) -> Parsed {
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
