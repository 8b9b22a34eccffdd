//! The description of a format, and what its parser makes of a line or a record.

use flashyard_blk::BlockRequest;

/// Self-description of every format.
pub(crate) trait TraceFormat: Sync {
    /// The name by which it is asked for.
    fn name(&self) -> &'static str;

    /// A one-line description.
    fn description(&self) -> &'static str;

    /// Form of a row, for messages.
    fn accepted(&self) -> &'static str;

    /// Parts of rows that the file does not hold, and the rule that makes them.
    fn assumes(&self) -> Option<&'static str> {
        None
    }

    /// Layout of its files.
    fn layout(&'static self) -> Layout;
}

/// Layout of the files of a format.
#[derive(Clone, Copy)]
pub(crate) enum Layout {
    /// Lines of text.
    Text(&'static dyn TextFormat),
    /// Records of one size.
    Binary(&'static dyn BinaryFormat),
    /// Binary block traces, a file for each processor, with one kind of event counted.
    CpuFiles(Event),
}

/// A format of lines.
pub(crate) trait TextFormat: Sync {
    /// A parser for a file's lines, from the first on.
    fn parser(&'static self) -> Box<dyn LineParser>;

    /// Whether `rows`, lines at the file's start that all parse, are this format's and not those of
    /// another with rows of the same shape.
    fn plausible(&self, rows: &[&str]) -> bool {
        let _ = rows;
        true
    }

    /// Whether `first`, the first line that is not blank, is this format's header, whatever follows it.
    fn claims(&self, first: &str) -> bool {
        let _ = first;
        false
    }
}

/// Lines of one file, in order.
pub(crate) trait LineParser: Send {
    /// Parses the next line that is not blank: a row, a line to pass over, or its error.
    fn parse(&mut self, line: &str) -> Parsed;
}

/// A format of records of one size.
pub(crate) trait BinaryFormat: Sync {
    /// Bytes of a record, at most [`RECORD_MAX`](crate::records::RECORD_MAX).
    fn record_bytes(&self) -> usize;

    /// Whether `records`, whole and from the file's start, are this format's.
    fn recognises(&self, records: &[&[u8]]) -> bool;

    /// Parses one record.
    fn parse(&self, record: &[u8]) -> Parsed;
}

/// A format with one row a line, which needs no other line.
pub(crate) trait LineFormat: Sync {
    /// The name by which it is asked for.
    fn name(&self) -> &'static str;

    /// A one-line description.
    fn description(&self) -> &'static str;

    /// Form of a row, for messages.
    fn accepted(&self) -> &'static str;

    /// Parses one line that is not blank: a row, a line to pass over, or its error.
    fn parse(&self, line: &str) -> Parsed;

    /// See [`TextFormat::plausible`].
    fn plausible(&self, rows: &[&str]) -> bool {
        let _ = rows;
        true
    }

    /// See [`TextFormat::claims`].
    fn claims(&self, first: &str) -> bool {
        let _ = first;
        false
    }
}

impl<T: LineFormat + 'static> TraceFormat for T {
    fn name(&self) -> &'static str {
        LineFormat::name(self)
    }

    fn description(&self) -> &'static str {
        LineFormat::description(self)
    }

    fn accepted(&self) -> &'static str {
        LineFormat::accepted(self)
    }

    fn layout(&'static self) -> Layout {
        Layout::Text(self)
    }
}

impl<T: LineFormat + 'static> TextFormat for T {
    fn parser(&'static self) -> Box<dyn LineParser> {
        Box::new(Each(self))
    }

    fn plausible(&self, rows: &[&str]) -> bool {
        LineFormat::plausible(self, rows)
    }

    fn claims(&self, first: &str) -> bool {
        LineFormat::claims(self, first)
    }
}

/// The parser of a format whose lines stand for themselves.
struct Each<T: LineFormat + 'static>(&'static T);

impl<T: LineFormat> LineParser for Each<T> {
    fn parse(&mut self, line: &str) -> Parsed {
        self.0.parse(line)
    }
}

/// A parsed line, or its error.
pub(crate) type Parsed = Result<Line, RowError>;

/// A line that is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A request.
    Row(Row),
    /// No request, for a reason.
    Skip(Skip),
}

/// A request at the time by the file's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Picoseconds since the beginning that the file counts from.
    pub(crate) time_ps: i128,
    pub(crate) volume: u32,
    pub(crate) request: BlockRequest,
    /// Whether a number was printed rounded and is only nearly right.
    pub(crate) rounded: bool,
}

/// Why a line is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// An event, a command or a file action other than the wanted ones.
    OtherEvent,
    /// A request without a range: a flush, a notification, or a length of zero.
    NoRange,
    /// A line of the totals that a tool prints after the rows.
    Totals,
    /// A line that names the columns or the version.
    Header,
    /// Nothing.
    Blank,
}

/// The problem with a line, to be read after the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowError(pub(crate) String);

impl From<String> for RowError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for RowError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A block layer event of blkparse output and of binary block traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Queued by a program: Q.
    Queue,
    /// Issued to the device: D.
    Issue,
    /// Completed: C.
    Complete,
}
