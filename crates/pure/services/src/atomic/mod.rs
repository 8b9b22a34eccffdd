//! Multi-block atomic writes: each write, of as many blocks as the service takes, happens whole or not at all over a loss of power.
//! Source: sheet leapio §3.6 (all blocks go to a log with one commit record, and are visible at once); the format is \[A\] after §9.
//!
//! The log is a ring at the end of the leg. A record is a header with its data behind it: the header has checksums of both, so
//! that it is the commit record as well, and header and data are written at once. Its blocks are visible, and it is answered, when both are there, and all
//! before it. A durable write
//! and a flush wait for a flush of the leg behind that; over a leg that keeps what it has carried out, every write is durable. When the log is half full, records go home, which begins only once they are durable;
//! their room is free when they are durable at home and an anchor says that the log begins behind them. Blocks in the log are
//! read from there. Trims are records without data; reads of what they trim wait until they are home.
//!
//! After a loss of power the log is read from its anchor on, to the first record that is not whole: what a flush or a durable write has
//! made sure of is before that, and what is behind it never happened. No more can be told by a volatile leg.
//!
//! A record that cannot be written becomes void, so that those behind it count. The service tries ten times to do what it must, a second in
//! all; then it takes no more writes.

mod homes;
mod index;
mod log;
mod record;
mod recovery;
mod state;

use crate::overlap::Range;
use crate::patience::Patience;
use flashyard_blk::{Operation, VolumeInfo, VolumeLimits};
use flashyard_kernel::Slab;
use flashyard_service::{Data, Failure, Leg, Order, Orders, Request, Service, Sum, Tally};
use flashyard_units::SimTime;
use homes::{Going, HOMES, Homes, Way};
use log::{From, Log, Record, Stage};
use record::{Anchor, HEADER_BYTES, Kind, SUM_AT};
use recovery::{Recovery, Wish};
pub use state::AtomicCounters;
use state::{Covers, Moving, Under, Waiter};
use std::collections::VecDeque;

/// Blocks of the log that are anchors.
const ANCHORS: u64 = 2;
/// Blocks of a log at least: four records of some blocks.
const LOG_MIN: u64 = 16;

/// A volume whose writes happen whole or not at all.
#[derive(Clone, Debug)]
pub struct AtomicWrites {
    /// Blocks of the log with its anchors.
    log_blocks: u64,
    block_bytes: usize,
    is_protected: bool,
    anchor: Anchor,
    recovery: Option<Recovery>,
    is_recovering: bool,
    patience: Patience,
    log: Log,
    under_way: Slab<Under>,
    reads: Tally,
    /// Requests that wait for the start, or changes that wait for room.
    waiting: VecDeque<Request>,
    /// Reads that wait for trims below a number.
    held: Vec<(Request, u64)>,
    waiters: Vec<Waiter>,
    homes: Homes,
    /// Records that are to become void.
    failed: u32,
    flushing: Option<Covers>,
    moving: Moving,
    counters: AtomicCounters,
}

impl AtomicWrites {
    /// Atomic writes with a log of so many blocks at the end of their leg, 16 or more; a write has at most a quarter of it. Panics
    /// where these are fewer.
    pub fn new(log_blocks: u64) -> Self {
        assert!(log_blocks >= LOG_MIN, "a log of {log_blocks} blocks, give {LOG_MIN} or more");
        Self {
            log_blocks,
            block_bytes: 0,
            is_protected: false,
            anchor: Anchor { epoch: 0, tail: 0, generation: 0, blocks: 0, log: 0 },
            recovery: None,
            is_recovering: true,
            patience: Patience::default(),
            log: Log::new(0, log_blocks - ANCHORS, 0),
            under_way: Slab::default(),
            reads: Tally::default(),
            waiting: VecDeque::new(),
            held: Vec::new(),
            waiters: Vec::new(),
            homes: Homes::default(),
            failed: 0,
            flushing: None,
            moving: Moving::No,
            counters: AtomicCounters::default(),
        }
    }

