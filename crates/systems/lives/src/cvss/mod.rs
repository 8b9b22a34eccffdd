//! Capacity-variant storage against its rivals: one drive, the file system above it, and their manager, from new to
//! dead.
//!
//! What it models: traditional drives, the capacity-variant drive by the letter and as published, a variant that keeps a
//! performance requirement, automatic streams, rotating garbage collection with parity; the retries that worn
//! superblocks cost reads; a log-structured file system whose discards may be late, and which shrinks online by
//! remapping; the manager between them.
//! The path of one write: the load says which of its pages, the file system where they lie, a separator into which
//! stream of the drive they go, and the drive's own translation layer writes them on a medium that only counts. When
//! superblocks have been retired, the manager asks the file system for their capacity and reports the outcome to the
//! drive.
//! Of each sample a stretch is timed: one client's requests through a page cache to 64 dies without a write buffer; the rest
//! goes by without time.
//! What it does not model: several clients; a crash.
//!
//! A page of the model is 1 MiB of the published drive, a superblock 256 of them: every ratio of capacities is the
//! published one, and 256 times 64 reads of the drive's pages are one read of the model's.
//!
//! Invariants: a live page of the load is mapped and read where it lies; nothing live is above the file system's end;
//! the same configuration gives the same lifetime.
//!
//! Source: [P] and [C] sheet cvss §3 to §6.

mod autostream;
mod clock;
mod closed;
mod config;
mod design;
mod drive;
mod figures;
mod file_system;
mod filebench;
mod host;
mod life;
mod load;
mod manager;
mod mounted;
mod operation;
mod passes;
mod read_hot;
mod store;
mod tree;

pub use autostream::StreamRule;
pub use clock::Timing;
pub use closed::{SENSE_US, ShrinkCosts, ideal_focusing_bytes, retries_allowed};
pub use config::{CvssConfig, CvssError};
pub use design::{Design, DeviceConfig, LOGICAL_PAGES, PAGE_BYTES, RAW_PAGES, SUPERBLOCKS};
pub use figures::{CvssFigures, CvssSample, RETRIES_MAX};
pub(crate) use file_system::FileSystem;
pub use file_system::{Cleaning, Discards, FileSystemConfig, Placement, Reuse, UnknownDiscards};
pub use filebench::{FilebenchConfig, FilebenchLife, FilebenchLoad};
pub use host::HostConfig;
pub use life::CvssLife;
pub use load::{Load, PageLoad, Separation};
pub use manager::{Answer, Capacities, Manager, Step};
pub use store::{MixName, StoreConfig, StoreLife, StoreLoad};
pub use tree::TreeLoad;
