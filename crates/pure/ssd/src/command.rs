//! Commands under way in the data-end: what they ask for, where their time went, and the tags that lead flash
//! completions back to them.

use crate::event::{DriveEffect, DriveEvent};
use flashyard_blk::Operation;
use flashyard_ftl::{FtlConfig, SLOTS_PER_TRANSLATION_PAGE};
use flashyard_kernel::Outbox;
use flashyard_stats::{Cause, TimeSplit};
use flashyard_units::{SimSpan, SimTime};
use std::ops::{Index, IndexMut};

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

    /// The last translation page that the command touches; it has at least one slot.
    #[inline]
    pub(crate) fn last_page(&self) -> u32 {
        (self.first + self.count - 1) / SLOTS_PER_TRANSLATION_PAGE
    }

    /// Panics where the owner has not checked the range.
    #[inline]
    pub(crate) fn check(&self, config: &FtlConfig) {
        assert!(
            u64::from(self.first) + u64::from(self.count) <= u64::from(config.logical_slots),
            "command for slots {} + {} of {}",
            self.first,
            self.count,
            config.logical_slots
        );
        if self.operation == Operation::Remap {
            self.check_remap(config);
        }
    }

    /// Panics where the owner has not checked: ranges that overlap, a source beyond the exported slots, a drive without
    /// a log for remaps.
    #[cold]
    fn check_remap(&self, config: &FtlConfig) {
        let (source, count) = (self.source, self.count);
        let end = u64::from(source) + u64::from(count);
        assert!(config.remap_entries > 0, "a remap for a drive that keeps no log of them");
        assert!(end <= u64::from(config.logical_slots), "a remap from slots {source} + {count}");
        assert!(source.abs_diff(self.first) >= count, "a remap of {count} slots from {source} to {}", self.first);
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
    /// Rest of a mapping unit read: command.
    Merge(u32),
    /// Slots read ahead: fetch.
    Ahead(u32),
    /// Die row read to recover the map.
    Scan,
    /// Page of the journal or of a checkpoint programmed.
    Record,
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
            Self::Merge(command) => (9, 0, command),
            Self::Ahead(fetch) => (10, 0, fetch),
            Self::Scan => (11, 0, 0),
            Self::Record => (12, 0, 0),
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
            8 => Self::Parity(low),
            9 => Self::Merge(low),
            10 => Self::Ahead(low),
            11 => Self::Scan,
            _ => Self::Record,
        }
    }
}

/// Commands under way, by the numbers that they have here.
pub(crate) struct Commands {
    active: Vec<Active>,
    free: Vec<u32>,
}

impl Commands {
    pub(crate) fn new() -> Self {
        Self { active: Vec::with_capacity(256), free: Vec::with_capacity(256) }
    }

    /// Takes a command in; returns its number here.
    #[inline]
    pub(crate) fn admit(&mut self, now: SimTime, spec: CommandSpec) -> u32 {
        let active = Active {
            spec,
            remaining: 0,
            dma_end: now,
            page: spec.first / SLOTS_PER_TRANSLATION_PAGE,
            remote: SimSpan::ZERO,
            changed: 0,
            unread: None,
            accounted: now,
            reclaim_mark: SimSpan::ZERO,
            time: TimeSplit::default(),
        };
        match self.free.pop() {
            Some(index) => {
                self.active[index as usize] = active;
                index
            }
            None => {
                self.active.push(active);
                (self.active.len() - 1) as u32
            }
        }
    }

    /// Reports a command as completed; its number is free again.
    #[inline]
    pub(crate) fn complete(&mut self, at: SimTime, index: u32, out: &mut impl Outbox<DriveEvent, DriveEffect>) {
        let Active { spec, time, .. } = &self.active[index as usize];
        out.emit(DriveEffect::Completed { tag: spec.tag, at, time: *time });
        self.free.push(index);
    }

    /// Begins a wait for room or for programs; `clock` is that of garbage collection.
    #[inline]
    pub(crate) fn mark_wait(&mut self, index: u32, clock: SimSpan) {
        self[index].reclaim_mark = clock;
    }

    /// Books a wait that has ended: on garbage collection for as long as it was under way, on the dies otherwise.
    #[inline]
    pub(crate) fn account_wait(&mut self, now: SimTime, index: u32, clock: SimSpan) {
        let active = &mut self[index];
        let behind = clock - active.reclaim_mark;
        active.time.add(Cause::ReclaimWait, behind);
        active.time.add(Cause::Die, now.since(active.accounted) - behind);
        active.accounted = now;
    }

    /// Tags of the commands, and perhaps of some that have completed.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        self.active.iter().map(|active| active.spec.tag)
    }

    /// All commands have vanished.
    pub(crate) fn clear(&mut self) {
        self.active.clear();
        self.free.clear();
    }
}

impl Index<u32> for Commands {
    type Output = Active;

    #[inline]
    fn index(&self, index: u32) -> &Active {
        &self.active[index as usize]
    }
}

impl IndexMut<u32> for Commands {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Active {
        &mut self.active[index as usize]
    }
}
