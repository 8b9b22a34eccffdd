//! fio's iologs, version 2 and 3: a first line with the version, then files and their actions.
//!
//! Version 3 begins every line with its time in microseconds. Version 2 has no times but `wait`: as fio's manual has
//! it, its offset is microseconds since the wait before, so requests arrive together at the sum of the waits so far
//! (replay such a log with a depth). Files become volumes in the order in which they are added. A file is added
//! before it is used, and may be opened and closed; whether it is open is not checked, as fio does not either.

use super::fields::{MICROSECOND_PS, end, length, number, offset, required, row, time};
use super::{Layout, Line, LineParser, Parsed, RowError, Skip, TextFormat, TraceFormat};
use flashyard_blk::Operation;
use std::collections::HashMap;

/// Files that a log may add, and bytes of a name: the names are kept.
const FILES_MAX: usize = 1 << 14;
const NAME_MAX: usize = 4096;
/// Beginning of the first line.
const FIRST: &str = "fio version ";

/// Without times.
pub(super) static V2: Fio = Fio {
    name: "fio2",
    description: "fio iolog version 2: files, bytes, waits in microseconds",
    accepted: "\"fio version 2 iolog\" first, then: file add|open|close, or: file \
               read|write|trim|sync|datasync|wait offset length, in bytes or for wait microseconds",
    first: "fio version 2 iolog",
    timed: false,
};

/// With times.
pub(super) static V3: Fio = Fio {
    name: "fio3",
    description: "fio iolog version 3: microseconds, files, bytes",
    accepted: "\"fio version 3 iolog\" first, then: time us, file, add|open|close, or: time us, file, \
               read|write|trim|sync|datasync, offset, length",
    first: "fio version 3 iolog",
    timed: true,
};

/// A version of the format.
pub(super) struct Fio {
    name: &'static str,
    description: &'static str,
    accepted: &'static str,
    first: &'static str,
    timed: bool,
}

impl TraceFormat for Fio {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn accepted(&self) -> &'static str {
        self.accepted
    }

    fn assumes(&self) -> Option<&'static str> {
        (!self.timed).then_some("no times but waits: requests arrive together, the sum of the waits before them")
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl TextFormat for Fio {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Parser { format: self, begun: false, files: HashMap::new(), waited_ps: 0 })
    }

    /// A version that is unknown goes to version 3, whose message names the first line.
    fn claims(&self, first: &str) -> bool {
        first.trim_end() == self.first || (self.timed && first.starts_with(FIRST) && first.trim_end() != V2.first)
    }
}

struct Parser {
    format: &'static Fio,
    begun: bool,
    /// Volumes by name.
    files: HashMap<String, u64>,
    waited_ps: i128,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &str) -> Parsed {
        if !self.begun {
            if line.trim_end() != self.format.first {
                return Err(format!("the first line is not {:?}", self.format.first).into());
            }
            self.begun = true;
            return Ok(Line::Skip(Skip::Header));
        }
        let mut fields = line.split_whitespace();
        let at = if self.format.timed { time(fields.next(), MICROSECOND_PS)? } else { self.waited_ps };
        let file = required(fields.next(), "file")?;
        let action = required(fields.next(), "action")?;
        let operation = match action {
            "add" | "open" | "close" => {
                end(fields.next())?;
                self.manage(file, action)?;
                return Ok(Line::Skip(Skip::OtherEvent));
            }
            "wait" if !self.format.timed => {
                self.wait(number(fields.next(), "wait")?)?;
                return Ok(Line::Skip(Skip::OtherEvent));
            }
            "sync" | "datasync" | "sync_file_range" | "syncfs" => return Ok(Line::Skip(Skip::NoRange)),
            "read" => Operation::Read,
            "write" => Operation::Write,
            "trim" => Operation::Trim,
            other => return Err(format!("the action {other:?} is unknown").into()),
        };
        let start = offset(fields.next(), "offset", 1)?;
        let size = length(fields.next(), "length", 1)?;
        end(fields.next())?;
        row(at, self.volume(file)?, operation, start, size)
    }
}

