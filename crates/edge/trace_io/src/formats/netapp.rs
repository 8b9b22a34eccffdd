//! NetApp array traces (hfplayer): a header names the columns. Arrivals (RD_IN, WR_IN) are requests; completions
//! (RD_OUT, WR_OUT) are passed over as other events.

use super::columns::Columns;
use super::fields::{MICROSECOND_PS, SECTOR, length, number, offset, row, time};
use super::{Layout, Line, LineParser, Parsed, Skip, TextFormat, TraceFormat};
use flashyard_blk::Operation;

/// The columns that matter: time in us since the array started, event, place.
const NAMES: [&str; 5] = ["ELAPSED_USECS.D", "CMD.S", "LUN_SSID.I", "LBA.I", "NBLKS.I"];

pub(super) struct NetApp;

impl TraceFormat for NetApp {
    fn name(&self) -> &'static str {
        "netapp"
    }

    fn description(&self) -> &'static str {
        "NetApp array CSV: microseconds, sectors, arrivals"
    }

    fn accepted(&self) -> &'static str {
        "a header with ELAPSED_USECS.D, CMD.S, LUN_SSID.I, LBA.I and NBLKS.I, then rows with RD_IN, WR_IN, RD_OUT or \
         WR_OUT as CMD, separated by commas"
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl TextFormat for NetApp {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Parser(None))
    }

    fn claims(&self, first: &str) -> bool {
        first.starts_with('#') && first.contains("ELAPSED_USECS")
    }
}

struct Parser(Option<Columns<5>>);

impl LineParser for Parser {
    fn parse(&mut self, line: &str) -> Parsed {
        let Some(columns) = self.0.as_ref().filter(|_| !line.starts_with('#')) else {
            self.0 = Some(Columns::find(line.trim_start_matches('#'), ',', NAMES)?);
            return Ok(Line::Skip(Skip::Header));
        };
        let [at, command, lun, block, blocks] = columns.pick(line)?;
        let operation = match command.trim() {
            "RD_IN" => Operation::Read,
            "WR_IN" => Operation::Write,
            "RD_OUT" | "WR_OUT" => return Ok(Line::Skip(Skip::OtherEvent)),
            other => return Err(format!("the command {other:?} is none of RD_IN, WR_IN, RD_OUT, WR_OUT").into()),
        };
        let start = offset(Some(block), "LBA", SECTOR)?;
        let size = length(Some(blocks), "count of blocks", SECTOR)?;
        row(time(Some(at), MICROSECOND_PS)?, number(Some(lun), "LUN")?, operation, start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::expect_row;
    use super::*;

    const HEADER: &str = "#CMD.S,ELAPSED_USECS.D,LBA.I,NBLKS.I,LUN_SSID.I";

    #[test]
    fn arrivals_are_rows_and_completions_are_passed_over() {
        let mut parser = NetApp.parser();
        assert_eq!(parser.parse(HEADER), Ok(Line::Skip(Skip::Header)));
        let row = expect_row(parser.parse("RD_IN,2.5,16,8,3"));
        assert_eq!((row.time_ps, row.volume, row.request.operation), (2_500_000, 3, Operation::Read));
        assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 4_096));
        assert_eq!(parser.parse("RD_OUT,2.5,16,8,3"), Ok(Line::Skip(Skip::OtherEvent)));
        assert_eq!(parser.parse(HEADER), Ok(Line::Skip(Skip::Header)));
        assert!(parser.parse("XX_IN,2.5,16,8,3").is_err());
    }

    #[test]
    fn rows_without_a_header_are_refused() {
        assert!(NetApp.parser().parse("RD_IN,2.5,16,8,3").is_err());
        assert!(NetApp.parser().parse("#CMD.S,ELAPSED_USECS.D,LBA.I").is_err());
        assert!(NetApp.claims(HEADER));
    }
}
