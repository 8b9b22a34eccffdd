//! A channel on its way from one physical channel to another.
//!
//! It is copied piece by piece. A change of blocks that were copied goes to both places, one of the piece under way waits, and any
//! other goes to the old place alone, where reads go. Then the channel stands still while the new place is made durable and the
//! record is written.

use crate::overlap::Range;

/// Blocks that are copied at once. Source: \[A\] 128 KiB.
const COPIED: u64 = 32;

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The next piece waits for changes of its blocks that are under way.
    Next,
    /// A piece is read, and then written.
    Piece,
    /// Everything is copied; what is under way ends.
    Drain,
    /// The leg of the new place is flushed.
    Flush,
    /// The record is written.
    Record,
    /// It was given up; what is under way to the new place ends.
    Abandon,
}

/// The move under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) channel: usize,
    pub(super) to: u16,
    pub(super) phase: Phase,
    /// Blocks that are at both places.
    pub(super) copied: u64,
    pub(super) blocks: u64,
    /// Blocks that a leg takes at once.
    pub(super) most: u64,
    /// Orders to the new place, and of copies.
    pub(super) orders: u32,
    /// The buffer of the piece.
    pub(super) buffer: u32,
}

/// Where a change of the channel goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the old place alone.
    Old,
    /// To both.
    Both,
    /// It waits.
    Wait,
}

impl Move {
    pub(super) fn new(channel: usize, to: u16, blocks: u64, request_blocks: u32) -> Self {
        let most = COPIED.min(u64::from(request_blocks).max(1));
        Self { channel, to, phase: Phase::Next, copied: 0, blocks, most, orders: 0, buffer: 0 }
    }

    /// The piece that is copied, or is next.
    pub(super) fn piece(&self) -> Range {
        Range { first: self.copied, end: (self.copied + self.most).min(self.blocks) }
    }

    /// Where a change of these blocks goes, none of which is being changed already.
    pub(super) fn way(&self, range: Range) -> Way {
        match self.phase {
            Phase::Abandon => Way::Old,
            Phase::Drain | Phase::Flush | Phase::Record => Way::Wait,
            // Changes would hold the next piece up for ever if they overtook it.
            Phase::Next | Phase::Piece if self.piece().meets(&range) => Way::Wait,
            Phase::Next | Phase::Piece if range.first >= self.copied => Way::Old,
            Phase::Next | Phase::Piece => Way::Both,
        }
    }

    /// Whether reads wait as well.
    pub(super) fn stands_still(&self) -> bool {
        matches!(self.phase, Phase::Drain | Phase::Flush | Phase::Record)
    }

    /// A piece is at both places.
    pub(super) fn has_copied(&mut self) {
        self.copied = self.piece().end;
        self.phase = if self.copied < self.blocks { Phase::Next } else { Phase::Drain };
    }

    /// The new place does not have what the old one has: nothing comes of it.
    pub(super) fn give_up(&mut self) {
        self.phase = Phase::Abandon;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_copied_once_and_changes_go_where_its_copy_is() {
        let mut moving = Move::new(3, 1, 75, 1000);
        let mut pieces = Vec::new();
        while moving.phase == Phase::Next {
            let piece = moving.piece();
            pieces.push(piece);
            for first in 0..75 {
                let way = moving.way(Range::new(first, 1));
                let expected = match first {
                    _ if first < piece.first => Way::Both,
                    _ if first < piece.end => Way::Wait,
                    _ => Way::Old,
                };
                assert_eq!(way, expected, "block {first} of {piece:?}");
            }
            moving.has_copied();
        }
        assert_eq!(pieces, [Range::new(0, 32), Range::new(32, 32), Range::new(64, 11)]);
        assert_eq!((moving.phase, moving.stands_still()), (Phase::Drain, true));
        assert_eq!(moving.way(Range::new(0, 1)), Way::Wait);
    }

    #[test]
    fn changes_go_to_the_old_place_alone_after_a_move_that_came_to_nothing() {
        let mut moving = Move::new(0, 1, 100, 8);
        moving.has_copied();
        assert_eq!(moving.way(Range::new(0, 2)), Way::Both);
        moving.give_up();
        assert_eq!(moving.way(Range::new(0, 2)), Way::Old);
    }
}
