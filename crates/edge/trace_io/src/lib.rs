//! Trace files to records: formats, decompression, detection, statistics.
//!
//! The path of a row: file → zstd or gzip by its first bytes → line → [`Format`]'s parser → time, volume,
//! request → clock rule → [`TraceRecord`](flashyard_blk::TraceRecord). Everything streams: memory does not grow with the file.
//!
//! The clock rule, for all formats: arrivals count from the first row; a row earlier than the latest arrival so
//! far arrives with it (counted as *reordered*); a row more than 30 days ahead is a clock that jumped or
//! wrapped, and arrives with the latest too (counted as *jumped*).
//!
//! What it does not do: sort rows, guess units that a file does not show (name the format instead).

mod error;
mod formats;
mod open;
mod reader;
mod summary;

pub use error::TraceError;
pub use formats::{Event, Format};
pub use open::{OpenOptions, open};
pub use reader::{RowCounts, TraceReader};
pub use summary::{TraceSummary, summarize};
