//! LATTE as a world for the explorer of faults: a client, a front end that is lost with the server's power, and a network volume.
//!
//! Every write has a stamp of its own, and the oracle hears of everything that the client sees. The rules: without a fault every
//! block is a linearizable register; a loss of the server's power takes the location map and the front end with it, so each block
//! has any of its versions since the last flush, but none before the last write that asked to be durable; blocks that only a
//! lost front end had are refused until they are written again; the network may fail orders or hold them, and nothing is lost by it.

use crate::{Config, Latte, Rule};
use flashyard_blk::Operation;
use flashyard_faults::{
    Action, Case, Extent, Fault, Fingerprint, Injector, Moment, OperationId, Oracle, Outcome, World,
};
use flashyard_kernel::Rng;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service};
use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeMap;

/// Blocks of the volume: few, so that requests meet. \[A\]
const BLOCKS: u32 = 24;
/// Blocks that half of all runs ask for alone: orders for one block meet there that seldom do otherwise. \[A\]
const HOT_BLOCKS: u32 = 7;
/// Blocks of a request at most. \[A\]
const REQUEST_BLOCKS: u64 = 5;
/// Slots of the log, and of the cache: fewer than blocks, so that both are full often. \[A\]
const SLOTS: [u32; 2] = [12, 5];
/// Requests under way. \[A\]
const DEPTH: usize = 6;
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// How long the network is away: within an order, some orders, longer than all that waits. \[A\]
const AWAY: [SimSpan; 3] = [SimSpan::from_us(20), SimSpan::from_us(300), SimSpan::from_ms(3)];
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;

/// A LATTE to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct LatteWorld;

impl World for LatteWorld {
    fn name(&self) -> String {
        "latte".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let of = |away: SimSpan| {
            let network = [
                Fault::LinkDown { drive: 1, down_for: Some(away) },
                Fault::StallDrive { drive: 1, held_for: away },
                Fault::LinkDown { drive: 0, down_for: Some(away) },
            ];
            network.into_iter()
        };
        let lost = [Fault::PowerLoss { off_for: AWAY[0] }, Fault::LoseDrive { drive: 0, gone_for: None }];
        lost.into_iter().chain(AWAY.into_iter().flat_map(of)).collect()
    }

    fn size(&self) -> u32 {
        REQUESTS
    }

    fn run(&self, case: &Case) -> Outcome {
        let requests = case.size.unwrap_or(REQUESTS);
        let mut run = Run::new(case.seed, requests);
        let mut injector = Injector::new(&case.plan);
        let events_max = (u64::from(requests) + 10) * EVENTS_PER_REQUEST;
        run.issue_more();
        while injector.events() < events_max {
            let next = run.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                run.now = run.now.max(at.unwrap_or(run.now));
                run.strike(fault);
            } else if next.is_some() && !run.is_over() {
                run.step();
                injector.handled();
            } else {
                break;
            }
            run.issue_more();
        }
        run.end(injector)
    }
}

/// An end of the service: a stamp for each block.
struct End {
    stamps: Vec<u64>,
    /// Orders fail until then.
    fails_until: SimTime,
    /// Orders end not before then.
    held_until: SimTime,
    is_gone: bool,
}

/// An order on its way.
struct Sent {
    order: Order,
    /// Stamps of a write.
    stamps: Vec<u64>,
}

/// A client's request.
struct Asked {
    request: Request,
    stamp: u64,
    began: SimTime,
    /// Stamps that a read has found.
    found: Vec<u64>,
    flush: Option<Moment>,
    /// Whether another write of its blocks was under way beside it.
    is_met: bool,
    /// Versions that were durable when it began: a read returns nothing older.
    floors: Vec<u64>,
}

struct Run {
    now: SimTime,
    rng: Rng,
    left: u32,
    /// Blocks that requests are for.
    span: u64,
    latte: Latte,
    ends: [End; 2],
    /// Orders by the time of their end and by number.
    under_way: BTreeMap<(SimTime, u64), Sent>,
    sent: u64,
    wake_at: Option<SimTime>,
    buffers: BTreeMap<u32, Vec<u64>>,
    asked: Vec<Option<Asked>>,
    stamp: u64,
    oracle: Oracle,
    /// The last durable write of each block that no other write was under way beside.
    floors: Vec<u64>,
    outcome: Outcome,
    fingerprint: Fingerprint,
    /// Power cuts so far, and whether the front end was lost since the last one.
    cuts: u64,
    front_lost: bool,
}

