//! The log of atomic writes: a ring of records, where each is, how far it has come, and which one a block is read from.

use super::index::Index;
use super::record::{Header, Kind};
use crate::overlap::Range;
use flashyard_service::{Failure, Request};
use std::collections::VecDeque;

/// Trims in the log that are not home at most: reads look through them.
pub(crate) const TRIMS_MAX: usize = 64;

/// How far a record has come on its way into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Writing,
    /// Its writing has failed: it is to become void.
    Failed,
    Voiding,
    /// It is there.
    Logged,
}

/// A record of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) range: Range,
    pub(crate) position: u64,
    /// Blocks of data.
    pub(crate) follows: u32,
    pub(crate) stage: Stage,
    /// Orders under way that write it.
    pub(crate) orders: u8,
    pub(crate) failure: Option<Failure>,
    /// Its request, until that is answered, and whether that is to be durable.
    pub(crate) request: Option<u32>,
    pub(crate) durable: bool,
    /// Reads of its blocks under way.
    pub(crate) readers: u32,
    /// Whether it is at home.
    pub(crate) is_home: bool,
}

impl Record {
    pub(crate) fn end(&self) -> u64 {
        self.position + 1 + u64::from(self.follows)
    }

    pub(crate) fn header(&self, epoch: u64) -> Header {
        let Self { kind, range, position, follows, .. } = *self;
        Header { kind, epoch, position, first: range.first, count: range.count(), follows, sum: 0 }
    }
}

/// A piece of the ring: block of the leg, blocks, and the first of them counted from that of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) at: u32,
}

/// The blocks of a run are read from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Home,
    Record(u64),
}

/// The ring and the records in it, which have numbers: 0, 1, …
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// Block of the leg at which the ring begins, and its blocks.
    base: u64,
    ring: u64,
    records: VecDeque<Record>,
    /// Number of the first of them.
    oldest: u64,
    /// Positions: of the next record, and of the first block that is still in use.
    head: u64,
    tail: u64,
    /// All records below these numbers are in the log; are there after a loss of power; are home; are home after one.
    pub(crate) logged: u64,
    pub(crate) durable: u64,
    pub(crate) home: u64,
    pub(crate) home_durable: u64,
    /// The highest number of a record that clients see, and one more.
    pub(crate) seen: u64,
    index: Index,
    trims: Vec<(u64, Range)>,
}

impl Log {
    /// An empty one of `ring` blocks from `base` on, whose next record has this position.
    pub(crate) fn new(base: u64, ring: u64, position: u64) -> Self {
        Self {
            base,
            ring,
            records: VecDeque::new(),
            oldest: 0,
            head: position,
            tail: position,
            logged: 0,
            durable: 0,
            home: 0,
            home_durable: 0,
            seen: 0,
            index: Index::new(ring),
            trims: Vec::with_capacity(TRIMS_MAX),
        }
    }

    /// Blocks of the ring that are in use.
    pub(crate) fn used(&self) -> u64 {
        self.head - self.tail
    }

