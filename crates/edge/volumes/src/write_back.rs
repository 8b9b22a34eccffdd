//! A LATTE whose flushes keep their promise over the end of the process.
//!
//! The location map of a LATTE lies in memory: what only its front end has is lost with the process, however durable the front
//! end is. So a flush brings every block that was acknowledged before it to the back end, and then flushes both ends. Writes
//! that come while this goes on wait, or it might never end.

use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_latte::{Counters, Latte};
use flashyard_service::{Data, Failure, Leg, Orders, Request, Service};
use flashyard_units::SimTime;

/// The leg of the back end.
const BACK: Leg = Leg(1);

/// News that an order under way may bring of the blocks that only the front end has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// Nothing.
    Other,
    /// Something of the back end.
    Back,
    /// Blocks that only the front end has are written to the back end.
    BackWrite,
}

/// A LATTE, and the flushes that wait until its back end has everything.
#[derive(Debug)]
pub(crate) struct WriteBack {
    latte: Latte,
    flushes: Vec<Request>,
    /// Writes that came after a flush.
    held: Vec<Request>,
    /// Writes under way, by number of the request, and how many.
    is_write: Vec<bool>,
    writes: u32,
    /// Buffers that the LATTE writes back.
    buffers: u32,
    /// By number of the order.
    watched: Vec<Watched>,
    has_back: bool,
    /// Why the flushes that wait are to fail.
    failed: Option<Failure>,
    /// Blocks lost with the front end of which a flush has told.
    lost_told: u64,
    /// Buffers taken and released, orders and answers of this step that were looked at.
    noted: [usize; 4],
}

impl WriteBack {
    pub(crate) fn new(latte: Latte) -> Self {
        Self {
            latte,
            flushes: Vec::new(),
            held: Vec::new(),
            is_write: Vec::new(),
            writes: 0,
            buffers: 0,
            watched: Vec::new(),
            has_back: true,
            failed: None,
            lost_told: 0,
            noted: [0; 4],
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.latte.counters()
    }

    /// Hands a request to the LATTE.
    fn pass(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        if request.operation == Operation::Write {
            let place = request.id as usize;
            if place >= self.is_write.len() {
                self.is_write.resize(place + 1, false);
            }
            self.is_write[place] = true;
            self.writes += 1;
        }
        self.latte.submit(now, request, out);
    }

    /// Hands a request to the LATTE. A trim that it leaves out is done as a write of zeros: front ends take trimmed blocks for
    /// zeros.
    fn change(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        let (orders, answers) = (out.orders.len(), out.answers.len());
        self.pass(now, request, out);
        let is_left_out = out.orders.len() == orders && out.answers[answers..] == [(request.id, Ok(()))];
        if request.operation == Operation::Trim && is_left_out {
            out.answers.truncate(answers);
            self.pass(now, &Request { operation: Operation::Write, ..*request }, out);
        }
        self.note(out);
    }

    /// A step begins.
    fn begin(&mut self, out: &Orders) {
        self.noted = [out.taken.len(), out.released.len(), out.orders.len(), out.answers.len()];
    }

    /// Takes note of what the LATTE has asked for in this step since the last look.
    fn note(&mut self, out: &Orders) {
        let [taken, released, orders, answers] = self.noted;
        for order in &out.orders[orders..] {
            let place = order.id as usize;
            if place >= self.watched.len() {
                self.watched.resize(place + 1, Watched::Other);
            }
            self.watched[place] = match order.data {
                Data::Buffer { .. } if order.leg == BACK => Watched::BackWrite,
                _ if order.leg == BACK => Watched::Back,
                _ => Watched::Other,
            };
        }
        for &(id, _) in &out.answers[answers..] {
            if let Some(is_write) = self.is_write.get_mut(id as usize)
                && std::mem::replace(is_write, false)
            {
                self.writes -= 1;
            }
        }
        self.buffers += (out.taken.len() - taken) as u32;
        self.buffers -= (out.released.len() - released) as u32;
        self.begin(out);
    }

    /// Goes on with the flushes that wait, in a step in which no buffer has come back.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        self.latte.wake(now, out);
        self.note(out);
        if let Some(failure) = self.failed.take() {
            return self.fail(now, failure, out);
        }
        if self.flushes.is_empty() || self.buffers > 0 || self.writes > 0 {
            return;
        }
        let lost = self.latte.counters().lost;
        let is_lost = std::mem::replace(&mut self.lost_told, lost) < lost;
        if is_lost || !self.has_back {
            return self.fail(now, if is_lost { Failure::Failed } else { Failure::Gone }, out);
        }
        for flush in std::mem::take(&mut self.flushes) {
            self.change(now, &flush, out);
        }
        self.let_go(now, out);
    }