    /// Counts since it was made.
    pub fn counters(&self) -> AtomicCounters {
        self.counters
    }

    /// Whether what power left is home, so that requests are carried out.
    pub fn has_recovered(&self) -> bool {
        !self.is_recovering
    }

    /// Why it takes no more writes, if it does not.
    pub fn broken(&self) -> Option<Failure> {
        self.patience.broken()
    }

    fn send(&mut self, under: Under, operation: Operation, (first, count): (u64, u32), data: Data, out: &mut Orders) {
        let id = self.under_way.insert(under) as u32;
        out.orders.push(Order { id, leg: Leg(0), operation, first, count, data, durable: false });
    }

    /// Puts a block of its own among the bytes; returns where it begins.
    fn own(&self, bytes: &[u8; HEADER_BYTES], out: &mut Orders) -> u32 {
        let at = out.own.len();
        out.own.extend_from_slice(bytes);
        out.own.resize(at + self.block_bytes, 0);
        at as u32
    }

    fn read(&mut self, request: Request, upto: u64, out: &mut Orders) {
        let range = Range::new(request.first, request.count);
        if self.log.is_trimmed(range, upto) {
            return self.held.push((request, upto));
        }
        self.reads.begin(request.id);
        let mut rest = range;
        while rest.first < rest.end {
            let (run, from) = self.log.run(rest);
            let at = (run.first - range.first) as u32;
            match from {
                From::Home => self.read_piece(request.id, None, run, run.first, at, out),
                From::Record(number) => {
                    let start = self.log.get(number).map_or(0, |of| of.position + 1 + run.first - of.range.first);
                    for piece in self.log.pieces(start, run.count()) {
                        let part = Range::new(run.first + u64::from(piece.at), piece.count);
                        self.read_piece(request.id, Some(number), part, piece.first, at + piece.at, out);
                    }
                }
            }
            rest.first = run.end;
        }
    }

    fn read_piece(&mut self, request: u32, record: Option<u64>, range: Range, first: u64, at: u32, out: &mut Orders) {
        self.reads.expect(request);
        if let Some(record) = record.and_then(|number| self.log.get_mut(number)) {
            record.readers += 1;
        }
        let under = Under::Read { request, record, range, first };
        self.send(under, Operation::Read, (first, range.count()), Data::Request { id: request, at }, out);
    }

    /// A write or a trim takes its place in the log.
    fn append(&mut self, request: &Request, out: &mut Orders) {
        let number = self.log.append(request);
        self.counters.records += 1;
        self.write_header(number, true, out);
        let Some(&record) = self.log.get(number) else { return };
        for piece in self.log.pieces(record.position + 1, record.follows) {
            let data = Data::Request { id: request.id, at: piece.at };
            self.send(Under::Log(number), Operation::Write, (piece.first, piece.count), data, out);
            self.log.get_mut(number).into_iter().for_each(|record| record.orders += 1);
        }
    }

    fn write_header(&mut self, number: u64, is_new: bool, out: &mut Orders) {
        let epoch = self.anchor.epoch;
        let Some(record) = self.log.get_mut(number) else { return };
        record.orders = 1;
        let at = self.own_header(number, epoch, out);
        let Some(&record) = self.log.get(number) else { return };
        if let (true, Some(id)) = (is_new && record.kind == Kind::Write, record.request) {
            let data = Data::Request { id, at: 0 };
            out.sums.push(Sum { data, count: record.follows, at: at + SUM_AT as u32 });
        }
        for piece in self.log.pieces(record.position, 1) {
            self.send(Under::Log(number), Operation::Write, (piece.first, 1), Data::Own { at }, out);
        }
    }

    fn own_header(&self, number: u64, epoch: u64, out: &mut Orders) -> u32 {
        self.log.get(number).map_or(0, |record| self.own(&record.header(epoch).encode(), out))
    }

