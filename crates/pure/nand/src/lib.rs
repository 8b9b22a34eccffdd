//! Flash media: dies behind channel buses, timed; and a counting medium that takes no time.
//!
//! What it models: sensing, program and erase times by page kind (program time from ISPP pulses), die
//! occupancy, bus transfers in both directions, multi-plane commands, read-over-program priority with a
//! starvation bound, read retry drawn from an error model or following from a block's wear, reads given up after a
//! limit of retries, energy from busy time and currents.
//!
//! The path of a read: `submit` queues it at its die; an idle die senses (`ArrayDone`), asks for the bus
//! (`BusDone`) and reports. A program takes the bus first, then the array. The die is held from the
//! start of a command to its end: there is no cache register.
//!
//! What it does not model: command and address cycles on the bus, suspend and resume, die-level power
//! limits; pages of one block that differ in their errors where wear decides, so that a block is lost as a whole when
//! reads are given up. Payload is not here: a slot's data is kept by the translation layer.
//!
//! Invariants: a die runs one command at a time, a bus one transfer; every command submitted is
//! reported exactly once.

mod config;
mod counting;
mod error_model;
mod intrusive;
mod reset;
mod retries;
mod timed;
mod wear;

pub use config::{Currents, IsppModel, NandConfig, NandConfigError};
pub use counting::CountingMedium;
pub use error_model::ErrorModel;
pub use timed::{FlashTime, NandDone, NandEvent, TimedNand};
pub use wear::{EccStrength, ErrorRates, RetryRule, WearModel, WearModelError, retries_by_erases};
