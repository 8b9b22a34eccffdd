//! A register store of two copies with a redo log, and three bugs to plant in it.
//!
//! A write goes to the log, is acknowledged, and is applied to both copies in the order of the log; a record leaves
//! the log when both copies have it. Reads take what the log holds, or else one of the copies in turn. After a loss of
//! power the log is applied to both copies again, from its beginning, before the host goes on.

use flashyard_faults::{Action, Case, Extent, Fault, Fingerprint, Injector, OperationId, Oracle, Outcome, World};
use flashyard_kernel::{EventQueue, Rng};
use flashyard_units::{SimSpan, SimTime};
use std::collections::{BTreeMap, VecDeque};

const SLOTS: u64 = 6;
const QUEUE_DEPTH: u32 = 3;

/// A mistake in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A write is visible and acknowledged before its record is in the log.
    AcknowledgeBeforeLog,
    /// A recovery that was interrupted itself applies the log backwards.
    ReplayOutOfOrder,
    /// A record leaves the log as soon as one copy has it.
    ClearLogEarly,
}

pub(crate) struct ToyWorld {
    pub(crate) bug: Option<Bug>,
    pub(crate) requests: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Accept(u32),
    Log(u32),
    LogLate(Record),
    Acknowledge(u32),
    Read(u32),
    Return(u32),
    Apply(usize),
    Replay(usize),
}

#[derive(Clone, Copy, Debug)]
struct Record {
    number: u64,
    slot: u64,
    stamp: u64,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    action: Action,
    slot: u64,
    read: u64,
}

/// State that a loss of power leaves.
#[derive(Default)]
struct Durable {
    copies: [[u64; SLOTS as usize]; 2],
    log: VecDeque<Record>,
    recovering: bool,
}

struct Store {
    bug: Option<Bug>,
    now: SimTime,
    rng: Rng,
    queue: EventQueue<Step>,
    durable: Durable,
    /// Stamps in the log, by slot: what reads see first.
    logged: BTreeMap<u64, u64>,
    pending: [VecDeque<Record>; 2],
    applied: [u64; 2],
    stalled_until: [SimTime; 2],
    backwards: bool,
    numbered: u64,
    requests: Vec<Option<Request>>,
    to_issue: u32,
    issued: u64,
    oracle: Oracle,
    outcome: Outcome,
    fingerprint: Fingerprint,
}

impl World for ToyWorld {
    fn name(&self) -> String {
        "two copies and a log".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        let held_for = SimSpan::from_us(40);
        vec![
            Fault::PowerLoss { off_for: SimSpan::from_ms(1) },
            Fault::StallDrive { drive: 0, held_for },
            Fault::StallDrive { drive: 1, held_for },
        ]
    }

    fn size(&self) -> u32 {
        self.requests
    }

    fn run(&self, case: &Case) -> Outcome {
        let mut store = Store::new(self.bug, case.seed, case.size.unwrap_or(self.requests));
        let mut injector = Injector::new(&case.plan);
        store.issue_more();
        loop {
            let next = store.queue.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                store.now = at.map_or(store.now, |at| at.max(store.now));
                store.strike(fault, injector.events());
            } else if let Some((time, step)) = store.queue.pop() {
                store.now = time;
                store.handle(step, injector.events());
                injector.handled();
            } else {
                break;
            }
        }
        store.read_everything();
        let checked = store.oracle.finish(store.now);
        store.outcome.note(checked);
        store.outcome.counters.insert("slots read", store.oracle.counters().slots_read);
        Outcome {
            events: injector.events(),
            taken: injector.into_taken(),
            fingerprint: store.fingerprint.get(),
            ..store.outcome
        }
    }
}

impl Store {
    fn new(bug: Option<Bug>, seed: u64, to_issue: u32) -> Self {
        Self {
            bug,
            now: SimTime::ZERO,
            rng: Rng::named(seed, "toy.workload"),
            queue: EventQueue::default(),
            durable: Durable::default(),
            logged: BTreeMap::new(),
            pending: Default::default(),
            applied: [0; 2],
            stalled_until: [SimTime::ZERO; 2],
            backwards: false,
            numbered: 0,
            requests: vec![None; QUEUE_DEPTH as usize],
            to_issue,
            issued: 0,
            oracle: Oracle::new(&[SLOTS]),
            outcome: Outcome::default(),
            fingerprint: Fingerprint::default(),
        }
    }

    fn after(&mut self, us: u64, step: Step) {
        let jitter = SimSpan::from_ns(self.rng.below(1000));
        self.queue.push(self.now + SimSpan::from_us(us) + jitter, step);
    }

    fn issue_more(&mut self) {
        for tag in 0..QUEUE_DEPTH {
            if self.to_issue > 0 && self.requests[tag as usize].is_none() {
                self.to_issue -= 1;
                self.issued += 1;
                let slot = self.rng.below(SLOTS);
                let action = match self.rng.below(10) {
                    0 => Action::Trim,
                    1..=3 => Action::Read,
                    _ => Action::Write(self.issued),
                };
                self.oracle.issue(self.now, OperationId(tag), action, Extent::slot(0, slot));
                self.requests[tag as usize] = Some(Request { action, slot, read: 0 });
                self.after(1, if action == Action::Read { Step::Read(tag) } else { Step::Accept(tag) });
            }
        }
    }

    fn request(&mut self, tag: u32) -> &mut Request {
        self.requests[tag as usize].as_mut().expect("its events go with it")
    }

