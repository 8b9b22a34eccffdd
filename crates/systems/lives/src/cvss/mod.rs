//! Capacity-variant storage against its rivals: one drive, the file system above it, and their manager, from new to
//! dead.
//!
//! What it models: traditional drives, the capacity-variant drive by the letter and as published, automatic streams; the
//! retries that worn superblocks cost reads; a log-structured file system that tells the drive late what is dead, and which
//! shrinks online by remapping; the manager between them; files in place, and other rules of discards, as controls.
//! The path of one write: a program (fio, filebench, or a store with YCSB's or Twitter's clients) writes to a file of CVFS or of a file system
//! in place, which says where the data lies; the drive's own translation layer writes it. When superblocks have been
//! retired, the manager asks the file system for their capacity.
//! Stretches of a life are timed, on 64 dies without a write buffer; the rest goes by without time.
//! What it does not model: a crash.
//!
//! A page of the drive in small is 4 KiB and stands for 1 MiB of the published drive's wear, a superblock is 256 of them: every
//! ratio of capacities is the published one.
//!
//! Invariants: a live page of the load is mapped and read where it lies; nothing live is above the file system's end;
//! the same configuration gives the same lifetime.
//!
//! Source: [P] and [C] sheet cvss §3 to §6.

mod autostream;
mod closed;
mod design;
mod drive;
mod error;
mod figures;
mod filebench;
mod fio;
mod host;
mod inline;
mod manager;
mod mounted;
mod mounted_files;
mod passes;
mod read_hot;
mod shrinking;
mod stop;
mod store;
mod stretches;
mod times;

pub use closed::{ideal_focusing_bytes, retries_allowed};
pub use design::{DegradeRule, Design, DeviceConfig, LOGICAL_PAGES, PAGE_BYTES, RAW_PAGES, SUPERBLOCKS};
pub use error::CvssError;
pub use figures::{CvssFigures, CvssSample, RETRIES_MAX, share_in_one_state};
pub use filebench::{FilebenchConfig, FilebenchLife, FilebenchLoad};
pub(crate) use fio::pages_of;
pub use fio::{FioConfig, FioLife, FioLoad};
pub use host::HostConfig;
pub use manager::{Answer, Capacities, Manager, Step};
pub use mounted::Below;
pub use mounted_files::{DiscardRule, Placement};
pub use shrinking::{reads_beside_holes, shrink_seconds};
pub use store::{StoreConfig, StoreLife, StoreLoad};
pub use times::Timing;
