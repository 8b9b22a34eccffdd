//! States of atomic writes: orders under way, requests that wait, flushes, and counts.

use crate::overlap::Range;
use flashyard_service::Failure;

/// The purpose of an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under {
    Recover,
    /// A piece of a record is written.
    Log(u64),
    /// Blocks of a request are read: at home, or from a record.
    Read {
        request: u32,
        record: Option<u64>,
        range: Range,
        /// Block of the leg.
        first: u64,
    },
    Home(usize),
    Flush,
    Anchor,
}

/// A request that waits until records below a number are durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) request: u32,
    pub(super) upto: u64,
    pub(super) answer: Result<(), Failure>,
}

/// Records that a flush under way makes sure of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covers {
    pub(super) logged: u64,
    pub(super) home: u64,
    pub(super) anchor: Option<u64>,
}

/// An anchor on its way, with the number of the record at which the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moving {
    No,
    Writing(u64),
    Written(u64),
}

/// Counts of atomic writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicCounters {
    /// Records of the log.
    pub records: u64,
    /// Records that became void.
    pub voids: u64,
    /// Records that went home while it ran.
    pub homes: u64,
    /// Records that were brought home at the start.
    pub replayed: u64,
    /// Flushes of the leg.
    pub flushes: u64,
    /// Requests that waited for room.
    pub waited: u64,
}
