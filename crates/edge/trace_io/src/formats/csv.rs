//! Separated values of any origin: a header names the columns, and the names carry the units.
//!
//! A name is a word for the quantity and, after `_`, its unit. Nothing is guessed: a time, an address or a
//! size without a unit is an unknown column, and an unknown column is an error, unless its name begins with
//! `ignored`. The separator is a comma, a semicolon or a tab, the first of these that the header holds; quotes around
//! a field are dropped, separators inside quotes are not understood.

use super::fields::{
    FILETIME_PS, MICROSECOND_PS, MILLISECOND_PS, SECOND_PS, SECTOR, length, number, offset, required, row, time,
};
use super::{Layout, Line, LineParser, Parsed, RowError, Skip, TextFormat, TraceFormat};
use flashyard_blk::Operation;

/// Words for a time and its units in picoseconds.
const TIME: [&str; 6] = ["time", "timestamp", "ts", "arrival", "arrival_time", "elapsed"];
const TIME_UNITS: [(&str, i128); 9] = [
    ("s", SECOND_PS),
    ("sec", SECOND_PS),
    ("seconds", SECOND_PS),
    ("ms", MILLISECOND_PS),
    ("us", MICROSECOND_PS),
    ("usec", MICROSECOND_PS),
    ("ns", 1_000),
    ("100ns", FILETIME_PS),
    ("filetime", FILETIME_PS),
];
/// Words for an address and for a size, and their units in bytes.
const OFFSET: [&str; 6] = ["offset", "address", "lba", "lbn", "block", "start"];
const SIZE: [&str; 6] = ["size", "length", "len", "count", "blocks", "nblocks"];
const LENGTH_UNITS: [(&str, u64); 13] = [
    ("bytes", 1),
    ("byte", 1),
    ("b", 1),
    ("kib", 1024),
    ("mib", 1 << 20),
    ("sectors", SECTOR),
    ("sector", SECTOR),
    ("512", SECTOR),
    ("512b", SECTOR),
    ("pages", 4096),
    ("4096", 4096),
    ("4k", 4096),
    ("4kib", 4096),
];
/// Words for a direction, with `r`, `read`, `w`, `write`, `t`, `trim`, `d`, `discard` below them.
const OPERATION: [&str; 9] = ["op", "operation", "opcode", "type", "io_type", "iotype", "rw", "direction", "command"];
/// Words for the volume, a number.
const VOLUME: [&str; 9] = ["volume", "volume_id", "vol", "device", "device_id", "dev", "disk", "lun", "asu"];

pub(super) struct Csv;

impl TraceFormat for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn description(&self) -> &'static str {
        "CSV whose header names columns and units, such as time_us,op,offset_bytes,size_bytes,volume"
    }

    fn accepted(&self) -> &'static str {
        "a header of one time (time|timestamp|ts|arrival|elapsed and _s|_ms|_us|_ns|_100ns), one direction \
         (op|type|rw of r|w|read|write|trim, or is_read|is_write of 1|0), one address (offset|address|lba and \
         _bytes|_kib|_sectors|_512|_4096, or sector), one size (size|length|len and the same units, or sectors), \
         perhaps volume|device|disk|lun, and columns whose name begins with ignored; then rows of as many fields"
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl TextFormat for Csv {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Parser(None))
    }

    /// Two known columns make a header, so that a third that is unknown gets its message; so do columns that lack
    /// nothing but their units.
    fn claims(&self, first: &str) -> bool {
        let names = || first.split(separator(first));
        let lacks_units = || names().all(|name| column(name).is_some() || with_unit(name).is_some());
        names().filter(|name| column(name).is_some()).count() >= 2 || (names().count() >= 3 && lacks_units())
    }
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// Picoseconds of its unit.
    Time(i128),
    Operation,
    /// Meaning of 1.
    Flag(Operation),
    /// Bytes of its unit.
    Offset(u64),
    Size(u64),
    Volume,
    Ignored,
}

impl Column {
    /// The required part of a row that the column gives.
    fn required(self) -> Option<&'static str> {
        match self {
            Self::Time(_) => Some("time with a unit"),
            Self::Operation | Self::Flag(_) => Some("direction"),
            Self::Offset(_) => Some("address with a unit"),
            Self::Size(_) => Some("size with a unit"),
            Self::Volume | Self::Ignored => None,
        }
    }
}

/// The name of a column in small letters.
fn plain(name: &str) -> String {
    let name = unquoted(name).trim_start_matches('#').trim().to_ascii_lowercase();
    name.replace([' ', '-'], "_")
}

