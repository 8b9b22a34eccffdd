//! How much superblocks hold, and the closed ones ordered by that, so that the greedy victim costs no search.

use crate::config::VictimTies;

const NIL: u32 = u32::MAX;
const BUCKETS_MAX: u32 = 4096;

/// Valid slots of every superblock, and the closed ones in buckets of that count: doubly linked lists in arrays.
///
/// With more slots in a superblock than buckets, a bucket spans a power of two of counts, so the pick
/// is within that of the least. Heads are picked: the ties decide at which end superblocks enter.
pub(crate) struct VictimIndex {
    shift: u32,
    heads: Vec<u32>,
    /// Ends of the lists, where superblocks enter when the oldest is picked; empty otherwise.
    tails: Vec<u32>,
    entries: Vec<Entry>,
    lowest: u32,
}

/// What changes of a superblock when a slot is overwritten, in a quarter of a cache line.
#[derive(Clone, Copy)]
struct Entry {
    /// Its neighbours in its list, or `NIL`.
    next: u32,
    previous: u32,
    valid: u32,
    /// Whether it is in a list.
    listed: bool,
}

impl VictimIndex {
    pub(crate) fn new(superblocks: u32, slots_per_superblock: u32, ties: VictimTies) -> Self {
        let mut shift = 0;
        while (slots_per_superblock >> shift) >= BUCKETS_MAX {
            shift += 1;
        }
        let buckets = (slots_per_superblock >> shift) + 1;
        Self {
            shift,
            heads: vec![NIL; buckets as usize],
            tails: if ties == VictimTies::OldestFirst { vec![NIL; buckets as usize] } else { Vec::new() },
            entries: vec![Entry { next: NIL, previous: NIL, valid: 0, listed: false }; superblocks as usize],
            lowest: buckets,
        }
    }

    /// Valid slots of a superblock.
    #[inline]
    pub(crate) fn valid(&self, superblock: u32) -> u32 {
        self.entries[superblock as usize].valid
    }

    /// Valid slots of every superblock.
    pub(crate) fn valid_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.valid)
    }

    /// Counts slots that a superblock outside the lists was given.
    #[inline]
    pub(crate) fn fill(&mut self, superblock: u32, slots: u32) {
        debug_assert!(!self.entries[superblock as usize].listed, "only an open superblock is filled");
        self.entries[superblock as usize].valid += slots;
    }

    /// Counts slots that a superblock lost.
    ///
    /// Losing several at once is losing one several times, as long as no other superblock moves between.
    #[inline]
    pub(crate) fn lose(&mut self, superblock: u32, slots: u32) {
        let entry = &mut self.entries[superblock as usize];
        let (before, valid) = (entry.valid, entry.valid - slots);
        if entry.listed && valid >> self.shift != before >> self.shift {
            self.remove(superblock);
            self.entries[superblock as usize].valid = valid;
            self.insert(superblock);
        } else {
            entry.valid = valid;
        }
    }

    /// Lists a superblock.
    #[inline]
    pub(crate) fn insert(&mut self, superblock: u32) {
        let entry = &mut self.entries[superblock as usize];
        let bucket = (entry.valid >> self.shift) as usize;
        entry.listed = true;
        self.lowest = self.lowest.min(bucket as u32);
        if !self.tails.is_empty() {
            return self.insert_last(superblock, bucket);
        }
        let head = std::mem::replace(&mut self.heads[bucket], superblock);
        (entry.next, entry.previous) = (head, NIL);
        if head != NIL {
            self.entries[head as usize].previous = superblock;
        }
    }

    fn insert_last(&mut self, superblock: u32, bucket: usize) {
        let tail = std::mem::replace(&mut self.tails[bucket], superblock);
        let entry = &mut self.entries[superblock as usize];
        (entry.next, entry.previous) = (NIL, tail);
        if tail == NIL {
            self.heads[bucket] = superblock;
        } else {
            self.entries[tail as usize].next = superblock;
        }
    }

    /// Takes a superblock out of its list.
    #[inline]
    pub(crate) fn remove(&mut self, superblock: u32) {
        let entry = &mut self.entries[superblock as usize];
        entry.listed = false;
        let Entry { next, previous, valid, .. } = *entry;
        let bucket = (valid >> self.shift) as usize;
        if previous == NIL {
            self.heads[bucket] = next;
        } else {
            self.entries[previous as usize].next = next;
        }
        if next != NIL {
            self.entries[next as usize].previous = previous;
        } else if !self.tails.is_empty() {
            self.tails[bucket] = previous;
        }
    }

    /// Loads the neighbours of a listed superblock, which change when it moves; returns a number made of them.
    #[inline]
    pub(crate) fn neighbours(&self, superblock: u32) -> u32 {
        let Entry { next, previous, .. } = self.entries[superblock as usize];
        let there = |superblock: u32| self.entries.get(superblock as usize).map_or(0, |entry| entry.next);
        there(next) ^ there(previous)
    }

    /// All superblocks, so that inserting them one after the other makes the same lists again.
    pub(crate) fn in_order(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for &head in &self.heads {
            let begin = all.len();
            let listed = |number: u32| (number != NIL).then_some(number);
            all.extend(std::iter::successors(listed(head), |&at| listed(self.entries[at as usize].next)));
            // Where the newest is picked, the head came last.
            if self.tails.is_empty() {
                all[begin..].reverse();
            }
        }
        all
    }

    /// A superblock from the lowest bucket; it stays listed.
    #[inline]
    pub(crate) fn least(&mut self) -> Option<u32> {
        while (self.lowest as usize) < self.heads.len() {
            let head = self.heads[self.lowest as usize];
            if head != NIL {
                return Some(head);
            }
            self.lowest += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_superblock_is_found_whatever_happened_before(
            steps in prop::collection::vec((0_u32..20, 1_u32..16), 1..300), oldest_first: bool,
        ) {
            let ties = if oldest_first { VictimTies::OldestFirst } else { VictimTies::NewestFirst };
            let mut index = VictimIndex::new(20, 16, ties);
            let mut model = [None; 20];
            for (superblock, valid) in steps {
                match model[superblock as usize] {
                    None => {
                        index.fill(superblock, valid);
                        index.insert(superblock);
                        model[superblock as usize] = Some(valid);
                    }
                    Some(0) => {
                        index.remove(superblock);
                        model[superblock as usize] = None;
                    }
                    Some(held) => {
                        index.lose(superblock, 1);
                        model[superblock as usize] = Some(held - 1);
                    }
                }
                let least = model.iter().flatten().min();
                let found = index.least().map(|superblock| model[superblock as usize].expect("only listed ones"));
                prop_assert_eq!(found.as_ref(), least);
            }
        }
    }

    #[test]
    fn the_oldest_of_equals_is_picked_if_asked_for() {
        let picked = |ties| {
            let mut index = VictimIndex::new(8, 16, ties);
            for (superblock, valid) in [(3, 4), (1, 4), (5, 4), (2, 5)] {
                index.fill(superblock, valid);
                index.insert(superblock);
            }
            index.lose(2, 1);
            let pick = || {
                let least = index.least()?;
                index.remove(least);
                Some(least)
            };
            std::iter::from_fn(pick).collect::<Vec<_>>()
        };
        assert_eq!(picked(VictimTies::OldestFirst), [3, 1, 5, 2]);
        assert_eq!(picked(VictimTies::NewestFirst), [2, 5, 1, 3]);
    }
}
