//! Operations that a load asks of the file system.

/// Operation that a load asks of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Write { first: u32, pages: u32 },
    Delete { first: u32, pages: u32 },
}

impl Operation {
    /// Pages that it writes.
    pub(super) fn written_pages(self) -> u32 {
        match self {
            Self::Write { pages, .. } => pages,
            Self::Delete { .. } => 0,
        }
    }
}
