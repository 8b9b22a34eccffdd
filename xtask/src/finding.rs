//! The result of a check.

use std::fmt;

/// A defect in the repository, or one to come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the repository's root, with forward slashes.
    pub path: String,
    /// Line counted from 1; 0 means the whole file.
    pub line: usize,
    /// The problem and its remedy.
    pub message: String,
    /// Whether it fails the run; a warning does not.
    pub fails: bool,
}

impl Finding {
    /// A finding that fails the run.
    pub(crate) fn failure(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), fails: true }
    }

    /// A finding that is only shown.
    pub(crate) fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), fails: false }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.fails { "error" } else { "warning" };
        match self.line {
            0 => write!(f, "{kind}: {}: {}", self.path, self.message),
            line => write!(f, "{kind}: {}:{line}: {}", self.path, self.message),
        }
    }
}
