//! Opens a trace of loads and stores: decompression by content, then the format.

use super::champsim::{self, RECORD};
use super::format::AccessFormat;
use super::lines::AccessLines;
use super::row::Pending;
use crate::error::{SHOWN_MAX, TraceError};
use crate::lines::Lines;
use crate::stream::{self, Headed, Stream};
use flashyard_memory::Access;
use flashyard_units::Named;
use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Lines that detection looks at.
const HEAD_LINES: usize = 64;

/// Opens the trace at `path`, plain or compressed with zstd, gzip or xz, as its first bytes show. Without a format it is told from the content.
///
/// Errors: a file that is missing, empty, damaged at its start or of no known format.
pub fn open_accesses(path: &Path, format: Option<AccessFormat>) -> Result<AccessReader, TraceError> {
    let stream = stream::open(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
    open(path, stream, format)
}

/// Opens the trace in `bytes`, compressed or not. `path` names it in messages.
///
/// Errors: as [`open_accesses`].
pub fn open_accesses_stream(
    path: &Path,
    bytes: impl Read + Send + 'static,
    format: Option<AccessFormat>,
) -> Result<AccessReader, TraceError> {
    let stream = stream::decompress(Box::new(BufReader::new(bytes)));
    open(path, stream.map_err(|source| TraceError::Open { path: path.to_owned(), source })?, format)
}

fn open(path: &Path, stream: Stream, format: Option<AccessFormat>) -> Result<AccessReader, TraceError> {
    let stream = Headed::new(stream);
    if stream.is_empty() {
        return Err(TraceError::Empty { path: path.to_owned() });
    }
    // Text holds no zero bytes, records of numbers almost always do.
    let is_binary = match format {
        Some(format) => format.lines().is_none(),
        None => stream.head().contains(&0) && champsim::recognises(stream.head()),
    };
    if is_binary {
        let records = Records { path: path.to_owned(), stream: Box::new(stream), offset: 0 };
        return Ok(AccessReader::new(AccessFormat::Champsim, Rows::Records(records)));
    }
    let mut lines = Lines::new(path, Box::new(stream));
    let mut head = Vec::new();
    while head.len() < HEAD_LINES {
        let Some(line) = lines.next_line()? else { break };
        head.push(line.to_owned());
    }
    let detected = || AccessFormat::detect(&head).ok_or_else(|| unknown(path, &head));
    let format = format.map_or_else(detected, Ok)?;
    let Some(parser) = format.lines() else { unreachable!("records were opened before") };
    let text = Text { path: path.to_owned(), parser, head: head.into(), lines, given: 0 };
    Ok(AccessReader::new(format, Rows::Text(Box::new(text))))
}

fn unknown(path: &Path, head: &[String]) -> TraceError {
    match head.iter().zip(1..).find(|(line, _)| !line.trim().is_empty()) {
        None => TraceError::Empty { path: path.to_owned() },
        Some((found, line)) => TraceError::UnknownFormat {
            path: path.to_owned(),
            line,
            found: found.chars().take(SHOWN_MAX).collect(),
            known: AccessFormat::names().collect::<Vec<_>>().join(", "),
        },
    }
}

/// The accesses of a file, in its order. An error is the last.
pub struct AccessReader {
    format: AccessFormat,
    rows: Rows,
    pending: Pending,
    /// Rows that were read.
    read: u64,
    given: bool,
    ended: bool,
}

enum Rows {
    Text(Box<Text>),
    Records(Records),
}

impl AccessReader {
    fn new(format: AccessFormat, rows: Rows) -> Self {
        Self { format, rows, pending: Pending::default(), read: 0, given: false, ended: false }
    }

    /// Its format.
    pub fn format(&self) -> AccessFormat {
        self.format
    }

    fn read_row(&mut self) -> Result<bool, TraceError> {
        match &mut self.rows {
            Rows::Text(text) => text.read(self.format, &mut self.pending),
            Rows::Records(records) => records.read(&mut self.pending),
        }
    }
}

impl Iterator for AccessReader {
    type Item = Result<Access, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(access) = self.pending.take() {
                self.given = true;
                return Some(Ok(access));
            }
            if self.ended {
                return None;
            }
            match self.read_row() {
                Ok(true) => self.read += 1,
                Ok(false) => {
                    self.ended = true;
                    if !self.given {
                        let path = self.rows.path().to_owned();
                        return Some(Err(TraceError::NoRows { path, format: self.format.name(), lines: self.read }));
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Rows {
    fn path(&self) -> &Path {
        match self {
            Self::Text(text) => &text.path,
            Self::Records(records) => &records.path,
        }
    }
}

/// Lines of text: those that detection took, then those after them.
struct Text {
    path: PathBuf,
    parser: Box<dyn AccessLines>,
    head: VecDeque<String>,
    lines: Lines,
    given: u64,
}

impl Text {
    /// Reads a line; `false` where there is none.
    fn read(&mut self, format: AccessFormat, pending: &mut Pending) -> Result<bool, TraceError> {
        let head = self.head.pop_front();
        let line = match &head {
            Some(line) => line.as_str(),
            None => match self.lines.next_line()? {
                Some(line) => line,
                None => return Ok(false),
            },
        };
        self.given += 1;
        if line.trim().is_empty() {
            return Ok(true);
        }
        self.parser.parse(line, pending).map(|()| true).map_err(|why| TraceError::Row {
            path: self.path.clone(),
            line: self.given,
            found: line.chars().take(SHOWN_MAX).collect(),
            format: format.name(),
            why,
            accepted: format.accepted(),
        })
    }
}

/// Records of instructions.
struct Records {
    path: PathBuf,
    stream: Stream,
    offset: u64,
}

impl Records {
    /// Reads a record; `false` where there is none.
    fn read(&mut self, pending: &mut Pending) -> Result<bool, TraceError> {
        let mut record = [0; RECORD];
        let mut filled = 0;
        while filled < RECORD {
            let count = match self.stream.read(&mut record[filled..]) {
                Ok(0) => break,
                Ok(count) => count,
                Err(source) if source.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(TraceError::DamagedBytes { path: self.path.clone(), offset: self.offset, source });
                }
            };
            filled += count;
        }
        let wrong = |why| TraceError::Record {
            path: self.path.clone(),
            offset: self.offset,
            format: AccessFormat::Champsim.name(),
            why,
            accepted: AccessFormat::Champsim.accepted(),
        };
        match filled {
            0 => return Ok(false),
            RECORD => champsim::parse(&record, pending).map_err(wrong)?,
            _ => return Err(wrong(format!("the file ends {filled} bytes behind its begin"))),
        }
        self.offset += RECORD as u64;
        Ok(true)
    }
}
