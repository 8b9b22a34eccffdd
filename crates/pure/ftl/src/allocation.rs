//! Erased superblocks in the order in which they are opened.
//!
//! First in, first out costs a queue. The other orders keep a tree by erases: a choice costs a logarithm.

use crate::config::Allocation;
use std::collections::{BTreeSet, VecDeque};

/// The erased superblocks of a drive. One of queue and tree is always empty.
pub(crate) struct Erased {
    order: Allocation,
    queue: VecDeque<u32>,
    by_erases: BTreeSet<(u32, u32)>,
}

impl Erased {
    /// An empty list with room for `superblocks`.
    pub(crate) fn new(order: Allocation, superblocks: u32) -> Self {
        let capacity = if order == Allocation::Fifo { superblocks as usize } else { 0 };
        Self { order, queue: VecDeque::with_capacity(capacity), by_erases: BTreeSet::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        (self.queue.len() + self.by_erases.len()) as u32
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.by_erases.clear();
    }

    /// Adds a superblock that has been erased.
    pub(crate) fn push(&mut self, number: u32, erases: u32) {
        if self.order == Allocation::Fifo {
            self.queue.push_back(number);
        } else {
            self.by_erases.insert((erases, number));
        }
    }

    /// All of them, so that adding them one after the other makes the same order again.
    pub(crate) fn in_order(&self) -> Vec<u32> {
        self.queue.iter().copied().chain(self.by_erases.iter().map(|&(_, number)| number)).collect()
    }

    /// Takes the next one for host data, or for moved data; `degraded` is the mode of the drive.
    pub(crate) fn pop(&mut self, moved: bool, degraded: bool) -> Option<u32> {
        match self.order {
            Allocation::Fifo => self.queue.pop_front(),
            Allocation::YoungestFirst => self.pop_youngest(),
            Allocation::OldestFirst if degraded => self.pop_youngest(),
            Allocation::OldestFirst => self.pop_oldest(),
            Allocation::WearFocusing if moved == degraded => self.pop_oldest(),
            Allocation::WearFocusing => self.pop_youngest(),
        }
    }

    /// Takes this one out; returns whether it was there.
    pub(crate) fn remove(&mut self, number: u32, erases: u32) -> bool {
        if self.order != Allocation::Fifo {
            return self.by_erases.remove(&(erases, number));
        }
        // The one asked for is the youngest nearly always.
        if self.queue.back() == Some(&number) {
            return self.queue.pop_back().is_some();
        }
        let place = self.queue.iter().position(|erased| *erased == number);
        place.is_some_and(|place| self.queue.remove(place).is_some())
    }

    fn pop_youngest(&mut self) -> Option<u32> {
        self.by_erases.pop_first().map(|(_, number)| number)
    }

    fn pop_oldest(&mut self) -> Option<u32> {
        let &(most, _) = self.by_erases.last()?;
        let &entry = self.by_erases.range((most, 0)..).next()?;
        self.by_erases.remove(&entry);
        Some(entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(order: Allocation, moved: bool, degraded: bool) -> Vec<u32> {
        let mut erased = Erased::new(order, 8);
        for (number, erases) in [(5, 3), (1, 9), (4, 3), (2, 9), (3, 6)] {
            erased.push(number, erases);
        }
        assert!(erased.remove(3, 6) && !erased.remove(3, 6));
        std::iter::from_fn(|| erased.pop(moved, degraded)).collect()
    }

    #[test]
    fn each_order_gives_out_what_it_says_and_ties_go_to_the_lowest_number() {
        assert_eq!(order(Allocation::Fifo, false, false), [5, 1, 4, 2]);
        assert_eq!(order(Allocation::YoungestFirst, false, false), [4, 5, 1, 2]);
        assert_eq!(order(Allocation::OldestFirst, true, false), [1, 2, 4, 5]);
        assert_eq!(order(Allocation::OldestFirst, false, true), [4, 5, 1, 2]);
    }

    #[test]
    fn wear_focusing_gives_the_oldest_to_the_host_until_the_drive_is_degraded() {
        assert_eq!(order(Allocation::WearFocusing, false, false), [1, 2, 4, 5]);
        assert_eq!(order(Allocation::WearFocusing, true, false), [4, 5, 1, 2]);
        assert_eq!(order(Allocation::WearFocusing, false, true), [4, 5, 1, 2]);
        assert_eq!(order(Allocation::WearFocusing, true, true), [1, 2, 4, 5]);
    }
}
