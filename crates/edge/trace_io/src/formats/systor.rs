//! SYSTOR '17 (virtual desktops over several LUNs): six columns with a header. The response time may be empty. A row
//! with an empty type, unknown to the publisher, is passed over as another event.

use super::fields::{SECOND_PS, end, length, letter, number, offset, required, row, time};
use super::{Line, LineFormat, Parsed, Skip};

/// The header, without regard to case.
const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

pub(super) struct Systor;

impl LineFormat for Systor {
    fn name(&self) -> &'static str {
        "systor"
    }

    fn description(&self) -> &'static str {
        "SYSTOR '17 CSV: seconds, bytes, LUNs"
    }

    fn accepted(&self) -> &'static str {
        "timestamp s,response s or nothing,R|W,LUN,offset bytes,size bytes, after a header with these names"
    }

    fn parse(&self, line: &str) -> Parsed {
        if self.claims(line) {
            return Ok(Line::Skip(Skip::Header));
        }
        let mut fields = line.split(',');
        let at = time(fields.next(), SECOND_PS)?;
        match required(fields.next(), "response")? {
            "" => {}
            response => {
                time(Some(response), SECOND_PS)?;
            }
        }
        let kind = fields.next();
        let lun = number(fields.next(), "LUN")?;
        let start = offset(fields.next(), "offset", 1)?;
        let size = length(fields.next(), "size", 1)?;
        end(fields.next())?;
        if required(kind, "type")?.is_empty() {
            return Ok(Line::Skip(Skip::OtherEvent));
        }
        row(at, lun, letter(kind)?, start, size)
    }

    fn claims(&self, first: &str) -> bool {
        first.trim().eq_ignore_ascii_case(HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;
    use flashyard_blk::Operation;

    #[test]
    fn a_row_is_in_seconds_and_bytes_with_or_without_a_response() {
        for response in ["0.000125", ""] {
            let row = expect_row(Systor.parse(&format!("1455500000.25,{response},R,3,65536,8192")));
            assert_eq!((row.time_ps, row.volume), (1_455_500_000 * SECOND_PS + SECOND_PS / 4, 3));
            assert_eq!((row.request.offset_bytes, row.request.len_bytes), (65_536, 8_192));
            assert_eq!(row.request.operation, Operation::Read);
        }
    }

    #[test]
    fn headers_and_rows_without_a_type_are_passed_over() {
        assert_eq!(Systor.parse(HEADER), Ok(Line::Skip(Skip::Header)));
        assert_eq!(Systor.parse("1455500000.25,,,3,65536,8192"), Ok(Line::Skip(Skip::OtherEvent)));
        assert!(Systor.parse("1455500000.25,x,R,3,65536,8192").is_err());
    }
}
