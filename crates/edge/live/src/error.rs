//! Why an engine ends.

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
    /// The journal could not be written to its end. The enclosure was served, and ended in order.
    #[error("the journal is not whole")]
    Journal(#[source] io::Error),
}
