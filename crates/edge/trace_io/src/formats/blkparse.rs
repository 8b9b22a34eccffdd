//! Text output of blkparse: one line an event, tables of totals at the end.
//!
//! One kind of event is counted. Without a name it is the earliest in a request's life that the first lines
//! hold: queue (Q), else issue to the device (D), else completion (C). Other events are passed over, and so
//! are the totals, which are known by their labels; any other line is an error.

use super::fields::{self, SECOND_PS, SECTOR, length, offset, required, row, time};
use super::{LineFormat, Parsed, RowError, Skip};
use crate::formats::Line;
use flashyard_blk::Operation;

/// Q events.
pub(super) static QUEUE: Blkparse =
    Blkparse { name: "blkparse-queue", description: "blkparse text, requests as programs queue them (Q)", letter: "Q" };

/// D events.
pub(super) static ISSUE: Blkparse = Blkparse {
    name: "blkparse-issue",
    description: "blkparse text, requests as the kernel issues them to the device (D)",
    letter: "D",
};

/// C events.
pub(super) static COMPLETE: Blkparse =
    Blkparse { name: "blkparse-complete", description: "blkparse text, completions (C)", letter: "C" };

/// Labels that begin the lines of totals.
const LABELS: [&str; 13] = [
    "CPU",
    "Total",
    "Reads ",
    "Read ",
    "Writes ",
    "Write ",
    "PC ",
    "IO unplugs",
    "Timer unplugs",
    "Throughput",
    "Events",
    "Skips",
    "Input file",
];

/// blkparse text with one kind of event counted.
pub(super) struct Blkparse {
    name: &'static str,
    description: &'static str,
    letter: &'static str,
}

impl LineFormat for Blkparse {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        "major,minor cpu sequence seconds pid event rwbs sector + sectors [process]"
    }

    fn parse(&self, line: &str) -> Parsed {
        if LABELS.iter().any(|label| line.trim_start().starts_with(label)) {
            return Ok(Line::Skip(Skip::Totals));
        }
        let mut fields = line.split_whitespace();
        let device = device(required(fields.next(), "device")?)?;
        required(fields.next(), "cpu")?;
        required(fields.next(), "sequence")?;
        let at = time(fields.next(), SECOND_PS)?;
        required(fields.next(), "pid")?;
        let event = required(fields.next(), "event")?;
        if event.len() > 2 || !event.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(RowError(format!("the event {event:?} is no letter")));
        }
        if event != self.letter {
            return Ok(Line::Skip(Skip::OtherEvent));
        }
        let Some(operation) = operation(required(fields.next(), "rwbs flags")?)? else {
            return Ok(Line::Skip(Skip::NoRange));
        };
        let start = offset(fields.next(), "sector", SECTOR)?;
        match required(fields.next(), "+ before the count of sectors")? {
            "+" => {}
            // A command that was passed through to the device: bytes of it are shown, and no range.
            other if other.starts_with('(') => return Ok(Line::Skip(Skip::NoRange)),
            other => return Err(RowError(format!("there is {other:?} where a + should be"))),
        }
        let size = length(fields.next(), "count of sectors", SECTOR)?;
        row(at, u64::from(device), operation, start, size)
    }
}

/// Major and minor number as one volume number, as Linux numbers devices.
fn device(field: &str) -> Result<u32, RowError> {
    let numbers = || {
        let (major, minor) = field.split_once(',')?;
        fields::device(major.parse().ok()?, minor.parse().ok()?)
    };
    numbers().ok_or_else(|| RowError(format!("{field:?} is no device such as 8,16")))
}

/// Operation of the rwbs flags; `None` for a flush or a notification. A leading F is a flush before a write.
fn operation(flags: &str) -> Result<Option<Operation>, RowError> {
    match flags.strip_prefix('F').unwrap_or(flags).bytes().next() {
        Some(b'R') => Ok(Some(Operation::Read)),
        Some(b'W') => Ok(Some(Operation::Write)),
        Some(b'D') => Ok(Some(Operation::Trim)),
        Some(b'N' | b'F') | None => Ok(None),
        Some(_) => Err(RowError(format!("the rwbs flags {flags:?} hold none of R, W, D, F, N"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    #[test]
    fn only_the_wanted_event_is_a_row() {
        let line = "  8,16   3        5     0.000026421  3645  D   R 4938888 + 256 [java]";
        let row = expect_row(ISSUE.parse(line));
        assert_eq!((row.time_ps, row.request.len_bytes), (26_421_000, 131_072));
        assert_eq!((row.volume, row.request.operation), ((8 << 20) | 16, Operation::Read));
        assert_eq!(QUEUE.parse(line), Ok(Line::Skip(Skip::OtherEvent)));
    }

    #[test]
    fn lines_without_a_range_are_passed_over() {
        assert_eq!(QUEUE.parse("259,2 0 3 0.000003650 4020 Q N [java] 1"), Ok(Line::Skip(Skip::NoRange)));
        assert_eq!(QUEUE.parse("259,2 0 3 0.000003650 4020 Q FF 0 + 0 [java]"), Ok(Line::Skip(Skip::NoRange)));
        assert_eq!(QUEUE.parse("259,2 0 3 0.000003650 4020 Q WS 8 + 0 [java]"), Ok(Line::Skip(Skip::NoRange)));
    }

    #[test]
    fn the_flags_say_what_is_asked() {
        for (flags, asked) in [
            ("R", Some(Operation::Read)),
            ("RM", Some(Operation::Read)),
            ("WFS", Some(Operation::Write)),
            ("FWFSM", Some(Operation::Write)),
            ("DS", Some(Operation::Trim)),
            ("F", None),
            ("FF", None),
            ("N", None),
        ] {
            assert_eq!(operation(flags), Ok(asked), "{flags}");
        }
        assert!(operation("XR").is_err());
    }

    #[test]
    fn totals_are_passed_over_and_other_words_are_not() {
        for line in [
            "CPU0 (8,16):",
            " Reads Queued:           0,        0KiB\t Writes Queued:           0,        0KiB",
            " Read depth:             7        \t Write depth:            33",
            " IO unplugs:             0        \t Timer unplugs:           0",
            "Throughput (R/W): 0KiB/s / 0KiB/s",
            "Skips: 0 forward (0 -   0.0%)",
        ] {
            assert_eq!(ISSUE.parse(line), Ok(Line::Skip(Skip::Totals)), "{line}");
        }
        for line in ["this line: is nonsense", "8,16 3 5 0.1 3645 D R 4938888 - 256 [java]", "8,16 3 5 0.1 3645 D R"] {
            assert!(ISSUE.parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_device_number_beyond_32_bits_is_refused() {
        assert_eq!(device("4095,1048575"), Ok(u32::MAX));
        for field in ["4096,0", "0,1048576", "4095,4294967295", "8", "8,", ",1", "a,b"] {
            assert!(device(field).is_err(), "{field}");
        }
    }
}
