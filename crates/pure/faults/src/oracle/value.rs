//! One value that a slot has, had or may get: a write and the reads that returned it, as one zone of time.
//!
//! Source: Gibbons and Korach, "Testing shared memories", 1997: with unique values, a history of a register
//! is linearizable exactly if no two forward zones overlap and no backward zone lies inside a forward one.

use super::moment::Moment;
use super::operation::OperationId;
use flashyard_units::{SimSpan, SimTime};
use std::fmt;

/// How far a write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Issued, not answered.
    UnderWay,
    /// It has happened.
    Acknowledged(Moment),
    /// Given up: it may have happened, and may still happen.
    Open,
    /// Given up: it happened before this moment, or never will.
    Over(Moment),
}

/// A write and the reads that returned its stamp. The slot's first value is a write at the beginning.
///
/// Equal values allow the same in future: `seen` is for reports only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// 0 for a trim and for the first value.
    pub(super) stamp: u64,
    /// `None` for the first value.
    pub(super) writer: Option<OperationId>,
    pub(super) issued: Moment,
    pub(super) progress: Progress,
    /// Earliest return of a read that saw it.
    pub(super) seen: Option<Moment>,
    /// Order of the earliest end among its operations. `NEVER` while none has ended: then it need not have
    /// happened.
    pub(super) first_end: u64,
    /// Order of the latest beginning among its operations.
    pub(super) last_start: u64,
}

/// Later than every order number.
pub(super) const NEVER: u64 = u64::MAX;

impl Value {
    /// Value of a slot that was never written.
    pub(super) const NOTHING: Self = Self {
        stamp: 0,
        writer: None,
        issued: Moment { order: 0, time: SimTime::ZERO },
        progress: Progress::Acknowledged(Moment { order: 0, time: SimTime::ZERO }),
        seen: None,
        first_end: 0,
        last_start: 0,
    };

    /// A write that was just issued.
    pub(super) fn issued(stamp: u64, writer: OperationId, issued: Moment) -> Self {
        Self {
            stamp,
            writer: Some(writer),
            issued,
            progress: Progress::UnderWay,
            seen: None,
            first_end: NEVER,
            last_start: issued.order,
        }
    }

    /// The value that a power cut has left: it is older than what is under way, which so has happened after the cut once it is
    /// acknowledged.
    pub(super) fn left(stamp: u64, writer: Option<OperationId>, cut: SimTime) -> Self {
        let issued = Moment { order: 0, time: cut };
        Self { stamp, writer, issued, progress: Progress::Acknowledged(issued), ..Self::NOTHING }
    }

    /// The value with a read more, from `start` to `end`.
    pub(super) fn seen_by(mut self, start: u64, end: Moment) -> Self {
        self.seen.get_or_insert(end);
        let happened_by = match self.progress {
            Progress::Over(over) => over.order.min(end.order),
            _ => end.order,
        };
        self.first_end = self.first_end.min(happened_by);
        self.last_start = self.last_start.max(start);
        self
    }

    /// Takes the acknowledgement in.
    pub(super) fn acknowledge(&mut self, at: Moment) {
        self.progress = Progress::Acknowledged(at);
        self.first_end = self.first_end.min(at.order);
    }

    /// Whether both can have their place in one order of the register's operations.
    #[inline]
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.zone(), other.zone());
        match (self.is_forward(), other.is_forward()) {
            (true, true) => mine.1 < theirs.0 || theirs.1 < mine.0,
            (true, false) => !(mine.0 < theirs.0 && theirs.1 < mine.1),
            (false, true) => !(theirs.0 < mine.0 && mine.1 < theirs.1),
            (false, false) => true,
        }
    }

    /// Whether one operation ended before another began: the register held this value all the time between.
    #[inline]
    fn is_forward(&self) -> bool {
        self.first_end < self.last_start
    }

    #[inline]
    fn zone(&self) -> (u64, u64) {
        (self.first_end.min(self.last_start), self.first_end.max(self.last_start))
    }

    /// The last order number that its zone can reach without another read; `NEVER` while that is open.
    #[inline]
    pub(super) fn settled_by(&self) -> u64 {
        let end = match self.progress {
            Progress::Over(over) => self.first_end.min(over.order),
            _ => self.first_end,
        };
        end.max(self.last_start)
    }

    /// Whether no read saw it and it may happen at any time, so that all such values are alike.
    pub(super) fn is_floating(&self) -> bool {
        self.first_end == NEVER && self.progress == Progress::Open
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        let known = |value: &Self| (value.stamp, value.issued.order, value.first_end, value.last_start);
        known(self) == known(other) && self.progress == other.progress
    }
}

impl Eq for Value {}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (#{})", SimSpan::from_ps(self.time.as_ps()), self.order)
    }
}
