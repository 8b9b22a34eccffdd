//! Services that only say where blocks lie: a request is cut into parts, each of which is an order to one leg.

use flashyard_blk::Operation;
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Tally};

/// A run of blocks of a request on one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) leg: Leg,
    /// First block of the leg.
    pub(crate) first: u64,
    pub(crate) count: u32,
}

/// A part under way.
#[derive(Clone, Copy, Debug)]
struct Under {
    request: u32,
    /// Block of the service's volume, and of the leg, at which the part begins.
    at: u64,
    first: u64,
}

/// Requests that are cut into parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    tally: Tally,
    under_way: Slab<Under>,
}

impl Parts {
    /// Sends a request to the legs; `part` says where the blocks from one on lie, `count` of them at most. A flush goes to all `legs`.
    pub(crate) fn submit(&mut self, request: &Request, legs: usize, out: &mut Orders, part: impl Fn(u64, u32) -> Part) {
        let Request { id, operation, first, count, durable, .. } = *request;
        self.tally.begin(id);
        if operation == Operation::Flush {
            for leg in 0..legs {
                self.send(id, 0, Part { leg: Leg(leg as u8), first: 0, count: 0 }, operation, Data::None, durable, out);
            }
            return;
        }
        let moves = matches!(operation, Operation::Read | Operation::Write);
        let mut at = 0;
        while at < count {
            let block = first + u64::from(at);
            let part = part(block, count - at);
            let data = if moves { Data::Request { id, at } } else { Data::None };
            self.send(id, block, part, operation, data, durable, out);
            at += part.count;
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an order")]
    fn send(
        &mut self,
        request: u32,
        at: u64,
        part: Part,
        operation: Operation,
        data: Data,
        durable: bool,
        out: &mut Orders,
    ) {
        let Part { leg, first, count } = part;
        self.tally.expect(request);
        let id = self.under_way.insert(Under { request, at, first }) as u32;
        out.orders.push(Order { id, leg, operation, first, count, data, durable });
    }

    /// An order has ended.
    pub(crate) fn completed(&mut self, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(Under { request, at, first }) = self.under_way.remove(order as usize) else { return };
        // A block that cannot be read is one of the service's volume there.
        let result = result.map_err(|failure| match failure {
            Failure::Unread { block } => Failure::Unread { block: at + block.saturating_sub(first) },
            other => other,
        });
        out.answers.extend(self.tally.end(request, result).map(|answer| (request, answer)));
    }
}
