//! The host's side: one [`Connection`] for each queue.
//!
//! An admin connection sets itself up: it connects, authenticates, enables the controller, identifies it and its
//! namespaces, and asks for I/O queues; [`Connection::controller`] then returns what it found, and I/O connections are
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
use flashyard_nvme::fabrics::{Connect, ConnectData, ConnectParameter};
use flashyard_nvme::tcp::{Digests, FatalError, FatalStatus};
use thiserror::Error;

/// Settings of a host for a subsystem.
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
    /// Entries wanted of each I/O queue, 2 to 4096. A controller that has fewer is asked for those; an admin queue has 32
    /// at most, which every controller has.
    pub queue_entries: u16,
    /// I/O queues wanted.
    pub io_queues: u16,
    /// Keep-alive timeout in milliseconds; zero is none.
    pub keep_alive_ms: u32,
    /// Digests wanted.
    pub digests: Digests,
    /// R2Ts of a command that may be outstanding, at least one.
    pub transfers_outstanding: u32,
    /// Whether the controller reports how far it has read the submission queue.
    pub has_flow_control: bool,
    /// Secret of this host, if it has to prove that it knows one.
    pub secret: Option<Secret>,
    /// Secret that the controller has to prove it knows.
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

/// Effects of a step of a [`Connection`]. Owned by the caller and used again.
#[derive(Debug, Default)]
pub struct Effects {
    /// Bytes to send, and the pool of buffers.
    pub output: Output,
    /// Commands that finished, in the order in which they did.
    pub completions: Vec<Completion>,
    /// Events that the controller announced.
    pub events: Vec<AsyncEvent>,
    /// The connection is to be closed once `output` is sent.
    pub failure: Option<ConnectionError>,
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The controller broke the protocol; a termination with the reason went to it.
    #[error(transparent)]
    ProtocolViolated(#[from] FatalError),
    /// The controller gave the connection up.
    #[error("the controller gave the connection up: {0:?}")]
    ControllerTerminated(FatalStatus),
    /// The controller refused the queue.
    #[error("connect failed: {}", refusal(*status, *parameter))]
    Connect {
        /// The status.
        status: Status,
        /// The wrong parameter, where the status says that one is.
        parameter: Option<ConnectParameter>,
    },
    /// A command of the setup failed.
    #[error("{step} failed: {}", status.name_for(false).unwrap_or("a status of the vendor"))]
    Setup {
        /// Name of the step.
        step: &'static str,
        /// The status.
        status: Status,
    },
    /// The controller asks for a proof, and there is no secret.
    #[error("the controller asks for a proof of identity, and no secret is configured")]
    SecretMissing,
    /// The dialogue of authentication failed.
    #[error("authentication failed: {0}")]
    Authentication(#[from] crate::dhchap::Failure),
}

/// Why a controller refuses a queue.
fn refusal(status: Status, parameter: Option<ConnectParameter>) -> String {
    let reason = match (status.code(), parameter) {
        (Status::CONNECT_INVALID_PARAMETERS, Some(ConnectParameter::Data(ConnectData::SUBSYSTEM_OFFSET))) => {
            "no subsystem has that name there"
        }
        (Status::CONNECT_INVALID_PARAMETERS, Some(ConnectParameter::Data(ConnectData::HOST_OFFSET))) => {
            "the name or the identifier of this host is not accepted"
        }
        (Status::CONNECT_INVALID_PARAMETERS, Some(ConnectParameter::Data(ConnectData::CONTROLLER_ID_OFFSET))) => {
            "there is no such controller"
        }
        (Status::CONNECT_INVALID_PARAMETERS, Some(ConnectParameter::Entry(Connect::QUEUE_ID_OFFSET))) => {
            "the queue is taken, or the controller has fewer"
        }
        (Status::CONNECT_INVALID_PARAMETERS, Some(ConnectParameter::Entry(Connect::QUEUE_SIZE_OFFSET))) => {
            "the controller has no queue of so many entries"
        }
        (Status::CONNECT_INVALID_HOST, _) => "this host is not one of those that may connect",
        (Status::CONTROLLER_BUSY, _) => "the drive is away, or the target has no room for another controller",
        _ => "",
    };
    let name = status.name_for(true).map_or_else(|| format!("status {:#05x}", status.code().bits()), str::to_owned);
    if reason.is_empty() { name } else { format!("{reason} ({name})") }
}
