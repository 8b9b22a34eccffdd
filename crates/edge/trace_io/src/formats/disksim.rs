//! DiskSim ASCII: time, device, sector, count, 1 for read. Files do not say their unit; it is told from the
//! first lines by this rule, and can be named instead:
//! tabs mean pages of 4 KiB and milliseconds; a fraction means milliseconds; whole numbers mean nanoseconds
//! when rows are more than 10,000 units apart on average, microseconds otherwise.

use super::{Format, Parsed, SECTOR, direction, end, length, number, offset, row, time};

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Pages,
}

pub(super) fn parse(line: &str, unit: Unit) -> Parsed {
    let (unit_ps, size_unit) = match unit {
        Unit::Milliseconds => (1_000_000_000, SECTOR),
        Unit::Microseconds => (1_000_000, SECTOR),
        Unit::Nanoseconds => (1_000, SECTOR),
        Unit::Pages => (1_000_000_000, 4096),
    };
    let mut fields = line.split_whitespace();
    let at = time(fields.next(), unit_ps)?;
    let device = number(fields.next(), "device")?;
    let start = offset(fields.next(), "sector", SECTOR)?;
    let size = length(fields.next(), "size", size_unit)?;
    let operation = direction(fields.next(), "1", "0")?;
    end(fields.next())?;
    row(at, device, operation, start, size)
}

pub(super) fn detect(lines: &[String]) -> Format {
    if lines.iter().all(|line| line.contains('\t')) {
        return Format::DisksimPages;
    }
    let times: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
    if times.iter().any(|time| time.contains('.')) {
        return Format::DisksimMs;
    }
    let whole = |index: usize| times.get(index).and_then(|time| time.parse::<i128>().ok()).unwrap_or(0);
    let gaps = times.len().max(2) as i128 - 1;
    let mean_gap = (whole(times.len().saturating_sub(1)) - whole(0)) / gaps;
    if mean_gap > 10_000 { Format::DisksimNs } else { Format::DisksimUs }
}
