//! Effects of a world that serves, for its owner.

use flashyard_flash::Slot;
use flashyard_ssd::Movement;
use flashyard_units::{DriveId, SimTime, VolumeId};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Carried out; what it wrote is durable.
    Done,
    /// A write to a drive that is worn out: nothing was written.
    Failed,
    /// A read of data that the drive could not correct: what it found means nothing.
    Unread {
        /// The first block of it, as far as that can be told.
        block: u64,
    },
    /// Given up at its owner's wish, before it came to the data or before its drive was back: an earlier attempt may
    /// have taken effect, and may yet until the drive is back ([`crate::Served::keeps`]).
    Dropped,
}

/// One thing that a world tells, in order: payload goes to its place before the answer that makes it durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Payload of `drive` is written, read, moved or lost; tags are the tokens of requests.
    Payload {
        /// Which drive.
        drive: DriveId,
        /// The movement of its payload.
        movement: Movement,
    },
    /// A block of one drive was written with what another one holds, by the world itself and not for a request.
    Copied {
        /// The drive that was read.
        from: DriveId,
        /// Where the block is there.
        source: Slot,
        /// The drive that was written.
        drive: DriveId,
        /// The block there.
        logical: u32,
        /// Where it went.
        slot: Slot,
        /// Where it was before; `Slot::NONE` for nowhere.
        before: Slot,
    },
    /// A request has ended. Every block of a read was reported before.
    Answered {
        /// The request's token.
        token: u32,
        /// When its client hears of it.
        at: SimTime,
        /// How it ended.
        answer: Answer,
    },
    /// A volume does not answer any more: the power or the link of its drive is away.
    Gone {
        /// Which.
        volume: VolumeId,
    },
    /// A volume that was gone takes requests again.
    Back {
        /// Which.
        volume: VolumeId,
    },
}
