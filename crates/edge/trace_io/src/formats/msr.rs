//! MSR Cambridge: seven comma-separated columns, times in units of 100 ns, and a reduced form with four
//! columns in which a spreadsheet has rounded some offsets (`1.82083E+11`).

use super::{Parsed, direction, length, number, offset, row, time};

const TICK_PS: i128 = 100_000;

pub(super) fn parse(line: &str) -> Parsed {
    let mut fields = line.split(',');
    let at = time(fields.next(), TICK_PS)?;
    fields.next().ok_or("the host is missing")?;
    let disk = number(fields.next(), "disk")?;
    let operation = direction(fields.next(), "Read", "Write")?;
    let start = offset(fields.next(), "offset", 1)?;
    let size = length(fields.next(), "size", 1)?;
    number(fields.next(), "response time")?;
    super::end(fields.next())?;
    row(at, disk, operation, start, size)
}

pub(super) fn parse_reduced(line: &str) -> Parsed {
    let mut fields = line.split_whitespace();
    let at = time(fields.next(), TICK_PS)?;
    let operation = direction(fields.next(), "Read", "Write")?;
    let text = fields.next().ok_or("the offset is missing")?;
    let (start, rounded) = match text.parse::<u64>() {
        Ok(exact) => (exact, false),
        Err(_) => (scientific(text)?, true),
    };
    let size = length(fields.next(), "size", 1)?;
    super::end(fields.next())?;
    Ok(row(at, 0, operation, start, size)?.map(|row| super::Row { rounded, ..row }))
}

/// The whole number that a spreadsheet printed as `d.dddE+nn`.
fn scientific(text: &str) -> Result<u64, String> {
    let wrong = || format!("the offset {text:?} is no number");
    if !text.contains(['E', 'e']) {
        return Err(wrong());
    }
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if (0.0..1.8e19).contains(&value) { Ok(value as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_of_seven_columns_reads() {
        let row = parse("128166385295514663,hm,1,Write,9056014336,2048,2833").expect("good").expect("a row");
        assert_eq!((row.volume, row.request.operation), (1, Operation::Write));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (9_056_014_336, 2048));
        assert_eq!(row.time_ps, 128_166_385_295_514_663 * 100_000);
    }

    #[test]
    fn a_spoilt_offset_is_read_as_printed_and_marked() {
        let row = parse_reduced("128166465299119000 \tRead\t1.82083E+11\t4096").expect("good").expect("a row");
        assert_eq!((row.request.offset_bytes, row.rounded), (182_083_000_000, true));
        assert!(parse_reduced("1 Read 12x 4096").is_err());
    }
}