    fn begin(&mut self, request: Request, out: &mut Orders) {
        match request.operation {
            Operation::Read => {
                match self.broken().filter(|_| self.log.is_undecided(Range::new(request.first, request.count))) {
                    Some(failure) => out.answers.push((request.id, Err(failure))),
                    None => self.read(request, self.log.next(), out),
                }
            }
            Operation::Write | Operation::Trim => {
                if let Some(failure) = self.broken() {
                    out.answers.push((request.id, Err(failure)));
                } else if self.waiting.is_empty() && self.log.has_room(&request) {
                    self.append(&request, out);
                } else {
                    self.counters.waited += 1;
                    self.waiting.push_back(request);
                }
            }
            _ => {
                let upto = self.log.seen;
                self.waiters.push(Waiter { request: request.id, upto, answer: self.broken().map_or(Ok(()), Err) });
            }
        }
    }

    /// A piece of a record was written.
    fn logged(&mut self, now: SimTime, number: u64, result: Result<(), Failure>, out: &mut Orders) {
        let broken = self.broken();
        let Some(record) = self.log.get_mut(number) else { return };
        record.orders -= 1;
        if record.stage == Stage::Writing {
            record.failure = record.failure.or(result.err());
        }
        if record.orders > 0 {
            return;
        }
        let has_failed = if record.stage == Stage::Writing { record.failure.is_some() } else { result.is_err() };
        if broken.is_some() || has_failed {
            let is_new = record.stage == Stage::Writing;
            record.stage = Stage::Failed;
            self.failed += 1;
            if !is_new {
                self.patience.ended(now, result);
            }
            return;
        }
        record.stage = Stage::Logged;
        if record.failure.is_some() {
            self.patience.succeeded();
        }
        // A leg that keeps what it has carried out makes a volume that does.
        let is_protected = self.is_protected;
        while let Some(record) = self.log.next_logged() {
            let (failure, waits) = (record.failure, record.failure.is_some() || record.durable || is_protected);
            let Some(request) = record.request.take() else { continue };
            let answer = failure.map_or(Ok(()), Err);
            if waits {
                self.waiters.push(Waiter { request, upto: self.log.logged, answer });
            } else {
                out.answers.push((request, answer));
            }
        }
    }

    /// Nothing more can be written: everything that waits for that has failed.
    fn give_up(&mut self, failure: Failure, out: &mut Orders) {
        let waiting = std::mem::take(&mut self.waiting);
        let held = std::mem::take(&mut self.held);
        let waiters = std::mem::take(&mut self.waiters);
        let waiting =
            waiting.into_iter().map(|request| request.id).chain(held.into_iter().map(|(request, _)| request.id));
        out.answers.extend(waiting.map(|id| (id, Err(failure))));
        out.answers.extend(waiters.into_iter().map(|waiter| (waiter.request, waiter.answer.and(Err(failure)))));
        for number in self.log.logged..self.log.next() {
            let is_over = |record: &&mut Record| matches!(record.stage, Stage::Failed | Stage::Logged);
            let record = self.log.get_mut(number).filter(is_over);
            let request = record.and_then(|record| Some((record.request.take()?, record.failure)));
            out.answers.extend(request.map(|(id, why)| (id, Err(why.unwrap_or(failure)))));
        }
        self.failed = 0;
    }

    fn was_read(&mut self, under: Under, result: Result<(), Failure>, out: &mut Orders) {
        let Under::Read { request, record, range, first } = under else { return };
        if let Some(record) = record.and_then(|number| self.log.get_mut(number)) {
            record.readers -= 1;
        }
        let result = result.map_err(|failure| match failure {
            Failure::Unread { block } => Failure::Unread { block: range.first + block.saturating_sub(first) },
            other => other,
        });
        out.answers.extend(self.reads.end(request, result).map(|answer| (request, answer)));
    }
}

/// The work behind the answers.
impl AtomicWrites {
    /// Whether records are to go home now.
    fn wants_home(&self) -> bool {
        self.log.used() * 2 >= self.log.ring() || !self.waiting.is_empty() || !self.held.is_empty()
    }

