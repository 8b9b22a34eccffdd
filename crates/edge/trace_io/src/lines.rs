//! Numbered lines of a stream, with a bound on memory.

use crate::error::TraceError;
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

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        let text = std::str::from_utf8(&self.buffer).map_err(|_| not_text())?;
        Ok(Some(text.trim_end_matches(['\n', '\r'])))
    }
}
