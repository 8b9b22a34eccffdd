//! Atomic writes as a world for the explorer of faults: a client, the service, and a leg whose write cache is volatile.
//!
//! Every write has a stamp of its own. The rules: every block is a linearizable register; after a loss of power a block has one of its
//! versions since the last flush, and none before the last durable write; and at every moment each write is there whole or not at all,
//! in what is read at once and in all blocks after a loss of power. Orders to the leg may fail for a while or be held; nothing is lost
//! by it.

use super::machine::{Answer, Machine};
use super::whole::Writes;
use crate::AtomicWrites;
use flashyard_blk::Operation;
use flashyard_faults::{
    Action, Case, Extent, Fault, Fingerprint, Injector, Moment, OperationId, Oracle, Outcome, World,
};
use flashyard_kernel::Rng;
use flashyard_service::Request;
use flashyard_service::contract::{block_of, stamp_of};
use flashyard_units::{SimSpan, SimTime};

/// Blocks of the volume: few, so that requests meet. \[A\]
const BLOCKS: u64 = 24;
/// Blocks that half of all runs ask for alone. \[A\]
const HOT_BLOCKS: u64 = 9;
/// Blocks of a request at most: the smallest log takes as many. \[A\]
const REQUEST_BLOCKS: u64 = 5;
/// Blocks of the log: full all the time, often, and seldom. \[A\]
const LOGS: [u64; 3] = [23, 40, 90];
/// Requests under way. \[A\]
const DEPTH: usize = 6;
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// How long the leg is away: within an order, some orders, longer than all that waits. \[A\]
const AWAY: [SimSpan; 3] = [SimSpan::from_us(20), SimSpan::from_us(300), SimSpan::from_ms(3)];
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;

/// Atomic writes to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtomicWorld;

impl World for AtomicWorld {
    fn name(&self) -> String {
        "atomic".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let of = |away: SimSpan| {
            [Fault::LinkDown { drive: 0, down_for: Some(away) }, Fault::StallDrive { drive: 0, held_for: away }]
        };
        std::iter::once(Fault::PowerLoss { off_for: AWAY[0] }).chain(AWAY.into_iter().flat_map(of)).collect()
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
            let next = run.machine.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                run.machine.now = run.machine.now.max(at.unwrap_or(run.machine.now));
                run.strike(fault, injector.events());
            } else if next.is_some() && !run.is_over() {
                run.step(injector.events());
                injector.handled();
            } else {
                break;
            }
            run.issue_more();
        }
        run.end(injector)
    }
}

/// A client's request under way.
struct Asked {
    operation: Operation,
    first: u64,
    stamp: u64,
    durable: bool,
    flush: Option<Moment>,
    /// Whether another change of its blocks was under way beside it.
    is_met: bool,
    /// Versions that were durable when it began: a read returns nothing older.
    floors: Vec<u64>,
}

