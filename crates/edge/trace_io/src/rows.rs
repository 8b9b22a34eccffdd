//! Sources of the reader's rows: text, fixed records or the events of several processors.

use crate::error::TraceError;
use crate::formats::Line;
use std::path::Path;

/// Rows of a trace one after the other, with their place in it.
pub(crate) trait Rows: Send {
    /// The next row or thing passed over; `None` at the end.
    fn next_line(&mut self) -> Result<Option<Line>, TraceError>;

    /// The error that the row given last is wrong because of `why`.
    fn refuse(&self, why: String) -> TraceError;

    /// Lines or records given so far.
    fn given(&self) -> u64;

    /// The file as it was asked for.
    fn path(&self) -> &Path;

    /// Note on the files for a reader of results, in words.
    fn note(&self) -> Option<&str> {
        None
    }
}
