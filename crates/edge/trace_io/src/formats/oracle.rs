//! libCacheSim's oracleGeneral: binary, little-endian, 24 bytes a record: time u32 in s, object u64, bytes u32, and
//! the number of the request that asks for the object next, i64, -1 for none.
//!
//! Cache traces have objects, not addresses, and no directions. The rule: object n begins at page n modulo 2^50 of
//! 4 KiB, every request reads, and a longer object runs into its neighbours' pages.

use super::fields::{SECOND_PS, row, u32_at, u64_at};
use super::{BinaryFormat, Layout, Parsed, TraceFormat};
use flashyard_blk::Operation;

/// Pages on which an object may begin, and their bytes.
const PAGES: u64 = 1 << 50;
const PAGE_BYTES: u64 = 4096;

pub(super) struct Oracle;

impl TraceFormat for Oracle {
    fn name(&self) -> &'static str {
        "oracleGeneral"
    }

    fn description(&self) -> &'static str {
        "libCacheSim oracleGeneral binary: seconds, objects, bytes"
    }

    fn accepted(&self) -> &'static str {
        "24 bytes, little-endian: time s u32, object u64, bytes u32, next request i64"
    }

    fn assumes(&self) -> Option<&'static str> {
        Some("no addresses: object n begins at the 4 KiB page n modulo 2^50; no directions: all read")
    }

    fn layout(&'static self) -> Layout {
        Layout::Binary(self)
    }
}

impl BinaryFormat for Oracle {
    fn record_bytes(&self) -> usize {
        24
    }

    /// There is no magic number: times must not go back, and the next request for an object must come later.
    fn recognises(&self, records: &[&[u8]]) -> bool {
        let times: Vec<u32> = records.iter().map(|record| u32_at(record, 0)).collect();
        let coming = records.iter().zip(0_i64..).all(|(record, index)| {
            let next = next(record);
            next == -1 || next > index
        });
        times.is_sorted() && coming && records.iter().any(|record| u32_at(record, 12) > 0)
    }

    fn parse(&self, record: &[u8]) -> Parsed {
        let next = next(record);
        if next < -1 {
            return Err(format!("the next request {next} is below -1").into());
        }
        let at = i128::from(u32_at(record, 0)) * SECOND_PS;
        row(at, 0, Operation::Read, u64_at(record, 4) % PAGES * PAGE_BYTES, u32_at(record, 12))
    }
}

fn next(record: &[u8]) -> i64 {
    u64_at(record, 16).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::super::{Line, Skip};
    use super::*;

    fn record(seconds: u32, object: u64, bytes: u32, next: i64) -> Vec<u8> {
        [&seconds.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()].concat()
    }

    #[test]
    fn an_object_is_read_at_its_page() {
        let row = expect_row(Oracle.parse(&record(3, 5, 700, -1)));
        assert_eq!((row.time_ps, row.request.operation), (3 * SECOND_PS, Operation::Read));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (20_480, 700));
        assert_eq!(expect_row(Oracle.parse(&record(0, (1 << 50) + 5, 1, 9))).request.offset_bytes, 20_480);
        assert_eq!(Oracle.parse(&record(3, 5, 0, -1)), Ok(Line::Skip(Skip::NoRange)));
        assert!(Oracle.parse(&record(3, 5, 1, -2)).is_err());
    }

    #[test]
    fn only_records_that_go_on_are_recognised() {
        let (first, second) = (record(3, 5, 700, 1), record(4, 5, 700, i64::MAX));
        assert!(Oracle.recognises(&[&first, &second]));
        assert!(!Oracle.recognises(&[&second, &first]));
        assert!(!Oracle.recognises(&[&record(3, 5, 700, 0)]));
    }
}
