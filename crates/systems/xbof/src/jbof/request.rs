//! A request under way: what every design needs to know of it. What a mode adds (a lender, a home, an attempt) lies
//! with the state of that mode, by the request's number.

use super::config::{JbofError, volume_of};
use flashyard_flash::SLOT_BYTES;
use flashyard_measure::Completion;
use flashyard_ssd::{CommandSpec, Operation};
use flashyard_stats::TimeSplit;
use flashyard_units::{DriveId, SimTime};

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// On its way to, or on, the cores that run its firmware.
    Firmware,
    /// On the owner's cores, being taken from the message queue.
    Agent,
    /// With the data-end.
    Data,
    /// Completed at the drive; the application hears of it next.
    Completed,
    /// Kept by the driver until its drive is back.
    Held,
    /// It, or its completion, did not arrive.
    Lost,
}

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An application's request.
    Foreground,
    /// One piece of a read that a virtual drive had to split; the parent waits for all.
    Part {
        /// The request that was split.
        parent: u32,
    },
    /// Copy-back: the read from the lender.
    CopyRead,
    /// Copy-back: the write to the owner.
    CopyWrite,
    /// A request from outside, of a world that serves.
    Asked {
        /// The number that the answer carries.
        token: u32,
    },
    /// A request from outside that its client has given up: it is not sent again.
    AskedOnce {
        /// The number that the answer carries.
        token: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) stream: u16,
    /// The drive that holds the data.
    pub(super) drive: DriveId,
    pub(super) phase: Phase,
    pub(super) operation: Operation,
    pub(super) purpose: Purpose,
    pub(super) first: u32,
    pub(super) count: u32,
    /// First slot whose data a remap takes over; means nothing for other operations.
    pub(super) source: u32,
    /// Bytes that the application asked for; zero for copies.
    pub(super) len_bytes: u32,
    pub(super) issued: SimTime,
    /// Payload of every slot written: no two writes have the same.
    pub(super) stamp: u64,
}

/// A request is read at every stage of its way: it must not grow unnoticed.
const _: () = assert!(size_of::<Request>() <= 48);

impl Request {
    /// The request's command to the data-end, under the number `id`.
    pub(super) fn command(&self, id: u32) -> CommandSpec {
        let Self { operation, first, count, source, stamp, .. } = *self;
        CommandSpec { tag: id, operation, first, count, source, stamp }
    }

    /// Bytes that move: whole slots.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.count) * u64::from(SLOT_BYTES)
    }

    /// The facts that figures need of it, once it has completed for a stream of drive `home`.
    #[inline]
    pub(super) fn completion(&self, home: DriveId) -> Completion {
        Completion {
            stream: self.stream,
            volume: volume_of(home),
            operation: self.operation,
            issued: self.issued,
            bytes: self.bytes(),
            asked_bytes: self.len_bytes.into(),
        }
    }

    /// Whether it changes what is on the drive.
    pub(super) fn changes_data(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Trim | Operation::Remap)
    }

    /// Whether it is a piece of another request.
    pub(super) fn is_part(&self) -> bool {
        matches!(self.purpose, Purpose::Part { .. })
    }

    /// Whether it moves data for a virtual drive, not for an application.
    pub(super) fn is_copy(&self) -> bool {
        matches!(self.purpose, Purpose::CopyRead | Purpose::CopyWrite)
    }
}

/// Why a drive has not carried a request out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is worn out and has not written it.
    WornOut,
    /// It could not correct what it read, from this slot on.
    Unread { slot: u32 },
}

impl Failure {
    /// The error that ends a run that does not serve, where this happened on `drive`.
    #[cold]
    pub(super) fn error(self, drive: DriveId) -> JbofError {
        match self {
            Self::WornOut => JbofError::WornOut { drive },
            Self::Unread { slot } => JbofError::Unread { drive, slot },
        }
    }
}

/// Where the time of a request went so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Journey {
    pub(super) time: TimeSplit,
    /// When the firmware job under way would end if it never waited for a core.
    pub(super) unqueued: SimTime,
}
