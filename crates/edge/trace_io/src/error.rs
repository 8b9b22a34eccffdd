//! Why a trace cannot be read, with its place.

use std::io;
use std::path::PathBuf;

/// Why a trace cannot be read. Every message names the file, the line where there is one, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: cannot be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Nothing in it.
    #[error("{}: the file holds no rows", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The content fits no format.
    #[error("{}:{line}: no known format has rows like {found:?}; name the format, one of {known}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// First line that was tried.
        line: u64,
        /// The line.
        found: String,
        /// Formats there are.
        known: String,
    },
    /// A row that the format cannot mean.
    #[error("{}:{line}: {found:?} is no row of format {format}: {why}; a row is {accepted}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The row.
        found: String,
        /// Format in use.
        format: &'static str,
        /// What is wrong.
        why: String,
        /// What a row looks like.
        accepted: &'static str,
    },
    /// The compressed or plain stream ends or breaks early.
    #[error("{}:{line}: the file is truncated or damaged after this line: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Last good line.
        line: u64,
        /// The decoder's word.
        source: io::Error,
    },
    /// Bytes that are no text.
    #[error("{}:{line}: this is not text; binary traces are not read yet", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
}
