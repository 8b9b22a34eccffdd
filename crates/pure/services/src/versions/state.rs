//! States of versions: orders, reads and writes under way, slots, and steps of the log.

use crate::overlap::Range;
use flashyard_service::Failure;

/// The purpose of an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under {
    Recover,
    /// A run of a request is read: its first block in the window, and on the leg.
    Read {
        reading: usize,
        block: u64,
        first: u64,
    },
    Write(usize),
    /// A part of the step of the log that is under way.
    Log,
}

/// A read under way: its request, the window, and how many began before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) request: u32,
    pub(super) slot: u32,
    pub(super) number: u64,
}

/// A change of blocks under way.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) request: u32,
    pub(super) range: Range,
    pub(super) durable: bool,
    pub(super) orders: u32,
    pub(super) failure: Option<Failure>,
    /// Blocks that have another place when it has ended.
    pub(super) moved: Vec<(u32, u32)>,
}

/// How far a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Free,
    /// It waits for its moment.
    Asked,
    /// Its moment is over.
    Taken,
    Kept,
    Dropping,
}

/// One that waits until the log has what came before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ticket {
    Request(u32),
    Take(u32),
    Drop(u32),
}

/// How far the log is with what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Idle,
    /// The data of the changes is made durable.
    Data,
    Write,
    Keep,
}
