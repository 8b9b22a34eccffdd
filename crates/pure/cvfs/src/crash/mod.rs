//! Crash tests: a device that loses power, a model of the state to be found afterwards, and a world to explore.
//!
//! Every write, flush, trim and remap of the device is an event, before which power may be lost. Of what came after
//! the last flush, everything, nothing, or any part may be left ([`Loss`]). What is found by the mount after that must
//! pass a check of its structure, and its tree must be, byte for byte, that of one moment between the last durable
//! checkpoint and the loss.

mod device;
mod run;
mod tree;
mod world;

pub use device::{CrashDevice, Loss};
pub use tree::{Tree, TreeFile};
pub use world::CrashWorld;
