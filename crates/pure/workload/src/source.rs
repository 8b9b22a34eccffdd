//! The contract between sources and issuers of requests.

use crate::ScalingNote;
use flashyard_blk::TraceRecord;
use std::error::Error;

/// Requests one after the other.
pub trait RequestSource: Send {
    /// The next request; `None` at the end, and from then on.
    ///
    /// Errors: when the underlying trace cannot be read on, or its times pass the end of simulated time.
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError>;

    /// Share of its requests that was handed out, from 0 to 1; `None` where their number is not known.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Changes so far that fit recorded requests to the drive; `None` for requests that needed no fitting.
    fn scaling(&self) -> Option<ScalingNote> {
        None
    }

    /// How often it has begun the same requests; 0 for one that never repeats itself.
    fn rounds(&self) -> u64 {
        0
    }
}

/// A source that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

impl SourceError {
    /// The error with all its causes in one line, for readers that may be handed over between worlds.
    pub fn from_error(error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }

    /// A trace that takes no time, and is to be repeated by its times.
    pub(crate) fn standstill() -> Self {
        Self(
            "all requests of the trace arrive together, so that it cannot be repeated by its arrival times; \
             give workload.depth, or workload.repetitions"
                .to_owned(),
        )
    }

    /// An arrival that `SimTime` cannot hold.
    pub(crate) fn beyond_time() -> Self {
        Self("an arrival lies beyond the end of simulated time, 213 days; replay fewer rounds, or faster (workload.speed)".to_owned())
    }
}
