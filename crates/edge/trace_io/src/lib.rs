//! Trace files to records: formats, decompression, detection, statistics; and to files of other formats.
//!
//! The path of a row: file → zstd, gzip or xz by its first bytes → line, record or the earliest event of several files →
//! [`Format`]'s parser → time, volume, request → clock rule → [`TraceRecord`](flashyard_blk::TraceRecord). Everything
//! streams: memory does not grow with the file. Only [`summarize`] keeps something, 64 bits for every 256 KiB of
//! address space that is touched, and [`analyze`] a bounded amount more; [`compare_caches`] has caches
//! of the sizes that it is asked for.
//!
//! The clock rule, for all formats: arrivals count from the first row; a row earlier than the latest arrival so
//! far arrives with it (counted as *reordered*); a row more than 30 days away from it, either way, is a clock
//! that wrapped or was set, and arrives with it too (counted as *jumped*). When the next row agrees with the
//! jump, the clock was set, and time goes on from there. A row more than 213 days after the first is an error.
//!
//! The row rule: a line or record is a row, or is passed over for one of the reasons in [`RowCounts`], or is an error
//! with file, line or byte, what was found and what is accepted. A number that a program printed rounded is read as
//! printed and counted as *rounded*. What a format does not hold (times, addresses, directions) is made by the rule
//! that [`Format::assumes`] states, and such rows are counted as *assumed*.
//!
//! Traces of loads and stores have formats of their own and become [`Access`](flashyard_memory::Access)es ([`open_accesses`]).
//!
//! What it does not do: sort rows, keep the latencies that some formats hold, guess units that a file does not show
//! (name the format instead; `disksim-ms` and its kin say how units are detected).

mod accesses;
mod analysis;
mod caches;
mod clock;
mod convert;
mod cpu_files;
mod cpu_rows;
mod error;
mod footprint;
mod formats;
mod lines;
mod open;
mod reader;
mod records;
mod rows;
mod stream;
mod summary;

pub use accesses::{AccessFormat, AccessReader, open_accesses, open_accesses_stream};
pub use analysis::{
    AnalysisOptions, CurvePoint, FrequentSize, GapSummary, RateOverTime, ReuseMethod, ReuseSummary, SizeSummary,
    TraceAnalysis, analyze,
};
pub use caches::{CacheComparison, CacheError, CacheMisses, CacheOptions, CacheSize, compare_caches};
pub use convert::{ConvertError, IOLOG_BEGIN_US, OutputFormat, convert};
pub use error::TraceError;
pub use formats::{Event, Format};
pub use open::{OpenOptions, files_of, open, open_stream};
pub use reader::{RowCounts, TraceReader};
pub use stream::Meter;
pub use summary::{TraceSummary, summarize};
