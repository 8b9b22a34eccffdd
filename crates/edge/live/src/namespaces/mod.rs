//! Namespaces of drives beyond the first: which space of a drive each of them has.
//!
//! Each is a volume of its own, with a number behind those of the world: clients, reservations, recordings and NBD know it by
//! that. The world knows its drives only: a request is translated to units of the drive as it is handed over, so a journal holds
//! nothing of namespaces. A drive that was never divided has no table, and its first namespace is all of it.

mod extent;
mod spaces;
mod table;

pub(crate) use extent::{Extent, cut, free_of, joined, take, take_behind, units_of};
pub use spaces::NamespaceInfo;
pub(crate) use spaces::Spaces;
pub use table::NAMESPACES_MAX;
pub(crate) use table::{Entry, Table};

/// A change of the namespaces of a drive that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manage {
    /// A further one.
    Create {
        /// Size in its blocks.
        blocks: u64,
        /// Its blocks.
        block: crate::media::BlockFormat,
        /// One controller at a time may have it.
        is_private: bool,
    },
    /// One less; `None`: none is left.
    Delete {
        /// Which.
        nsid: Option<u32>,
    },
    /// Other hosts have one of them.
    Attach {
        /// Which.
        nsid: u32,
        /// Its hosts afterwards.
        attachment: flashyard_nvmf::target::Attachment,
    },
    /// One of them is larger or smaller.
    Resize {
        /// Which.
        nsid: u32,
        /// Its size afterwards.
        bytes: u64,
    },
}

/// Why the namespaces of a drive stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManageError {
    /// Not enough space is free.
    #[error("{needed_bytes} bytes are needed, and no more than {free_bytes} are free")]
    NoRoom {
        /// Bytes that the namespace needs.
        needed_bytes: u64,
        /// Bytes that there are.
        free_bytes: u64,
    },
    /// All identifiers are taken.
    #[error("a drive has {NAMESPACES_MAX} namespaces at most")]
    NoIdentifier,
    /// There is no such namespace.
    #[error("there is no namespace {0}")]
    Unknown(u32),
    /// A size that no namespace can have.
    #[error("a size is a multiple of 4 KiB, and not 0")]
    Size,
    /// Not now, or not on this drive.
    #[error("{0}")]
    Refused(&'static str),
    /// The record of the namespaces cannot be written.
    #[error("the record of the namespaces cannot be kept: {0}")]
    NotKept(String),
}
