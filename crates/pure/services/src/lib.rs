//! Services of LeapIO, each a [`flashyard_service::Service`]: the same machine in virtual time and in front of real volumes.
//! Source: sheet leapio §3.6.
//!
//! They are [`Striped`] (RAID-0), [`Mirrored`] (RAID-1 with a rebuild), [`SpillOver`] (the first blocks near, the rest elsewhere),
//! [`Prioritized`] (interactive before batch), [`AtomicWrites`] (writes of several blocks that are whole), [`Versioned`] (versions of a volume
//! that is written), [`Channels`] (virtual channels that are isolated and remapped), and [`Tree`], which makes one service of several: the orders of a service are requests of those below it.
//!
//! Invariants: a request is answered once; blocks of a mirror are the same on every leg that counts as a copy of them, unless a write
//! of them is under way; a write that was atomic is whole after a loss of power, and a version reads as it was taken; batch waits for interactive requests only as long as these use what it leaves.
//!
//! Not modelled: cost on a core, which is the runtime's.

mod atomic;
mod channels;
pub mod crash;
mod fields;
mod mirror;
mod overlap;
mod parts;
mod patience;
mod priority;
mod spill;
mod stripe;
mod tree;
mod versions;

pub use atomic::{AtomicCounters, AtomicWrites};
pub use channels::{ChannelRoom, Channels};
pub use mirror::{COPIED, IntentRoom, Mirrored};
pub use priority::{Prioritized, Shares};
pub use spill::SpillOver;
pub use stripe::Striped;
pub use tree::edit::LeaveError;
pub use tree::{Below, Tree, TreeError};
pub use versions::{VersionRoom, Versioned};
