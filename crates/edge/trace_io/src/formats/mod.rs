//! Formats. To add one: a file with a `parse` function, a line in `Format` and in its tables.

mod blkparse;
mod disksim;
mod msr;
mod replay;
mod tencent;

use flashyard_blk::{BlockRequest, Operation};

/// Bytes of a sector in every format that counts sectors.
const SECTOR: u64 = 512;

/// A row: absolute time in picoseconds by the file's own clock, and what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) time_ps: i128,
    pub(crate) volume: u32,
    pub(crate) request: BlockRequest,
    /// Whether a number was printed rounded and is only nearly right.
    pub(crate) rounded: bool,
}

/// A block layer event of blkparse output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Queued.
    Queue,
    /// Issued to the device.
    Issue,
    /// Completed.
    Complete,
}

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MSR Cambridge CSV.
    Msr,
    /// MSR Cambridge reduced to four columns.
    MsrReduced,
    /// Replay windows: milliseconds and bytes.
    Replay,
    /// Tencent CBS CSV.
    Tencent,
    /// Replay profiles with measured latencies.
    Profile,
    /// DiskSim ASCII in milliseconds.
    DisksimMs,
    /// DiskSim ASCII in microseconds.
    DisksimUs,
    /// DiskSim ASCII in nanoseconds.
    DisksimNs,
    /// DiskSim ASCII in milliseconds with sizes in pages of 4 KiB.
    DisksimPages,
    /// Text output of blkparse, one kind of event.
    Blkparse(Event),
}

/// What a parser makes of a line.
pub(crate) type Parsed = Result<Option<Row>, String>;

impl Format {
    /// All formats, in the order in which detection tries them.
    pub const ALL: [Self; 12] = [
        Self::Msr,
        Self::MsrReduced,
        Self::Tencent,
        Self::Profile,
        Self::Replay,
        Self::DisksimPages,
        Self::DisksimMs,
        Self::DisksimUs,
        Self::DisksimNs,
        Self::Blkparse(Event::Queue),
        Self::Blkparse(Event::Issue),
        Self::Blkparse(Event::Complete),
    ];

    /// The name by which a format is asked for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Msr => "msr",
            Self::MsrReduced => "msr-reduced",
            Self::Replay => "replay",
            Self::Tencent => "tencent",
            Self::Profile => "profile",
            Self::DisksimMs => "disksim-ms",
            Self::DisksimUs => "disksim-us",
            Self::DisksimNs => "disksim-ns",
            Self::DisksimPages => "disksim-pages",
            Self::Blkparse(Event::Queue) => "blkparse-queue",
            Self::Blkparse(Event::Issue) => "blkparse-issue",
            Self::Blkparse(Event::Complete) => "blkparse-complete",
        }
    }

    /// The format called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// All names, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// What a row looks like.
    pub const fn accepted(self) -> &'static str {
        match self {
            Self::Msr => "timestamp in 100 ns,host,disk,Read|Write,offset bytes,size bytes,response time",
            Self::MsrReduced => "timestamp in 100 ns, Read|Write, offset bytes, size bytes, separated by blanks",
            Self::Replay => "time ms, device, offset bytes, size bytes, 1 for read or 0 for write, separated by blanks",
            Self::Tencent => "timestamp s,offset sectors,size sectors,0 for read or 1 for write,volume",
            Self::Profile => {
                "arrival ms,latency us,1 for read or 0 for write,size bytes,offset bytes,submit ms,bytes done"
            }
            Self::DisksimMs => "time ms, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
            Self::DisksimUs => "time us, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
            Self::DisksimNs => "time ns, device, sector, sectors, 1 for read or 0 for write, separated by blanks",
            Self::DisksimPages => {
                "time ms, device, sector, pages of 4 KiB, 1 for read or 0 for write, separated by tabs"
            }
            Self::Blkparse(_) => "major,minor cpu sequence seconds pid event rwbs sector + sectors [process]",
        }
    }

    /// Parses one line: a row, nothing of interest, or what is wrong with it.
    pub(crate) fn parse(self, line: &str) -> Parsed {
        match self {
            Self::Msr => msr::parse(line),
            Self::MsrReduced => msr::parse_reduced(line),
            Self::Replay => replay::parse(line),
            Self::Tencent => tencent::parse(line),
            Self::Profile => tencent::parse_profile(line),
            Self::DisksimMs => disksim::parse(line, disksim::Unit::Milliseconds),
            Self::DisksimUs => disksim::parse(line, disksim::Unit::Microseconds),
            Self::DisksimNs => disksim::parse(line, disksim::Unit::Nanoseconds),
            Self::DisksimPages => disksim::parse(line, disksim::Unit::Pages),
            Self::Blkparse(event) => blkparse::parse(line, event),
        }
    }

    /// The format of a file that begins with `lines`: the first of [`Format::ALL`] of which these are rows.
    pub(crate) fn detect(lines: &[String]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.fits(lines))
    }

    fn fits(self, lines: &[String]) -> bool {
        let mut rows = 0;
        for line in lines {
            match self.parse(line) {
                Ok(Some(_)) => rows += 1,
                Ok(None) => {}
                Err(_) => return false,
            }
        }
        rows > 0 && self.plausible(lines)
    }

    /// What tells apart formats whose rows have the same shape.
    fn plausible(self, lines: &[String]) -> bool {
        match self {
            Self::Replay => replay::plausible(lines),
            Self::DisksimMs | Self::DisksimUs | Self::DisksimNs | Self::DisksimPages => disksim::detect(lines) == self,
            _ => true,
        }
    }
}

