//! Tasks of legs, and how they end.

use flashyard_blk::Operation;
use flashyard_service::Failure;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 4096;

/// A task of a leg: an order without the place of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Number of the order.
    pub(crate) order: u32,
    pub(crate) operation: Operation,
    /// First block, and blocks; nothing for a flush.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Whether a change ends only when a loss of power cannot undo it. Files do it in one step; others are flushed behind it.
    pub(crate) durable: bool,
}

impl Task {
    pub(crate) fn bytes(&self) -> usize {
        self.count as usize * BLOCK
    }
}

/// Bytes of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Zeros,
    Bytes(&'a [u8]),
}

/// How an order has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It has ended at once.
    Ended(Result<(), Failure>),
    /// It ends later.
    UnderWay,
}

/// The end of an order that was under way, with the bytes of a read.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) order: u32,
    pub(crate) result: Result<(), Failure>,
    pub(crate) bytes: Vec<u8>,
}
