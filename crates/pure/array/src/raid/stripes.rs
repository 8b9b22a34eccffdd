//! Operations on stripes, and those that wait, in the order of arrival. Reads of a stripe are beside each other; all else has it alone.
//!
//! Writes to a stripe that wait become one operation: parity is made and written once for all of them. Source: sheet paraid §5 (StRAID, opportunistic
//! aggregation).

use super::op::{Kind, NONE, Op, Part, Phase};
use crate::table::Table;
use flashyard_kernel::Slab;
use std::collections::VecDeque;

/// Parts that one operation takes at most. Source: \[A\].
const PARTS_MAX: u32 = 64;

/// A stripe in use.
#[derive(Clone, Copy, Debug)]
struct Line {
    readers: u32,
    is_taken: bool,
    /// Operations that wait, linked by [`Op::next`].
    head: u32,
    tail: u32,
}

impl Line {
    const fn admits(&self, shared: bool) -> bool {
        !self.is_taken && (shared || self.readers == 0)
    }

    fn enter(&mut self, shared: bool) {
        if shared {
            self.readers += 1;
        } else {
            self.is_taken = true;
        }
    }
}

/// Operations by number, and stripes in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Stripes {
    ops: Slab<Op>,
    /// Parts of requests in operations.
    parts: Slab<Part>,
    by_stripe: Table,
    lines: Slab<Line>,
    /// Operations that have their stripe and may begin.
    ready: VecDeque<u32>,
}

impl Stripes {
    fn find(&self, stripe: u32) -> Option<usize> {
        self.by_stripe.get(stripe.into()).map(|line| line as usize)
    }

    fn line(&mut self, stripe: u32) -> usize {
        self.find(stripe).unwrap_or_else(|| {
            let line = self.lines.insert(Line { readers: 0, is_taken: false, head: NONE, tail: NONE });
            self.by_stripe.insert(stripe.into(), line as u64);
            line
        })
    }

    /// Whether a stripe is in use.
    pub(super) fn is_busy(&self, stripe: u32) -> bool {
        self.find(stripe).is_some()
    }

    /// An operation waits for its stripe, or may begin.
    pub(super) fn enqueue(&mut self, op: Op) -> u32 {
        let (stripe, shared) = (op.stripe, op.is_shared());
        let id = self.ops.insert(op) as u32;
        let number = self.line(stripe);
        let line = &mut self.lines[number];
        if line.head == NONE && line.admits(shared) {
            line.enter(shared);
            self.ready.push_back(id);
            return id;
        }
        let tail = std::mem::replace(&mut line.tail, id);
        if tail == NONE {
            line.head = id;
        } else if let Some(last) = self.ops.get_mut(tail as usize) {
            last.next = id;
        }
        id
    }

    /// A part of a request that writes is an operation, or joins a write that waits as the last of its stripe if it may; returns whether it has.
    pub(super) fn enqueue_write(&mut self, stripe: u32, part: Part, aggregates: bool) -> bool {
        let part = self.parts.insert(part) as u32;
        let tail = self.find(stripe).map_or(NONE, |line| self.lines[line].tail);
        let joins =
            |op: &&mut Op| aggregates && op.kind == Kind::Write && op.phase == Phase::Waiting && op.count < PARTS_MAX;
        let Some(op) = self.ops.get_mut(tail as usize).filter(joins) else {
            self.enqueue(Op { parts: part, last: part, count: 1, ..Op::new(Kind::Write, stripe) });
            return false;
        };
        op.count += 1;
        let last = std::mem::replace(&mut op.last, part);
        if let Some(last) = self.parts.get_mut(last as usize) {
            last.next = part;
        }
        true
    }

    /// A stripe has one operation less: those that wait may begin.
    fn leave(&mut self, stripe: u32, shared: bool) {
        let Some(number) = self.find(stripe) else { return };
        let line = &mut self.lines[number];
        if shared {
            line.readers -= 1;
        } else {
            line.is_taken = false;
        }
        while let Some(op) = self.ops.get_mut(line.head as usize) {
            let shared = op.is_shared();
            if !line.admits(shared) {
                return;
            }
            line.enter(shared);
            self.ready.push_back(line.head);
            line.head = std::mem::replace(&mut op.next, NONE);
            if line.head == NONE {
                line.tail = NONE;
            }
        }
        if line.readers == 0 && !line.is_taken {
            self.lines.remove(number);
            self.by_stripe.remove(stripe.into());
        }
    }

    /// The parts of an operation, in the order of arrival.
    pub(super) fn parts_of(&self, op: &Op) -> impl Iterator<Item = Part> + use<'_> {
        let mut next = op.parts;
        std::iter::from_fn(move || {
            let part = *self.parts.get(next as usize)?;
            next = part.next;
            Some(part)
        })
    }

    /// Whether the parts of an operation name all blocks of a chunk from `low` on.
    pub(super) fn covers(&self, op: &Op, role: u8, chunk_blocks: u32) -> bool {
        let (mut at, end) = (op.low, op.low + op.rows);
        while at < end {
            let rows = self.parts_of(op).map(|part| part.touched(role, chunk_blocks));
            let Some(next) = rows.filter(|rows| rows.contains(&at)).map(|rows| rows.end).max() else { return false };
            at = next;
        }
        true
    }

    /// Chunks that the parts of an operation name, and the blocks of a chunk that any of them does.
    pub(super) fn find_rows(&self, op: &mut Op, chunk_blocks: u32) {
        let (mut low, mut end) = (chunk_blocks, 0);
        op.touched = 0;
        for part in self.parts_of(op) {
            let first = part.first / chunk_blocks;
            let last = (part.first + part.count - 1) / chunk_blocks;
            for role in first as u8..=last as u8 {
                let rows = part.touched(role, chunk_blocks);
                op.touched |= 1 << role;
                (low, end) = (low.min(rows.start), end.max(rows.end));
            }
        }
        (op.low, op.rows) = (low, end - low);
    }

    /// An operation has ended: it leaves its stripe.
    pub(super) fn remove(&mut self, id: u32) -> Option<Op> {
        let op = self.forget(id)?;
        self.leave(op.stripe, op.is_shared());
        Some(op)
    }

    /// An operation ends, and no other one begins any more.
    pub(super) fn forget(&mut self, id: u32) -> Option<Op> {
        let op = self.ops.remove(id as usize)?;
        let mut next = op.parts;
        while let Some(part) = self.parts.remove(next as usize) {
            next = part.next;
        }
        Some(op)
    }

    /// A part of a request that reads.
    pub(super) fn enqueue_read(&mut self, stripe: u32, part: Part) {
        let part = self.parts.insert(part) as u32;
        self.enqueue(Op { parts: part, last: part, count: 1, ..Op::new(Kind::Read, stripe) });
    }

    pub(super) fn get(&self, id: u32) -> Option<&Op> {
        self.ops.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Op> {
        self.ops.get_mut(id as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Op)> {
        self.ops.iter().map(|(id, op)| (id as u32, op))
    }

    pub(super) fn put(&mut self, id: u32, op: Op) {
        if let Some(place) = self.get_mut(id) {
            *place = op;
        }
    }

    pub(super) fn set_phase(&mut self, id: u32, phase: Phase) {
        if let Some(op) = self.get_mut(id) {
            op.phase = phase;
        }
    }

    /// The next operation that has its stripe and may begin.
    pub(super) fn pop_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }
}
