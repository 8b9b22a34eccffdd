//! Programs above file systems: filebench's personalities, and a log-structured merge tree with its clients.
//!
//! What it models: the file operations of four published personalities of filebench ([`filebench`]), and a key-value store
//! with a log, a memtable, levels, filters and compaction ([`lsm`]). Both work on [`Files`], numbered files of any file
//! system; [`CvfsFiles`] are those of CVFS, and [`InPlaceFiles`] those of a file system without a log.
//! The path of one operation: the owner picks a thread, the program does the thread's next operation on the files, the file
//! system asks its volume for blocks, and the volume, if it is one of a model, knows what that took. Programs know no time; a
//! machine in virtual time drives them as [`hosted`] threads that wait for their requests.
//! What it does not model: the time of a program's own instructions, but for a time of each operation of hosted ones; access rights; recovery of the store after a loss of power.
//!
//! Invariants: the same description and seed give the same operations; what a program reads is what it wrote, which the
//! tests hold against a model of the files.
//!
//! Sources: [C] filebench's personality files of version 1.5; [X] defaults of RocksDB and YCSB.

mod distribution;
pub mod filebench;
mod files;
pub mod hosted;
mod in_place;
pub mod lsm;

pub use files::{CvfsFiles, Files, FilesError};
pub use in_place::{InPlaceConfig, InPlaceFiles};
