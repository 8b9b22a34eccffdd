//! A change of size: how it is done, its progress, and its result.

use std::ops::Range;

/// How capacity is given back. Source: [P] sheet `cvss` §3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The device moves valid blocks from above the new end by changing its map.
    Remap,
    /// Valid blocks from above the new end are copied.
    Relocate,
    /// Nothing moves: free segments count as allocated, those nearest to the end first, and then free blocks of others. The end
    /// stays.
    Holes,
}

/// Result of giving capacity back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The method used.
    pub method: Method,
    /// Blocks of the volume before.
    pub blocks_before: u32,
    /// Blocks of the volume now; with holes they are what they were.
    pub blocks: u32,
    /// Blocks given back.
    pub blocks_given: u64,
    /// Valid blocks that were moved for it.
    pub blocks_moved: u64,
}

/// A change of size under way.
#[derive(Clone, Debug)]
pub(crate) struct Resizing {
    pub(crate) method: Method,
    pub(crate) blocks_before: u32,
    pub(crate) moved_before: u64,
    /// Segments below the new end.
    pub(crate) segments: u32,
    /// Blocks to be given back as holes, and those that are.
    pub(crate) wanted: u64,
    pub(crate) given: u64,
    /// Nodes follow after data: those that data took along need no move of their own.
    pub(crate) nodes: bool,
    /// Holes follow in segments that are not free, where those that are were not enough.
    pub(crate) slack: bool,
    /// The first segment to look for valid blocks in; for holes, the segment above the next to look for free blocks in.
    pub(crate) next: u32,
    /// Blocks marked as holes by this change of size.
    pub(crate) marked: Vec<Range<u32>>,
}