    pub(crate) fn ring(&self) -> u64 {
        self.ring
    }

    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// The number of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.oldest + self.records.len() as u64
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Record> {
        self.records.get(number.checked_sub(self.oldest)? as usize)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Record> {
        self.records.get_mut(number.checked_sub(self.oldest)? as usize)
    }

    /// Position of a record, or that of the next one.
    pub(crate) fn position(&self, number: u64) -> u64 {
        self.get(number).map_or(self.head, |record| record.position)
    }

    /// Whether there is room for a request.
    pub(crate) fn has_room(&self, request: &Request) -> bool {
        let is_write = request.operation == flashyard_blk::Operation::Write;
        let blocks = 1 + if is_write { u64::from(request.count) } else { 0 };
        self.used() + blocks <= self.ring && (is_write || self.trims.len() + self.trims_coming() < TRIMS_MAX)
    }

    /// Trims that clients do not see yet.
    fn trims_coming(&self) -> usize {
        let from = self.logged.saturating_sub(self.oldest) as usize;
        let is_coming = |record: &&Record| record.kind == Kind::Trim;
        self.records.iter().skip(from).filter(is_coming).count()
    }

    /// A request takes its place in the log; returns the number of its record.
    pub(crate) fn append(&mut self, request: &Request) -> u64 {
        let is_write = request.operation == flashyard_blk::Operation::Write;
        let number = self.next();
        self.records.push_back(Record {
            kind: if is_write { Kind::Write } else { Kind::Trim },
            range: Range::new(request.first, request.count),
            position: self.head,
            follows: if is_write { request.count } else { 0 },
            stage: Stage::Writing,
            orders: 0,
            failure: None,
            request: Some(request.id),
            durable: request.durable,
            readers: 0,
            is_home: false,
        });
        self.head = self.position_behind(number);
        number
    }

    fn position_behind(&self, number: u64) -> u64 {
        self.get(number).map_or(self.head, Record::end)
    }

    /// The pieces of `count` blocks of the ring from a position on: two where they go over its end.
    pub(crate) fn pieces(&self, position: u64, count: u32) -> impl Iterator<Item = Piece> + use<> {
        let at = position % self.ring;
        let before = u64::from(count).min(self.ring - at) as u32;
        let first = Piece { first: self.base + at, count: before, at: 0 };
        let second = Piece { first: self.base, count: count - before, at: before };
        [first, second].into_iter().filter(|piece| piece.count > 0)
    }

    /// The next record, in their order, if it is in the log: clients see it from now on, unless it is void. Those behind one that is not
    /// there would be lost with the power.
    pub(crate) fn next_logged(&mut self) -> Option<&mut Record> {
        let number = self.logged;
        let &Record { kind, range, .. } = self.get(number).filter(|record| record.stage == Stage::Logged)?;
        match kind {
            Kind::Write => (range.first..range.end).for_each(|block| self.index.raise(block, number)),
            Kind::Trim => self.trims.push((number, range)),
            Kind::Void => {}
        }
        if kind != Kind::Void {
            self.seen = number + 1;
        }
        self.logged += 1;
        self.get_mut(number)
    }

    /// A record is home: its blocks are read there.
    pub(crate) fn make_home(&mut self, number: u64) {
        let Some(record) = self.get_mut(number) else { return };
        record.is_home = true;
        let (kind, range) = (record.kind, record.range);
        match kind {
            Kind::Write => (range.first..range.end).for_each(|block| self.index.remove(block, number)),
            Kind::Trim => self.trims.retain(|&(other, _)| other != number),
            Kind::Void => {}
        }
        while self.get(self.home).is_some_and(|record| record.is_home) {
            self.home += 1;
        }
    }

    /// The first blocks of a range that lie together, and where.
    pub(crate) fn run(&self, range: Range) -> (Range, From) {
        let from = |block: u64| self.index.get(block).map_or(From::Home, From::Record);
        let first = from(range.first);
        let end = (range.first..range.end).find(|&block| from(block) != first).unwrap_or(range.end);
        (Range { first: range.first, end }, first)
    }

    /// Whether a block of a range is trimmed by a record below `upto` that is not home, and not written after that.
    pub(crate) fn is_trimmed(&self, range: Range, upto: u64) -> bool {
        let hides = |&(number, trimmed): &(u64, Range)| {
            let (first, end) = (trimmed.first.max(range.first), trimmed.end.min(range.end));
            number < upto && (first..end).any(|block| self.index.get(block).is_none_or(|newer| newer < number))
        };
        self.trims.iter().any(hides)
    }

    /// Whether a record of these blocks is neither seen by clients nor void for sure: what it is, the next start decides.
    pub(crate) fn is_undecided(&self, range: Range) -> bool {
        let is = |&number: &u64| {
            let record = self.get(number).filter(|record| record.range.meets(&range));
            record.is_some_and(|record| number >= self.logged || record.kind == Kind::Void)
        };
        (self.durable..self.next()).any(|number| is(&number))
    }

    /// Records before the first that is not home for sure, or that is being read, may go; the number of that one.
    pub(crate) fn spent(&self) -> u64 {
        let is_read = |&number: &u64| self.get(number).is_some_and(|record| record.readers > 0);
        (self.oldest..self.home_durable).find(is_read).unwrap_or(self.home_durable)
    }

    /// Records below this number are forgotten: the room is free.
    pub(crate) fn free_below(&mut self, number: u64) {
        while self.oldest < number && self.records.pop_front().is_some() {
            self.oldest += 1;
        }
        self.tail = self.position(self.oldest);
    }
}
