//! Replay windows: time in ms, device, offset and size in bytes, 1 for read.

use super::{Parsed, direction, length, number, offset, row, time};

const MILLISECOND_PS: i128 = 1_000_000_000;

pub(super) fn parse(line: &str) -> Parsed {
    let mut fields = line.split_whitespace();
    let at = time(fields.next(), MILLISECOND_PS)?;
    let device = number(fields.next(), "device")?;
    let start = offset(fields.next(), "offset", 1)?;
    let size = length(fields.next(), "size", 1)?;
    let operation = direction(fields.next(), "1", "0")?;
    super::end(fields.next())?;
    row(at, device, operation, start, size)
}

/// DiskSim rows look the same with sectors for bytes. Bytes are multiples of 512; a file of DiskSim rows
/// shows a size that is not within its first lines.
pub(super) fn plausible(lines: &[String]) -> bool {
    let whole_sectors = |line: &String| {
        let mut fields = line.split_whitespace().skip(2).map(|field| field.parse::<u64>().unwrap_or(1));
        fields.next().is_some_and(|start| start % 512 == 0) && fields.next().is_some_and(|size| size % 512 == 0)
    };
    lines.iter().all(whole_sectors)
}
