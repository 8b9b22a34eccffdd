//! CVFS: a log-structured file system whose capacity shrinks while it is in use.
//!
//! What it models: the file system of a capacity-variant storage system. Everything is written to logs, so a range at
//! the end of the volume can be emptied and given back to the drive by one of three [`Method`]s: by remapping, by
//! copying, or by counting free ranges as allocated.
//!
//! The path of a write: [`FileSystem::write`] puts pages into memory and sets space aside; a checkpoint (or
//! too many of them) writes them to the logs (`pages`), then the nodes that point to them (`nodes`), then the tables
//! that say where nodes lie and which blocks are valid (`table`), and then the pack that makes all of it count
//! (`checkpoint`).
//!
//! What it does not model: access rights and caches, which the front end has; concurrency: one owner calls it.
//! There is no log of single files: `fsync` is a checkpoint, so what is found after a loss of power is always the
//! state at one moment, no older than the last checkpoint.
//!
//! Invariants: whatever the last durable checkpoint refers to is not written, trimmed or remapped before the next one
//! is durable, except for remaps that the checkpoint itself announces; dirty state never exceeds what the free
//! segments can take, so that a checkpoint cannot fail for want of space.
//!
//! Sources: the roles are those of F2FS; shrinking: sheet `cvss` §3.1 to 3.3 [P]; the format is our own [A].

mod ahead;
mod bytes;
mod cache;
mod checkpoint;
mod clean;
pub mod crash;
mod device;
mod direct;
mod directory;
mod discard;
mod error;
mod fs;
mod fsck;
mod held;
mod holes;
mod layout;
mod log;
mod mount;
mod nameless;
mod names;
mod node;
mod nodes;
mod pages;
mod resizing;
mod segments;
mod shrink;
mod slack;
mod table;
mod walk;

pub use device::{BLOCK_BYTES, DeviceCosts, MemoryDevice, Traffic};
pub use direct::{blocks_of_file, overwrite};
pub use directory::Entry;
pub use discard::DiscardPolicy;
pub use error::FsError;
pub use fs::{Cleaning, Config, Counters, FileSystem, ROOT, Usage, forget_clean};
pub use fsck::FsckReport;
pub use layout::Format;
pub use nameless::{forget_number, know_number};
pub use names::{Attributes, NewInode};
pub use node::{FILE_BYTES_MAX, Inode, Kind};
pub use resizing::{Method, Shrunk};
