//! Numbered lines of a stream, with a bound on memory, and the rows that a parser makes of them.

use crate::error::{SHOWN_MAX, TraceError};
use crate::formats::{Format, Line, LineParser, RowError, Skip};
use crate::rows::Rows;
use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// A line longer than this is no line of text.
const LINE_MAX: u64 = 1 << 16;

/// Numbered lines of a stream.
pub(crate) struct Lines {
    path: PathBuf,
    stream: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(crate) fn new(path: &Path, stream: Box<dyn BufRead + Send>) -> Self {
        Self { path: path.to_owned(), stream, buffer: Vec::with_capacity(256), number: 0 }
    }

    /// The next line without its end; `None` after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, TraceError> {
        self.buffer.clear();
        let read = (&mut self.stream).take(LINE_MAX).read_until(b'\n', &mut self.buffer);
        let count =
            read.map_err(|source| TraceError::Damaged { path: self.path.clone(), line: self.number, source })?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        let not_text = || TraceError::NotText { path: self.path.clone(), line: self.number };
        let cut = count as u64 == LINE_MAX && !self.buffer.ends_with(b"\n");
        if cut || self.buffer.contains(&0) {
            return Err(not_text());
        }
        std::str::from_utf8(&self.buffer).map_err(|_| not_text())?;
        Ok(Some(self.last_line()))
    }

    /// The line given last, as it was, but for a byte order mark before the first.
    fn last_line(&self) -> &str {
        let text = std::str::from_utf8(&self.buffer).unwrap_or_default().trim_end_matches(['\n', '\r']);
        if self.number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text }
    }
}

/// Rows of text: the lines that detection took, then the lines after them.
pub(crate) struct LineRows {
    format: Format,
    parser: Box<dyn LineParser>,
    head: VecDeque<String>,
    lines: Lines,
    given: u64,
    /// The line given last, when it was of the head.
    last: Option<String>,
}

impl LineRows {
    pub(crate) fn new(format: Format, parser: Box<dyn LineParser>, head: Vec<String>, lines: Lines) -> Self {
        Self { format, parser, head: head.into(), lines, given: 0, last: None }
    }
}

impl Rows for LineRows {
    fn next_line(&mut self) -> Result<Option<Line>, TraceError> {
        self.last = self.head.pop_front();
        let line = match &self.last {
            Some(line) => line,
            None => match self.lines.next_line()? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        self.given += 1;
        if line.trim().is_empty() {
            return Ok(Some(Line::Skip(Skip::Blank)));
        }
        match self.parser.parse(line) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(RowError(why)) => Err(self.refuse(why)),
        }
    }

    fn refuse(&self, why: String) -> TraceError {
        let line = self.last.as_deref().unwrap_or_else(|| self.lines.last_line());
        TraceError::Row {
            path: self.path().to_owned(),
            line: self.given,
            found: line.chars().take(SHOWN_MAX).collect(),
            format: self.format.name(),
            why,
            accepted: self.format.accepted(),
        }
    }

    fn given(&self) -> u64 {
        self.given
    }

    fn path(&self) -> &Path {
        &self.lines.path
    }
}
