//! RAID-0: blocks lie chunk by chunk on the legs in turn. Source: sheet leapio §3.6.

use crate::parts::{Part, Parts};
use flashyard_blk::{VolumeInfo, VolumeLimits};
use flashyard_service::{Failure, Leg, Orders, Request, Service};
use flashyard_units::SimTime;

/// A volume over two or more legs that has their blocks together: as many of each as the smallest has, in whole chunks.
#[derive(Clone, Debug)]
pub struct Striped {
    legs: u8,
    chunk: u32,
    parts: Parts,
}

impl Striped {
    /// A stripe over `legs`, at least two, in chunks of so many blocks, at least one. Panics where either is less.
    pub fn new(legs: u8, chunk: u32) -> Self {
        assert!(legs >= 2 && chunk >= 1, "{legs} legs in chunks of {chunk} blocks");
        Self { legs, chunk, parts: Parts::default() }
    }
}

impl Service for Striped {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn legs(&self) -> usize {
        self.legs.into()
    }

    fn hands_on(&self) -> bool {
        true
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let chunks = legs.iter().map(|leg| leg.limits.blocks / u64::from(self.chunk)).min().unwrap_or(0);
        let request_blocks = legs.iter().map(|leg| leg.limits.request_blocks).min().unwrap_or(1);
        let blocks = chunks * u64::from(self.chunk) * u64::from(self.legs);
        VolumeLimits { request_blocks, ..VolumeLimits::new(blocks, false) }
    }

    fn submit(&mut self, _: SimTime, request: &Request, out: &mut Orders) {
        let (legs, chunk) = (u64::from(self.legs), u64::from(self.chunk));
        self.parts.submit(request, self.legs.into(), out, |block, most| {
            let (number, within) = (block / chunk, block % chunk);
            let count = most.min((chunk - within) as u32);
            Part { leg: Leg((number % legs) as u8), first: number / legs * chunk + within, count }
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
    use flashyard_service::Data;
    use flashyard_service::contract::check_seeds;
    use flashyard_units::VolumeId;

    #[test]
    fn the_contract_holds() {
        for (legs, chunk) in [(2, 1), (2, 4), (3, 5), (4, 64)] {
            check_seeds(60, || Striped::new(legs, chunk));
        }
    }

    #[test]
    fn every_block_has_one_place_and_every_place_one_block() {
        let (legs, chunk) = (3_u8, 4_u32);
        let info = |blocks| VolumeInfo {
            id: VolumeId::new(0),
            block_bytes: 4096,
            limits: VolumeLimits::new(blocks, false),
            protected: true,
        };
        let mut striped = Striped::new(legs, chunk);
        // The shortest leg has four whole chunks.
        let blocks = striped.limits(&[info(16), info(19), info(40)]).blocks;
        assert_eq!(blocks, 48);
        let mut seen = std::collections::BTreeSet::new();
        let mut out = Orders::default();
        let request = Request { id: 0, operation: Operation::Read, first: 0, count: 48, durable: false, source: 0 };
        striped.submit(SimTime::ZERO, &request, &mut out);
        let mut at_next = 0;
        for order in &out.orders {
            assert_eq!(order.data, Data::Request { id: 0, at: at_next }, "parts follow each other");
            at_next += order.count;
            for block in order.first..order.first + u64::from(order.count) {
                assert!(block < 16 && seen.insert((order.leg.0, block)), "{order:?}");
            }
        }
        assert_eq!(seen.len(), 48);
    }
}
