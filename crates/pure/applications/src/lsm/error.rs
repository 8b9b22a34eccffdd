//! Errors of a tree.

use crate::files::FilesError;

/// Why a tree failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LsmError {
    /// A file operation failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A file does not hold what the tree wrote to it.
    #[error("file {0} holds something else than its records")]
    Damaged(u32),
}