/// A name with a unit for a column without one.
fn with_unit(name: &str) -> Option<String> {
    let name = plain(name);
    let is_length = OFFSET.contains(&name.as_str()) || SIZE.contains(&name.as_str());
    let unit = if TIME.contains(&name.as_str()) { "us" } else { is_length.then_some("bytes")? };
    Some(format!("{name}_{unit}"))
}

/// Why a column means nothing.
fn unknown(name: &str) -> RowError {
    let name = name.trim();
    RowError(match with_unit(name) {
        Some(better) => format!("the header names {name:?} without a unit; call it {better:?}, for example"),
        None => format!("the header has an unknown column {name:?}"),
    })
}

/// The column called `name`; `None` for an unknown name.
fn column(name: &str) -> Option<Column> {
    let name = plain(name);
    let name = name.as_str();
    if name.starts_with("ignored") {
        return Some(Column::Ignored);
    }
    match name {
        "sector" => return Some(Column::Offset(SECTOR)),
        "sectors" => return Some(Column::Size(SECTOR)),
        "is_read" => return Some(Column::Flag(Operation::Read)),
        "is_write" => return Some(Column::Flag(Operation::Write)),
        _ => {}
    }
    if OPERATION.contains(&name) {
        return Some(Column::Operation);
    }
    if VOLUME.contains(&name) {
        return Some(Column::Volume);
    }
    let (word, unit) = name.rsplit_once('_')?;
    if TIME.contains(&word) {
        return TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ps)| Column::Time(*ps));
    }
    let bytes = LENGTH_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| *bytes)?;
    if OFFSET.contains(&word) {
        return Some(Column::Offset(bytes));
    }
    SIZE.contains(&word).then_some(Column::Size(bytes))
}

fn separator(header: &str) -> char {
    [',', ';', '\t'].into_iter().find(|separator| header.contains(*separator)).unwrap_or(',')
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field).trim()
}

/// A header that has what it must.
struct Columns {
    header: String,
    separator: char,
    columns: Vec<Column>,
}

impl Columns {
    fn read(header: &str) -> Result<Self, RowError> {
        let separator = separator(header);
        let mut columns = Vec::new();
        for name in header.split(separator) {
            let known = column(name);
            columns.push(known.ok_or_else(|| unknown(name))?);
        }
        for what in ["time with a unit", "direction", "address with a unit", "size with a unit"] {
            let count = columns.iter().filter(|column| column.required() == Some(what)).count();
            if count != 1 {
                return Err(RowError(format!("the header has {count} columns for the {what} where 1 should be")));
            }
        }
        if columns.iter().filter(|column| **column == Column::Volume).count() > 1 {
            return Err("the header has several columns for the volume where at most 1 should be".into());
        }
        Ok(Self { header: header.to_owned(), separator, columns })
    }

    fn row(&self, line: &str) -> Parsed {
        let mut is_flush = false;
        let (mut at, mut operation, mut start, mut size, mut volume) = (0, Operation::Read, 0, 0, 0);
        let mut fields = line.split(self.separator);
        for column in &self.columns {
            let text = unquoted(required(fields.next(), "last field")?);
            match *column {
                Column::Time(unit) => at = time(Some(text), unit)?,
                Column::Operation if is_flush_word(text) => is_flush = true,
                Column::Operation => operation = word(text)?,
                Column::Flag(one) => operation = flag(text, one)?,
                Column::Offset(unit) => start = offset(Some(text), "address", unit)?,
                Column::Size(unit) => size = length(Some(text), "size", unit)?,
                Column::Volume => volume = number(Some(text), "volume")?,
                Column::Ignored => {}
            }
        }
        super::fields::end(fields.next())?;
        if is_flush {
            return Ok(Line::Skip(Skip::NoRange));
        }
        row(at, volume, operation, start, size)
    }
}

fn is_flush_word(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "f" | "flush")
}

fn word(text: &str) -> Result<Operation, RowError> {
    match text.to_ascii_lowercase().as_str() {
        "r" | "read" => Ok(Operation::Read),
        "w" | "write" => Ok(Operation::Write),
        "t" | "trim" | "d" | "discard" => Ok(Operation::Trim),
        _ => Err(RowError(format!(
            "the direction {text:?} is none of r, read, w, write, t, trim, d, discard (name the column is_read or \
             is_write for 1 and 0)"
        ))),
    }
}

