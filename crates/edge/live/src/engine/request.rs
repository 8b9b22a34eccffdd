//! One request that the engine has taken from a front end.

use super::window::Window;
use crate::media::{Erase, Kept};
use flashyard_blk::{Payload, VolumeRequest};
use flashyard_flash::Slot;
use flashyard_served::Answer;
use flashyard_units::{DriveId, SimTime, VolumeId};

/// Where a read has found its slots.
#[derive(Default)]
pub(super) struct Places {
    pub(super) found: Vec<Slot>,
    /// Bytes that it was promised and that are no longer there.
    pub(super) kept: Vec<Kept>,
}

/// A request under way, or given up while a drive may still carry it out.
pub(super) struct Pending {
    /// Whose request it is, and the number by which its front end knows it.
    pub(super) front: usize,
    pub(super) tag: u64,
    /// The request to the drive, in the units that it maps, and where the client's bytes lie in it.
    pub(super) request: VolumeRequest,
    pub(super) window: Window,
    /// The larger thing of which it is a step.
    pub(super) step: Step,
    /// Where the bytes of a read lie: the drive that has read a slot of it last.
    pub(super) drive: DriveId,
    pub(super) payload: Payload,
    pub(super) places: Places,
    pub(super) asked: SimTime,
    pub(super) is_answered: bool,
    /// Whether the disk had no room for some of its bytes.
    pub(super) no_room: bool,
    /// The unit that was to be changed in part, and whose bytes could not be read.
    pub(super) damaged: Option<u32>,
}

/// A request of a client that changes units in part.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) front: usize,
    pub(super) tag: u64,
    /// As the client asked for it, in its blocks.
    pub(super) request: VolumeRequest,
    pub(super) payload: Payload,
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

/// A volume whose data is being erased.
#[derive(Debug)]
pub(super) struct Erasing {
    pub(super) volume: VolumeId,
    pub(super) erase: Erase,
    /// Front end that wants to hear of the end, and its number for it.
    pub(super) by: Option<(usize, u64)>,
    /// The first unit that was not looked at, and deallocations under way.
    pub(super) next: u64,
    pub(super) under_way: u32,
    /// Whether requests of clients have ended, and whether a deallocation has failed.
    pub(super) is_quiet: bool,
    pub(super) has_failed: bool,
}