/// A field as an unsigned number, or what is wrong with it.
pub(crate) fn number(field: Option<&str>, name: &str) -> Result<u64, String> {
    let field = field.ok_or_else(|| format!("the {name} is missing"))?;
    field.trim().parse().map_err(|_| format!("the {name} {field:?} is no whole number"))
}

/// A length in bytes from a count of `unit` bytes.
pub(crate) fn length(field: Option<&str>, name: &str, unit: u64) -> Result<u32, String> {
    let count = number(field, name)?;
    count
        .checked_mul(unit)
        .and_then(|bytes| u32::try_from(bytes).ok())
        .ok_or_else(|| format!("the {name} {count} makes more than 4 GiB"))
}

/// An offset in bytes from a count of `unit` bytes.
pub(crate) fn offset(field: Option<&str>, name: &str, unit: u64) -> Result<u64, String> {
    let count = number(field, name)?;
    count.checked_mul(unit).ok_or_else(|| format!("the {name} {count} is too large"))
}

/// A time in picoseconds from a decimal number of units of `unit_ps`, exact to the picosecond.
pub(crate) fn time(field: Option<&str>, unit_ps: i128) -> Result<i128, String> {
    let field = field.ok_or("the time is missing")?.trim();
    let wrong = || format!("the time {field:?} is no decimal number");
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 12 {
        return Err(wrong());
    }
    let digits = |text: &str| -> Result<i128, String> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| wrong()) }
    };
    let scale = 10_i128.pow(fraction.len() as u32);
    Ok(digits(whole)? * unit_ps + digits(fraction)? * unit_ps / scale)
}

/// A direction written as 1 and 0.
pub(crate) fn direction(field: Option<&str>, read: &str, write: &str) -> Result<Operation, String> {
    match field.map(str::trim) {
        Some(text) if text == read => Ok(Operation::Read),
        Some(text) if text == write => Ok(Operation::Write),
        Some(text) => Err(format!("the type {text:?} is neither {read} nor {write}")),
        None => Err("the type is missing".to_owned()),
    }
}

/// Checks that nothing follows.
pub(crate) fn end(field: Option<&str>) -> Result<(), String> {
    field.map_or(Ok(()), |extra| Err(format!("there is {extra:?} after the last field")))
}

/// A row with a request that is exact.
pub(crate) fn row(time_ps: i128, volume: u64, operation: Operation, offset_bytes: u64, len_bytes: u32) -> Parsed {
    let volume = u32::try_from(volume).map_err(|_| format!("the volume {volume} is beyond 32 bits"))?;
    let request = BlockRequest { operation, offset_bytes, len_bytes };
    if request.end_bytes().is_none() {
        return Err(format!("the request at byte {offset_bytes} ends beyond 2^64"));
    }
    Ok(Some(Row { time_ps, volume, request, rounded: false }))
}
