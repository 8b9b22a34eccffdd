//! Parity of stripes that lie on remote drives: made by the host, or exchanged between drives from peer to peer.
//! Source: \[P\] sheet paraid §9, phase 4; protocol and rates are \[A\].
//!
//! What it models: one array of drives behind a switch, each with a full-duplex link of its own, and a host with one; stripes over all
//! drives with rotated parity; writes of whole stripes and of parts of one chunk. A write is a plan of steps ([`Plan`]): messages, reads and
//! writes of media, combinations. The world carries plans out over [`flashyard_fabric::Link`]s; a test carries the same plans out on bytes.
//!
//! The path of a message: the sender's link, then, while it still leaves, the receiver's link, then a latency. The switch never blocks.
//!
//! What it does not model: retransmission and congestion control, the write hole, drives' own garbage collection.
//!
//! Invariants: a link direction never moves more than its rate; bytes on the host's link are those that the plans say.

mod bound;
mod config;
mod plan;
pub mod room;
#[cfg(test)]
mod tests;
mod world;

pub use bound::{Bound, bound};
pub use config::{ParityConfig, ParityError, ParityPath};
pub use plan::{Action, Kind, Plan};
pub use world::{Carried, ParityFigures, ParityWorld};
