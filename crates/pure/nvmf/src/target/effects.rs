//! A connection as its owner sees it: its name, its effects, and the room that it may take.

use super::edition::Edition;
use super::slots::Tag;
use crate::Output;
use flashyard_nvme::nvm::NvmCommand;
use flashyard_nvme::protection::Protection;
use flashyard_nvme::tcp::{FatalError, FatalStatus};

/// Names a connection for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(super) u64);

/// Effects of a step of a [`super::Session`]. Owned by the caller and used again, so that a step allocates nothing.
#[derive(Debug, Default)]
pub struct Effects {
    /// Bytes to send, and the pool of buffers.
    pub output: Output,
    /// Commands for the backend, in the order in which their data was complete. The caller takes them out.
    pub commands: Vec<Command>,
    /// Commands at the backend that the host wants back. The caller takes them out, completes those that it can take
    /// back with [`flashyard_nvme::Status::ABORT_REQUESTED`], and calls [`super::Session::abort_tried`] for the others. For
    /// one that it stops in its midst it calls neither before that has stopped.
    pub aborts: Vec<Tag>,
    /// The connection is to be closed once `output` is sent.
    pub close: Option<CloseReason>,
}

/// A command for the backend, checked: the namespace exists, its blocks exist, and the data fits.
#[derive(Debug)]
pub struct Command {
    /// Names the command in [`super::Session::complete`].
    pub tag: Tag,
    /// Place of the subsystem in the configuration.
    pub subsystem: usize,
    /// Namespace.
    pub nsid: u32,
    /// The namespace as it was when the command came: [`super::superseded`].
    pub edition: Edition,
    /// Operation to carry out.
    pub operation: NvmCommand,
    /// Its wishes about the metadata of its blocks; `None` where they have none. Where it [carries](Protection::carries) the
    /// metadata, each block of `payload` has its own behind it. Comparing is the backend's, as is making and taking off; of a
    /// Copy this is about what is written, and the operation and its ranges tell of what is read.
    pub protection: Option<Protection>,
    /// Length of the data in bytes: of `payload` as it comes, or as a read has to leave it.
    pub data_bytes: u32,
    /// Bytes of blocks that a Copy needs at once beside `payload`: those of its longest range. Zero for everything else.
    pub held_bytes: u32,
    /// Data of the host; of a read an empty buffer to be filled. The ranges of Dataset Management are
    /// [`flashyard_nvme::nvm::DsmRange`], those of Copy [`flashyard_nvme::nvm::CopyRange`]: within the limits of the
    /// namespace, as is the range that they go to. They are copied one after the other, each read whole before it is
    /// written; where one fails, [`super::Session::stops_at_range`] names it.
    ///
    /// Of zoned namespaces a Zone Append comes as a Write, and of Zone Management Send two actions come, with
    /// [`flashyard_nvme::nvm::DsmRange`]: Reset with blocks to deallocate, after what was asked for before of these blocks and
    /// before what is asked for later; Finish with blocks to be written with zeros.
    pub payload: Vec<u8>,
    /// The Write that this Compare is fused with, of the same blocks: it is carried out if they are equal, and nothing else writes them
    /// between the two. Each is completed by its own tag; a Write that is not carried out ends with
    /// [`flashyard_nvme::Status::ABORTED_FUSED_FAILED`].
    pub second: Option<Box<Command>>,
}

/// Why a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The host broke the protocol; a termination with the reason went to it.
    ProtocolViolated(FatalError),
    /// The host gave the connection up, for this reason.
    HostTerminated(FatalStatus),
    /// The controller ended: its keep-alive timeout passed, or its admin queue went.
    ControllerEnded,
    /// The host did not prove who it is.
    AuthenticationFailed,
}

/// Memory that a connection may take in one step, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Nothing more is taken in while more than this waits to be sent.
    pub unsent: usize,
    /// Data of writes that the host may be asked for on top of what it has been asked for.
    pub transfers: usize,
}

impl Room {
    /// No limit.
    pub const UNLIMITED: Self = Self { unsent: usize::MAX, transfers: usize::MAX };
}

/// A controller that is to be shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Place of its subsystem in the configuration.
    pub subsystem: usize,
    pub(super) controller: (usize, u64),
}