impl Parser {
    fn manage(&mut self, file: &str, action: &str) -> Result<(), RowError> {
        if action != "add" {
            return self.volume(file).map(|_| ());
        }
        if self.files.contains_key(file) {
            return Ok(());
        }
        if self.files.len() == FILES_MAX || file.len() > NAME_MAX {
            return Err(RowError(format!("it adds more than {FILES_MAX} files, or a name above {NAME_MAX} bytes")));
        }
        self.files.insert(file.to_owned(), self.files.len() as u64);
        Ok(())
    }

    fn wait(&mut self, microseconds: u64) -> Result<(), RowError> {
        // Years of waiting in every line would leave the range of 128 bits only after 10^7 lines of the longest wait.
        let waited = self.waited_ps.checked_add(i128::from(microseconds) * MICROSECOND_PS);
        self.waited_ps = waited.ok_or("the waits are beyond any clock")?;
        Ok(())
    }

    fn volume(&self, file: &str) -> Result<u64, RowError> {
        let place = self.files.get(file).copied();
        place.ok_or_else(|| RowError(format!("the file {file:?} was not added before")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    fn parsed(format: &'static Fio, lines: &[&str]) -> Vec<Parsed> {
        let mut parser = format.parser();
        lines.iter().map(|line| parser.parse(line)).collect()
    }

    #[test]
    fn version_3_has_a_time_in_every_line_and_files_are_volumes() {
        let lines = [
            "fio version 3 iolog",
            "0 /dev/a add",
            "0 /dev/b add",
            "1 /dev/b open",
            "7 /dev/b write 8192 4096",
            "9 /dev/a read 512 512",
            "9 /dev/a sync 0 0",
            "10 /dev/b trim 0 65536",
            "11 /dev/b close",
        ];
        let found = parsed(&V3, &lines);
        let row = expect_row(found[4].clone());
        assert_eq!((row.time_ps, row.volume, row.request.operation), (7_000_000, 1, Operation::Write));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 4_096));
        assert_eq!(expect_row(found[5].clone()).volume, 0);
        assert_eq!(found[6], Ok(Line::Skip(Skip::NoRange)));
        assert_eq!(expect_row(found[7].clone()).request.operation, Operation::Trim);
        assert_eq!(found[8], Ok(Line::Skip(Skip::OtherEvent)));
    }

    #[test]
    fn waits_of_version_2_add_up() {
        let lines =
            ["fio version 2 iolog", "f add", "f open", "f read 0 512", "f wait 250 0", "f wait 50", "f read 0 512"];
        let found = parsed(&V2, &lines);
        assert_eq!(expect_row(found[3].clone()).time_ps, 0);
        assert_eq!(expect_row(found[6].clone()).time_ps, 300 * MICROSECOND_PS);
    }

    #[test]
    fn what_no_log_holds_is_refused() {
        for (format, second) in [
            (&V2, "f read 0 512"),
            (&V2, "f open"),
            (&V2, "f chew"),
            (&V2, "f add 1"),
            (&V3, "0 f wait 250 0"),
            (&V3, "f add"),
        ] {
            assert!(parsed(format, &[format.first, second])[1].is_err(), "{second}");
        }
        assert!(parsed(&V2, &["f add"])[0].is_err());
        assert!(parsed(&V3, &["fio version 4 iolog"])[0].is_err());
        assert!(V3.claims("fio version 4 iolog") && !V2.claims("fio version 4 iolog") && !V3.claims(V2.first));
    }

    #[test]
    fn more_files_than_the_limit_are_refused() {
        let files = (0..FILES_MAX as u64).map(|number| (number.to_string(), number)).collect();
        let mut parser = Parser { format: &V3, begun: true, files, waited_ps: 0 };
        assert!(parser.parse("0 one-more add").is_err());
        assert_eq!(parser.parse("0 77 add"), Ok(Line::Skip(Skip::OtherEvent)), "it is known");
        let mut parser = V3.parser();
        assert!(parser.parse(V3.first).is_ok() && parser.parse(&format!("0 {} add", "n".repeat(5_000))).is_err());
    }
}
