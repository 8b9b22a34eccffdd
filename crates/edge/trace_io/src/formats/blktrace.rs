//! Binary block traces of Linux: a header of 48 bytes an event (`struct blk_io_trace`), then as many more as it says.
//!
//! Little-endian: magic u32 0x65617407, sequence u32, time u64 in ns, sector u64, bytes u32, action u32, pid u32,
//! device u32, processor u32, error u16, length of what follows u16. The action's lower half is the event (1 queued,
//! 7 issued, 8 completed; bit 8 marks a control group and says nothing about the event), its upper half what kind of
//! request. One event is counted, as for blkparse text, which prints these files.

use super::fields::{row, u16_at, u32_at, u64_at};
use super::{Event, Layout, Line, Parsed, RowError, Skip, TraceFormat};
use flashyard_blk::Operation;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 48;

/// Magic number with the version in its lowest byte.
const MAGIC: u32 = 0x6561_7407;
/// Bit of the lower half that does not belong to the event.
const CONTROL_GROUP: u16 = 1 << 8;
/// Kinds of request, in the upper half of the action.
const WRITE: u32 = 1 << (16 + 1);
const COMMAND: u32 = 1 << (16 + 9);
const NOTIFY: u32 = 1 << (16 + 10);
const DISCARD: u32 = 1 << (16 + 13);

/// Queued by a program.
pub(super) static QUEUE: Blktrace = Blktrace {
    name: "blktrace-queue",
    description: "binary block traces, a file for each processor: requests as programs queue them (Q)",
    event: Event::Queue,
};

/// Issued to the device.
pub(super) static ISSUE: Blktrace = Blktrace {
    name: "blktrace-issue",
    description: "binary block traces, a file for each processor: requests as the kernel issues them (D)",
    event: Event::Issue,
};

/// Completed.
pub(super) static COMPLETE: Blktrace = Blktrace {
    name: "blktrace-complete",
    description: "binary block traces, a file for each processor: completions (C)",
    event: Event::Complete,
};

/// Binary block traces with one kind of event counted.
pub(super) struct Blktrace {
    name: &'static str,
    description: &'static str,
    event: Event,
}

impl TraceFormat for Blktrace {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        "48 bytes, little-endian: magic 0x65617407 u32, sequence u32, time ns u64, sector u64, bytes u32, action u32, \
         pid u32, device u32, processor u32, error u16, bytes that follow u16"
    }

    fn layout(&'static self) -> Layout {
        Layout::CpuFiles(self.event)
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Nanoseconds since tracing began.
    pub(crate) time_ns: u64,
    /// Bytes that follow the header.
    pub(crate) payload_bytes: u16,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
}

impl Header {
    /// Reads a header.
    pub(crate) fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, RowError> {
        let magic = u32_at(bytes, 0);
        if magic == MAGIC.swap_bytes() {
            return Err("it is big-endian; trace on a little-endian machine".into());
        }
        if magic >> 8 == MAGIC >> 8 && magic != MAGIC {
            return Err(format!("its version is {}, not {}", magic & 0xFF, MAGIC & 0xFF).into());
        }
        if magic != MAGIC {
            return Err(format!("its magic number is {magic:#010x}").into());
        }
        Ok(Self {
            time_ns: u64_at(bytes, 8),
            payload_bytes: u16_at(bytes, 46),
            sector: u64_at(bytes, 16),
            bytes: u32_at(bytes, 24),
            action: u32_at(bytes, 28),
            device: u32_at(bytes, 36),
        })
    }

    /// Whether a file that begins with `head` is a binary block trace, of whatever version.
    pub(crate) fn begins(head: &[u8]) -> bool {
        let magic = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        head.first_chunk::<4>()
            .is_some_and(|bytes| magic(bytes) >> 8 == MAGIC >> 8 || magic(bytes) == MAGIC.swap_bytes())
    }

    /// The event, where it can be counted and is a request of a file system.
    pub(crate) fn event(&self) -> Option<Event> {
        if self.action & (NOTIFY | COMMAND) != 0 {
            return None;
        }
        match (self.action & 0xFFFF) as u16 & !CONTROL_GROUP {
            1 => Some(Event::Queue),
            7 => Some(Event::Issue),
            8 => Some(Event::Complete),
            _ => None,
        }
    }

    /// The row that the header is when `wanted` is counted.
    pub(crate) fn row(&self, wanted: Event) -> Parsed {
        if self.event() != Some(wanted) {
            return Ok(Line::Skip(Skip::OtherEvent));
        }
        let operation = if self.action & DISCARD != 0 {
            Operation::Trim
        } else if self.action & WRITE != 0 {
            Operation::Write
        } else {
            Operation::Read
        };
        if self.bytes == 0 {
            return Ok(Line::Skip(Skip::NoRange));
        }
        let start =
            self.sector.checked_mul(512).ok_or_else(|| format!("the sector {} is beyond 2^64 bytes", self.sector))?;
        row(i128::from(self.time_ns) * 1_000, u64::from(self.device), operation, start, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    fn header(action: u32, bytes: u32) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[8..16].copy_from_slice(&1_500_u64.to_le_bytes());
        header[16..24].copy_from_slice(&24_u64.to_le_bytes());
        header[24..28].copy_from_slice(&bytes.to_le_bytes());
        header[28..32].copy_from_slice(&action.to_le_bytes());
        header[36..40].copy_from_slice(&((8_u32 << 20) | 16).to_le_bytes());
        header
    }

    fn parsed(action: u32, wanted: Event) -> Parsed {
        Header::read(&header(action, 4_096)).and_then(|header| header.row(wanted))
    }

    #[test]
    fn the_wanted_event_is_a_row_in_nanoseconds_and_sectors() {
        let row = expect_row(parsed((1 << 16) | 1, Event::Queue));
        assert_eq!((row.time_ps, row.volume), (1_500_000, (8 << 20) | 16));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (12_288, 4_096));
        assert_eq!(row.request.operation, Operation::Read);
        assert_eq!(expect_row(parsed(WRITE | 7, Event::Issue)).request.operation, Operation::Write);
        assert_eq!(expect_row(parsed(WRITE | DISCARD | 8, Event::Complete)).request.operation, Operation::Trim);
        assert_eq!(expect_row(parsed(WRITE | 1 | (1 << 8), Event::Queue)).request.operation, Operation::Write);
    }

    #[test]
    fn other_events_notes_and_commands_are_passed_over() {
        for action in [WRITE | 2, WRITE | 7, NOTIFY | 1, COMMAND | 1] {
            assert_eq!(parsed(action, Event::Queue), Ok(Line::Skip(Skip::OtherEvent)), "{action:#x}");
        }
        let flush = Header::read(&header(WRITE | 1, 0)).and_then(|header| header.row(Event::Queue));
        assert_eq!(flush, Ok(Line::Skip(Skip::NoRange)));
    }

    #[test]
    fn another_magic_number_version_or_byte_order_is_refused() {
        for (magic, why) in [(MAGIC + 1, "version is 8"), (MAGIC.swap_bytes(), "big-endian"), (0, "magic number")] {
            let mut bytes = header(1, 0);
            bytes[..4].copy_from_slice(&magic.to_le_bytes());
            let error = Header::read(&bytes).expect_err("it is wrong");
            assert!(error.0.contains(why), "{error:?}");
            assert_eq!(Header::begins(&bytes), magic != 0);
        }
    }
}
