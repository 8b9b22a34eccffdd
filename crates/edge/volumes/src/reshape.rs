//! Services that come into a volume while it serves, and leave it: new requests wait, those under way end and are flushed, and then the tree changes.

use crate::held::Client;
use crate::leg::LegState;
use flashyard_blk::{Payload, VolumeRequest};
use flashyard_service::{Failure, Service};
use flashyard_services::Below;
use flashyard_units::{SimSpan, SimTime};
use std::collections::VecDeque;

/// Patience for what is under way, less than that of `ctl`, which is told the reason so. Source: \[A\].
const PATIENCE: SimSpan = SimSpan::from_secs(50);

/// The change of a tree.
pub(crate) enum Wish {
    /// A service comes above a place. The place is its leg of the number `at`; the others are `legs`, in order.
    Insert { place: Below, service: Box<dyn Service + Send>, at: usize, legs: Vec<LegState> },
    /// The service of a number leaves.
    Leave { node: usize },
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Requests under way end.
    Draining,
    /// All is flushed.
    Flushing,
    /// Orders that services give by themselves end.
    Settling,
}

/// A request that waits for it.
pub(crate) struct Parked {
    pub(crate) from: Client,
    pub(crate) request: VolumeRequest,
    pub(crate) payload: Payload,
}

/// A change under way.
pub(crate) struct Reshape {
    pub(crate) wish: Wish,
    stage: Stage,
    until: SimTime,
    pub(crate) parked: VecDeque<Parked>,
}

/// The next step.
pub(crate) enum Next {
    Wait,
    Flush,
    Change,
    GiveUp(String),
}

impl Reshape {
    pub(crate) fn new(wish: Wish, now: SimTime) -> Self {
        Self { wish, stage: Stage::Draining, until: now + PATIENCE, parked: VecDeque::new() }
    }

    /// Moves on: `is_quiet` where no request is under way, `is_idle` where nothing is, and the result of the flush once it is there.
    pub(crate) fn next(
        &mut self,
        now: SimTime,
        is_quiet: bool,
        is_idle: bool,
        flushed: impl FnOnce() -> Option<Result<(), Failure>>,
    ) -> Next {
        if now >= self.until {
            return Next::GiveUp(format!("what is under way has not ended for {} s", PATIENCE.as_secs_f64()));
        }
        match self.stage {
            Stage::Draining if is_quiet => {
                self.stage = Stage::Flushing;
                Next::Flush
            }
            Stage::Flushing => match flushed() {
                Some(Ok(())) => {
                    self.stage = Stage::Settling;
                    Next::Wait
                }
                Some(Err(failure)) => Next::GiveUp(format!("the flush before it has failed: {failure}")),
                None => Next::Wait,
            },
            Stage::Settling if is_idle => Next::Change,
            Stage::Draining | Stage::Settling => Next::Wait,
        }
    }
}
