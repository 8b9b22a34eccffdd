//! A LATTE whose trims leave zeros: front ends take trimmed blocks for zeros, and a LATTE answers a trim that it cannot do now
//! without doing anything.

use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_latte::{Counters, Latte};
use flashyard_service::{Failure, Leg, Orders, Request, Service};
use flashyard_units::SimTime;

/// A LATTE, with its name in files, and trims that it leaves out as writes of zeros.
#[derive(Debug)]
pub(crate) struct Zeroing(pub(crate) Latte, pub(crate) &'static str);

impl Zeroing {
    pub(crate) fn counters(&self) -> &Counters {
        self.0.counters()
    }
}

impl Service for Zeroing {
    fn name(&self) -> &'static str {
        self.1
    }

    fn legs(&self) -> usize {
        self.0.legs()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.0.limits(legs)
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        self.0.start(now, legs, out);
    }

    fn received(&mut self, order: u32, bytes: &[u8]) {
        self.0.received(order, bytes);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let (orders, answers) = (out.orders.len(), out.answers.len());
        self.0.submit(now, request, out);
        let is_left_out = out.orders.len() == orders && out.answers[answers..] == [(request.id, Ok(()))];
        if request.operation == Operation::Trim && is_left_out {
            out.answers.truncate(answers);
            self.0.submit(now, &Request { operation: Operation::Write, ..*request }, out);
        }
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.0.completed(now, order, result, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.0.wake(now, out);
    }

    /// After a flush the back end has everything but what was lost.
    fn alone(&self) -> Option<Leg> {
        (!self.0.has_lost()).then_some(Leg(1))
    }

    fn has_lost(&self) -> bool {
        self.0.has_lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_latte::{Config, Rule};
    use flashyard_service::Order;
    use flashyard_service::contract::check_seeds;

    fn small(rule: Rule) -> Config {
        Config { log_slots: 32, cache_slots: 16, rule, ..Config::halves(4096, 48) }
    }

    #[test]
    fn it_keeps_the_contract_of_volumes() {
        for rule in [Rule::Front, Rule::Back, Rule::Shortest] {
            check_seeds(120, || Zeroing(Latte::new(small(rule)), "latte"));
        }
    }

    #[test]
    fn it_keeps_the_contract_as_a_leg_of_a_service() {
        use flashyard_services::{Below, Mirrored, Tree};
        let leg = |number| Below::Leg(Leg(number));
        check_seeds(80, || {
            let latte = || Box::new(Zeroing(Latte::new(small(Rule::Shortest)), "latte"));
            Tree::new(vec![
                (Box::new(Mirrored::new(2, 4096)), vec![Below::Service(1), Below::Service(2)]),
                (latte(), vec![leg(0), leg(1)]),
                (latte(), vec![leg(2), leg(3)]),
            ])
            .expect("it is a tree")
        });
    }

    /// Ends the orders of a step one by one, in order, until nothing is under way; returns those that were sent.
    fn run(service: &mut Zeroing, out: &mut Orders, answers: &mut Vec<(u32, Result<(), Failure>)>) -> Vec<Order> {
        let (now, mut sent, mut at) = (SimTime::ZERO, Vec::new(), 0);
        loop {
            sent.extend(out.orders.iter().copied());
            answers.append(&mut out.answers);
            let wakes = out.wake_at == Some(now);
            out.clear();
            if wakes {
                service.wake(now, out);
            } else if let Some(order) = sent.get(at) {
                at += 1;
                service.completed(now, order.id, Ok(()), out);
            } else {
                return sent;
            }
        }
    }

    fn request(id: u32, operation: Operation, first: u64) -> Request {
        Request { id, operation, first, count: 1, durable: false, source: 0 }
    }

    #[test]
    fn a_flush_brings_what_was_written_before_it_to_the_back_end_first() {
        let mut service = Zeroing(Latte::new(small(Rule::Front)), "latte");
        let (mut out, mut answers, now) = (Orders::default(), Vec::new(), SimTime::ZERO);
        (0..3).for_each(|id| service.submit(now, &request(id, Operation::Write, u64::from(id) * 2), &mut out));
        let sent = run(&mut service, &mut out, &mut answers);
        assert!(answers.len() == 3 && sent.iter().all(|order| order.leg == Leg(0)), "{sent:?}");
        service.submit(now, &request(3, Operation::Flush, 0), &mut out);
        // It comes later, and is not flushed.
        service.submit(now, &request(4, Operation::Write, 9), &mut out);
        let sent = run(&mut service, &mut out, &mut answers);
        let flush = sent.iter().position(|order| order.operation == Operation::Flush).expect("the legs are flushed");
        let is_written = |block| sent[..flush].iter().any(|order| order.leg == Leg(1) && order.first == block);
        assert!([0, 2, 4].into_iter().all(is_written) && !is_written(9), "{sent:?}");
        assert_eq!(answers.iter().map(|(id, _)| *id).max(), Some(4));
        assert!(answers.iter().all(|(_, result)| result.is_ok()));
    }

    #[test]
    fn a_flush_fails_where_the_back_end_does_and_once_after_the_front_end_was_lost() {
        let mut service = Zeroing(Latte::new(small(Rule::Front)), "latte");
        let (mut out, mut answers, now) = (Orders::default(), Vec::new(), SimTime::ZERO);
        service.submit(now, &request(0, Operation::Write, 0), &mut out);
        run(&mut service, &mut out, &mut answers);
        // A read finds that the front end has ended.
        service.submit(now, &request(0, Operation::Read, 0), &mut out);
        let read = out.orders[0].id;
        out.clear();
        service.completed(now, read, Err(Failure::Gone), &mut out);
        out.clear();
        answers.clear();
        for id in [0, 1] {
            service.submit(now, &request(id, Operation::Flush, 0), &mut out);
            run(&mut service, &mut out, &mut answers);
        }
        assert_eq!(answers, [(0, Err(Failure::Unread { block: 0 })), (1, Ok(()))]);
    }

    #[test]
    fn it_cannot_leave_while_blocks_are_lost() {
        let mut service = Zeroing(Latte::new(small(Rule::Front)), "latte");
        let (mut out, mut answers, now) = (Orders::default(), Vec::new(), SimTime::ZERO);
        assert_eq!(service.alone(), Some(Leg(1)));
        service.submit(now, &request(0, Operation::Write, 5), &mut out);
        run(&mut service, &mut out, &mut answers);
        service.lost(now, Leg(0), &mut out);
        service.submit(now, &request(0, Operation::Read, 5), &mut out);
        for order in std::mem::take(&mut out.orders) {
            service.completed(now, order.id, Err(Failure::Gone), &mut out);
        }
        run(&mut service, &mut out, &mut answers);
        assert_eq!(service.alone(), None, "the back end has an older version of block 5");
        service.submit(now, &request(0, Operation::Write, 5), &mut out);
        run(&mut service, &mut out, &mut answers);
        assert_eq!(service.alone(), Some(Leg(1)));
    }
}
