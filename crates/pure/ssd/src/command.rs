//! Commands under way in the data-end: what they ask for, where their time went, and the tags that lead flash
//! completions back to them.

use crate::data::DataEnd;
use crate::event::{DriveEffect, DriveEvent};
use flashyard_blk::Operation;
use flashyard_kernel::Outbox;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};

/// One command for the data-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The owner's number, handed back on completion.
    pub tag: u32,
    /// Operation to carry out.
    pub operation: Operation,
    /// First logical slot.
    pub first: u32,
    /// Number of slots; zero only for a flush.
    pub count: u32,
    /// First slot whose data a remap takes over; means nothing for other commands.
    pub source: u32,
    /// Payload stamp of every slot written.
    pub stamp: u64,
}

impl CommandSpec {
    /// Slots `first..first + count` take over the data of `source..source + count`, which does not overlap them.
    pub fn remap(tag: u32, first: u32, source: u32, count: u32) -> Self {
        Self { tag, operation: Operation::Remap, first, count, source, stamp: 0 }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Active {
    pub(crate) spec: CommandSpec,
    /// Flash commands that have not reported yet. For a remap, ranges whose look-up is done.
    pub(crate) remaining: u32,
    /// When the last DMA reserved so far ends.
    pub(crate) dma_end: SimTime,
    /// Next translation page to look up.
    pub(crate) page: u32,
    /// Time of accesses to peers' memory that the look-up has yet to take.
    pub(crate) remote: SimSpan,
    /// Slots whose map entries a write, trim or remap has changed.
    pub(crate) changed: u32,
    /// The first slot of a read whose data could not be corrected.
    pub(crate) unread: Option<u32>,
    /// Up to when `time` accounts for the command.
    pub(crate) accounted: SimTime,
    /// The clock of garbage collection when the command began to wait for room.
    pub(crate) reclaim_mark: SimSpan,
    pub(crate) time: TimeSplit,
}

impl Active {
    /// Books the time since the last account on `cause`.
    #[inline]
    pub(crate) fn account(&mut self, now: SimTime, cause: Cause) {
        self.time.add(cause, now.since(self.accounted));
        self.accounted = now;
    }

    /// The data of a slot of this read could not be corrected.
    pub(crate) fn note_unread(&mut self, slot: u32) {
        self.unread = Some(self.unread.map_or(slot, |other| other.min(slot)));
    }
}

/// Meaning of a flash command's tag: a kind in the upper four bits, two numbers below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Host read: command, slots.
    Read(u32, u32),
    /// Translation page read: page.
    Load(u32),
    /// Host die row programmed.
    HostRow(u32),
    /// Moved die row programmed.
    MovedRow(u32),
    /// Translation pages programmed.
    Store,
    /// Die row read for garbage collection.
    Reclaim(u32),
    /// One die of a superblock erased.
    Erase(u32),
    /// Another member of a stripe read: rebuild.
    Rebuild(u32),
    /// Parity programmed: stripe.
    Parity(u32),
}

impl Tag {
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        let (kind, high, low) = match self {
            Self::Read(command, slots) => (0, slots, command),
            Self::Load(page) => (1, 0, page),
            Self::HostRow(row) => (2, 0, row),
            Self::MovedRow(row) => (3, 0, row),
            Self::Store => (4, 0, 0),
            Self::Reclaim(row) => (5, 0, row),
            Self::Erase(superblock) => (6, 0, superblock),
            Self::Rebuild(number) => (7, 0, number),
            Self::Parity(stripe) => (8, 0, stripe),
        };
        kind << 60 | u64::from(high) << 32 | u64::from(low)
    }

    #[inline]
    pub(crate) fn unpack(tag: u64) -> Self {
        let low = tag as u32;
        match tag >> 60 {
            0 => Self::Read(low, (tag >> 32) as u32 & 0xFFF_FFFF),
            1 => Self::Load(low),
            2 => Self::HostRow(low),
            3 => Self::MovedRow(low),
            4 => Self::Store,
            5 => Self::Reclaim(low),
            6 => Self::Erase(low),
            7 => Self::Rebuild(low),
            _ => Self::Parity(low),
        }
    }
}

impl DataEnd {
    #[inline]
    pub(crate) fn complete(&mut self, at: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        self.counters.completed += 1;
        let Active { spec, time, .. } = &self.active[index as usize];
        out.emit(DriveEffect::Completed { tag: spec.tag, at, time: *time });
        self.free.push(index);
    }

    /// Begins a wait for room or for programs.
    #[inline]
    pub(crate) fn mark_wait(&mut self, now: SimTime, index: u32) {
        self.active[index as usize].reclaim_mark = self.pump.clock(now);
    }

    /// Books a wait that has ended: on garbage collection for as long as it was under way, on the dies otherwise.
    #[inline]
    pub(crate) fn account_wait(&mut self, now: SimTime, index: u32) {
        let clock = self.pump.clock(now);
        let active = &mut self.active[index as usize];
        let behind = clock - active.reclaim_mark;
        active.time.add(Cause::ReclaimWait, behind);
        active.time.add(Cause::Die, now.since(active.accounted) - behind);
        active.accounted = now;
    }
}
