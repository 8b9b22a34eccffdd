//! Typed columns to and from Parquet files: one mechanism for converted traces and for the files of a run.
//!
//! The path of a table: [`Field`]s name the columns → [`TableWriter`] → one [`Column`] a field for each row group →
//! metadata → `finish`; and back through [`TableReader`]. Only one row group is in memory.
//! [`write_table`] takes a whole table that is small.
//!
//! Invariant: the bytes depend on fields, rows, row groups and metadata only. No time, host or random number gets
//! in, so the same table is the same file. Pages are compressed with zstd; texts are in a dictionary.
//!
//! What it does not do: nested columns, dates, nulls in columns that are not [`Kind::OptionalF64`].

mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use read::TableReader;
pub use table::{Column, Field, Kind, TableError, Values};
pub use write::{TableWriter, write_table};
