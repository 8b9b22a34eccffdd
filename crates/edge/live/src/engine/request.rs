//! One request that the engine has taken from a front end.

use super::window::Window;
use crate::media::Kept;
use flashyard_blk::{Payload, VolumeRequest};
use flashyard_flash::Slot;
use flashyard_units::{DriveId, SimTime};

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
    /// The change of units in part of which it is a step.
    pub(super) change: Option<u32>,
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
