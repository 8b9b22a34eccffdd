//! One request that the engine has taken from a front end.

use super::window::Window;
use crate::block_metadata::BlockMetadata;
use crate::media::{Erase, Kept, Scrub};
use crate::namespaces::{Entry, Extent, Manage, units_of};
use flashyard_blk::{Payload, VolumeRequest};
use flashyard_flash::Slot;
use flashyard_kernel::Slab;
use flashyard_nvme::NSID_ALL;
use flashyard_served::Answer;
use flashyard_units::{DriveId, SimTime, VolumeId};
use std::io;
use std::sync::mpsc::Receiver;

/// Where a read has found its slots.
#[derive(Default)]
pub(super) struct Places {
    pub(super) found: Vec<Slot>,
    /// Bytes that it was promised and that are no longer there.
    pub(super) kept: Vec<Kept>,
}

/// Bytes of a write, and the metadata of its blocks.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) payload: Payload,
    pub(super) metadata: BlockMetadata,
    /// The units fail to be read until they are written again.
    pub(super) is_lost: bool,
}

impl Carried {
    /// Nothing.
    pub(super) const NONE: Self = Self::of(Payload::None);

    /// Bytes without metadata.
    pub(super) const fn of(payload: Payload) -> Self {
        Self { payload, metadata: BlockMetadata::None, is_lost: false }
    }
}

/// A request under way, or given up while a drive may still carry it out.
pub(super) struct Pending {
    /// Whose request it is, and the number by which its front end knows it.
    pub(super) front: usize,
    pub(super) tag: u64,
    /// The request to the drive, in the units that it maps, and where the client's bytes lie in it.
    pub(super) request: VolumeRequest,
    pub(super) window: Window,
    /// Distance from its units to those of the world, modulo 2^64.
    pub(super) shift: u64,
    /// The larger thing of which it is a step.
    pub(super) step: Step,
    /// Where the bytes of a read lie: the drive that has read a slot of it last.
    pub(super) drive: DriveId,
    pub(super) carried: Carried,
    pub(super) places: Places,
    pub(super) asked: SimTime,
    pub(super) is_answered: bool,
    /// Whether the disk had no room for some of its bytes.
    pub(super) no_room: bool,
    /// The unit that was to be changed in part, and whose bytes could not be read.
    pub(super) damaged: Option<u32>,
}

/// Requests that are waited for. Those that were given up are not: their numbers come back as late as a drive likes.
pub(super) fn unanswered(pending: &Slab<Pending>) -> impl Iterator<Item = (u32, &Pending)> {
    pending.iter().map(|(token, pending)| (token as u32, pending)).filter(|(_, pending)| !pending.is_answered)
}

/// A request of a client that changes units in part.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) front: usize,
    pub(super) tag: u64,
    /// As the client asked for it, in its blocks.
    pub(super) request: VolumeRequest,
    pub(super) carried: Carried,
    pub(super) asked: SimTime,
    /// Steps that are not answered.
    pub(super) left: u32,
    /// Whether the units are being read, before they are written.
    pub(super) is_reading: bool,
    /// The outcome so far.
    pub(super) answer: Answer,
    pub(super) no_room: bool,
}

/// The larger thing that a request to the world belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is a client's request as it is.
    Whole,
    /// A change of units in part, by number.
    Change(u32),
    /// The erasure of its volume.
    Erasure,
}

/// Future of space that is deallocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// It stays with its namespaces.
    Erase(Erase),
    /// No namespace has it.
    Delete,
    /// A new namespace gets it.
    Create(Box<Entry>),
    /// A namespace that has become smaller has lost it: what lies behind so many of its units.
    Shrink { units: u64 },
    /// A namespace gets it, and has so many blocks then.
    Grow { blocks: u64 },
}

