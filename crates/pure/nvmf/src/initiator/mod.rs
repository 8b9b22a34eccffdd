//! The host's side: one [`Connection`] for each queue.
//!
//! An admin connection sets itself up: it connects, authenticates, enables the controller, identifies it and its
//! namespaces, and asks for I/O queues; [`Connection::controller`] then tells what it found, and I/O connections are
//! made from that. Its owner moves bytes as for the target: [`Connection::receive`], then `effects.output`; what
//! finished is in `effects.completions`.

mod auth;
mod commands;
mod connection;
mod setup;

pub use commands::{Completion, Data, Full, Token};
pub use connection::Connection;
pub use setup::{ControllerInfo, NamespaceInfo};

use crate::Output;
use crate::secret::Secret;
use flashyard_nvme::Status;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::tcp::{Digests, FatalError, FatalStatus};
use thiserror::Error;

/// What a host wants of a subsystem.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Name of the host.
    pub host_nqn: String,
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Name of the subsystem.
    pub subsystem_nqn: String,
    /// Controller wanted; `None` takes any.
    pub controller_id: Option<u16>,
    /// Entries of each queue, 2 to 4096.
    pub queue_entries: u16,
    /// I/O queues wanted.
    pub io_queues: u16,
    /// Keep-alive timeout in milliseconds; zero is none.
    pub keep_alive_ms: u32,
    /// Digests wanted.
    pub digests: Digests,
    /// R2Ts of a command that may be outstanding, at least one.
    pub transfers_outstanding: u32,
    /// Whether the controller tells how far it has read the submission queue.
    pub has_flow_control: bool,
    /// What this host knows, if it has to prove it.
    pub secret: Option<Secret>,
    /// What the controller has to prove it knows.
    pub controller_secret: Option<Secret>,
}

impl InitiatorConfig {
    /// A host without secrets that wants any controller of `subsystem_nqn`, 128 entries and no digests.
    pub fn new(host_nqn: &str, subsystem_nqn: &str) -> Self {
        Self {
            host_nqn: host_nqn.to_owned(),
            host_id: [1; 16],
            subsystem_nqn: subsystem_nqn.to_owned(),
            controller_id: None,
            queue_entries: 128,
            io_queues: 1,
            keep_alive_ms: 0,
            digests: Digests::default(),
            transfers_outstanding: 1,
            has_flow_control: true,
            secret: None,
            controller_secret: None,
        }
    }
}

/// What a step of a [`Connection`] leads to. Owned by the caller and used again.
#[derive(Debug, Default)]
pub struct Effects {
    /// Bytes to send, and the pool of buffers.
    pub output: Output,
    /// Commands that finished, in the order in which they did.
    pub completions: Vec<Completion>,
    /// What the controller announced.
    pub events: Vec<AsyncEvent>,
    /// The connection is to be closed once `output` is sent.
    pub failure: Option<ConnectionError>,
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The controller broke the protocol and has been told how.
    #[error(transparent)]
    ProtocolViolated(#[from] FatalError),
    /// The controller gave the connection up.
    #[error("the controller gave the connection up: {0:?}")]
    ControllerTerminated(FatalStatus),
    /// A command of the setup failed.
    #[error("{step} failed: {status}")]
    Setup {
        /// Which one.
        step: &'static str,
        /// How.
        status: Status,
    },
    /// The controller asks for a proof, and there is no secret.
    #[error("the controller asks for a proof of identity, and no secret is configured")]
    SecretMissing,
    /// The dialogue of authentication failed.
    #[error("authentication failed: {0}")]
    Authentication(#[from] crate::dhchap::Failure),
}
