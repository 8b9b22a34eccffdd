//! Why a trace cannot be read, with its place.

use std::io;
use std::path::PathBuf;

/// Characters of a bad row that a message shows.
pub(crate) const SHOWN_MAX: usize = 120;

/// Why a trace cannot be read. Every message names the file, the line where there is one, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: cannot be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing in it, or blank lines only.
    #[error("{}: the file holds no rows", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Lines or records, but no row of the format among them, such as a blkparse file without the wanted event.
    #[error("{}: the file holds no rows of format {format}, only {lines} other lines; name another format", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
        /// Format in use.
        format: &'static str,
        /// Lines or records that were passed over.
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
    /// A row that does not fit the format.
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
        /// The problem.
        why: String,
        /// Form of a row.
        accepted: &'static str,
    },
    /// The compressed or plain stream ends or breaks early.
    #[error("{}:{line}: the file is truncated or damaged after this line: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Last good line.
        line: u64,
        /// The decoder's error.
        source: io::Error,
    },
    /// A record that does not fit its binary format, or that the end of the file cuts off.
    #[error("{}: byte {offset}: no record of format {format}: {why}; a record is {accepted}", path.display())]
    Record {
        /// The file; after a colon the member, in an archive.
        path: PathBuf,
        /// Byte of the uncompressed file at which the record begins.
        offset: u64,
        /// Format in use.
        format: &'static str,
        /// The problem.
        why: String,
        /// Form of a record.
        accepted: &'static str,
    },
    /// The compressed or plain stream of a binary format breaks early.
    #[error("{}: the file is truncated or damaged after byte {offset}: {source}", path.display())]
    DamagedBytes {
        /// The file; after a colon the member, in an archive.
        path: PathBuf,
        /// Good bytes before, uncompressed.
        offset: u64,
        /// The decoder's error.
        source: io::Error,
    },
    /// Files that make no set of traces by processor.
    #[error("{}: {why}", path.display())]
    CpuFiles {
        /// The directory, archive or file that was asked for.
        path: PathBuf,
        /// The problem and the accepted form.
        why: String,
    },
    /// Bytes that are no text and no known binary format: a zero byte, no UTF-8, or a line beyond 64 KiB.
    #[error("{}:{line}: this is not text, and no binary format was recognised; a trace is one of the formats in the table of docs/traces.md, plain or compressed with zstd, gzip or xz", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
}
