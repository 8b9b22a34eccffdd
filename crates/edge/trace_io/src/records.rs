//! Records of one size, with their place, and the rows that a format makes of them.

use crate::error::TraceError;
use crate::formats::{BinaryFormat, Format, Line, RowError};
use crate::rows::Rows;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

/// The longest record of any format, in bytes.
pub(crate) const RECORD_MAX: usize = 64;

/// How far [`fill`] came.
pub(crate) enum Filled {
    /// All bytes are there.
    Whole,
    /// The stream ended before the first byte.
    End,
    /// The stream ended after this many bytes.
    Cut(usize),
}

/// Reads `buffer` full, and tells an end between records from an end inside a record.
pub(crate) fn fill(stream: &mut dyn BufRead, buffer: &mut [u8]) -> io::Result<Filled> {
    let mut have = 0;
    while have < buffer.len() {
        match stream.read(&mut buffer[have..]) {
            Ok(0) if have == 0 => return Ok(Filled::End),
            Ok(0) => return Ok(Filled::Cut(have)),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Filled::Whole)
}

/// Rows of a file of records.
pub(crate) struct RecordRows {
    path: PathBuf,
    format: Format,
    binary: &'static dyn BinaryFormat,
    stream: Box<dyn BufRead + Send>,
    given: u64,
}

impl RecordRows {
    pub(crate) fn new(
        path: &Path,
        format: Format,
        binary: &'static dyn BinaryFormat,
        stream: Box<dyn BufRead + Send>,
    ) -> Self {
        assert!(binary.record_bytes() <= RECORD_MAX, "a record fits the buffer");
        Self { path: path.to_owned(), format, binary, stream, given: 0 }
    }

    /// Bytes before the record with this number.
    fn offset_of(&self, record: u64) -> u64 {
        record * self.binary.record_bytes() as u64
    }
}

impl Rows for RecordRows {
    fn next_line(&mut self) -> Result<Option<Line>, TraceError> {
        let mut buffer = [0; RECORD_MAX];
        let record = &mut buffer[..self.binary.record_bytes()];
        match fill(&mut self.stream, record) {
            Ok(Filled::Whole) => {}
            Ok(Filled::End) => return Ok(None),
            Ok(Filled::Cut(have)) => {
                self.given += 1;
                return Err(self.refuse(format!("the file ends after {have} bytes of it")));
            }
            Err(source) => {
                return Err(TraceError::DamagedBytes {
                    path: self.path.clone(),
                    offset: self.offset_of(self.given),
                    source,
                });
            }
        }
        self.given += 1;
        match self.binary.parse(record) {
            Ok(line) => Ok(Some(line)),
            Err(RowError(why)) => Err(self.refuse(why)),
        }
    }

    fn refuse(&self, why: String) -> TraceError {
        TraceError::Record {
            path: self.path.clone(),
            offset: self.offset_of(self.given.saturating_sub(1)),
            format: self.format.name(),
            why,
            accepted: self.format.accepted(),
        }
    }

    fn given(&self) -> u64 {
        self.given
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