struct Run {
    rng: Rng,
    left: u32,
    span: u64,
    has_trims: bool,
    log: u64,
    machine: Machine<AtomicWrites>,
    asked: Vec<Option<Asked>>,
    stamp: u64,
    oracle: Oracle,
    writes: Writes,
    /// The last durable write of each block that no other change was under way beside.
    floors: Vec<u64>,
    outcome: Outcome,
    fingerprint: Fingerprint,
    /// Counts of services that a power cut has ended, and power cuts.
    homes: u64,
    replayed: u64,
    waited: u64,
    cuts: u64,
    checked: u64,
    is_recovering: bool,
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let log = LOGS[seed as usize % LOGS.len()];
        let mut oracle = Oracle::new(&[BLOCKS]);
        oracle.make_volatile(0);
        Self {
            rng: Rng::named(seed, "atomic.client"),
            left: requests,
            span: [BLOCKS, HOT_BLOCKS][seed as usize / 3 % 2],
            has_trims: seed / 6 % 2 == 1,
            log,
            machine: Machine::new(AtomicWrites::new(log), BLOCKS + log, Rng::named(seed, "atomic.leg")),
            asked: (0..DEPTH).map(|_| None).collect(),
            stamp: 0,
            oracle,
            writes: Writes::default(),
            floors: vec![0; BLOCKS as usize],
            outcome: Outcome::default(),
            fingerprint: Fingerprint::default(),
            homes: 0,
            replayed: 0,
            waited: 0,
            cuts: 0,
            checked: 0,
            is_recovering: true,
        }
    }

    fn violate(&mut self, violation: String) {
        self.outcome.violation.get_or_insert(violation);
    }

    /// Whether nothing is left to ask, and nothing to answer.
    fn is_over(&self) -> bool {
        self.left == 0 && self.asked.iter().all(Option::is_none)
    }

    fn issue_more(&mut self) {
        for id in 0..DEPTH {
            if self.left > 0 && self.asked[id].is_none() {
                self.left -= 1;
                let operation = match self.rng.below(100) {
                    0..55 => Operation::Write,
                    55..60 if self.has_trims => Operation::Trim,
                    55..93 => Operation::Read,
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
        let now = self.machine.now;
        let mut stamp = 0;
        let action = match operation {
            Operation::Read => Some(Action::Read),
            Operation::Write => {
                self.stamp += 1;
                stamp = self.stamp;
                self.writes.begin(stamp, first, count);
                Some(Action::Write(stamp))
            }
            Operation::Trim => {
                self.writes.trim(first, count);
                Some(Action::Trim)
            }
            _ => None,
        };
        let flush = action.is_none().then(|| self.oracle.flush(now));
        if let Some(action) = action {
            self.oracle.issue(now, OperationId(id), action, Extent { drive: 0, first, count });
        }
        let changes = matches!(operation, Operation::Write | Operation::Trim);
        let is_met = changes && self.meet(operation, first, count);
        if operation == Operation::Trim {
            // A block that is trimmed holds nothing, which is older than any stamp.
            self.floors[first as usize..][..count as usize].fill(0);
        }
        let floors = self.floors[first as usize..][..count as usize].to_vec();
        self.asked[id as usize] = Some(Asked { operation, first, stamp, durable, flush, is_met, floors });
        let request = Request { id, operation, first, count, durable, source: 0 };
        self.machine.submit(request, vec![block_of(stamp); count as usize]);
        self.take_answers();
    }

    /// Marks changes under way that a new one meets, and reads that a trim does; returns whether there are any changes.
    fn meet(&mut self, operation: Operation, first: u64, count: u32) -> bool {
        let end = first + u64::from(count);
        let mut is_met = false;
        for asked in self.asked.iter_mut().flatten() {
            let its_end = asked.first + asked.floors.len() as u64;
            if asked.first < end && first < its_end {
                let changes = matches!(asked.operation, Operation::Write | Operation::Trim);
                asked.is_met |= changes || operation == Operation::Trim;
                is_met |= changes;
            }
        }
        is_met
    }

    fn step(&mut self, event: u64) {
        let name = self.machine.step();
        if self.is_recovering {
            self.fingerprint.step(name);
            if self.machine.service.has_recovered() {
                self.is_recovering = false;
                self.check_all();
                if let Some(recovery) = self.outcome.recoveries.last_mut() {
                    recovery.end = event + 1;
                }
            }
        }
        self.take_answers();
    }

    fn take_answers(&mut self) {
        for answer in std::mem::take(&mut self.machine.answers) {
            self.answered(&answer);
        }
    }

    fn answered(&mut self, answer: &Answer) {
        let Answer { request: Request { id, first, .. }, result, ref blocks } = *answer;
        let Some(asked) = self.asked[id as usize].take() else {
            return self.violate(format!("request {id} was answered twice"));
        };
        let (now, operation) = (self.machine.now, OperationId(id));
        self.writes.end(asked.stamp);
        let checked = match (asked.operation, result) {
            (Operation::Flush, Ok(())) => {
                self.oracle.flushed(now, 0, asked.flush.expect("a flush has its moment"));
                Ok(())
            }
            (of, Err(failure)) => {
                if self.machine.fails_until == SimTime::ZERO {
                    self.violate(format!("request {id} failed without a reason: {failure}"));
                }
                if of == Operation::Flush {
                    return;
                }
                let failed = self.oracle.failed(now, operation);
                // Nothing of it is on its way any more.
                self.oracle.settle(now, 0);
                failed
            }
            (Operation::Read, Ok(())) => {
                let stamps: Vec<u64> = blocks.iter().map(stamp_of).collect();
                self.checked += 1;
                if let Err(torn) = self.writes.check(first, &stamps) {
                    self.violate(format!("a read has found that {torn}"));
                }
                if !asked.is_met {
                    self.check_floors(first, &stamps, &asked.floors);
                }
                self.oracle.returned(now, operation, &stamps)
            }
            (_, Ok(())) => {
                if asked.durable && !asked.is_met {
                    self.floors[first as usize..][..asked.floors.len()].fill(asked.stamp);
                }
                self.oracle.acknowledged(now, operation)
            }
        };
        self.outcome.note(checked);
    }

    /// Stamps grow with the time of issue: one below that of a durable write which met no other is of an older version.
    fn check_floors(&mut self, first: u64, found: &[u64], floors: &[u64]) {
        for (block, (&stamp, &floor)) in (first..).zip(found.iter().zip(floors)) {
            if stamp < floor {
                self.violate(format!("block {block} has version {stamp}, and {floor} was durable"));
            }
        }
    }

    /// Reads all blocks at home, when none is in the log: whatever power has left is there for good.
    fn check_all(&mut self) {
        let now = self.machine.now;
        let stamps: Vec<u64> = (0..BLOCKS).map(|block| stamp_of(self.machine.leg.get(block))).collect();
        if let Err(torn) = self.writes.check(0, &stamps) {
            self.violate(format!("after a loss of power {torn}"));
        }
        let floors = self.floors.clone();
        self.check_floors(0, &stamps, &floors);
        let operation = OperationId(DEPTH as u32);
        self.oracle.issue(now, operation, Action::Read, Extent { drive: 0, first: 0, count: BLOCKS as u32 });
        let checked = self.oracle.returned(now, operation, &stamps);
        self.outcome.note(checked);
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            Fault::LinkDown { down_for, .. } => self.machine.fails_until = now + down_for.unwrap_or(AWAY[2]),
            Fault::StallDrive { held_for, .. } => self.machine.hold(now + held_for),
            _ => {}
        }
    }

    fn cut_power(&mut self, event: u64) {
        self.cuts += 1;
        let counters = self.machine.service.counters();
        self.homes += counters.homes;
        self.replayed += counters.replayed;
        self.waited += counters.waited;
        // The leg has lost its power as well, and answers when it is back.
        self.machine.fails_until = self.machine.fails_until.min(self.machine.now);
        self.machine.cut_power(AtomicWrites::new(self.log));
        let now = self.machine.now;
        for id in 0..DEPTH {
            if self.asked[id].take().is_some_and(|asked| asked.operation != Operation::Flush) {
                let failed = self.oracle.failed(now, OperationId(id as u32));
                self.outcome.note(failed);
            }
        }
        // Everything that arrives has arrived.
        self.oracle.settle(now, 0);
        self.oracle.power_lost(now, 0);
        self.writes.end_all();
        self.is_recovering = true;
        self.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }

    /// Power is cut once more, and every block is read.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.is_over() {
            self.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        self.cut_power(events);
        self.outcome.recoveries.pop();
        let mut steps = 0;
        while !self.machine.service.has_recovered() && steps < EVENTS_PER_REQUEST {
            self.machine.step();
            steps += 1;
        }
        if !self.machine.service.has_recovered() {
            self.violate("the last recovery has no end".to_owned());
        }
        self.check_all();
        let now = self.machine.now;
        self.outcome.note(self.oracle.finish(now));
        self.outcome.counters.extend([
            ("power cuts", self.cuts),
            ("records that went home", self.homes),
            ("records replayed", self.replayed + self.machine.service.counters().replayed),
            ("requests that waited for room", self.waited),
            ("reads held against all writes", self.checked),
            ("blocks checked", self.oracle.counters().slots_read),
        ]);
        Outcome { events, taken: injector.into_taken(), fingerprint: self.fingerprint.get(), ..self.outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn writes_are_whole_at_some_thousand_points() {
        for seed in [1, 7] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&AtomicWorld, base, Limits { points: 3_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["power cuts", "records that went home", "records replayed", "requests that waited for room"] {
                assert!(counters[name] > 1000, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e30+20us;link0@r10+20us".parse().expect("a case");
        assert_eq!(AtomicWorld.run(&case), AtomicWorld.run(&case));
        assert_eq!(AtomicWorld.run(&case).taken.len(), 2);
    }
}
