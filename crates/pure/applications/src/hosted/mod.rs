//! Programs with a file system of their own, as threads that a machine in virtual time drives.
//!
//! 1. A thread computes for the time of an operation, and then does its next operation on the files.
//! 2. The file system carries the operation out at once, in memory, and [`Noting`] keeps the requests for blocks that this
//!    took, with the places at which one has to wait for those before it.
//! 3. The thread issues these requests, neighbours merged up to the longest request, waits where it has to, and comes to its
//!    next operation when the last of them has completed.
//!
//! So the machine decides which thread comes next, and that decides what the next one finds in memory, in levels and in the
//! file set: a machine that answers sooner gets other requests, as from a real program.
//!
//! A thread waits after each read of a file, where its parts go out together; after each read that the file system needs for a
//! write; before and after a flush; and for the pages that it writes back when too many are in memory, or for `fsync`. A thread
//! whose record fills the memtable of a store carries the flush and the merges out, while the others go on.
//!
//! What it does not model: operations of threads that overlap inside the file system or the store, which see each other's
//! changes as soon as they have begun; a cache of clean pages, for programs have more data than memory [A]; read-ahead beyond
//! an operation; write-back in the background.
//!
//! Sources: [C] filebench's personality files of version 1.5; [C] RocksDB's `tools/benchmark.sh` and defaults of `db_bench`.

mod files;
mod name;
mod noting;
mod program;

pub use files::FileSystemName;
pub use name::ProgramName;
pub use noting::Noting;
pub use program::{Hosted, HostedConfig, HostedError};
