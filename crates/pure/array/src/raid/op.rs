//! Operations under way on a stripe.

use crate::learned::Place;
use flashyard_service::Failure;
use std::ops::Range;

/// The number of nothing.
pub(super) const NONE: u32 = u32::MAX;

/// The purpose of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of a request that reads.
    Read,
    /// Parts of requests that write or trim.
    Write,
    /// Chunks of a drive that has none of them yet.
    Rebuild { leg: u8 },
    /// A look at all chunks.
    Check,
    /// Chunks that a look has found unreadable or wrong.
    Repair,
    /// A chunk that is copied to another drive.
    Move,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for others on its stripe.
    Waiting,
    /// Blocks of a request are read where they lie.
    Direct,
    /// Chunks are read into its buffer, or looked at.
    Reads,
    /// Its change is written to the journal, or waits for a slot.
    Journal,
    /// Its change is written in place.
    Place,
    /// The new place of a chunk is recorded.
    Record,
    /// It waits until the record of members says which drives have missed it.
    Settle,
    /// Its slot of the journal is cleared.
    Clear,
    /// It waits until the record of members says which drives still have its slot.
    Cleared,
}

/// The form of the change in a slot of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All chunks that change.
    Whole,
    /// The sum of the data that does not.
    PartialParity,
}

/// A part of a request, on one stripe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The request, and the first block in it.
    pub(super) request: u32,
    pub(super) at: u32,
    /// Blocks of the data of the stripe.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Whether the blocks become zeros.
    pub(super) zero: bool,
    /// The next part of the same operation.
    pub(super) next: u32,
}

impl Part {
    /// Blocks of a chunk of data that it names, counted in the chunk.
    pub(super) fn touched(&self, role: u8, chunk_blocks: u32) -> Range<u32> {
        let begin = u32::from(role) * chunk_blocks;
        let clamp = |block: u32| block.clamp(begin, begin + chunk_blocks) - begin;
        clamp(self.first)..clamp(self.first + self.count)
    }

    /// The block of the request at which those of a chunk begin.
    pub(super) fn begin_of(&self, role: u8, rows: &Range<u32>, chunk_blocks: u32) -> u32 {
        self.at + u32::from(role) * chunk_blocks + rows.start - self.first
    }
}

/// An operation on a stripe. Chunks go by their roles, a bit each in masks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) phase: Phase,
    pub(super) stripe: u32,
    /// The first and the last of its parts, and how many there are.
    pub(super) parts: u32,
    pub(super) last: u32,
    pub(super) count: u32,
    /// The next operation that waits for the stripe.
    pub(super) next: u32,
    /// Chunks of data that its parts name, and those of which they name all blocks from `low` on.
    pub(super) touched: u32,
    pub(super) full: u32,
    /// Blocks of each chunk that its buffer has.
    pub(super) low: u32,
    pub(super) rows: u32,
    /// Chunks whose drives are there, but that could not be read.
    pub(super) unread: u32,
    /// Chunks that are not read: those, and chunks of drives that are not there.
    pub(super) missing: u32,
    /// Chunks that are written.
    pub(super) changed: u32,
    /// Orders under way.
    pub(super) waits: u32,
    /// A chunk could not be read meanwhile; an order has to be sent again.
    pub(super) replans: bool,
    pub(super) again: bool,
    pub(super) is_answered: bool,
    /// Chunks that could not be read were tried a second time.
    pub(super) is_retried: bool,
    pub(super) buffer: Option<u32>,
    pub(super) slot: Option<u32>,
    pub(super) form: Form,
    /// Drives on which its slot has been written, a bit each.
    pub(super) copies: u64,
    pub(super) failure: Option<Failure>,
    /// A chunk that is written to another place than it had: its role, and the place.
    pub(super) target: Option<(u8, Place)>,
}

impl Op {
    pub(super) fn new(kind: Kind, stripe: u32) -> Self {
        Self {
            kind,
            phase: Phase::Waiting,
            stripe,
            parts: NONE,
            last: NONE,
            count: 0,
            next: NONE,
            touched: 0,
            full: 0,
            low: 0,
            rows: 0,
            unread: 0,
            missing: 0,
            changed: 0,
            waits: 0,
            replans: false,
            again: false,
            is_answered: false,
            is_retried: false,
            buffer: None,
            slot: None,
            form: Form::Whole,
            copies: 0,
            failure: None,
            target: None,
        }
    }

    /// Whether others may be on the stripe beside it.
    pub(super) fn is_shared(&self) -> bool {
        self.kind == Kind::Read
    }

    /// The place of a chunk in its buffer, counted in chunks: those that change come first.
    pub(super) fn place(&self, role: u8) -> u8 {
        let below = (1 << role) - 1;
        let is_changed = self.changed >> role & 1 == 1;
        let before = if is_changed {
            (self.changed & below).count_ones()
        } else {
            self.changed.count_ones() + (!self.changed & below).count_ones()
        };
        before as u8
    }

    /// The first block of a chunk in its buffer.
    pub(super) fn position(&self, role: u8) -> u32 {
        u32::from(self.place(role)) * self.rows
    }
}

/// The numbers of the bits that are set.
pub(super) fn numbers(bits: u64) -> impl Iterator<Item = u8> {
    let mut left = bits;
    std::iter::from_fn(move || {
        let number = (left > 0).then(|| left.trailing_zeros() as u8)?;
        left &= left - 1;
        Some(number)
    })
}

/// The numbers of the roles in a mask.
pub(super) fn roles(mask: u32) -> impl Iterator<Item = u8> {
    numbers(mask.into())
}