    /// Whether blocks are being read at home.
    fn is_read_at_home(&self, range: Range) -> bool {
        let reads =
            |under: &Under| matches!(under, Under::Read { record: None, range: read, .. } if read.meets(&range));
        self.under_way.iter().any(|(_, under)| reads(under))
    }

    fn send_home(&mut self, out: &mut Orders) {
        for slot in 0..HOMES {
            if let Some(Going { record, way: Way::Failed, .. }) = self.homes.going[slot] {
                self.go_home(slot, record, out);
            }
        }
        while self.wants_home() && self.homes.next < self.log.durable {
            let number = self.homes.next;
            let Some(&record) = self.log.get(number) else { return };
            if record.kind == Kind::Void {
                self.log.make_home(number);
            } else {
                let Some(slot) = self.homes.free(record.range) else { return };
                if self.is_read_at_home(record.range) {
                    return;
                }
                self.go_home(slot, number, out);
            }
            self.homes.next += 1;
        }
    }

    fn go_home(&mut self, slot: usize, number: u64, out: &mut Orders) {
        let Some(&record) = self.log.get(number) else { return };
        let range = record.range;
        let mut going = Going { record: number, range, way: Way::Writing, has_failed: false, buffer: None };
        if record.kind == Kind::Trim {
            self.send(Under::Home(slot), Operation::Trim, (range.first, range.count()), Data::None, out);
        } else {
            let buffer = self.homes.buffer(slot);
            out.taken.push((buffer, range.count()));
            going.buffer = Some(buffer);
            let mut orders = 0;
            for piece in self.log.pieces(record.position + 1, record.follows) {
                let data = Data::Buffer { id: buffer, at: piece.at };
                self.send(Under::Home(slot), Operation::Read, (piece.first, piece.count), data, out);
                orders += 1;
            }
            going.way = Way::Reading(orders);
        }
        self.homes.going[slot] = Some(going);
    }

    /// A step of a record on its way home has ended.
    fn went(&mut self, now: SimTime, slot: usize, result: Result<(), Failure>, out: &mut Orders) {
        let Some(going) = &mut self.homes.going[slot] else { return };
        going.has_failed |= result.is_err();
        match (going.way, going.buffer) {
            (Way::Reading(2..), _) => {
                going.way = Way::Reading(1);
                if result.is_err() {
                    self.patience.ended(now, result);
                }
                return;
            }
            (Way::Reading(_), Some(buffer)) if !going.has_failed => {
                going.way = Way::Writing;
                let range = going.range;
                let data = Data::Buffer { id: buffer, at: 0 };
                return self.send(Under::Home(slot), Operation::Write, (range.first, range.count()), data, out);
            }
            _ => {}
        }
        out.released.extend(going.buffer.take());
        if going.has_failed {
            going.way = Way::Failed;
            return self.patience.ended(now, result);
        }
        let record = going.record;
        self.homes.going[slot] = None;
        self.log.make_home(record);
        self.counters.homes += 1;
        self.patience.succeeded();
    }

    /// Writes where the log begins, when that makes room that is wanted.
    fn move_anchor(&mut self, out: &mut Orders) {
        let spent = self.log.spent();
        let position = self.log.position(spent);
        let freed = position - self.log.tail();
        if self.moving != Moving::No || freed == 0 || (self.waiting.is_empty() && freed * 4 < self.log.ring()) {
            return;
        }
        let anchor = Anchor { tail: position, generation: self.anchor.generation + 1, ..self.anchor };
        let at = self.own(&anchor.encode(), out);
        let place = anchor.blocks + anchor.log + anchor.generation % ANCHORS;
        self.send(Under::Anchor, Operation::Write, (place, 1), Data::Own { at }, out);
        self.moving = Moving::Writing(spent);
    }