fn flag(text: &str, one: Operation) -> Result<Operation, RowError> {
    let other = if one == Operation::Read { Operation::Write } else { Operation::Read };
    match text {
        "1" => Ok(one),
        "0" => Ok(other),
        _ => Err(RowError(format!("the direction {text:?} is neither 1 nor 0"))),
    }
}

struct Parser(Option<Columns>);

impl LineParser for Parser {
    fn parse(&mut self, line: &str) -> Parsed {
        match &self.0 {
            Some(columns) if columns.header != line => columns.row(line),
            // Files that were joined repeat it.
            Some(_) => Ok(Line::Skip(Skip::Header)),
            None => {
                self.0 = Some(Columns::read(line)?);
                Ok(Line::Skip(Skip::Header))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::super::fields::expect_row;
    use super::*;

    fn one(header: &str, line: &str) -> Row {
        let mut parser = Csv.parser();
        assert_eq!(parser.parse(header), Ok(Line::Skip(Skip::Header)), "{header}");
        assert_eq!(parser.parse(header), Ok(Line::Skip(Skip::Header)), "again");
        expect_row(parser.parse(line))
    }

    #[test]
    fn columns_may_stand_in_any_order_and_unit() {
        for (header, line) in [
            ("time_us,op,offset_bytes,size_bytes,volume", "1500,W,8192,4096,3"),
            ("volume;size_sectors;lba_512;rw;time_ms", "3;8;16;write;1.5"),
            ("\"Timestamp ns\"\t\"IO-Type\"\tsector\tsectors\tLUN", "1500000\t\"w\"\t16\t8\t3"),
            ("# arrival_s,is_read,address_kib,length_4k,device,ignored_latency", "0.0015,0,8,1,3,junk"),
            ("ts_100ns,is_write,lba_4096,len_kib,disk", "15000,1,2,4,3"),
        ] {
            let row = one(header, line);
            assert_eq!((row.time_ps, row.volume), (1_500_000_000, 3), "{header}");
            assert_eq!((row.request.offset_bytes, row.request.len_bytes), (8_192, 4_096), "{header}");
            assert_eq!(row.request.operation, Operation::Write, "{header}");
            assert!(Csv.claims(header), "{header}");
        }
    }

    #[test]
    fn flushes_are_passed_over() {
        let mut parser = Csv.parser();
        assert_eq!(parser.parse("time_us,op,offset_bytes,size_bytes"), Ok(Line::Skip(Skip::Header)));
        assert_eq!(parser.parse("1,f,0,0"), Ok(Line::Skip(Skip::NoRange)));
        assert_eq!(parser.parse("2,Flush,0,0"), Ok(Line::Skip(Skip::NoRange)));
    }

    #[test]
    fn the_volume_may_be_left_out_and_ranges_be_given_back() {
        let row = one("time_us,op,offset_bytes,size_bytes", "1,discard,0,512");
        assert_eq!((row.volume, row.request.operation), (0, Operation::Trim));
    }

    #[test]
    fn a_header_that_lacks_or_doubles_something_is_explained() {
        for (header, why) in [
            ("time,op,offset_bytes,size_bytes", "names \"time\" without a unit; call it \"time_us\""),
            ("time,offset,size", "names \"time\" without a unit"),
            ("time_us,op,offset,size", "names \"offset\" without a unit; call it \"offset_bytes\""),
            ("time_us,op,offset_bytes,size_bytes,color", "unknown column \"color\""),
            ("op,offset_bytes,size_bytes", "0 columns for the time with a unit"),
            ("time_us,offset_bytes,size_bytes", "0 columns for the direction"),
            ("time_us,op,is_read,offset_bytes,size_bytes", "2 columns for the direction"),
            ("time_us,op,size_bytes", "0 columns for the address"),
            ("time_us,op,lba_512", "0 columns for the size"),
            ("time_us,op,lba_512,sectors,lun,disk", "several columns for the volume"),
        ] {
            assert!(Csv.claims(header), "{header}");
            let error = Csv.parser().parse(header).expect_err(header);
            assert!(error.0.contains(why), "{header}: {error:?}");
        }
        assert!(!Csv.claims("once upon a time_us"));
    }

    #[test]
    fn a_row_that_its_header_does_not_describe_is_refused() {
        for line in ["1,R,0", "1,R,0,512,9", "1,X,0,512", "1,1,0,512", "x,R,0,512", ""] {
            let mut parser = Csv.parser();
            assert!(parser.parse("time_us,op,offset_bytes,size_bytes").is_ok());
            assert!(parser.parse(line).is_err(), "{line}");
        }
    }
}
