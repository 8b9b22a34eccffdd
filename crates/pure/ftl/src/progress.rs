//! Work under way beside the host: the victim being emptied, and the move of wear leveling.

use std::collections::VecDeque;

/// Progress on the present victim.
#[derive(Default)]
pub(crate) struct Reclaim {
    pub(crate) victim: Option<u32>,
    /// Whether it is emptied for wear leveling.
    pub(crate) leveled: bool,
    pub(crate) next_row: u32,
    pub(crate) rows: u32,
    pub(crate) outstanding: u32,
    pub(crate) erasing: u32,
    /// Superblocks that were read so often that their data is to be moved, in order.
    pub(crate) refresh: VecDeque<u32>,
    /// Slots of rows that were passed, less those that had to be moved.
    pub(crate) gained: u64,
}

/// A move that is planned or under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leveling {
    /// Superblock whose data goes to the frontier of [`crate::Stream::Leveled`].
    pub(crate) source: u32,
    /// Superblock whose data then goes to `source`.
    pub(crate) then: Option<u32>,
    pub(crate) step: Step,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Planned,
    Emptying,
    Erasing,
}
