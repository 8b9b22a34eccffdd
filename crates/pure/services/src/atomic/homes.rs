//! Records on their way home.

use crate::overlap::Range;

/// Records that go home at once. Source: \[A\].
pub(crate) const HOMES: usize = 8;

/// How far one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// So many orders read it from the log.
    Reading(u8),
    Writing,
    /// It is to begin again.
    Failed,
}

/// A record on its way home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Going {
    pub(crate) record: u64,
    pub(crate) range: Range,
    pub(crate) way: Way,
    pub(crate) has_failed: bool,
    /// The buffer that it has, if any.
    pub(crate) buffer: Option<u32>,
}

/// All that are on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    pub(crate) going: [Option<Going>; HOMES],
    /// The number of the next record to go.
    pub(crate) next: u64,
    buffers: [u32; HOMES],
}

impl Homes {
    /// A free place for a record whose blocks no other one on its way has.
    pub(crate) fn free(&self, range: Range) -> Option<usize> {
        if self.going.iter().flatten().any(|going| going.range.meets(&range)) {
            return None;
        }
        self.going.iter().position(Option::is_none)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.going.iter().all(Option::is_none)
    }

    /// The next number of a buffer for a place: an order may still name the one before.
    pub(crate) fn buffer(&mut self, slot: usize) -> u32 {
        self.buffers[slot] ^= 1;
        2 * slot as u32 + self.buffers[slot]
    }
}
