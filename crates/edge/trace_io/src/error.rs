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
    /// Nothing in it, or blank lines only.
    #[error("{}: the file holds no rows", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Lines, but no row of the format among them, such as a blkparse file without the wanted event.
    #[error("{}: the file holds no rows of format {format}, only {lines} other lines; name another format", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
        /// Format in use.
        format: &'static str,
        /// Lines that were passed over.
        lines: u64,
    },
    /// The content fits no format.
    #[error("{}:{line}: no known format has rows like {found:?}; name the format, one of {known}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// First line that is not blank.
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
    /// Bytes that are no text: a zero byte, no UTF-8, or a line beyond 64 KiB.
    #[error("{}:{line}: this is not text; a trace is text, plain or compressed with zstd or gzip", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
}