/// How far a job is that deallocates space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Requests of clients end first.
    Waits,
    /// A drive that may still carry out requests that were given up is reset first, and answers then.
    Settles,
    /// Units are deallocated.
    Deallocates,
    /// Nothing is mapped any more, and bytes are destroyed, from a place on.
    Scrubs(Scrub),
    /// Destroyed bytes are written back.
    WritesBack,
}

/// Space of a drive that is being deallocated.
#[derive(Debug)]
pub(super) struct Erasing {
    pub(super) number: u64,
    /// The volume of the world.
    pub(super) world: VolumeId,
    pub(super) kind: Job,
    /// The namespaces whose space it is, and the volumes whose clients must have ended.
    pub(super) nsids: Vec<u32>,
    pub(super) volumes: Vec<VolumeId>,
    /// The namespace that an erasure is about, or all.
    pub(super) scope: u32,
    /// Units of the world, and how many of them were looked at.
    pub(super) extents: Vec<Extent>,
    pub(super) looked_at: u64,
    /// The extent at which it is, and units of it that were looked at.
    at: (usize, u64),
    /// Front end that wants to hear of the end, and its number for it.
    pub(super) by: Option<(usize, u64)>,
    /// Deallocations under way.
    pub(super) under_way: u32,
    pub(super) stage: Stage,
    /// The end of writing back, from a thread that waits for the disk.
    pub(super) written_back: Option<Receiver<io::Result<()>>>,
    /// Whether a deallocation has failed, or the destruction of bytes.
    pub(super) has_failed: bool,
}

impl Erasing {
    pub(super) fn new(
        number: u64,
        world: VolumeId,
        kind: Job,
        (nsids, volumes): (Vec<u32>, Vec<VolumeId>),
        extents: Vec<Extent>,
        by: Option<(usize, u64)>,
    ) -> Self {
        Self {
            number,
            world,
            kind,
            nsids,
            volumes,
            scope: NSID_ALL,
            extents,
            looked_at: 0,
            at: (0, 0),
            by,
            under_way: 0,
            stage: Stage::Waits,
            written_back: None,
            has_failed: false,
        }
    }

    /// Units in all.
    pub(super) fn units(&self) -> u64 {
        units_of(&self.extents)
    }

    /// Whether it is about so many units from the first one on.
    pub(super) fn covers(&self, units: u64) -> bool {
        self.extents == [Extent { first: 0, units }]
    }

    /// The rest of the extent at which it is.
    pub(super) fn next(&self) -> Option<Extent> {
        let extent = self.extents.get(self.at.0)?;
        Some(Extent { first: extent.first + self.at.1, units: extent.units - self.at.1 })
    }

    /// So many units of that were looked at.
    pub(super) fn advance(&mut self, units: u64) {
        self.looked_at += units;
        self.at.1 += units;
        if self.extents.get(self.at.0).is_some_and(|extent| extent.units == self.at.1) {
            self.at = (self.at.0 + 1, 0);
        }
    }

    /// Whether all was looked at and deallocated.
    pub(super) fn is_over(&self) -> bool {
        self.next().is_none() && self.under_way == 0
    }
}

/// A request in parts.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) front: usize,
    pub(super) tag: u64,
    pub(super) request: VolumeRequest,
    pub(super) asked: SimTime,
    /// Bytes of the request in all.
    pub(super) len_bytes: u64,
    /// Parts that are not answered, and where the bytes of each begin.
    pub(super) left: u32,
    pub(super) offsets: Vec<u64>,
    pub(super) answer: Answer,
    pub(super) no_room: bool,
    /// Bytes that reads have found, and the metadata of the blocks, where they have some.
    pub(super) bytes: Vec<u8>,
    pub(super) metadata: Vec<u8>,
    /// Bytes of a block.
    pub(super) block_bytes: u32,
}

/// A creation that waits for space which is being deallocated for no client.
pub(super) struct Waiting {
    pub(super) client: (usize, u64),
    pub(super) world: VolumeId,
    pub(super) wish: Manage,
}
