//! Orders under way, and the requests that they are of.

use flashyard_kernel::Slab;
use flashyard_service::{Failure, Leg, Orders, Tally};
use flashyard_units::SimTime;

/// Blocks of one order at most. Source: \[A\] 128 KiB in blocks of 4 KiB.
pub(crate) const RUN: usize = 32;

/// Versions of the blocks of an order when it began.
pub(crate) type Versions = [u16; RUN];

/// The end of an order is told by what it was for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Blocks of a request are written to slots of the log.
    FrontWrite { request: u32, first: u32, slot: u32 },
    /// Blocks of a request are written, or trimmed, at the back end; `alone` where there was no front end any more.
    Back { request: u32, first: u32, alone: bool },
    /// Copies of blocks are read for a request.
    FrontRead { request: u32, at: u32, first: u32, slot: u32 },
    /// Blocks are read for a request; those in `admitted` are to be copied to the front end.
    BackRead { request: u32, at: u32, first: u32, admitted: u32 },
    /// A block that was read is copied to a slot.
    Promotion { block: u32, slot: u32, began: u16 },
    /// Slots are read into the buffer of a flush.
    FlushRead { chunk: u32, place: u32, slot: u32 },
    /// Blocks are written from the buffer of a flush, from this place on.
    FlushWrite { chunk: u32, place: u32 },
    /// A leg makes durable what it has.
    Sync { request: u32 },
}

impl Kind {
    /// Whether the order writes, or trims, blocks of an end.
    pub(crate) const fn is_write(&self) -> bool {
        matches!(self, Self::FrontWrite { .. } | Self::Back { .. } | Self::Promotion { .. } | Self::FlushWrite { .. })
    }
}

/// An order under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Under {
    pub(crate) kind: Kind,
    pub(crate) leg: Leg,
    pub(crate) count: u32,
    pub(crate) began_at: SimTime,
}

/// Orders by their number, and requests by theirs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    under_way: Slab<Under>,
    /// Versions of blocks by order, where its end asks for them: copied once, unlike the rest of an order.
    began: Vec<Versions>,
    pub(crate) requests: Tally,
    /// Orders under way at each end.
    pub(crate) depths: [u32; 2],
}

impl Table {
    /// A part of a request has ended; answers it with the last one.
    pub(crate) fn ended(&mut self, request: u32, result: Result<(), Failure>, out: &mut Orders) {
        out.answers.extend(self.requests.end(request, result).map(|answer| (request, answer)));
    }

    /// Whether an order under way is for this slot of the front end. Looks through all of them.
    pub(crate) fn uses(&self, slot: u32) -> bool {
        self.under_way.iter().any(|(_, under)| {
            let first = match under.kind {
                Kind::FrontWrite { slot, .. }
                | Kind::FrontRead { slot, .. }
                | Kind::Promotion { slot, .. }
                | Kind::FlushRead { slot, .. } => slot,
                Kind::Back { .. } | Kind::BackRead { .. } | Kind::FlushWrite { .. } | Kind::Sync { .. } => {
                    return false;
                }
            };
            (first..first + under.count).contains(&slot)
        })
    }

    pub(crate) fn insert(&mut self, under: Under) -> u32 {
        let order = self.under_way.insert(under);
        if order >= self.began.len() {
            self.began.resize(order + 1, [0; RUN]);
        }
        order as u32
    }

    /// Versions of the blocks of an order that was inserted last, or removed last.
    #[inline]
    pub(crate) fn began(&mut self, order: u32) -> &mut Versions {
        &mut self.began[order as usize]
    }

    pub(crate) fn remove(&mut self, order: u32) -> Option<Under> {
        self.under_way.remove(order as usize)
    }
}
