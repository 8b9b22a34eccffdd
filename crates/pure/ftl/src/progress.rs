//! Work under way beside the host: the victim being emptied, and the move of wear leveling.

use crate::blocks::{Blocks, State};
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

impl Reclaim {
    /// The next superblock whose data is to be moved because of reads. One that has been erased since, is being emptied or is
    /// not on flash yet does not count: it is moved when it has been read as often again.
    pub(crate) fn next_refresh(&mut self, blocks: &Blocks, reads: &mut [u32]) -> Option<u32> {
        while let Some(number) = self.refresh.pop_front() {
            let superblock = &blocks.all[number as usize];
            if superblock.state == State::Closed && superblock.unprogrammed.is_none() {
                return Some(number);
            }
            reads[number as usize] = 0;
        }
        None
    }
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
