//! VMware's vscsiStats (CloudPhysics): binary, little-endian, a SCSI command a record.
//!
//! Version 1, 32 bytes: serial u32, bytes u32, scatter-gather elements u32, command u16, version u16, block u64 (of
//! 512 bytes), time u64 in us. Version 2, 40 bytes: command u16, version u16, serial u32, bytes u32, elements u32,
//! block u64, time u64, response time u64. The upper byte of the version is 1 or 2 in every record, which tells the
//! format and finds records that lost their place. Commands that neither read nor write are passed over.

use super::fields::{MICROSECOND_PS, SECTOR, row, u16_at, u32_at, u64_at};
use super::{BinaryFormat, Layout, Line, Parsed, Skip, TraceFormat};
use flashyard_blk::Operation;

/// READ and WRITE of 6, 10, 12 and 16 bytes.
const READS: [u16; 4] = [0x08, 0x28, 0xA8, 0x88];
const WRITES: [u16; 4] = [0x0A, 0x2A, 0xAA, 0x8A];

/// Version 1.
pub(super) static V1: Vscsi = Vscsi {
    name: "vscsi1",
    description: "VMware vscsiStats binary, version 1 (CloudPhysics): microseconds, sectors, bytes",
    accepted: "32 bytes, little-endian: serial u32, bytes u32, elements u32, SCSI command u16, version u16 of 0x01xx, \
               sector u64, time us u64",
    version: 1,
    record_bytes: 32,
    places: Places { bytes: 4, command: 12, version: 14, block: 16, time: 24 },
};

/// Version 2.
pub(super) static V2: Vscsi = Vscsi {
    name: "vscsi2",
    description: "VMware vscsiStats binary, version 2: microseconds, sectors, bytes",
    accepted: "40 bytes, little-endian: SCSI command u16, version u16 of 0x02xx, serial u32, bytes u32, elements u32, \
               sector u64, time us u64, response time us u64",
    version: 2,
    record_bytes: 40,
    places: Places { bytes: 8, command: 0, version: 2, block: 16, time: 24 },
};

/// A version of the format.
pub(super) struct Vscsi {
    name: &'static str,
    description: &'static str,
    accepted: &'static str,
    version: u16,
    record_bytes: usize,
    places: Places,
}

/// Where the fields of a record are, in bytes.
struct Places {
    bytes: usize,
    command: usize,
    version: usize,
    block: usize,
    time: usize,
}

impl TraceFormat for Vscsi {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        self.accepted
    }

    fn layout(&'static self) -> Layout {
        Layout::Binary(self)
    }
}

impl BinaryFormat for Vscsi {
    fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// At most one in four records may be spoilt: the error is then about the record.
    fn recognises(&self, records: &[&[u8]]) -> bool {
        let good = records.iter().filter(|record| self.parse(record).is_ok()).count();
        let rows = records.iter().any(|record| matches!(self.parse(record), Ok(Line::Row(_))));
        rows && good * 4 >= records.len() * 3
    }

    fn parse(&self, record: &[u8]) -> Parsed {
        let version = u16_at(record, self.places.version);
        if version >> 8 != self.version {
            return Err(format!("its version is {version:#06x}").into());
        }
        let command = u16_at(record, self.places.command);
        let operation = match command {
            read if READS.contains(&read) => Operation::Read,
            write if WRITES.contains(&write) => Operation::Write,
            0..=0xFF => return Ok(Line::Skip(Skip::OtherEvent)),
            other => return Err(format!("{other:#06x} is no SCSI command").into()),
        };
        let block = u64_at(record, self.places.block);
        let start = block.checked_mul(SECTOR).ok_or_else(|| format!("the block {block} is beyond 2^64 bytes"))?;
        let at = i128::from(u64_at(record, self.places.time)) * MICROSECOND_PS;
        row(at, 0, operation, start, u32_at(record, self.places.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    fn v1(command: u16, version: u16) -> Vec<u8> {
        let numbers = [77_u32, 8_192, 1].into_iter().flat_map(u32::to_le_bytes);
        let codes = [command, version].into_iter().flat_map(u16::to_le_bytes);
        numbers.chain(codes).chain([16_u64, 5_000].into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    fn v2(command: u16, version: u16) -> Vec<u8> {
        let codes = [command, version].into_iter().flat_map(u16::to_le_bytes);
        let numbers = [77_u32, 8_192, 1].into_iter().flat_map(u32::to_le_bytes);
        codes.chain(numbers).chain([16_u64, 5_000, 90].into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    #[test]
    fn both_versions_say_the_same() {
        for (format, record) in [(&V1, v1(0x2A, 0x0100)), (&V2, v2(0x2A, 0x0200))] {
            let row = expect_row(format.parse(&record));
            assert_eq!((row.time_ps, row.request.operation), (5_000 * MICROSECOND_PS, Operation::Write));
            assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 8_192));
        }
    }

    #[test]
    fn other_commands_are_passed_over_and_other_versions_refused() {
        assert_eq!(V1.parse(&v1(0x35, 0x0100)), Ok(Line::Skip(Skip::OtherEvent)));
        assert!(V1.parse(&v1(0x28, 0x0200)).is_err());
        assert!(V1.parse(&v1(0x1128, 0x0100)).is_err());
    }

    #[test]
    fn versions_are_told_from_each_other() {
        let (one, two) = (v1(0x28, 0x0100), v2(0x28, 0x0201));
        assert!(V1.recognises(&[&one, &one]) && !V2.recognises(&[&v1(0x28, 0x0100).repeat(2)[..40]]));
        assert!(V2.recognises(&[&two, &two]) && !V1.recognises(&[&two[..32]]));
    }
}
