//! DiskSim ASCII: time, device, sector, count, 1 for read.
//!
//! Files do not say their unit. It is detected from the first rows by this rule, and can be named instead:
//!
//! 1. Tabs between the fields and sizes below 64 that are not all multiples of 8: milliseconds and pages of
//!    4 KiB. (Sectors almost always come in eights.)
//! 2. Otherwise a fraction in some time: milliseconds.
//! 3. Otherwise nanoseconds when rows are more than 10,000 units apart on average, else microseconds. Right for
//!    nanoseconds below 100,000 rows a second and for microseconds above 100; name the unit of others.

use super::fields::{MICROSECOND_PS, MILLISECOND_PS, SECTOR, direction, end, length, number, offset, row, time};
use super::{LineFormat, Parsed};

/// Milliseconds and sectors.
pub(super) static MILLISECONDS: Disksim = Disksim {
    name: "disksim-ms",
    description: "DiskSim ASCII: milliseconds, sectors",
    accepted: "time ms, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
    time_unit_ps: MILLISECOND_PS,
    size_unit_bytes: SECTOR,
};

/// Microseconds and sectors.
pub(super) static MICROSECONDS: Disksim = Disksim {
    name: "disksim-us",
    description: "DiskSim ASCII: microseconds, sectors",
    accepted: "time us, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
    time_unit_ps: MICROSECOND_PS,
    size_unit_bytes: SECTOR,
};

/// Nanoseconds and sectors.
pub(super) static NANOSECONDS: Disksim = Disksim {
    name: "disksim-ns",
    description: "DiskSim ASCII: nanoseconds, sectors",
    accepted: "time ns, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
    time_unit_ps: 1_000,
    size_unit_bytes: SECTOR,
};

/// Milliseconds and pages.
pub(super) static PAGES: Disksim = Disksim {
    name: "disksim-pages",
    description: "DiskSim ASCII: milliseconds, addresses in sectors, sizes in pages of 4 KiB",
    accepted: "time ms, device, sector, pages of 4 KiB, 1 for read or 0 for write, separated by tabs",
    time_unit_ps: MILLISECOND_PS,
    size_unit_bytes: 4096,
};

/// A mean gap of rows above which whole numbers are nanoseconds.
const NANOSECOND_GAP: i128 = 10_000;
/// A size from which numbers are no longer pages: 256 KiB in pages, 32 KiB in sectors.
const PAGES_MAX: u64 = 64;

/// DiskSim rows in given units.
pub(super) struct Disksim {
    name: &'static str,
    description: &'static str,
    accepted: &'static str,
    time_unit_ps: i128,
    size_unit_bytes: u64,
}

impl LineFormat for Disksim {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        self.accepted
    }

    fn parse(&self, line: &str) -> Parsed {
        let mut fields = line.split_whitespace();
        let at = time(fields.next(), self.time_unit_ps)?;
        let device = number(fields.next(), "device")?;
        let start = offset(fields.next(), "sector", SECTOR)?;
        let size = length(fields.next(), "size", self.size_unit_bytes)?;
        let operation = direction(fields.next(), "1", "0")?;
        end(fields.next())?;
        row(at, device, operation, start, size)
    }

    fn plausible(&self, rows: &[&str]) -> bool {
        unit_of(rows).name == self.name
    }
}

/// The rule of this page.
fn unit_of(rows: &[&str]) -> &'static Disksim {
    let column = |index: usize| rows.iter().filter_map(move |row| row.split_whitespace().nth(index));
    let sizes = || column(3).map(|size| size.parse::<u64>().unwrap_or(u64::MAX));
    let tabs = rows.iter().all(|row| row.contains('\t'));
    if tabs && sizes().all(|size| size < PAGES_MAX) && sizes().any(|size| size % 8 != 0) {
        return &PAGES;
    }
    if column(0).any(|time| time.contains('.')) {
        return &MILLISECONDS;
    }
    // Unsorted rows: from the lowest to the highest. `parse` has accepted the times, so the units are small.
    let times = || column(0).filter_map(|text| text.parse::<i128>().ok());
    let span = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let gaps = i128::try_from(rows.len()).unwrap_or(i128::MAX) - 1;
    if span > NANOSECOND_GAP * gaps { &NANOSECONDS } else { &MICROSECONDS }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn the_same_row_in_four_units() {
        let line = "5265 3 6357144 8 0";
        for (format, picoseconds, bytes) in [
            (&MILLISECONDS, 5_265_000_000_000, 4_096),
            (&MICROSECONDS, 5_265_000_000, 4_096),
            (&NANOSECONDS, 5_265_000, 4_096),
            (&PAGES, 5_265_000_000_000, 32_768),
        ] {
            let row = expect_row(format.parse(line));
            assert_eq!((row.time_ps, row.request.len_bytes), (picoseconds, bytes), "{}", format.name);
            assert_eq!((row.volume, row.request.offset_bytes), (3, 6_357_144 * 512));
            assert_eq!(row.request.operation, Operation::Write);
        }
    }

    #[test]
    fn the_unit_is_told_as_the_page_says() {
        let unit = |rows: &[&str]| unit_of(rows).name;
        assert_eq!(unit(&["0\t0\t8\t3\t1", "1\t0\t8\t16\t1"]), "disksim-pages");
        assert_eq!(unit(&["0.5\t0\t8\t8\t1", "1\t0\t8\t16\t1"]), "disksim-ms");
        assert_eq!(unit(&["0\t0\t8\t3\t1", "1\t0\t8\t64\t1"]), "disksim-us");
        assert_eq!(unit(&["0 0 8 8 1", "10000 0 8 8 1"]), "disksim-us");
        assert_eq!(unit(&["10001 0 8 8 1", "0 0 8 8 1"]), "disksim-ns");
        assert_eq!(unit(&["7 0 8 8 1"]), "disksim-us");
    }
}
