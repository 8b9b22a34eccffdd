//! LATTE: a local disk (front end) and a network volume (back end) behind one volume. Source: sheet alibaba-local-storage
//! §2.6 and §3.
//!
//! What it models: the choice of an end for a write ([`Rule`], among them one that learns: [`model`]), a log of writes at the front
//! end that is flushed in the order of appends, copies of blocks that are read twice (S3-FIFO), writes through to the back end,
//! and the loss of either end. It is a [`flashyard_service::Service`]: the same machine in virtual time and in front of real
//! volumes.
//!
//! The path of a write: the rule chooses an end → an append to the log, or an order to the back end → when that has ended the
//! location map names the copy → the answer. Of a read: the map names the end of each block → runs of blocks are read → blocks
//! that missed twice are copied to the front end.
//!
//! Invariants: the map names the newest acknowledged copy of each block; a slot is used again when nothing is under way on it;
//! a block has one flush under way or several writes to the back end, never both; slots of the log come back in order.
//!
//! What it does not model: a map that outlives a loss of power (the front end is taken as lost then); moving of copies that are
//! still read from the end of the log.

mod barrier;
mod config;
mod crash;
pub mod dispatch;
mod dispatcher;
mod flush;
mod front_log;
mod latte;
mod learned;
mod location;
mod lost;
pub mod model;
mod operation;
mod pins;
mod placement;
mod read_cache;
#[cfg(test)]
mod tests;

pub use config::{CachePolicy, Config, Counters, Rule};
pub use crash::LatteWorld;
pub use latte::Latte;
pub use learned::{Learning, Learnt};
pub use location::{Location, Locations, State};
