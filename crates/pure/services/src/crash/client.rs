//! A client of a volume: random requests, and all that it knows of what they may find.
//!
//! Every write has a stamp of its own. The rules: every block is a linearizable register; after a loss of power a block has one of its
//! versions since the last flush, and none before the last durable write.

use super::leg::Block;
use super::machine::Answer;
use super::whole::Writes;
use flashyard_blk::Operation;
use flashyard_faults::{Action, Extent, Moment, OperationId, Oracle, Outcome};
use flashyard_kernel::Rng;
use flashyard_service::contract::{block_of, stamp_of};
use flashyard_service::{Failure, Request};
use flashyard_units::SimTime;

/// Requests under way. \[A\]
pub const DEPTH: usize = 6;
/// Blocks of a request at most. \[A\]
pub const REQUEST_BLOCKS: u64 = 5;

/// A request under way.
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

/// The shape of a client's requests.
pub struct Habits {
    /// Requests.
    pub requests: u32,
    /// Blocks of the volume.
    pub blocks: u64,
    /// Those of them that it asks for, from the first.
    pub span: u64,
    /// Whether it trims.
    pub has_trims: bool,
    /// Whether each write has to be whole.
    pub whole: bool,
    /// Whether a loss of power takes nothing that was answered.
    pub protected: bool,
}

/// The client.
pub struct Client {
    habits: Habits,
    /// Its choices.
    pub rng: Rng,
    left: u32,
    asked: Vec<Option<Asked>>,
    stamp: u64,
    oracle: Oracle,
    writes: Writes,
    /// The last durable write of each block that no other change was under way beside.
    floors: Vec<u64>,
    /// The first violation that it has seen, and counters of its world.
    pub outcome: Outcome,
    /// Reads that were held against all writes.
    pub checked: u64,
}

impl Client {
    /// One with such habits.
    pub fn new(habits: Habits, rng: Rng) -> Self {
        let mut oracle = Oracle::new(&[habits.blocks]);
        if !habits.protected {
            oracle.make_volatile(0);
        }
        Self {
            rng,
            left: habits.requests,
            asked: (0..DEPTH).map(|_| None).collect(),
            stamp: 0,
            oracle,
            writes: Writes::default(),
            floors: vec![0; habits.blocks as usize],
            outcome: Outcome::default(),
            checked: 0,
            habits,
        }
    }

    /// A rule was broken.
    pub fn violate(&mut self, violation: String) {
        self.outcome.violation.get_or_insert(violation);
    }

    /// Whether nothing is left to ask, and nothing to answer.
    pub fn is_over(&self) -> bool {
        self.left == 0 && self.asked.iter().all(Option::is_none)
    }

    /// The next request, with the blocks of a write, if one may begin.
    pub fn next(&mut self, now: SimTime) -> Option<(Request, Vec<Block>)> {
        let id = self.asked.iter().position(Option::is_none).filter(|_| self.left > 0)?;
        self.left -= 1;
        let operation = match self.rng.below(100) {
            0..55 => Operation::Write,
            55..60 if self.habits.has_trims => Operation::Trim,
            55..93 => Operation::Read,
            _ => Operation::Flush,
        };
        let count = 1 + self.rng.below(REQUEST_BLOCKS);
        let first = self.rng.below(self.habits.span - count + 1);
        let durable = self.rng.below(4) == 0;
        let (first, count) = if operation == Operation::Flush { (0, 0) } else { (first, count as u32) };
        let request = Request { id: id as u32, operation, first, count, durable, source: 0 };
        let stamp = self.issue(now, &request);
        Some((request, vec![block_of(stamp); count as usize]))
    }

    /// Notes a request; returns its stamp.
    fn issue(&mut self, now: SimTime, request: &Request) -> u64 {
        let Request { id, operation, first, count, durable, .. } = *request;
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
        stamp
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

    /// A request was answered; `may_fail` tells for which failures there is a reason.
    pub fn answered(&mut self, now: SimTime, answer: &Answer, may_fail: impl Fn(Failure) -> bool) {
        let Answer { request: Request { id, first, .. }, result, ref blocks } = *answer;
        let Some(asked) = self.asked[id as usize].take() else {
            return self.violate(format!("request {id} was answered twice"));
        };
        let operation = OperationId(id);
        self.writes.end(asked.stamp);
        let checked = match (asked.operation, result) {
            (Operation::Flush, Ok(())) => {
                self.oracle.flushed(now, 0, asked.flush.expect("a flush has its moment"));
                Ok(())
            }
            (of, Err(failure)) => {
                if !may_fail(failure) {
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
                self.check_whole(first, &stamps, "a read has found that");
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

    fn check_whole(&mut self, first: u64, stamps: &[u64], when: &str) {
        if self.habits.whole {
            self.checked += 1;
            if let Err(torn) = self.writes.check(first, stamps) {
                self.violate(format!("{when} {torn}"));
            }
        }
    }

    /// Stamps grow with the time of issue: one below that of a durable write which met no other is of an older version.
    fn check_floors(&mut self, first: u64, found: &[u64], floors: &[u64]) {
        for (block, (&stamp, &floor)) in (first..).zip(found.iter().zip(floors)) {
            if stamp < floor {
                self.violate(format!("block {block} has version {stamp}, and {floor} was durable"));
            }
        }
    }

    /// All blocks as they are at a moment: none has another version later unless it is written.
    pub fn saw_all(&mut self, now: SimTime, stamps: &[u64]) {
        self.check_whole(0, stamps, "after a loss of power");
        let floors = self.floors.clone();
        self.check_floors(0, stamps, &floors);
        let operation = OperationId(DEPTH as u32);
        let extent = Extent { drive: 0, first: 0, count: stamps.len() as u32 };
        self.oracle.issue(now, operation, Action::Read, extent);
        let checked = self.oracle.returned(now, operation, stamps);
        self.outcome.note(checked);
    }

    /// Power was lost with all that was under way.
    pub fn lost_power(&mut self, now: SimTime) {
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
    }

    /// Nothing more is asked; returns the blocks that were checked.
    pub fn finish(&mut self, now: SimTime) -> u64 {
        let finished = self.oracle.finish(now);
        self.outcome.note(finished);
        self.oracle.counters().slots_read
    }
}
