//! Errors in a job file.

/// Why a job file cannot be run, with the line and the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {option}: {message}")]
pub struct FioError {
    /// Line, from 1.
    pub line: usize,
    /// Name of the option, or the text in its place.
    pub option: String,
    /// The fault and the accepted form.
    pub message: String,
}

impl FioError {
    pub(crate) fn new(line: usize, option: &str, message: impl Into<String>) -> Self {
        Self { line, option: option.to_owned(), message: message.into() }
    }
}
