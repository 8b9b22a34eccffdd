//! The contract between whoever makes requests and whoever issues them.

use flashyard_blk::TraceRecord;

/// Requests one after the other.
pub trait RequestSource: Send {
    /// The next request; `None` at the end.
    ///
    /// Errors: when the underlying trace cannot be read on.
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError>;
}

/// A source that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);
