//! A log-structured merge tree on files, and the requests of its clients.
//!
//! 1. A record goes to the log and to the memtable; a full memtable becomes a file of level 0.
//! 2. When level 0 has enough files, they and what they overlap in level 1 are merged. When a later level is too large, the
//!    file of it that overlaps least with the next level, for its size, is merged into that.
//! 3. A read asks the memtable, the files of level 0 from the newest on, and one file of each later level; a file's filter
//!    says first whether it is worth a look, and the file's index which of its blocks of 4 KiB to read.
//!
//! Indexes and filters are in memory, as in RocksDB by default; the tree has no cache of blocks, which are the file
//! system's and its host's to keep.
//!
//! Source: [X] leveled compaction and defaults of RocksDB; [X] YCSB's core workloads.

mod bloom;
mod clients;
mod compaction;
mod error;
mod memtable;
mod table;
mod tree;

pub use bloom::Bloom;
pub use clients::{Clients, Mix, Request};
pub use error::LsmError;
pub use tree::{Lsm, LsmConfig, LsmCounters};
