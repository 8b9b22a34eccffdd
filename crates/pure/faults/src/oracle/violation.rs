//! An impossible history, as a value and as a sentence.

use super::moment::Moment;
use super::operation::OperationId;
use super::value::{Progress, Value};
use std::fmt;

/// An impossible observation of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was seen.
    pub at: Moment,
    /// The operation whose answer is wrong or missing.
    pub operation: OperationId,
    /// Its drive, where there is such an operation.
    pub drive: Option<u32>,
    /// The slot, where there is such an operation.
    pub slot: Option<u64>,
    /// The problem.
    pub wrong: Wrong,
    /// Evidence on the values that the slot may hold.
    pub evidence: Vec<Evidence>,
}

/// The problem with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// A read returned a stamp that the slot cannot hold.
    Stamp {
        /// When the read was issued.
        issued: Moment,
        /// The stamp.
        returned: u64,
        /// Stamps that were possible, ascending.
        allowed: Vec<u64>,
    },
    /// An answer to an operation that is not under way: a second one, or one to nothing.
    NotUnderWay,
    /// A read was acknowledged like a write.
    ReadWithoutData,
    /// Data for a write, or for a read of another length.
    DataOfAnother {
        /// Slots of the data.
        stamps: usize,
    },
    /// At the end of the run the operation had no answer.
    Unanswered {
        /// Read, write or trim.
        noun: &'static str,
        /// When it was issued.
        issued: Moment,
    },
}

/// Evidence on one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// 0 for a trim and for a slot never written.
    pub stamp: u64,
    /// Operation that wrote it; `None` for a slot never written.
    pub writer: Option<OperationId>,
    /// When the write was issued.
    pub issued: Moment,
    /// Fate of the write.
    pub fate: Fate,
    /// When a read first returned it.
    pub seen: Option<Moment>,
    /// Order number of the latest event at which an operation on this value began.
    pub last_start: u64,
}

/// Fate of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has no answer yet.
    UnderWay,
    /// It was acknowledged.
    Acknowledged(Moment),
    /// It was given up and may still happen.
    Open,
    /// It was given up, and cannot happen after this moment.
    Over(Moment),
}

impl Violation {
    /// A wrong or missing answer, whatever the slot.
    pub(super) fn of_answer(at: Moment, operation: OperationId, wrong: Wrong) -> Self {
        Self { at, operation, drive: None, slot: None, wrong, evidence: Vec::new() }
    }
}

impl Evidence {
    pub(super) fn of(value: &Value) -> Self {
        let fate = match value.progress {
            Progress::UnderWay => Fate::UnderWay,
            Progress::Acknowledged(at) => Fate::Acknowledged(at),
            Progress::Open => Fate::Open,
            Progress::Over(at) => Fate::Over(at),
        };
        Self {
            stamp: value.stamp,
            writer: value.writer,
            issued: value.issued,
            fate,
            seen: value.seen,
            last_start: value.last_start,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(drive), Some(slot)) = (self.drive, self.slot) {
            write!(f, "drive {drive} slot {slot}: ")?;
        }
        let (id, at) = (self.operation, self.at);
        match &self.wrong {
            Wrong::Stamp { issued, returned, allowed } => {
                write!(f, "read {id}, issued {issued}, returned {at} {}, but ", Stamp(*returned))?;
                match allowed.as_slice() {
                    [] => write!(f, "nothing it could return fits what was read before")?,
                    [only] => write!(f, "the slot held {}", Stamp(*only))?,
                    [first, others @ ..] => {
                        write!(f, "the slot held {}", Stamp(*first))?;
                        others.iter().try_for_each(|other| write!(f, " or {}", Stamp(*other)))?;
                    }
                }
                match (returned, self.evidence.iter().any(|value| value.stamp == *returned)) {
                    (_, true) => {}
                    (0, false) => write!(f, "; no trim is recent enough")?,
                    (stamp, false) => write!(f, "; no write of {stamp} is recent enough")?,
                }
            }
            Wrong::NotUnderWay => write!(f, "operation {id} was answered {at}, but is not under way")?,
            Wrong::ReadWithoutData => write!(f, "read {id} was acknowledged {at} without data")?,
            Wrong::DataOfAnother { stamps } => {
                write!(f, "operation {id} was answered {at} with data of {stamps} slots, which it did not ask for")?;
            }
            Wrong::Unanswered { noun, issued } => {
                write!(f, "{noun} {id}, issued {issued}, has no answer at the end, {at}")?;
            }
        }
        self.evidence.iter().try_for_each(|value| write!(f, "; {value}"))
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.writer, self.stamp) {
            (None, 0) => write!(f, "nothing was there in the beginning")?,
            (None, stamp) => write!(f, "stamp {stamp} was left by a power cut")?,
            (Some(writer), 0) => write!(f, "trim {writer} was issued {}", self.issued)?,
            (Some(writer), stamp) => write!(f, "write {writer} of {stamp} was issued {}", self.issued)?,
        }
        match self.fate {
            _ if self.writer.is_none() => {}
            Fate::UnderWay => write!(f, ", is under way")?,
            Fate::Acknowledged(at) => write!(f, ", acknowledged {at}")?,
            Fate::Open => write!(f, ", given up")?,
            Fate::Over(at) => write!(f, ", given up, over {at}")?,
        }
        match self.seen {
            Some(seen) => write!(f, ", returned first {seen} and by reads begun up to #{}", self.last_start),
            None => Ok(()),
        }
    }
}

/// A stamp in a sentence.
struct Stamp(u64);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "nothing (0)"),
            stamp => write!(f, "stamp {stamp}"),
        }
    }
}
