//! A world that serves.

use crate::{Capacity, Control, Effect, Gauges, Health, Presence, Refused};
use flashyard_blk::{VolumeInfo, VolumeRequest};
use flashyard_flash::{Layout, Slot};
use flashyard_ftl::SuperblockContents;
use flashyard_kernel::World;
use flashyard_units::{DriveId, SimTime, VolumeId};

/// A world whose requests come from outside, one by one, and that tells everything that happens to their payload.
///
/// Nothing here knows a clock: its owner says when. Methods that name a drive or a volume panic beyond those that there
/// are, except where they can refuse.
pub trait Served: World {
    /// The volumes that clients may see, by number.
    fn volumes(&self) -> Vec<VolumeInfo>;

    /// The drives on which bytes of `volume` lie, at least one. What is written may go to several of them, and what one
    /// request reads comes from one.
    fn drives_of(&self, volume: VolumeId) -> Vec<DriveId>;

    /// Drives, which keep the bytes of volumes.
    fn drives(&self) -> u16;

    /// How the slots of `drive`, where its bytes lie, are numbered.
    fn layout(&self, drive: DriveId) -> Layout;

    /// Contents of the superblocks of `drive` now.
    fn contents(&self, drive: DriveId) -> Vec<SuperblockContents>;

    /// The drive that a read of `block` of `volume` would ask now, and the slot that it would find there: [`Slot::NONE`] for a
    /// block that is not mapped. `None` while no drive can be asked. A write that was answered is in it, and so is a trim. A
    /// look at the map is no command: it takes no time, changes nothing, and stands in no journal. Panics beyond the
    /// blocks of the volume.
    fn place(&self, volume: VolumeId, block: u64) -> Option<(DriveId, Slot)>;

    /// Slots of `drive` whose data is not current, and would be after a power cut: those of a volatile write cache. None for a
    /// drive that loses nothing.
    fn recoverable(&self, _drive: DriveId) -> Vec<Slot> {
        Vec::new()
    }

    /// Nothing is done to the world later than this: time has a range, and what is asked takes some of it.
    fn latest(&self) -> SimTime;

    /// Takes a request in at `now`, which is no later than the next event and no earlier than the last one. Its effects
    /// name it by `token`, the owner's: no two requests under way have the same, nor one that the world still keeps
    /// ([`Served::keeps`]).
    ///
    /// Errors: a volume that there is not; what [`flashyard_blk::check`] says against the request.
    fn submit(&mut self, now: SimTime, token: u32, request: &VolumeRequest) -> Result<(), Refused>;

    /// Does something to the world at `now`, which is no later than the next event and no earlier than the last one.
    /// Asking for the present state changes nothing.
    ///
    /// Errors: a drive that there is not; what the world cannot do, in its own words.
    fn control(&mut self, now: SimTime, control: Control) -> Result<(), Refused>;

    /// Moves the effects since the last call to the end of `into`, in order.
    fn take_effects(&mut self, into: &mut Vec<Effect>);

    /// Requests under way.
    fn in_flight(&self) -> u32;

    /// Handles events while [`Served::in_progress`] is above zero, at most `events_max` of them, and returns how many those
    /// were. No clock rules. A few events more than that may be handled after the last request has ended.
    fn run_in_progress(&mut self, events_max: u64) -> u64;

    /// Requests under way that time alone brings to an end. The others wait for drives whose power or link is away.
    fn in_progress(&self) -> u32;

    /// Whether a drive may still carry out what was submitted under `token`, though it was answered as dropped: payload
    /// may move under that token for so long.
    fn keeps(&self, token: u32) -> bool;

    /// Whether `drive` serves.
    fn presence(&self, drive: DriveId) -> Presence;

    /// Whether `drive` is out of its slot: pulled, and not put back.
    fn is_pulled(&self, drive: DriveId) -> bool;

    /// The life of `drive` up to `now`.
    fn health(&self, drive: DriveId, now: SimTime) -> Health;

    /// Capacity of `drive` as its manager reads it; `None` where its flash does not wear. Too slow to be asked for a
    /// hundred times a second.
    fn capacity(&self, drive: DriveId) -> Option<Capacity>;

    /// Erases of each superblock of `drive`.
    fn erase_counts(&self, drive: DriveId) -> Vec<u32>;

    /// Superblocks of `drive` that are retired.
    fn retired(&self, drive: DriveId) -> Vec<u32>;

    /// Figures of the interval since the last call, or since the beginning. `now` is not before the last event. Taking
    /// them changes nothing of what the world does.
    fn gauges(&mut self, now: SimTime) -> Gauges;
}
