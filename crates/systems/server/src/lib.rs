//! A server with guests: virtual drives, the stack between them and storage, drives and network volumes behind.
//!
//! What it models: stages of a stack on pools that virtual drives share ([`Stack`], one table each), with doorbells, exits of the
//! guest, system calls, polling cores, engines and cores of cards, and links as stages; drives with everything that
//! `flashyard_ssd` models of them; network volumes with limits, bandwidth and a drawn latency; LATTE in front of one of each, and
//! chains of services over one or several drives (`chain.rs`, `service.rs`).
//!
//! The path of a request: a stream issues it (`path.rs`) → the stages before storage, each on its pool → a core of the drive
//! runs its firmware and the data-end carries it out, or the network volume does → the stages after it → its stream goes on. Under a
//! service the request waits there, and orders take its way to either end.
//!
//! Invariants: every picosecond of a request belongs to one cause (the parts of the stack, waiting for one of them, or a cause
//! of drives, or the service that held it); a stage takes what its table says and nothing else; pools serve in the order of arrival.
//!
//! What it does not model: faults, the cost of copies inside a guest, cores of a network volume's
//! client. Sources of the figures are in `stack.rs`.

mod chain;
mod config;
pub mod database;
mod figures;
mod marks;
mod network;
mod path;
mod request;
pub mod room;
mod run;
mod service;
mod stack;
#[cfg(test)]
mod tests;
mod tiers;
mod world;

pub use chain::{Chain, ChainError, LINKS_MAX, Link};
pub use config::{Coalescing, DRIVES_MAX, NetworkLimits, QUEUES_MAX, ServerConfig, ServerError};
pub use figures::{DriveFigures, ServerFigures};
pub use request::{CAUSES, Own};
pub use stack::{Part, Stack};
pub use tiers::ServiceCounts;
pub use world::Server;
