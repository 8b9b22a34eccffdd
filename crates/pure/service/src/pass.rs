//! The service that does nothing.

use crate::failure::Failure;
use crate::service::{Data, Leg, Order, Orders, Request, Service};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_units::SimTime;

/// Hands each request to its one leg: what a stack of services costs at the least, and the shortest example of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThrough;

impl Service for PassThrough {
    fn name(&self) -> &'static str {
        "none"
    }

    fn legs(&self) -> usize {
        1
    }

    fn hands_on(&self) -> bool {
        true
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        VolumeLimits { remaps: false, ..legs[0].limits }
    }

    fn submit(&mut self, _: SimTime, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, durable, .. } = *request;
        let moves = matches!(operation, Operation::Read | Operation::Write);
        let data = if moves { Data::Request { id, at: 0 } } else { Data::None };
        out.orders.push(Order { id, leg: Leg(0), operation, first, count, data, durable });
    }

    fn completed(&mut self, _: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        out.answers.push((order, result));
    }

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}

    fn alone(&self) -> Option<Leg> {
        Some(Leg(0))
    }
}
