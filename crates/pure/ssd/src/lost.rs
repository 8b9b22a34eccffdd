//! Data that garbage collection could not read: it must empty its victim, so it moves such a slot as a lost one, whose reads
//! fail until it is written, deallocated or remapped over.

use flashyard_ftl::SuperblockContents;
use std::collections::BTreeSet;
use std::ops::Range;

/// Lost data. Empty on a drive that has never given a read up.
#[derive(Default)]
pub(crate) struct LostData {
    /// Logical slots whose data garbage collection could not read.
    slots: BTreeSet<u32>,
    /// Die rows that garbage collection has read in vain, and whose slots it has yet to move.
    rows: Vec<u32>,
}

impl LostData {
    /// The logical slot has other data, or none; returns whether it was lost.
    #[inline]
    pub(crate) fn replace(&mut self, logical: u32) -> bool {
        !self.slots.is_empty() && self.slots.remove(&logical)
    }

    /// Whether no slot is lost.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the logical slot is lost.
    pub(crate) fn contains(&self, logical: u32) -> bool {
        self.slots.contains(&logical)
    }

    /// No die row that was read in vain is to be moved any more.
    pub(crate) fn forget_rows(&mut self) {
        self.rows.clear();
    }

    /// `destination` takes over what `source` holds.
    #[inline]
    pub(crate) fn remap(&mut self, destination: u32, source: u32) {
        if !self.slots.is_empty() {
            self.slots.remove(&destination);
            if self.slots.remove(&source) {
                self.slots.insert(destination);
            }
        }
    }

    /// Whether the row was read in vain; asked once, when its slots are moved.
    #[inline]
    pub(crate) fn take_row(&mut self, row: u32) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let place = self.rows.iter().position(|&other| other == row);
        place.is_some_and(|place| {
            self.rows.swap_remove(place);
            true
        })
    }

    /// Logical slots, in order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().copied()
    }

    /// The first of `slots` that is lost.
    #[inline]
    pub(crate) fn first_among(&self, slots: Range<u32>) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots.range(slots).next().copied()
    }

    /// Begins with the losses of an earlier lifetime.
    pub(crate) fn adopt(&mut self, contents: &[SuperblockContents]) {
        let used = contents.iter().filter_map(|contents| contents.used.as_ref());
        self.slots.extend(used.flat_map(|used| &used.lost));
    }

    /// Garbage collection has read a die row in vain.
    pub(crate) fn add_row(&mut self, row: u32) {
        self.rows.push(row);
    }

    /// Garbage collection has moved a logical slot without its data.
    pub(crate) fn add_slot(&mut self, logical: u32) {
        self.slots.insert(logical);
    }
}