    fn handle(&mut self, step: Step, event: u64) {
        let early = self.bug == Some(Bug::AcknowledgeBeforeLog);
        match step {
            Step::Accept(tag) => {
                if early {
                    let record = self.record(tag);
                    // Without jitter, so that records stay in their order.
                    self.queue.push(self.now + SimSpan::from_us(5), Step::LogLate(record));
                    self.finish(tag);
                } else {
                    self.after(4, Step::Log(tag));
                }
            }
            Step::Log(tag) => {
                let record = self.record(tag);
                self.log(record);
                self.after(2, Step::Acknowledge(tag));
            }
            Step::LogLate(record) => self.log(record),
            Step::Acknowledge(tag) => self.finish(tag),
            Step::Read(tag) => {
                let slot = self.request(tag).slot;
                let copy = (self.issued % 2) as usize;
                let stamp = self.logged.get(&slot).copied();
                self.request(tag).read = stamp.unwrap_or(self.durable.copies[copy][slot as usize]);
                self.after(3, Step::Return(tag));
            }
            Step::Return(tag) => self.finish(tag),
            Step::Apply(copy) => self.apply(copy),
            Step::Replay(index) => self.replay(index, event),
        }
    }

    /// Makes the record of a write or trim; reads see it from now on.
    fn record(&mut self, tag: u32) -> Record {
        let Request { action, slot, .. } = *self.request(tag);
        self.numbered += 1;
        self.logged.insert(slot, stamp_of(action));
        Record { number: self.numbered, slot, stamp: stamp_of(action) }
    }

    fn log(&mut self, record: Record) {
        self.durable.log.push_back(record);
        for copy in 0..2 {
            self.pending[copy].push_back(record);
            if self.pending[copy].len() == 1 {
                self.after(6 + 3 * copy as u64, Step::Apply(copy));
            }
        }
    }

    fn apply(&mut self, copy: usize) {
        if self.now < self.stalled_until[copy] {
            self.queue.push(self.stalled_until[copy], Step::Apply(copy));
            return;
        }
        let record = self.pending[copy].pop_front().expect("an application has its record");
        self.durable.copies[copy][record.slot as usize] = record.stamp;
        self.applied[copy] = record.number;
        if !self.pending[copy].is_empty() {
            self.after(6, Step::Apply(copy));
        }
        let both = self.applied[0].min(self.applied[1]);
        let through = if self.bug == Some(Bug::ClearLogEarly) { record.number } else { both };
        while self.durable.log.front().is_some_and(|first| first.number <= through) {
            self.durable.log.pop_front();
        }
        let waits = self.pending.iter().flatten().any(|other| other.slot == record.slot);
        if record.number <= both && !waits && self.logged.get(&record.slot) == Some(&record.stamp) {
            self.logged.remove(&record.slot);
        }
    }

    fn finish(&mut self, tag: u32) {
        let request = self.requests[tag as usize].take().expect("it is under way");
        let checked = match request.action {
            Action::Read => self.oracle.returned(self.now, OperationId(tag), &[request.read]),
            _ => self.oracle.acknowledged(self.now, OperationId(tag)),
        };
        self.outcome.note(checked);
        self.issue_more();
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        match fault {
            Fault::PowerLoss { off_for } => self.lose_power(off_for, event),
            Fault::StallDrive { drive, held_for } => {
                self.fingerprint.step(100 + u64::from(drive));
                self.stalled_until[drive as usize] = self.now + held_for;
            }
            _ => {}
        }
    }

    fn lose_power(&mut self, off_for: SimSpan, event: u64) {
        for step in [self.durable.log.len() as u64, self.pending[1].len() as u64, self.durable.recovering.into()] {
            self.fingerprint.step(step);
        }
        for (tag, request) in self.requests.iter_mut().enumerate() {
            if request.take().is_some() {
                let checked = self.oracle.failed(self.now, OperationId(tag as u32));
                self.outcome.note(checked);
            }
        }
        self.oracle.settle(self.now, 0);
        self.queue = EventQueue::default();
        self.logged.clear();
        self.pending.iter_mut().for_each(VecDeque::clear);
        self.applied = [self.numbered; 2];
        self.stalled_until = [SimTime::ZERO; 2];
        self.backwards = self.durable.recovering && self.bug == Some(Bug::ReplayOutOfOrder);
        self.durable.recovering = true;
        if let Some(interrupted) = self.outcome.recoveries.last_mut().filter(|range| range.end == u64::MAX) {
            interrupted.end = event;
        }
        self.outcome.recoveries.push(event..u64::MAX);
        self.now += off_for;
        self.after(1, Step::Replay(0));
    }

    /// Applies one record of the log to one copy.
    fn replay(&mut self, index: usize, event: u64) {
        let records = self.durable.log.len();
        if index == records * 2 {
            self.durable.log.clear();
            self.durable.recovering = false;
            if let Some(range) = self.outcome.recoveries.last_mut() {
                range.end = event + 1;
            }
            self.issue_more();
            return;
        }
        let place = if self.backwards { records - 1 - index / 2 } else { index / 2 };
        let record = self.durable.log[place];
        self.durable.copies[index % 2][record.slot as usize] = record.stamp;
        *self.outcome.counters.entry("records replayed").or_default() += 1;
        self.after(2, Step::Replay(index + 1));
    }

    /// At the end, with nothing under way: both copies hold the same.
    fn read_everything(&mut self) {
        for (copy, slot) in [0, 1].into_iter().flat_map(|copy| (0..SLOTS).map(move |slot| (copy, slot))) {
            self.oracle.issue(self.now, OperationId(0), Action::Read, Extent::slot(0, slot));
            let stamp = self.durable.copies[copy][slot as usize];
            let checked = self.oracle.returned(self.now, OperationId(0), &[stamp]);
            self.outcome.note(checked);
        }
    }
}

fn stamp_of(action: Action) -> u64 {
    match action {
        Action::Write(stamp) => stamp,
        _ => 0,
    }
}