    fn anchor_moved(&mut self, now: SimTime, result: Result<(), Failure>) {
        let Moving::Writing(spent) = self.moving else { return };
        if result.is_err() {
            self.moving = Moving::No;
            return self.patience.ended(now, result);
        }
        self.anchor.generation += 1;
        self.anchor.tail = self.log.position(spent);
        self.moving = Moving::Written(spent);
        self.patience.succeeded();
    }

    fn needs_flush(&self) -> bool {
        let log = &self.log;
        let is_waited_for = self.waiters.iter().any(|waiter| waiter.upto <= log.logged);
        let is_for_home = self.wants_home() && self.homes.next >= log.durable && log.logged > log.durable;
        let at_home = log.position(log.home) - log.position(log.home_durable);
        let frees = at_home * 8 >= log.ring() || (at_home > 0 && !self.waiting.is_empty() && self.homes.is_idle());
        is_waited_for || is_for_home || frees || matches!(self.moving, Moving::Written(_))
    }

    /// Flushes the leg if something needs that; returns whether it was done at once.
    fn flush(&mut self, out: &mut Orders) -> bool {
        if self.flushing.is_some() || !self.needs_flush() {
            return false;
        }
        let anchor = if let Moving::Written(number) = self.moving { Some(number) } else { None };
        let covers = Covers { logged: self.log.logged, home: self.log.home, anchor };
        if self.is_protected {
            self.flushed(covers);
            return true;
        }
        self.counters.flushes += 1;
        self.flushing = Some(covers);
        self.send(Under::Flush, Operation::Flush, (0, 0), Data::None, out);
        false
    }

    fn flushed(&mut self, covers: Covers) {
        self.log.durable = covers.logged;
        self.log.home_durable = covers.home;
        if let Some(number) = covers.anchor {
            self.log.free_below(number);
            self.moving = Moving::No;
        }
    }

    fn flush_ended(&mut self, now: SimTime, result: Result<(), Failure>) {
        let Some(covers) = self.flushing.take() else { return };
        if result.is_ok() {
            self.patience.succeeded();
            self.flushed(covers);
        } else {
            self.patience.ended(now, result);
        }
    }

    /// Records whose writing has failed become void.
    fn make_void(&mut self, out: &mut Orders) {
        if self.failed == 0 {
            return;
        }
        for number in self.log.logged..self.log.next() {
            if let Some(record) = self.log.get_mut(number).filter(|record| record.stage == Stage::Failed) {
                (record.stage, record.kind) = (Stage::Voiding, Kind::Void);
                self.counters.voids += 1;
                self.write_header(number, false, out);
            }
        }
        self.failed = 0;
    }

    fn answer_waiters(&mut self, out: &mut Orders) {
        let durable = self.log.durable;
        self.waiters.retain(|waiter| {
            if waiter.upto <= durable {
                out.answers.push((waiter.request, waiter.answer));
            }
            waiter.upto > durable
        });
    }

    /// Goes on with everything that can go on.
    fn go_on(&mut self, now: SimTime, out: &mut Orders) {
        if let Some(failure) = self.broken() {
            return self.give_up(failure, out);
        }
        if let Some(until) = self.patience.pause(now) {
            out.wake_at = Some(until);
            return self.answer_waiters(out);
        }
        if self.is_recovering {
            return self.recover(now, out);
        }
        loop {
            self.make_void(out);
            self.send_home(out);
            self.answer_waiters(out);
            if !self.held.is_empty() {
                for (request, upto) in std::mem::take(&mut self.held) {
                    self.read(request, upto, out);
                }
            }
            self.move_anchor(out);
            while let Some(request) = self.waiting.front().copied().filter(|request| self.log.has_room(request)) {
                self.waiting.pop_front();
                self.append(&request, out);
            }
            if !self.flush(out) {
                return;
            }
        }
    }

