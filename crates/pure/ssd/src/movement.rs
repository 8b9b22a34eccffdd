//! Movements of payload: where it is written, read, moved and lost, slot by slot and in order.
//!
//! Simulation carries payload as stamps inside the translation layer. An owner that keeps real bytes keeps them by
//! physical slot, and applies these movements to them. Nothing is recorded unless it asked for it
//! ([`MovementLog::turn_on`]).

use crate::command::CommandSpec;
use flashyard_flash::Slot;
use flashyard_ftl::{Appended, Ftl, Stream};

/// One thing that happened to payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// The first slot of an erased superblock is about to be written.
    Opened {
        /// The superblock.
        superblock: u32,
        /// The stream that fills it.
        stream: Stream,
        /// Whether in single-level mode.
        single_level: bool,
    },
    /// A slot of a write command has gone to its place.
    Written {
        /// The command's tag.
        tag: u32,
        /// Which slot of the command, from 0.
        place: u32,
        /// Logical slot.
        logical: u32,
        /// Where it went.
        slot: Slot,
        /// Where the logical slot was before; `Slot::NONE` for nowhere.
        before: Slot,
    },
    /// Garbage collection has moved a logical slot.
    Moved {
        /// The logical slot.
        logical: u32,
        /// Where it was.
        from: Slot,
        /// Where it is.
        to: Slot,
    },
    /// The slot that garbage collection has just moved there lacks the data of the logical slot, which could not be
    /// read: its reads fail until it is written again. It stays lost through further moves and remaps.
    Lost {
        /// The logical slot.
        logical: u32,
        /// Where it is.
        slot: Slot,
    },
    /// A logical slot was deallocated.
    Trimmed {
        /// The logical slot.
        logical: u32,
        /// Where it was.
        before: Slot,
    },
    /// The data of a logical slot became that of another one, where it is.
    Remapped {
        /// The new owner.
        logical: u32,
        /// The old one, which holds nothing any more.
        source: u32,
        /// Where the data is.
        slot: Slot,
        /// Where the new owner's data was before; `Slot::NONE` for nowhere.
        before: Slot,
    },
    /// A power cut of a drive without protection has taken the newest data of a logical slot: it has the data again that it
    /// last had on flash.
    Reverted {
        /// The logical slot.
        logical: u32,
        /// Where the newest data was; `Slot::NONE` for nowhere.
        before: Slot,
        /// Where the data on flash is; `Slot::NONE` for nowhere: the slot holds nothing.
        slot: Slot,
    },
    /// A superblock has been erased on all dies.
    Erased {
        /// The superblock.
        superblock: u32,
    },
    /// A read command takes a slot from its place: no later movement changes the data there before it completes, unless
    /// the superblock is erased.
    Read {
        /// The command's tag.
        tag: u32,
        /// Which slot of the command, from 0.
        place: u32,
        /// Where the data is; `Slot::NONE` for a slot that holds nothing.
        slot: Slot,
    },
}

/// Movements since they were last taken; off unless asked for.
#[derive(Default)]
pub struct MovementLog(Option<Vec<Movement>>);

impl MovementLog {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    pub(crate) fn push(&mut self, movement: Movement) {
        if let Some(movements) = &mut self.0 {
            movements.push(movement);
        }
    }

    /// Records movements from now on; the owner takes them after every step.
    pub fn turn_on(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Whether no movement waits to be taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(Vec::is_empty)
    }

    /// Moves the records since the last call to the end of `into`, in order.
    pub fn take(&mut self, into: &mut Vec<Movement>) {
        if let Some(movements) = &mut self.0 {
            into.append(movements);
        }
    }

    /// A slot was appended: says so, and that its superblock was opened if it is the first there.
    #[cold]
    pub(crate) fn note_appended(&mut self, ftl: &Ftl, stream: Stream, movement: Movement, slot: Slot) {
        let (superblock, index) = ftl.layout().split(slot);
        if index == 0 {
            let single_level = ftl.is_single_level(superblock);
            self.push(Movement::Opened { superblock, stream, single_level });
        }
        self.push(movement);
    }

    /// A slot was appended with a mapping unit that the host has written in part; `is_lost` if its data could not be read.
    pub(crate) fn note_merged(&mut self, ftl: &Ftl, logical: u32, appended: &Appended, is_lost: bool) {
        if self.is_on() {
            let Appended { slot, before, .. } = *appended;
            self.note_appended(ftl, Stream::Host, Movement::Moved { logical, from: before, to: slot }, slot);
            if is_lost {
                self.push(Movement::Lost { logical, slot });
            }
        }
    }

    /// A slot of a write command was appended.
    #[inline]
    pub(crate) fn note_written(&mut self, ftl: &Ftl, spec: &CommandSpec, logical: u32, appended: &Appended) {
        if self.is_on() {
            let CommandSpec { tag, first, .. } = *spec;
            let Appended { slot, before, .. } = *appended;
            let written = Movement::Written { tag, place: logical - first, logical, slot, before };
            self.note_appended(ftl, Stream::Host, written, slot);
        }
    }
}
