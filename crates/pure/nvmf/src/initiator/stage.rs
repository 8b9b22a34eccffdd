//! How far a connection is: steps of its setup and of its authentication, and what the setup has found.

use crate::dhchap::Challenge;

/// Where the setup is: the command whose answer it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    Initialize,
    Connect,
    Authenticate,
    Capabilities,
    Enable,
    Status,
    Controller,
    EventConfiguration,
    Queues,
    Namespaces,
    /// The namespace at this place of the list.
    Namespace(usize),
    Ready,
}

/// Properties of a controller that the setup found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerInfo {
    /// Controller identifier.
    pub id: u16,
    /// Serial number.
    pub serial: String,
    /// Model.
    pub model: String,
    /// I/O queues that the controller granted.
    pub io_queues: u16,
    /// Most entries of a queue.
    pub queue_entries_max: u32,
    /// Commands of a queue that the controller works on at once; zero where it does not say.
    pub commands_max: u16,
    /// Most data of a command in bytes; `None` is no limit.
    pub data_bytes_max: Option<u32>,
    /// Most data that the capsule of an I/O command may carry.
    pub capsule_data_bytes: u32,
    /// Whether the controller announces [`NvmCommand::Remap`](flashyard_nvme::nvm::NvmCommand::Remap).
    pub remaps: bool,
    /// Namespaces in ascending order.
    pub namespaces: Vec<NamespaceInfo>,
}

/// A namespace that the controller has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// Identifier.
    pub nsid: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Data of a block in bytes.
    pub block_bytes: u32,
    /// Metadata of a block in bytes.
    pub metadata_bytes: u16,
}

impl Setup {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialization",
            Self::Connect => "connect",
            Self::Authenticate => "authentication",
            Self::Capabilities => "reading the capabilities",
            Self::Enable => "enabling the controller",
            Self::Status => "reading the status",
            Self::Controller => "identifying the controller",
            Self::EventConfiguration => "asking for events",
            Self::Queues => "asking for queues",
            Self::Namespaces => "listing namespaces",
            Self::Namespace(_) => "identifying a namespace",
            Self::Ready => "a command of the setup",
        }
    }
}

/// The message or answer expected next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: no authentication is under way.
    #[default]
    Idle,
    /// Our negotiation is on its way.
    Negotiated,
    /// The challenge of the controller.
    Challenge,
    /// Our proof is on its way; our own challenge with it.
    Replied(Option<Challenge>),
    /// The controller's word, and its proof.
    Success(Option<Challenge>),
    /// Our confirmation is on its way.
    Confirmed,
}
