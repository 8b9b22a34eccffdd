//! Closed superblocks ordered by how little they hold, so that the greedy victim costs no search.

use crate::config::VictimTies;

const NIL: u32 = u32::MAX;
const BUCKETS_MAX: u32 = 4096;

/// Closed superblocks in buckets of valid count: doubly linked lists in arrays.
///
/// With more slots in a superblock than buckets, a bucket spans a power of two of counts, so the pick
/// is within that of the least. Heads are picked: the ties decide at which end superblocks enter.
pub(crate) struct VictimIndex {
    shift: u32,
    heads: Vec<u32>,
    /// Ends of the lists, where superblocks enter when the oldest is picked; empty otherwise.
    tails: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    lowest: u32,
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
            next: vec![NIL; superblocks as usize],
            previous: vec![NIL; superblocks as usize],
            lowest: buckets,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, superblock: u32, valid: u32) {
        let bucket = valid >> self.shift;
        self.lowest = self.lowest.min(bucket);
        if !self.tails.is_empty() {
            return self.insert_last(superblock, bucket);
        }
        let head = self.heads[bucket as usize];
        self.next[superblock as usize] = head;
        self.previous[superblock as usize] = NIL;
        if head != NIL {
            self.previous[head as usize] = superblock;
        }
        self.heads[bucket as usize] = superblock;
    }

    fn insert_last(&mut self, superblock: u32, bucket: u32) {
        let tail = std::mem::replace(&mut self.tails[bucket as usize], superblock);
        self.next[superblock as usize] = NIL;
        self.previous[superblock as usize] = tail;
        if tail == NIL {
            self.heads[bucket as usize] = superblock;
        } else {
            self.next[tail as usize] = superblock;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, superblock: u32, valid: u32) {
        let (next, previous) = (self.next[superblock as usize], self.previous[superblock as usize]);
        if previous == NIL {
            self.heads[(valid >> self.shift) as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NIL {
            self.previous[next as usize] = previous;
        } else if !self.tails.is_empty() {
            self.tails[(valid >> self.shift) as usize] = previous;
        }
    }

    /// Moves a superblock whose valid count fell from `valid + 1` to `valid`.
    #[inline]
    pub(crate) fn decrease(&mut self, superblock: u32, valid: u32) {
        if valid >> self.shift != (valid + 1) >> self.shift {
            self.remove(superblock, valid + 1);
            self.insert(superblock, valid);
        }
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
                        index.insert(superblock, valid);
                        model[superblock as usize] = Some(valid);
                    }
                    Some(0) => {
                        index.remove(superblock, 0);
                        model[superblock as usize] = None;
                    }
                    Some(held) => {
                        index.decrease(superblock, held - 1);
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
            [3, 1, 5].into_iter().for_each(|superblock| index.insert(superblock, 4));
            index.insert(2, 5);
            index.decrease(2, 4);
            let pick = || {
                let least = index.least()?;
                index.remove(least, 4);
                Some(least)
            };
            std::iter::from_fn(pick).collect::<Vec<_>>()
        };
        assert_eq!(picked(VictimTies::OldestFirst), [3, 1, 5, 2]);
        assert_eq!(picked(VictimTies::NewestFirst), [2, 5, 1, 3]);
    }
}
