//! The flash translation layer: the place of each logical slot, the place of the next write, the next superblock to
//! reclaim, and the part of the map that is in memory.
//!
//! What it models: a page map of 4 KiB slots, superblock write frontiers across channels, dies and
//! planes, separate frontiers for host data and for moved data or one for both, an optional single-level-cell cache
//! that is folded when the drive is idle or space is scarce, victims by valid slots, by age and by scores over wear and
//! reads, orders of allocation, static wear leveling, retirement, a capacity that changes, remapping, deallocation,
//! padding, a mapping cache of translation pages in local places and offsite frames, preconditioning without timing or
//! drawn from its closed form, and payload stamps.
//!
//! The path of a write: `Ftl::append` takes the next slot of the host frontier, points the map at it and
//! invalidates the old slot; when a die row is full the caller programs it. Until
//! `Ftl::row_programmed` the row's data is in the write buffer and is read from there.
//!
//! Wear and retirement count whole superblocks. Wear leveling goes the way of garbage collection: a policy in `wear`
//! names a superblock to empty and the erased one that takes its data, and the caller that paces garbage collection
//! carries it out.
//!
//! What it does not model: loss of its own metadata (after a power cut without protection, recovery from flash finds it: `cut`), bad blocks inside a superblock,
//! absorption of overwrites inside the write buffer.
//!
//! Invariants: a mapped logical slot has exactly one valid physical slot, and that slot's reverse entry
//! names it; a superblock's valid count is the number of its valid bits; no slot is written twice
//! between erases; the erased count plus the open, closed, erasing and retired superblocks is all of them.
//!
//! Everything is sparse: a drive that was only filled sequentially costs no memory for its map, and one whose steady state
//! was drawn costs two bits a slot.

mod age;
mod aged;
mod allocation;
mod bits;
mod blocks;
mod cache;
mod capacity;
mod config;
mod counters;
mod cut;
mod drawn;
mod frames;
mod ftl;
mod gc;
mod map;
mod progress;
mod recency;
mod recovered;
mod remap;
mod remap_log;
mod retire;
mod run;
mod scattered;
mod score;
#[cfg(test)]
mod small;
mod touch;
mod victim;
mod wear;

pub use age::WornOut;
pub use aged::AgedState;
pub use cache::{Access, CacheCounters, Evicted, MappingCache, Residence};
pub use capacity::CapacityError;
pub use config::{
    Allocation, Frontiers, FtlConfig, FtlConfigError, HOST_STREAMS_MAX, ProgressiveReading, ScoreWeights,
    UnknownWearLeveling, VictimPolicy, VictimTies, WearLeveling,
};
pub use counters::FtlCounters;
pub use cut::PowerCut;
pub use ftl::{Appended, DieRow, Ftl, Stream};
pub use gc::{Emptied, RowRead, Want};
pub use map::SparseTable;
pub use recovered::{RecoveryError, SuperblockContents, UsedSuperblock};
pub use remap::RemapError;
pub use wear::Reentries;

/// Logical slots covered by one translation page: 4 KiB of 4-byte entries. Source: [A] xbof §3.6.
pub const SLOTS_PER_TRANSLATION_PAGE: u32 = 1024;
