//! Operations that a load asks of the file system.

/// Operation that a load asks of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Write { first: u32, pages: u32 },
    Delete { first: u32, pages: u32 },
}