    /// Carries out the next wish of the recovery, or begins with what has waited for it.
    fn recover(&mut self, now: SimTime, out: &mut Orders) {
        let Some(recovery) = &self.recovery else { return };
        let Some(wish) = recovery.wish() else {
            if let Some(anchor) = recovery.anchor() {
                (self.anchor, self.counters.replayed) = (anchor, recovery.replayed);
                self.log = Log::new(anchor.blocks, anchor.log, anchor.tail);
            }
            self.is_recovering = false;
            self.recovery = None;
            for request in std::mem::take(&mut self.waiting) {
                self.begin(request, out);
            }
            return self.go_on(now, out);
        };
        let (operation, range, data) = match wish {
            Wish::Read { first, count } => (Operation::Read, (first, count), Data::Own { at: 0 }),
            Wish::Write { first, count } => {
                let at = out.own.len();
                recovery.bytes(&mut out.own);
                out.own.resize(at + count as usize * self.block_bytes, 0);
                (Operation::Write, (first, count), Data::Own { at: at as u32 })
            }
            Wish::Trim { first, count } => (Operation::Trim, (first, count), Data::None),
            Wish::Flush => (Operation::Flush, (0, 0), Data::None),
        };
        self.send(Under::Recover, operation, range, data, out);
    }

    fn recovered(&mut self, now: SimTime, result: Result<(), Failure>) {
        if result.is_err() {
            return self.patience.ended(now, result);
        }
        self.patience.succeeded();
        if let Some(Err(failure)) = self.recovery.as_mut().map(Recovery::done) {
            self.patience.break_down(failure);
        }
    }
}

impl Service for AtomicWrites {
    fn name(&self) -> &'static str {
        "atomic"
    }

    fn legs(&self) -> usize {
        1
    }

    fn limits(&self, legs: &[VolumeInfo]) -> VolumeLimits {
        let leg = legs[0].limits;
        let most = ((self.log_blocks - ANCHORS) / 4).min(u64::from(leg.request_blocks)) as u32;
        VolumeLimits { request_blocks: most, ..VolumeLimits::new(leg.blocks.saturating_sub(self.log_blocks), false) }
    }

    fn start(&mut self, now: SimTime, legs: &[VolumeInfo], out: &mut Orders) {
        let VolumeInfo { block_bytes, limits, protected, .. } = legs[0];
        (self.block_bytes, self.is_protected) = (block_bytes as usize, protected);
        if limits.blocks <= self.log_blocks || self.block_bytes < HEADER_BYTES {
            self.patience.break_down(Failure::Failed);
            return;
        }
        let blocks = limits.blocks - self.log_blocks;
        self.recovery = Some(Recovery::new(blocks, self.log_blocks - ANCHORS, self.block_bytes));
        self.go_on(now, out);
    }

    fn submit(&mut self, now: SimTime, request: &Request, out: &mut Orders) {
        match self.broken() {
            // Nothing is known of a log that cannot be read.
            Some(failure) if self.is_recovering => out.answers.push((request.id, Err(failure))),
            None if self.is_recovering => self.waiting.push_back(*request),
            _ => {
                self.begin(*request, out);
                self.go_on(now, out);
            }
        }
    }

    fn received(&mut self, _: u32, bytes: &[u8]) {
        self.recovery.as_mut().into_iter().for_each(|recovery| recovery.received(bytes));
    }

    fn completed(&mut self, now: SimTime, order: u32, result: Result<(), Failure>, out: &mut Orders) {
        let Some(under) = self.under_way.remove(order as usize) else { return };
        if result == Err(Failure::Gone) {
            self.patience.break_down(Failure::Gone);
        }
        match under {
            Under::Recover => self.recovered(now, result),
            Under::Log(number) => self.logged(now, number, result, out),
            Under::Read { .. } => self.was_read(under, result, out),
            Under::Home(slot) => self.went(now, slot, result, out),
            Under::Flush => self.flush_ended(now, result),
            Under::Anchor => self.anchor_moved(now, result),
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: SimTime, out: &mut Orders) {
        if !self.is_recovering || self.under_way.is_empty() {
            self.go_on(now, out);
        }
    }
}

#[cfg(test)]
mod tests;