fn latte(seed: u64) -> Latte {
    let [log_slots, cache_slots] = SLOTS;
    let rule = [Rule::Shortest, Rule::Front, Rule::Split(1, 1)][seed as usize % 3];
    let flush_age = SimSpan::from_us(500);
    Latte::new(Config { log_slots, cache_slots, rule, flush_age, ..Config::halves(BLOCKS, BLOCKS) })
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let end = |blocks: u32| End {
            stamps: vec![0; blocks as usize],
            fails_until: SimTime::ZERO,
            held_until: SimTime::ZERO,
            is_gone: false,
        };
        let mut oracle = Oracle::new(&[BLOCKS.into()]);
        oracle.make_volatile(0);
        Self {
            now: SimTime::ZERO,
            rng: Rng::named(seed, "latte.crash"),
            left: requests,
            span: [BLOCKS, HOT_BLOCKS][seed as usize / 3 % 2].into(),
            latte: latte(seed),
            ends: [end(SLOTS[0] + SLOTS[1]), end(BLOCKS)],
            under_way: BTreeMap::new(),
            sent: 0,
            wake_at: None,
            buffers: BTreeMap::new(),
            asked: (0..DEPTH).map(|_| None).collect(),
            stamp: 0,
            oracle,
            floors: vec![0; BLOCKS as usize],
            outcome: Outcome::default(),
            fingerprint: Fingerprint::default(),
            cuts: 0,
            front_lost: false,
        }
    }

    fn violate(&mut self, violation: String) {
        self.outcome.violation.get_or_insert(violation);
    }

    /// Whether nothing is left to ask, and nothing to answer.
    fn is_over(&self) -> bool {
        self.left == 0 && self.asked.iter().all(Option::is_none)
    }

    fn next_time(&self) -> Option<SimTime> {
        let order = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        [order, self.wake_at].into_iter().flatten().min()
    }

    fn issue_more(&mut self) {
        for id in 0..DEPTH {
            if self.left > 0 && self.asked[id].is_none() {
                self.left -= 1;
                let operation = match self.rng.below(100) {
                    0..50 => Operation::Write,
                    50..93 => Operation::Read,
                    _ => Operation::Flush,
                };
                let count = 1 + self.rng.below(REQUEST_BLOCKS);
                let first = self.rng.below(self.span - count + 1);
                let durable = self.rng.below(4) == 0;
                self.issue(id as u32, operation, (first, count as u32), durable);
            }
        }
    }

    fn issue(&mut self, id: u32, operation: Operation, (first, count): (u64, u32), durable: bool) {
        let (first, count) = if operation == Operation::Flush { (0, 0) } else { (first, count) };
        let request = Request { id, operation, first, count, durable, source: 0 };
        self.stamp += u64::from(operation == Operation::Write);
        let action = match operation {
            Operation::Read => Some(Action::Read),
            Operation::Write => Some(Action::Write(self.stamp)),
            _ => None,
        };
        let flush = action.is_none().then(|| self.oracle.flush(self.now));
        if let Some(action) = action {
            self.oracle.issue(self.now, OperationId(id), action, Extent { drive: 0, first, count });
        }
        let is_met = operation == Operation::Write && self.meet(&request);
        let floors = self.floors[first as usize..][..count as usize].to_vec();
        let (began, found) = (self.now, vec![0; count as usize]);
        let asked = Asked { request, stamp: self.stamp, began, found, flush, is_met, floors };
        self.asked[id as usize] = Some(asked);
        let mut out = Orders::default();
        self.latte.submit(self.now, &request, &mut out);
        self.carry_out(out);
    }

    /// Marks writes under way that a new one meets; returns whether there are any.
    fn meet(&mut self, new: &Request) -> bool {
        let end = new.first + u64::from(new.count);
        let meets = |asked: &&mut Asked| {
            let Request { operation, first, count, .. } = asked.request;
            operation == Operation::Write && first < end && new.first < first + u64::from(count)
        };
        let met = self.asked.iter_mut().flatten().filter(meets);
        met.map(|asked| asked.is_met = true).count() > 0
    }

    fn carry_out(&mut self, mut out: Orders) {
        if out.wake_at.is_some() {
            self.wake_at = out.wake_at;
        }
        for &(id, blocks) in &out.taken {
            self.buffers.insert(id, vec![0; blocks as usize]);
        }
        for &order in &out.orders {
            self.send(order);
        }
        for (id, result) in out.answers.drain(..) {
            self.answered(id, result);
        }
        // Orders have their stamps: buffers may go.
        out.released.iter().for_each(|id| drop(self.buffers.remove(id)));
    }

    fn send(&mut self, order: Order) {
        let range = |at: u32| at as usize..(at + order.count) as usize;
        let stamps = match (order.operation, order.data) {
            (Operation::Write, Data::Request { id, at }) => {
                let asked = self.asked[id as usize].as_ref().expect("an order names a request that is kept");
                match asked.request.operation {
                    Operation::Write => vec![asked.stamp; order.count as usize],
                    _ => asked.found[range(at)].to_vec(),
                }
            }
            (Operation::Write, Data::Buffer { id, at }) => self.buffers[&id][range(at)].to_vec(),
            (Operation::Write, Data::None) => vec![0; order.count as usize],
            _ => Vec::new(),
        };
        let held = self.ends[usize::from(order.leg.0)].held_until;
        let span = SimSpan::from_us(1 + self.rng.below(if order.leg == Leg(0) { 10 } else { 40 }));
        self.sent += 1;
        self.under_way.insert((self.now.max(held) + span, self.sent), Sent { order, stamps });
    }

    /// The next order ends, or the service is woken.
    fn step(&mut self) {
        let mut out = Orders::default();
        let order = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        if self.wake_at.is_some_and(|at| order.is_none_or(|order| at < order)) {
            self.now = self.now.max(self.wake_at.take().expect("it was looked at"));
            self.latte.wake(self.now, &mut out);
        } else if let Some(((at, _), sent)) = self.under_way.pop_first() {
            self.now = self.now.max(at);
            let result = self.reach(&sent);
            self.fingerprint.step(u64::from(sent.order.leg.0) << 4 | u64::from(result.is_ok()));
            self.latte.completed(self.now, sent.order.id, result, &mut out);
        }
        self.carry_out(out);
    }

    /// An order takes effect at its end, or fails there. What fails may have happened, block by block.
    fn reach(&mut self, sent: &Sent) -> Result<(), Failure> {
        let Order { leg, operation, first, count, data, .. } = sent.order;
        let end = &mut self.ends[usize::from(leg.0)];
        let blocks = first as usize..first as usize + count as usize;
        let fails = end.is_gone || end.fails_until > self.now;
        if operation == Operation::Write {
            for (block, &stamp) in blocks.zip(&sent.stamps) {
                if !end.is_gone && (!fails || self.rng.below(2) == 0) {
                    end.stamps[block] = stamp;
                }
            }
        } else if operation == Operation::Read && !fails {
            let found = &end.stamps[blocks];
            match data {
                Data::Request { id, at } => {
                    if let Some(asked) = &mut self.asked[id as usize] {
                        asked.found[at as usize..][..found.len()].copy_from_slice(found);
                    }
                }
                Data::Buffer { id, at } => {
                    let buffer = self.buffers.get_mut(&id).expect("a buffer is kept while an order names it");
                    buffer[at as usize..][..found.len()].copy_from_slice(found);
                }
                Data::None | Data::Own { .. } => {}
            }
        }
        match (end.is_gone, fails) {
            (true, _) => Err(Failure::Gone),
            (false, true) => Err(Failure::Dropped),
            (false, false) => Ok(()),
        }
    }

    fn answered(&mut self, id: u32, result: Result<(), Failure>) {
        let Some(asked) = self.asked[id as usize].take() else {
            return self.violate(format!("request {id} was answered twice"));
        };
        let Asked { request, stamp, began, found, flush, is_met, floors } = asked;
        let operation = OperationId(id);
        let checked = match (request.operation, result) {
            // A flush has failed for blocks that were lost; the next one says nothing of them.
            (Operation::Flush, Ok(())) if self.latte.counters().lost > 0 => Ok(()),
            (Operation::Flush, Ok(())) => {
                self.oracle.flushed(self.now, 0, flush.expect("a flush has its moment"));
                Ok(())
            }
            (Operation::Flush, Err(_)) => Ok(()),
            (_, Err(failure)) => {
                if !self.may_fail(began) {
                    self.violate(format!("request {id} failed without a reason: {failure}"));
                }
                let failed = self.oracle.failed(self.now, operation);
                // Nothing of it is on its way any more.
                self.oracle.settle(self.now, 0);
                failed
            }
            (Operation::Read, Ok(())) => {
                self.check_floors(request.first, &found, &floors);
                self.oracle.returned(self.now, operation, &found)
            }
            (_, Ok(())) => {
                if request.durable && !is_met {
                    let blocks = request.first as usize..(request.first + u64::from(request.count)) as usize;
                    self.floors[blocks].fill(stamp);
                }
                self.oracle.acknowledged(self.now, operation)
            }
        };
        self.outcome.note(checked);
    }

    /// Whether something has been broken since a request began, so that it may fail. Orders end as their end is at that moment: later ones
    /// have nothing to do with it.
    fn may_fail(&self, began: SimTime) -> bool {
        self.front_lost || self.latte.counters().lost > 0 || self.ends.iter().any(|end| end.fails_until > began)
    }

    /// Stamps grow with the time of issue: one below that of a durable write which met no other is of an older version.
    fn check_floors(&mut self, first: u64, found: &[u64], floors: &[u64]) {
        for (block, (&stamp, &floor)) in (first..).zip(found.iter().zip(floors)) {
            if stamp < floor {
                self.violate(format!("block {block} has version {stamp}, and {floor} was durable"));
            }
        }
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(),
            Fault::LoseDrive { drive: 0, .. } => {
                self.ends[0].is_gone = true;
                self.front_lost = true;
            }
            Fault::LinkDown { drive: drive @ (0 | 1), down_for } => {
                self.ends[drive as usize].fails_until = self.now + down_for.unwrap_or(AWAY[2]);
            }
            Fault::StallDrive { drive: drive @ (0 | 1), held_for } => {
                let until = self.now + held_for;
                self.ends[drive as usize].held_until = until;
                let due: Vec<_> = self.under_way.iter().map(|(&key, sent)| (key, sent.order.leg)).collect();
                for (key, _) in due.into_iter().filter(|&((at, _), leg)| leg == Leg(drive as u8) && at < until) {
                    let sent = self.under_way.remove(&key).expect("it was just there");
                    self.under_way.insert((until, key.1), sent);
                }
            }
            _ => {}
        }
    }

    /// The server loses its power: what is on its way to the network volume may arrive or not, and the front end begins empty.
    fn cut_power(&mut self) {
        self.cuts += 1;
        for ((_, _), sent) in std::mem::take(&mut self.under_way) {
            if sent.order.operation == Operation::Write && sent.order.leg == Leg(1) {
                let first = sent.order.first as usize;
                for (block, &stamp) in (first..).zip(&sent.stamps) {
                    if self.rng.below(2) == 0 {
                        self.ends[1].stamps[block] = stamp;
                    }
                }
            }
        }
        for id in 0..DEPTH {
            let is_flush = |asked: &Asked| asked.request.operation == Operation::Flush;
            if self.asked[id].take().is_some_and(|asked| !is_flush(&asked)) {
                let failed = self.oracle.failed(self.now, OperationId(id as u32));
                self.outcome.note(failed);
            }
        }
        // Everything that arrives has arrived.
        self.oracle.settle(self.now, 0);
        self.oracle.power_lost(self.now, 0);
        self.ends[0].stamps.fill(0);
        (self.ends[0].is_gone, self.front_lost) = (false, false);
        self.buffers.clear();
        self.wake_at = None;
        self.latte = latte(self.rng.below(3));
        self.fingerprint.step(99);
    }

    /// Power is cut once more, and every block is read.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.is_over() {
            self.violate(format!("requests have no answer at {:?}", self.now));
        }
        let counters = *self.latte.counters();
        self.cut_power();
        let found = self.ends[1].stamps.clone();
        for (block, &stamp) in (0..).zip(&found) {
            self.check_floors(block, &[stamp], &[self.floors[block as usize]]);
            self.oracle.issue(self.now, OperationId(0), Action::Read, Extent::slot(0, block));
            let checked = self.oracle.returned(self.now, OperationId(0), &[stamp]);
            self.outcome.note(checked);
        }
        self.outcome.note(self.oracle.finish(self.now));
        self.outcome.counters.extend([
            ("power cuts", self.cuts),
            ("blocks lost with the front end", counters.lost),
            ("blocks flushed", counters.flushes),
            ("blocks promoted", counters.promotions),
            ("blocks checked", self.oracle.counters().slots_read),
        ]);
        Outcome {
            events: injector.events(),
            taken: injector.into_taken(),
            fingerprint: self.fingerprint.get(),
            ..self.outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn what_the_rules_promise_is_kept_at_some_thousand_points() {
        let base = Case { seed: 1, size: None, plan: FaultPlan::NONE };
        let report = explore(&LatteWorld, base, Limits { points: 6_000, ..Limits::default() });
        assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
        let counters = report.counters();
        for name in ["power cuts", "blocks lost with the front end", "blocks flushed", "blocks promoted"] {
            assert!(counters[name] > 1000, "{name}: {report}");
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;lose0@e30;power@r10+20us".parse().expect("a case");
        assert_eq!(LatteWorld.run(&case), LatteWorld.run(&case));
        assert_eq!(LatteWorld.run(&case).taken.len(), 2);
    }
}
