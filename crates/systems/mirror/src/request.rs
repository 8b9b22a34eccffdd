//! Requests and commands under way, and the events that move them on.

use crate::config::VOLUME;
use flashyard_blk::Operation;
use flashyard_flash::SLOT_BYTES;
use flashyard_measure::Completion;
use flashyard_ssd::DriveEvent;
use flashyard_stats::{CAUSE_COUNT, SplitPart, TimeSplit};
use flashyard_units::SimTime;

/// The number of causes of a mirror: those of drives, and [`OTHER_COPY`].
pub const CAUSES: usize = CAUSE_COUNT + 1;

/// The mirror's own cause: waiting for the other copy, or for an attempt that came to nothing.
pub const OTHER_COPY: OtherCopy = OtherCopy;

/// See [`OTHER_COPY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherCopy;

impl SplitPart for OtherCopy {
    #[inline]
    fn place(self) -> usize {
        CAUSE_COUNT
    }
}

/// Everything that can happen later. Closed: a new kind of thing to wait for is a new line here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A drive has news for itself.
    Drive { drive: u8, generation: u16, event: DriveEvent },
    /// A command reaches its drive.
    Arrive { drive: u8, generation: u16, command: u32 },
    /// The host hears of a command's completion.
    Heard { drive: u8, generation: u16, command: u32 },
    /// A stream's next arrival.
    Issue { stream: u16 },
    /// A stream starts late, or goes on after a pause.
    Resume { stream: u16 },
    /// A drive has power again, unless it is to stay without for longer.
    PowerOn { drive: u8 },
    /// Figures count from here.
    WarmupEnd,
    /// Streams stop issuing.
    Stop,
}

/// An event is copied a few times: it must not grow unnoticed.
const _: () = assert!(size_of::<Event>() <= 16);

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A stream asked for it.
    Stream { stream: u16 },
    /// It came from outside, in a world that serves.
    Asked { token: u32 },
    /// It copies a block to the drive `to`, where it is stale; first it reads the other one.
    Resync { to: u8 },
}

/// The copy of a request on one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// The drive has not been asked.
    Unsent,
    /// The drive has been asked.
    UnderWay,
    /// It has done it.
    Done,
    /// It has not, or it is not known whether it has.
    Lost,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) purpose: Purpose,
    pub(crate) operation: Operation,
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Bytes that the application asked for.
    pub(crate) asked_bytes: u32,
    pub(crate) issued: SimTime,
    /// Payload of every block written: no two writes have the same.
    pub(crate) stamp: u64,
    pub(crate) copies: [Copy; 2],
    /// When it was first sent to a drive.
    pub(crate) sent: Option<SimTime>,
    /// Where its time went up to the completion of its first copy, and when that was.
    pub(crate) done: Option<(TimeSplit<CAUSES>, SimTime)>,
    /// Whether its client has given it up: it is not sent again.
    pub(crate) given_up: bool,
    /// The drives that could not correct what it reads.
    pub(crate) unread: [bool; 2],
}

impl Request {
    /// Whether it changes what is on the drives.
    #[inline]
    pub(crate) fn changes_data(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Trim | Operation::Remap)
    }

    /// Bytes that move between the host and one drive.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count) * u64::from(SLOT_BYTES)
    }

    /// The facts that figures need of it, once it has completed for a stream.
    #[inline]
    pub(crate) fn completion(&self, stream: u16) -> Completion {
        Completion {
            stream,
            volume: VOLUME,
            operation: self.operation,
            issued: self.issued,
            bytes: self.bytes(),
            asked_bytes: self.asked_bytes.into(),
        }
    }
}

/// One drive's part of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) request: u32,
    pub(crate) drive: usize,
    pub(crate) sent: SimTime,
    pub(crate) time: TimeSplit<CAUSES>,
    /// When its firmware job would end if it never waited for a core.
    pub(crate) unqueued: SimTime,
    pub(crate) failure: Option<Failure>,
}

/// Why a drive has not carried a command out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is worn out and has not written it.
    WornOut,
    /// It could not correct what it read, from this block on.
    Unread { block: u32 },
}
