//! Operations under way.

use super::moment::Moment;
use std::fmt;

/// The caller's number of an operation: dense, and unique among the operations under way. It may be used
/// again once its operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationId(pub u32);

/// Adjacent slots of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the drive.
    pub drive: u32,
    /// First slot, in units of 4 KiB.
    pub first: u64,
    /// Slots. Above zero.
    pub count: u32,
}

/// Action of an operation on its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Returns the contents of the slots.
    Read,
    /// Makes every slot hold this stamp, which no other write of the slot carries. Above zero.
    Write(u64),
    /// Makes every slot hold 0.
    Trim,
}

/// One operation under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) action: Action,
    pub(super) extent: Extent,
    pub(super) issued: Moment,
}

impl Extent {
    /// One slot.
    pub const fn slot(drive: u32, slot: u64) -> Self {
        Self { drive, first: slot, count: 1 }
    }
}

impl Action {
    /// The noun for reports.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write(_) => "write",
            Self::Trim => "trim",
        }
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
