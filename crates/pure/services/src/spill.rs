//! A volume whose first blocks are near, and the rest elsewhere: a few local gigabytes, and more than fits there.
//! Source: sheet leapio §3.6, "spillover drive (few GB local, rest remote)".

use crate::parts::{Part, Parts};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_service::{Failure, Leg, Orders, Request, Service};
use flashyard_units::SimTime;

/// The blocks of two legs behind each other.
#[derive(Clone, Debug)]
pub struct SpillOver {
    /// Blocks of the first leg that are used.
    near: u64,
    parts: Parts,
}

impl SpillOver {
    /// One whose first `near` blocks lie on the first leg.
    pub fn new(near: u64) -> Self {
        Self { near, parts: Parts::default() }
    }
}

impl Service for SpillOver {
    fn name(&self) -> &'static str {
        "spill-over"
    }

    fn legs(&self) -> usize {
        2
    }

    fn hands_on(&self) -> bool {
        true
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(1);
        VolumeLimits { blocks: self.near + legs[1].limits.blocks, remaps: false, request_blocks, read_only: false }
    }

    fn submit(&mut self, _: SimTime, request: &Request, out: &mut Orders) {
        let near = self.near;
        self.parts.submit(request, 2, out, |block, most| match near.checked_sub(block) {
            None | Some(0) => Part { leg: Leg(1), first: block - near, count: most },
            Some(left) => Part { leg: Leg(0), first: block, count: u64::from(most).min(left) as u32 },
        });
    }

    fn completed(&mut self, _: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.parts.completed(order, result, out);
    }

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;
    use flashyard_service::contract::check_seeds;

    #[test]
    fn the_contract_holds_across_the_border() {
        for near in [0, 1, 10, 23, 4096] {
            check_seeds(60, || SpillOver::new(near));
        }
    }

    #[test]
    fn a_request_across_the_border_has_two_parts() {
        let (mut spill, mut out) = (SpillOver::new(10), Orders::default());
        let request = Request { id: 0, operation: Operation::Write, first: 8, count: 5, durable: true, source: 0 };
        spill.submit(SimTime::ZERO, &request, &mut out);
        let parts: Vec<_> = out.orders.iter().map(|order| (order.leg.0, order.first, order.count)).collect();
        assert_eq!(parts, [(0, 8, 2), (1, 0, 3)]);
        assert!(out.orders.iter().all(|order| order.durable));
        spill.completed(SimTime::ZERO, out.orders[1].id, Err(Failure::Unread { block: 2 }), &mut Orders::default());
        let mut end = Orders::default();
        spill.completed(SimTime::ZERO, out.orders[0].id, Ok(()), &mut end);
        assert_eq!(end.answers, [(0, Err(Failure::Unread { block: 12 }))], "the block is one of the whole volume");
    }
}
