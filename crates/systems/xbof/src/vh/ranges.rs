//! Which slots of a virtual drive live on a lender: disjoint ranges in order.

use flashyard_units::DriveId;
use std::collections::BTreeMap;

/// A run of slots with one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First slot.
    pub first: u32,
    /// Slots.
    pub count: u32,
    /// The lender that holds it; `None` for the owner.
    pub lender: Option<DriveId>,
}

/// Disjoint redirected ranges by first slot.
#[derive(Default)]
pub struct RangeMap {
    /// First slot to (end, lender).
    ranges: BTreeMap<u32, (u32, DriveId)>,
}

impl RangeMap {
    /// Forgets all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Redirected ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = Piece> + '_ {
        self.ranges.iter().map(|(&first, &(end, lender))| Piece { first, count: end - first, lender: Some(lender) })
    }

    /// The range was written: to a lender, or home.
    pub fn write(&mut self, first: u32, count: u32, lender: Option<DriveId>) {
        let end = first + count;
        // The range before may reach in; cut it, and keep what sticks out behind.
        if let Some((&start, &(old_end, old))) = self.ranges.range(..first).next_back()
            && old_end > first
        {
            self.ranges.insert(start, (first, old));
            if old_end > end {
                self.ranges.insert(end, (old_end, old));
            }
        }
        while let Some((&start, &(old_end, old))) = self.ranges.range(first..end).next() {
            self.ranges.remove(&start);
            if old_end > end {
                self.ranges.insert(end, (old_end, old));
            }
        }
        if let Some(lender) = lender {
            self.insert_joined(first, end, lender);
        }
    }

    /// Inserts a free range, joined with neighbours on the same lender.
    fn insert_joined(&mut self, mut first: u32, mut end: u32, lender: DriveId) {
        if let Some((&start, &(old_end, old))) = self.ranges.range(..first).next_back()
            && old_end == first
            && old == lender
        {
            first = start;
        }
        if let Some(&(next_end, next)) = self.ranges.get(&end)
            && next == lender
        {
            self.ranges.remove(&end);
            end = next_end;
        }
        self.ranges.insert(first, (end, lender));
    }

    /// Calls `each` with the runs of one home that make up the range, in order.
    pub fn pieces(&self, first: u32, count: u32, mut each: impl FnMut(Piece)) {
        let end = first + count;
        let mut at = first;
        let before = self.ranges.range(..=first).next_back().filter(|(_, (old_end, _))| *old_end > first);
        let start = before.map_or(first, |(&start, _)| start);
        for (&start, &(old_end, lender)) in self.ranges.range(start..end) {
            let from = start.max(first);
            if from > at {
                each(Piece { first: at, count: from - at, lender: None });
            }
            let to = old_end.min(end);
            each(Piece { first: from, count: to - from, lender: Some(lender) });
            at = to;
        }
        if at < end {
            each(Piece { first: at, count: end - at, lender: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_agree_with_an_array_of_homes(
            writes in prop::collection::vec((0_u32..90, 1_u32..20, prop::option::of(1_u16..4)), 0..60),
            reads in prop::collection::vec((0_u32..90, 1_u32..20), 10),
        ) {
            let mut homes = [None; 120];
            let mut map = RangeMap::default();
            for (first, count, lender) in writes {
                homes[first as usize..(first + count) as usize].fill(lender);
                map.write(first, count, lender.map(DriveId::new));
            }
            for (first, count) in reads {
                let mut at = first;
                let mut failed = false;
                map.pieces(first, count, |piece| {
                    failed |= piece.first != at;
                    let slots = piece.first as usize..(piece.first + piece.count) as usize;
                    failed |= !homes[slots].iter().all(|home| home.map(DriveId::new) == piece.lender);
                    at += piece.count;
                });
                prop_assert!(!failed && at == first + count);
            }
        }
    }
}
