//! Traces of loads and stores: formats, detection, and the accesses that a file holds.
//!
//! The path of a row: file → zstd, gzip or xz by its first bytes → line or record → its accesses, cut where they straddle lines of 64
//! bytes. Instructions that access nothing are the gap before the next access. Everything streams.
//!
//! Threads, times, data, and whether an address comes from a load are not read.

mod champsim;
mod csv;
mod format;
mod lines;
mod open;
mod row;

pub use format::AccessFormat;
pub use open::{AccessReader, open_accesses, open_accesses_stream};
