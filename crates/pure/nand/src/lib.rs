//! Flash media: dies behind channel buses, timed; and a counting medium that takes no time.
//!
//! What it models: sensing, program and erase times by page (program time from ISPP pulses, or of a word line in one or two
//! passes), die occupancy, bus transfers in both directions, multi-plane commands, planes that sense independently, cache
//! registers for reads and programs, suspend and resume, command cycles and status polling, read-over-program priority with
//! a starvation bound, read retry drawn from an error model or following from a block's wear, reads given up after a
//! limit of retries, energy from busy time and currents.
//!
//! The path of a read: `submit` queues it at its lane (its die, or its plane where planes are independent); an idle lane
//! senses (`ArrayDone`), asks for the bus (`BusDone`) and reports. A program takes the bus first, then the array. Without a
//! cache register a command holds its lane from its start to its end. Where planes are independent, a read of several planes
//! waits at its die until all of them are free, and reads of requests begin in the order in which they came.
//!
//! What it does not model: die-level power limits; pages of one block that differ in their errors where wear decides, so
//! that a block is lost as a whole when reads are given up. Payload is not here: a slot's data is kept by the translation
//! layer.
//!
//! Invariants: a lane's array works for one command at a time, and for none while its die programs, erases or reads several
//! planes; a bus carries one transfer; every command submitted is reported exactly once.

mod capabilities;
mod channel;
mod config;
mod counting;
mod error_model;
mod intrusive;
mod lane;
#[cfg(test)]
mod legal;
mod meters;
mod queued;
mod reset;
mod retries;
mod timed;
mod times;
mod turns;
mod wear;

pub use capabilities::{Capabilities, SingleLevel, Suspend, WordLine};
pub use config::{Currents, IsppModel, NandConfig, NandConfigError};
pub use counting::CountingMedium;
pub use error_model::ErrorModel;
pub use queued::FlashTime;
pub use timed::{NandDone, NandEvent, TimedNand};
pub use wear::{EccStrength, ErrorRates, RetryRule, WearModel, WearModelError, retries_by_erases};
