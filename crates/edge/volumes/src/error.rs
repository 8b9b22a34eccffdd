//! Why there are no volumes.

use crate::leg::FileError;
use flashyard_describe::volumes::DescriptionError;
use flashyard_live::NamespaceError;
use std::error::Error;
use std::io;
use std::net::SocketAddr;

/// Why there are no volumes.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A file of a volume.
    #[error("volume {volume}")]
    File {
        /// Which.
        volume: String,
        /// Why.
        #[source]
        source: FileError,
    },
    /// A namespace of a volume.
    #[error("volume {volume}: {nqn} at {address}")]
    Namespace {
        /// Which.
        volume: String,
        /// The subsystem.
        nqn: String,
        /// Its address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: Box<NamespaceError>,
    },
    /// A secret.
    #[error("volume {volume}: {problem}")]
    Secret {
        /// Which.
        volume: String,
        /// The problem, without the secret.
        problem: String,
    },
    /// A drive that is to be served here.
    #[error("volume {volume}: {problem}")]
    Drive {
        /// Which.
        volume: String,
        /// The problem.
        problem: String,
    },
    /// Space that is to be borrowed.
    #[error("volume {volume}: {problem}")]
    Loan {
        /// Which.
        volume: String,
        /// The problem, with what each server has answered.
        problem: String,
    },
    /// Storage that is to be lent.
    #[error("[lend]")]
    Lend(#[source] FileError),
    /// Sizes that do not fit.
    #[error("volume {volume}: {problem}")]
    Size {
        /// Which.
        volume: String,
        /// The problem, and what would do.
        problem: String,
    },
    /// The operating system's poll.
    #[error("the sockets cannot be watched")]
    Poll(#[source] io::Error),
}

impl OpenError {
    /// Whether storage is not there, which is no mistake of the description.
    pub(crate) const fn is_absence(&self) -> bool {
        match self {
            Self::File { source, .. } => matches!(source, FileError::Missing(_) | FileError::Io { .. }),
            Self::Namespace { .. } => true,
            _ => false,
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn told(error: &dyn Error) -> String {
    let (mut line, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}
