//! The harness: services that keep the contract pass, broken ones are found.

use crate::contract::{Breach, Plan, Trouble, check, check_seeds};
use crate::{Data, Failure, Leg, Order, Orders, PassThrough, Request, Service};
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_units::SimTime;

/// Writes go to both legs, reads to the second. `early` answers after the first end.
#[derive(Default)]
struct Both {
    early: bool,
    /// By request: ends to come before its answer.
    ends: Vec<u32>,
    /// By order: its request.
    orders: Vec<u32>,
}

impl Service for Both {
    fn legs(&self) -> usize {
        2
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        legs[0].limits
    }

    fn submit(&mut self, _: SimTime, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, durable, .. } = *request;
        self.ends.resize(self.ends.len().max(id as usize + 1), 0);
        let moves = matches!(operation, Operation::Read | Operation::Write);
        let data = if moves { Data::Request { id, at: 0 } } else { Data::None };
        let from = u8::from(operation == Operation::Read);
        self.ends[id as usize] = if self.early { 1 } else { 2 - u32::from(from) };
        for leg in from..2 {
            let order = self.orders.len() as u32;
            self.orders.push(id);
            out.orders.push(Order { id: order, leg: Leg(leg), operation, first, count, data, durable });
        }
    }

    fn completed(&mut self, _: SimTime, order: u32, _: Result<(), Failure>, out: &mut Orders) {
        let request = self.orders[order as usize];
        // The later end of a request that was answered early has no request.
        if self.early && request == u32::MAX {
            return;
        }
        self.ends[request as usize] -= 1;
        if self.ends[request as usize] == 0 {
            if self.early {
                self.orders.iter_mut().filter(|of| **of == request).for_each(|of| *of = u32::MAX);
            }
            out.answers.push((request, Ok(())));
        }
    }

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}
}

/// Hides failures.
struct Deaf(PassThrough);

impl Service for Deaf {
    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.0.limits(legs)
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.0.submit(now, request, out);
    }

    fn completed(&mut self, now: SimTime, order: u32, _: Result<(), Failure>, out: &mut Orders) {
        self.0.completed(now, order, Ok(()), out);
    }

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}
}

/// Answers nothing.
struct Mute;

impl Service for Mute {
    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        legs[0].limits
    }

    fn submit(&mut self, _: SimTime, _: &Request, _: &mut Orders) {}

    fn completed(&mut self, _: SimTime, _: u32, _: Result<(), Failure>, _: &mut Orders) {}

    fn wake(&mut self, _: SimTime, _: &mut Orders) {}
}

#[test]
fn a_service_that_does_nothing_keeps_the_contract() {
    check_seeds(60, PassThrough::default);
    check_seeds(6, || Box::new(PassThrough) as Box<dyn Service>);
    let seen = check(PassThrough, Plan::new(1)).expect("it keeps the contract");
    assert_eq!((seen.carried_out, seen.failed), (400, 0));
    assert!(seen.blocks_checked > 300, "{seen:?}");
}

#[test]
fn a_leg_that_ends_fails_what_is_under_way_and_all_that_follows() {
    let trouble = Trouble { gone: Some((0, 200)), ..Trouble::default() };
    let seen = check(PassThrough, Plan { trouble, ..Plan::new(5) }).expect("it keeps the contract");
    assert!((192..200).contains(&seen.carried_out), "{seen:?}");
    assert_eq!(seen.carried_out + seen.failed, 400);
}

#[test]
fn writes_to_two_legs_end_with_the_second() {
    for seed in 0..20 {
        check(Both::default(), Plan::new(seed)).expect("it keeps the contract");
    }
}

#[test]
fn an_answer_before_the_leg_that_is_read_has_the_write_is_found() {
    let found = (0..20).filter(|&seed| {
        let broken = Both { early: true, ..Both::default() };
        matches!(check(broken, Plan { depth: 2, ..Plan::new(seed) }), Err(Breach::Version { .. }))
    });
    assert!(found.count() > 10);
}

#[test]
fn a_failure_that_is_hidden_is_found() {
    let trouble = Trouble { fails_one_in: 10, gone: None };
    let ended = check(Deaf(PassThrough), Plan { trouble, ..Plan::new(0) });
    assert!(matches!(ended, Err(Breach::Version { .. })), "{ended:?}");
}

#[test]
fn a_service_that_does_not_answer_is_found() {
    assert_eq!(check(Mute, Plan::new(0)), Err(Breach::Stuck { seed: 0, under_way: 8 }));
}

/// Reads by way of a buffer and a copy on the leg, after a wait; answers while the copy is written.
#[derive(Default)]
struct Detour {
    waiting: Vec<Request>,
    /// By order: the request, and how far it is. Numbers of orders are not used again.
    orders: Vec<(Request, u8)>,
}

impl Detour {
    fn order(&mut self, request: Request, stage: u8, out: &mut Orders) {
        let Request { id, first, count, .. } = request;
        let copy = 1000 + u64::from(id) * 8;
        let (operation, first, data) = match stage {
            0 => (Operation::Read, first, Data::Buffer { id, at: 0 }),
            1 => (Operation::Write, copy, Data::Buffer { id, at: 0 }),
            2 => (Operation::Read, copy, Data::Request { id, at: 0 }),
            _ => (Operation::Write, copy + 1000, Data::Request { id, at: 0 }),
        };
        let number = self.orders.len() as u32;
        self.orders.push((request, stage));
        out.orders.push(Order { id: number, leg: Leg(0), operation, first, count, data, durable: false });
    }
}

impl Service for Detour {
    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        legs[0].limits
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let Request { id, operation, first, count, durable, .. } = *request;
        if operation == Operation::Read {
            self.waiting.push(*request);
            out.wake_at = Some(now.saturating_add(flashyard_units::SimSpan::from_us(50)));
            return;
        }
        let number = self.orders.len() as u32;
        self.orders.push((*request, u8::MAX));
        let data = if operation == Operation::Write { Data::Request { id, at: 0 } } else { Data::None };
        out.orders.push(Order { id: number, leg: Leg(0), operation, first, count, data, durable });
    }

    fn completed(&mut self, _: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let (request, stage) = self.orders[order as usize];
        if stage == 3 {
            return;
        }
        if stage == 1 || (stage == 0 && result.is_err()) {
            out.released.push(request.id);
        }
        if result.is_ok() && stage < 3 {
            self.order(request, stage + 1, out);
        }
        if result.is_err() || stage >= 2 {
            out.answers.push((request.id, result));
        }
    }

    fn wake(&mut self, _: SimTime, out: &mut Orders) {
        for request in std::mem::take(&mut self.waiting) {
            out.taken.push((request.id, request.count));
            self.order(request, 0, out);
        }
    }
}

#[test]
fn buffers_the_timer_and_data_of_answered_requests_are_kept_as_long_as_needed() {
    check_seeds(60, Detour::default);
}
