//! Why an engine ends, or does not do what it is asked to.

use flashyard_units::VolumeId;
use std::io;

/// Why the engine ends before it is asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A front end cannot begin.
    #[error("{name} cannot be served")]
    Start {
        /// Which.
        name: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The operating system's poll.
    #[error("the sockets cannot be watched")]
    Poll(#[source] io::Error),
    /// Bytes cannot be kept.
    #[error("the drives' bytes cannot be kept")]
    Media(#[source] io::Error),
    /// The trace of requests could not be written to its end. They were served.
    #[error("the trace of requests is not whole")]
    Record(#[source] io::Error),
    /// The journal could not be written to its end. The enclosure was served, and ended in order.
    #[error("the journal is not whole")]
    Journal(#[source] io::Error),
}

/// Why a volume does not get blocks of another format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockSizeError {
    /// There are no such blocks.
    #[error("blocks of {0} bytes, give 512 or 4096")]
    Unknown(u32),
    /// Its bytes lie on several drives.
    #[error("volume {0} lies on several drives, and has blocks of 4 KiB without metadata")]
    SeveralDrives(VolumeId),
    /// Metadata of blocks has no place.
    #[error("metadata of blocks cannot be kept: {0}")]
    NotKept(String),
}
