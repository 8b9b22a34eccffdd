//! The host's side: one [`Connection`] for each queue.
//!
//! An admin connection sets itself up: it connects, authenticates, enables the controller, identifies it and its
//! namespaces, and asks for I/O queues; [`Connection::controller`] then returns what it found, and I/O connections are
//! made from that. Its owner moves bytes as for the target: [`Connection::receive`], then `effects.output`; what
//! finished is in `effects.completions`.

mod auth;
mod commands;
mod config;
mod connection;
mod effects;
mod setup;
mod stage;

pub use commands::{Completion, Data, Full, Token};
pub use config::InitiatorConfig;
pub use connection::Connection;
pub use effects::{ConnectionError, Effects};
pub use stage::{ControllerInfo, NamespaceInfo};
