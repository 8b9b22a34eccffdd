//! Requests under way, the causes of their time, and the events that move them on.

use crate::stack::{Part, Stage, Table};
use flashyard_blk::Operation;
use flashyard_flash::SLOT_BYTES;
use flashyard_latte::dispatch::FRONT;
use flashyard_measure::Completion;
use flashyard_service::Leg;
use flashyard_ssd::DriveEvent;
use flashyard_stats::{CAUSE_COUNT, SplitPart, TimeSplit};
use flashyard_units::{SimTime, VolumeId};

/// The number of causes of a server: those of drives, its parts, waiting for one of them, and being held by a service.
pub const CAUSES: usize = CAUSE_COUNT + 6;

/// A cause of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Work and delays of a part.
    Of(Part),
    /// Waiting for a core, an engine or a link of the stack, or for an interrupt that others share.
    Wait,
    /// A service holds the request: for room, or for others of its orders.
    Service,
}

impl SplitPart for Own {
    #[inline]
    fn place(self) -> usize {
        CAUSE_COUNT
            + match self {
                Self::Of(part) => part as usize,
                Self::Wait => 4,
                Self::Service => 5,
            }
    }
}

/// Everything that can happen later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A drive has news for itself.
    Drive { drive: u16, event: DriveEvent },
    /// A request begins its next stage.
    Next { request: u32 },
    /// A service wants to be woken.
    Wake { drive: u16 },
    /// Completions at a place have waited long enough for an interrupt, unless one has come.
    Interrupt { place: u32, number: u32 },
    /// A stream's next arrival.
    Issue { stream: u16 },
    /// A stream starts late, or goes on after a pause.
    Resume { stream: u16 },
    /// Figures count from here.
    WarmupEnd,
    /// Streams stop issuing.
    Stop,
}

/// An event is copied a few times: it must not grow unnoticed.
const _: () = assert!(size_of::<Event>() <= 16);

/// Completions of one queue that wait for an interrupt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) requests: Vec<u32>,
    /// Interrupts so far: a time that was set for an earlier one is over.
    pub(crate) interrupts: u32,
}

/// An access that brings several requests at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) begins: SimTime,
    pub(crate) ends: SimTime,
    pub(crate) requests: u32,
}

/// A request's part in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A guest has issued it.
    Guest,
    /// A service has ordered it from an end, perhaps for the guest's request `owner`.
    Order { number: u32, leg: Leg, owner: Option<u32> },
}

impl Role {
    /// The stages of such a request.
    #[inline]
    pub(crate) fn way(self, table: &Table) -> &'static [Stage] {
        match (self, &table.tiers) {
            (Self::Guest, _) => table.stages,
            (Self::Order { leg: FRONT, .. }, Some(tiers)) => tiers.front,
            (Self::Order { .. }, Some(tiers)) => tiers.back,
            (Self::Order { .. }, None) => table.below.unwrap_or_default(),
        }
    }

    /// The leg, from 0.
    #[inline]
    pub(crate) fn leg(self) -> u32 {
        match self {
            Self::Guest => 0,
            Self::Order { leg, .. } => leg.0.into(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) stream: u16,
    /// The virtual drive, and the storage behind it.
    pub(crate) drive: u16,
    pub(crate) operation: Operation,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) asked_bytes: u32,
    pub(crate) issued: SimTime,
    /// The stage that comes next.
    pub(crate) stage: u8,
    /// When its firmware job would end if it never waited for a core of the drive; of a guest's request, when
    /// a service was asked, and then when it began to wait for an interrupt.
    pub(crate) unqueued: SimTime,
    pub(crate) time: TimeSplit<CAUSES>,
    pub(crate) role: Role,
}

impl Request {
    /// Bytes that move between the guest and storage.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count) * u64::from(SLOT_BYTES)
    }

    /// The facts that figures need of it.
    #[inline]
    pub(crate) fn completion(&self) -> Completion {
        Completion {
            stream: self.stream,
            volume: VolumeId::new(self.drive),
            operation: self.operation,
            issued: self.issued,
            bytes: self.bytes(),
            asked_bytes: self.asked_bytes.into(),
        }
    }
}
