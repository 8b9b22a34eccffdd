//! Ranges of blocks that meet.

/// Blocks from `first` up to `end`, which is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u64,
    pub(crate) end: u64,
}

impl Range {
    pub(crate) const fn new(first: u64, count: u32) -> Self {
        Self { first, end: first + count as u64 }
    }

    pub(crate) const fn meets(&self, other: &Self) -> bool {
        self.first < other.end && other.first < self.end
    }

    pub(crate) const fn count(&self) -> u32 {
        (self.end - self.first) as u32
    }
}
