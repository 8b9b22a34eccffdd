//! Dies, and the lanes in them that sense on their own.

use crate::intrusive::{Fifo, NIL};
use flashyard_units::{SimSpan, SimTime};

/// A server that senses on its own: a die, or a plane of a die whose planes are independent. The first lane of a die carries out what
/// holds all of it.
#[derive(Clone)]
pub(crate) struct Lane {
    /// Reads that requests wait for, and those of housekeeping.
    pub(crate) reads: Fifo,
    pub(crate) background_reads: Fifo,
    /// The command that has the array.
    pub(crate) active: u32,
    /// The read whose data is in the cache register: it waits for the bus or is being sent.
    pub(crate) register: u32,
    /// When the command got the array.
    pub(crate) since: SimTime,
    /// Whether the array works for it, until when, and the number of that piece of work.
    pub(crate) works: bool,
    pub(crate) ends: SimTime,
    pub(crate) turn: u16,
    /// Time that the array was held by background commands that have left it.
    pub(crate) background: SimSpan,
    /// Time that it was held by all commands that have left it; kept only where the flash has no capabilities.
    pub(crate) held: SimSpan,
}

impl Lane {
    pub(crate) fn idle() -> Self {
        Self {
            reads: Fifo::default(),
            background_reads: Fifo::default(),
            active: NIL,
            register: NIL,
            since: SimTime::ZERO,
            works: false,
            ends: SimTime::ZERO,
            turn: 0,
            background: SimSpan::ZERO,
            held: SimSpan::ZERO,
        }
    }

    /// The array works until `ends`; returns the number of that piece of work.
    #[inline]
    pub(crate) fn begin_work(&mut self, ends: SimTime) -> u16 {
        self.ends = ends;
        self.works = true;
        self.turn = self.turn.wrapping_add(1);
        self.turn
    }
}

/// State that the lanes of a die share.
#[derive(Clone)]
pub(crate) struct Die {
    /// Reads of several planes that requests wait for; empty in dies of one lane.
    pub(crate) reads: Fifo,
    /// Programs and erases, and reads of several planes for housekeeping where planes are independent.
    pub(crate) programs: Fifo,
    /// Reads served while a program waited.
    pub(crate) passed: u32,
    /// Lanes at work, each on its own; not counted in dies of one lane.
    pub(crate) sensing: u32,
    /// Whether the command of the first lane holds all of them; of no account in dies of one lane.
    pub(crate) exclusive: bool,
    /// The program whose data is taken in while another one has the array, and whether it is all there.
    pub(crate) staged: u32,
    pub(crate) staged_is_here: bool,
    /// The operation that has made way, or is about to; its time left, and how often it has.
    pub(crate) suspended: u32,
    pub(crate) is_entering: bool,
    pub(crate) left: SimSpan,
    pub(crate) suspensions: u32,
    /// Whether a read came while the operation that holds the die was not at its array: it makes way once it is.
    pub(crate) is_asked: bool,
    /// Commands begun and not ended, and since when there have been any.
    pub(crate) begun: u32,
    pub(crate) since: SimTime,
    /// Time in which there were any, until the last moment at which there were none. Where the flash has no capabilities, the lane
    /// keeps it, and until when its array works.
    pub(crate) held: SimSpan,
    /// Until when the array is known to work.
    pub(crate) works_until: SimTime,
}

impl Die {
    pub(crate) fn idle() -> Self {
        Self {
            reads: Fifo::default(),
            programs: Fifo::default(),
            passed: 0,
            sensing: 0,
            exclusive: false,
            staged: NIL,
            staged_is_here: false,
            suspended: NIL,
            is_entering: false,
            left: SimSpan::ZERO,
            suspensions: 0,
            is_asked: false,
            begun: 0,
            since: SimTime::ZERO,
            held: SimSpan::ZERO,
            works_until: SimTime::ZERO,
        }
    }

    /// A command has been given to the die.
    #[inline]
    pub(crate) fn begin(&mut self, now: SimTime) {
        if self.begun == 0 {
            self.since = now;
        }
        self.begun += 1;
    }

    /// A command of the die has ended.
    #[inline]
    pub(crate) fn end(&mut self, now: SimTime) {
        self.begun -= 1;
        if self.begun == 0 {
            self.held += now.since(self.since);
        }
    }

    /// Some lane works until `ends`; returns the time that this adds to the die's own.
    #[inline]
    pub(crate) fn works(&mut self, now: SimTime, ends: SimTime) -> SimSpan {
        let from = now.max(self.works_until);
        if ends <= from {
            return SimSpan::ZERO;
        }
        self.works_until = ends;
        ends.since(from)
    }

    /// No lane works any more; returns the time that was counted too much.
    #[inline]
    pub(crate) fn stops(&mut self, now: SimTime) -> SimSpan {
        let surplus = if self.works_until > now { self.works_until.since(now) } else { SimSpan::ZERO };
        self.works_until = now.min(self.works_until);
        surplus
    }
}
