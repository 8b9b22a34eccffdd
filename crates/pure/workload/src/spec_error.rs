//! Errors in the description of a workload.

/// Why a description cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}, give {range}")]
pub struct SpecError {
    /// The part.
    pub what: &'static str,
    /// The value given.
    pub value: String,
    /// The accepted range.
    pub range: &'static str,
}

impl SpecError {
    pub(crate) fn new(what: &'static str, value: String, range: &'static str) -> Self {
        Self { what, value, range }
    }
}
