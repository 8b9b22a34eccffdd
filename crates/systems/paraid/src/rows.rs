//! Order among writes of Linux MD, which locks rows of a stripe and not the stripe: 4 KiB of each chunk.
//!
//! Source: \[X\] raid5.c of Linux: a `stripe_head` is 4 KiB of each drive. `add_stripe_bio` hangs bios of any requests on one that is busy, and refuses
//! those that overlap a write of the same drive which is still to be done. \[A\] A write that comes while chunks of its row are read waits for its next
//! turn, where MD takes it along until parity is made.

use crate::config::WIDTH_MAX;
use crate::stripe::{NONE, StripeOp, Written};
use flashyard_kernel::Slab;

/// The rows of an operation, and the operation that it waits for.
#[derive(Clone, Copy, Debug)]
struct Lock {
    rows: u128,
    after: u32,
}

/// Rows by operation. Operations of a stripe are a list in the order in which they came, under way or not; their rows are those that
/// nothing before them has, or those of one before them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    locks: Vec<Lock>,
}

/// The turn of a part of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// No operation has its rows.
    Free,
    /// It joins an operation that waits.
    Joins(u32),
    /// It waits for the end of an operation.
    After(u32),
}

/// Rows from `first` on.
const fn rows_of(first: u8, blocks: u8) -> u128 {
    let all = if blocks < 128 { (1_u128 << blocks) - 1 } else { u128::MAX };
    if first < 128 { all << first } else { 0 }
}

impl Written {
    /// Rows that are written in each chunk.
    fn rows(&self) -> [u128; WIDTH_MAX] {
        std::array::from_fn(|data| rows_of(self.first[data], self.blocks[data]))
    }
}

impl Rows {
    /// Takes the first rows of a write that the same operations have and that are written in the same chunks. `head` is the first operation of
    /// the stripe. `None` when nothing is left.
    pub(crate) fn take(&self, ops: &Slab<StripeOp>, head: u32, left: &mut Written) -> Option<(Written, u8, Turn)> {
        let rows = left.rows();
        let all = rows.iter().fold(0, |all, rows| all | rows);
        if all == 0 {
            return None;
        }
        let first = all.trailing_zeros();
        let bit = 1_u128 << first;
        let like = |rows: u128| if rows & bit > 0 { rows } else { !rows };
        let mut alike = rows.iter().fold(all, |alike, &rows| alike & like(rows));
        let (mut last, mut at) = (NONE, head);
        while at != NONE {
            let lock = self.locks[at as usize];
            alike &= like(lock.rows);
            if lock.rows & bit > 0 {
                last = at;
            }
            at = ops[at as usize].waiting;
        }
        let (first, count) = (first as u8, (alike >> first).trailing_ones() as u8);
        let mut part = Written::NOTHING;
        for (data, rows) in rows.iter().enumerate().take(WIDTH_MAX) {
            if rows & bit > 0 {
                (part.first[data], part.blocks[data]) = (first, count);
                left.first[data] += count;
                left.blocks[data] -= count;
            }
        }
        let turn = match last {
            NONE => Turn::Free,
            _ if self.locks[last as usize].after == NONE => Turn::After(last),
            _ => {
                let there = ops[last as usize].written.rows();
                let overlaps = there.iter().zip(part.rows()).any(|(there, here)| there & here > 0);
                if overlaps { Turn::After(last) } else { Turn::Joins(last) }
            }
        };
        Some((part, count, turn))
    }

    /// An operation has the rows of what it writes.
    pub(crate) fn lock(&mut self, number: u32, written: &Written, after: u32) {
        let none = Lock { rows: 0, after: NONE };
        self.locks.resize(self.locks.len().max(number as usize + 1), none);
        let rows = written.rows().iter().fold(0, |all, rows| all | rows);
        self.locks[number as usize] = Lock { rows, after };
    }

    /// An operation of the list from `head` on that waited for one which has ended: it waits no more.
    pub(crate) fn next(&mut self, ops: &Slab<StripeOp>, head: u32, ended: u32) -> Option<u32> {
        let mut at = head;
        while at != NONE {
            let lock = &mut self.locks[at as usize];
            if lock.after == ended {
                lock.after = NONE;
                return Some(at);
            }
            at = ops[at as usize].waiting;
        }
        None
    }
}
