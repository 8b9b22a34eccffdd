//! A mirror: two unlike drives behind one volume. Every write goes to both, every read to one of them.
//!
//! What it models: two drives with everything that `flashyard_ssd` models of them; a host in front that sends commands
//! and hears of completions after fixed latencies ([`MirrorConfig`]); the choice of the drive that a read goes to
//! ([`ReadPolicy`]); a write that is done when both copies are durable; a drive that loses power or is pulled, and the
//! copying back of blocks that were written while it was away.
//!
//! The path of a request: a stream issues it (`path.rs`) → it waits for writes of the same blocks that are under way
//! (`locks.rs`) → the policy chooses a drive, or both are written (`policy.rs`) → a core of the drive runs its firmware,
//! the data-end carries it out → the host hears of each copy → the last one lets its client hear.
//!
//! Where its time goes is split by the ten causes of drives and one of its own, [`OTHER_COPY`]: of a write, the time from
//! its first copy's completion to its second one's; of a request that was sent again, the time of the attempts before.
//!
//! Invariants: the copy of a block on a drive is current, or the block is stale there (`stale.rs`), and every block is
//! current somewhere; a read goes where all its blocks are current, or waits; a write is acknowledged once a copy is
//! durable on every drive that is not stale for it afterwards; requests that overlap a write under way wait for it.
//!
//! What it does not model: cores of the host; time-outs (the host knows at once when a drive is away); links that fail;
//! a host that loses its knowledge of which blocks are stale; reads that are split over both drives.

mod book;
mod config;
mod explored;
mod figures;
mod live;
mod locks;
mod marks;
mod outage;
mod path;
mod policy;
mod request;
pub mod room;
mod run;
mod served;
mod side;
#[cfg(test)]
mod small;
mod stale;
#[cfg(test)]
mod tests;
mod world;

pub use config::{MirrorConfig, MirrorError};
pub use explored::MirrorWorld;
pub use figures::{DriveFigures, MirrorFigures};
pub use live::LiveMirror;
pub use marks::{DriveCounters, MirrorReading};
pub use policy::ReadPolicy;
pub use request::{CAUSES, OTHER_COPY};
pub use side::OutageCounters;
pub use world::Mirror;
