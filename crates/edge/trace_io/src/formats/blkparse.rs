//! Text output of blkparse: one line an event, a summary at the end. One kind of event is counted; other
//! events and lines that are no events are passed over.

use super::{Event, Parsed, SECTOR, length, offset, row, time};
use flashyard_blk::Operation;

const SECOND_PS: i128 = 1_000_000_000_000;

pub(super) fn parse(line: &str, wanted: Event) -> Parsed {
    let mut fields = line.split_whitespace();
    let Some(device) = fields.next().and_then(device) else {
        return if is_summary(line) {
            Ok(None)
        } else {
            Err("there is no device such as 8,16 at its start".to_owned())
        };
    };
    fields.next().ok_or("the cpu is missing")?;
    fields.next().ok_or("the sequence is missing")?;
    let at = time(fields.next(), SECOND_PS)?;
    fields.next().ok_or("the pid is missing")?;
    let event = fields.next().ok_or("the event is missing")?;
    let letter = match wanted {
        Event::Queue => "Q",
        Event::Issue => "D",
        Event::Complete => "C",
    };
    if event != letter {
        return Ok(None);
    }
    let flags = fields.next().ok_or("the rwbs flags are missing")?;
    let operation = if flags.contains('D') {
        Operation::Trim
    } else if flags.contains('R') {
        Operation::Read
    } else if flags.contains('W') {
        Operation::Write
    } else {
        return Ok(None);
    };
    let start = offset(fields.next(), "sector", SECTOR)?;
    if fields.next() != Some("+") {
        // An empty flush or a notification carries no range.
        return Ok(None);
    }
    let size = length(fields.next(), "count of sectors", SECTOR)?;
    row(at, u64::from(device), operation, start, size)
}

/// Major and minor number as one volume number.
fn device(field: &str) -> Option<u32> {
    let (major, minor) = field.split_once(',')?;
    Some(major.parse::<u32>().ok()?.checked_mul(1 << 20)? + minor.parse::<u32>().ok()?)
}

/// Whether a line belongs to the tables that blkparse prints after the events.
fn is_summary(line: &str) -> bool {
    let words =
        ["CPU", "Total", "Reads", "Read ", "Read_", "Writes", "Throughput", "Events", "Skips", "IO unplugs", "Merges"];
    let text = line.trim_start();
    text.is_empty() || words.iter().any(|word| text.starts_with(word)) || text.contains("Queued:") || text.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wanted_event_is_a_row() {
        let line = "  8,16   3        5     0.000026421  3645  D   R 4938888 + 256 [java]";
        let row = parse(line, Event::Issue).expect("good").expect("a row");
        assert_eq!((row.time_ps, row.request.len_bytes), (26_421_000, 131_072));
        assert_eq!(parse(line, Event::Queue), Ok(None));
        assert_eq!(parse("Throughput (R/W): 0KiB/s / 0KiB/s", Event::Queue), Ok(None));
        assert!(parse("128166385295514663,hm,1,Write,1,2,3", Event::Queue).is_err());
    }
}
