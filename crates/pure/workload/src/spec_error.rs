//! What is wrong with the description of a workload.

/// Why a description cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}, give {range}")]
pub struct SpecError {
    /// Which part.
    pub what: &'static str,
    /// What was given.
    pub value: String,
    /// What is possible.
    pub range: &'static str,
}

impl SpecError {
    pub(crate) fn new(what: &'static str, value: String, range: &'static str) -> Self {
        Self { what, value, range }
    }
}
