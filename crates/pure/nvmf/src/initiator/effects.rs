//! Effects of a connection on its owner, its failure among them.

use super::commands::Completion;
use crate::Output;
use flashyard_nvme::Status;
use flashyard_nvme::event::AsyncEvent;
use flashyard_nvme::fabrics::{Connect, ConnectData, ConnectParameter};
use flashyard_nvme::tcp::{FatalError, FatalStatus};
use thiserror::Error;

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