    /// The flushes that wait fail.
    fn fail(&mut self, now: SimTime, failure: Failure, out: &mut Orders) {
        out.answers.extend(self.flushes.drain(..).map(|flush| (flush.id, Err(failure))));
        self.let_go(now, out);
    }

    /// No flush waits any more: the writes behind them begin.
    fn let_go(&mut self, now: SimTime, out: &mut Orders) {
        for request in std::mem::take(&mut self.held) {
            self.change(now, &request, out);
        }
    }
}

impl Service for WriteBack {
    fn legs(&self) -> usize {
        self.latte.legs()
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        self.latte.limits(legs)
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        self.begin(out);
        let waits = !self.flushes.is_empty();
        match request.operation {
            Operation::Flush => {
                self.flushes.push(*request);
                if !waits {
                    self.go_on(now, out);
                }
            }
            Operation::Write | Operation::Trim if waits => self.held.push(*request),
            _ => self.change(now, request, out),
        }
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        self.begin(out);
        let watched = self.watched.get(order as usize).copied().unwrap_or(Watched::Other);
        self.latte.completed(now, order, result, out);
        self.note(out);
        if let Err(failure) = result {
            self.has_back &= watched == Watched::Other || failure != Failure::Gone;
            if watched == Watched::BackWrite && !self.flushes.is_empty() {
                self.failed = Some(failure);
            }
        }
        if !self.flushes.is_empty() {
            // Buffers that came back in this step are taken again in the next one.
            out.wake_at = Some(now);
        }
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        self.begin(out);
        self.go_on(now, out);
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
            check_seeds(120, || WriteBack::new(Latte::new(small(rule))));
        }
    }

    /// Ends the orders of a step one by one, in order, until nothing is under way; returns those that were sent.
    fn run(service: &mut WriteBack, out: &mut Orders, answers: &mut Vec<(u32, Result<(), Failure>)>) -> Vec<Order> {
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
        Request { id, operation, first, count: 1, durable: false }
    }

    #[test]
    fn a_flush_brings_what_was_written_before_it_to_the_back_end_first() {
        let mut service = WriteBack::new(Latte::new(small(Rule::Front)));
        let (mut out, mut answers, now) = (Orders::default(), Vec::new(), SimTime::ZERO);
        (0..3).for_each(|id| service.submit(now, &request(id, Operation::Write, u64::from(id) * 2), &mut out));
        let sent = run(&mut service, &mut out, &mut answers);
        assert!(answers.len() == 3 && sent.iter().all(|order| order.leg == Leg(0)), "{sent:?}");
        service.submit(now, &request(3, Operation::Flush, 0), &mut out);
        // It comes later, and is not flushed.
        service.submit(now, &request(4, Operation::Write, 9), &mut out);
        let sent = run(&mut service, &mut out, &mut answers);
        let flush = sent.iter().position(|order| order.operation == Operation::Flush).expect("the legs are flushed");
        let is_written = |block| sent[..flush].iter().any(|order| order.leg == BACK && order.first == block);
        assert!([0, 2, 4].into_iter().all(is_written) && !is_written(9), "{sent:?}");
        assert_eq!(answers.iter().map(|(id, _)| *id).max(), Some(4));
        assert!(answers.iter().all(|(_, result)| result.is_ok()));
    }

    #[test]
    fn a_flush_fails_where_the_back_end_does_and_once_after_the_front_end_was_lost() {
        let mut service = WriteBack::new(Latte::new(small(Rule::Front)));
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
        assert_eq!(answers, [(0, Err(Failure::Failed)), (1, Ok(()))]);
    }
}
