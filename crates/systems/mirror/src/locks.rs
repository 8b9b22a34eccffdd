//! Requests that overlap a write under way wait for it: otherwise two writes could reach the two drives in different
//! orders, and a read could find what a later one does not find any more.

use std::collections::VecDeque;

/// Blocks that are being written, and requests that wait for some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    /// First block, blocks, the request that writes them. As many as there are writes under way.
    writers: Vec<(u32, u32, u32)>,
    /// Requests that wait, the longest waiting one first: number, first block, blocks.
    waiting: VecDeque<(u32, u32, u32)>,
}

impl Locks {
    /// Whether any of `count` blocks from `first` is being written.
    #[inline]
    pub(crate) fn covers(&self, first: u32, count: u32) -> bool {
        self.writers.iter().any(|&(other, blocks, _)| first < other + blocks && other < first + count)
    }

    /// `request` writes these blocks from now on. None of them is being written.
    #[inline]
    pub(crate) fn acquire(&mut self, request: u32, first: u32, count: u32) {
        self.writers.push((first, count, request));
    }

    /// `request` has written its blocks, if it did write any.
    #[inline]
    pub(crate) fn release(&mut self, request: u32) {
        if let Some(place) = self.writers.iter().position(|&(.., other)| other == request) {
            self.writers.swap_remove(place);
        }
    }

    /// `request` waits until none of its blocks is being written.
    pub(crate) fn wait(&mut self, request: u32, first: u32, count: u32) {
        self.waiting.push_back((request, first, count));
    }

    /// The request that has waited longest and need not wait any more; it waits no longer.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let place = self.waiting.iter().position(|&(_, first, count)| !self.covers(first, count))?;
        self.waiting.remove(place).map(|(request, ..)| request)
    }

    /// `request` does not wait any more; returns whether it did.
    pub(crate) fn forget(&mut self, request: u32) -> bool {
        let place = self.waiting.iter().position(|&(other, ..)| other == request);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_every_write_of_its_blocks_and_for_no_other() {
        let mut locks = Locks::default();
        locks.acquire(1, 10, 4);
        locks.acquire(2, 20, 1);
        assert_eq!(
            [(6, 4), (9, 2), (13, 1), (14, 6), (14, 7)].map(|(first, count)| locks.covers(first, count)),
            [false, true, true, false, true]
        );
        locks.wait(3, 13, 8);
        locks.wait(4, 12, 1);
        assert_eq!(locks.next(), None);
        locks.release(1);
        assert_eq!(locks.next(), Some(4), "the first one still waits for the other write");
        locks.release(2);
        assert_eq!((locks.next(), locks.next()), (Some(3), None));
    }
}
