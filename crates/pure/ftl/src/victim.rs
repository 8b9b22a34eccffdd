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
    links: Vec<Links>,
    lowest: u32,
}

/// Neighbours of a superblock in its list, or `NIL`: together, because they are loaded together.
#[derive(Clone, Copy)]
struct Links {
    next: u32,
    previous: u32,
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
            links: vec![Links { next: NIL, previous: NIL }; superblocks as usize],
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
        self.links[superblock as usize] = Links { next: head, previous: NIL };
        if head != NIL {
            self.links[head as usize].previous = superblock;
        }
        self.heads[bucket as usize] = superblock;
    }

    fn insert_last(&mut self, superblock: u32, bucket: u32) {
        let tail = std::mem::replace(&mut self.tails[bucket as usize], superblock);
        self.links[superblock as usize] = Links { next: NIL, previous: tail };
        if tail == NIL {
            self.heads[bucket as usize] = superblock;
        } else {
            self.links[tail as usize].next = superblock;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, superblock: u32, valid: u32) {
        let Links { next, previous } = self.links[superblock as usize];
        if previous == NIL {
            self.heads[(valid >> self.shift) as usize] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next != NIL {
            self.links[next as usize].previous = previous;
        } else if !self.tails.is_empty() {
            self.tails[(valid >> self.shift) as usize] = previous;
        }
    }

    /// Moves a superblock whose valid count fell from `before` to `valid`.
    ///
    /// Falling by several at once is falling by one several times, as long as no other superblock moves between.
    #[inline]
    pub(crate) fn decrease(&mut self, superblock: u32, before: u32, valid: u32) {
        if valid >> self.shift != before >> self.shift {
            self.remove(superblock, before);
            self.insert(superblock, valid);
        }
    }

    /// Loads the neighbours of a listed superblock, which change when it moves; returns a number made of them.
    #[inline]
    pub(crate) fn neighbours(&self, superblock: u32) -> u32 {
        let Links { next, previous } = self.links[superblock as usize];
        let there = |superblock: u32| self.links.get(superblock as usize).map_or(0, |links| links.next);
        there(next) ^ there(previous)
    }

    /// All superblocks, so that inserting them one after the other makes the same lists again.
    pub(crate) fn in_order(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for &head in &self.heads {
            let begin = all.len();
            let listed = |number: u32| (number != NIL).then_some(number);
            all.extend(std::iter::successors(listed(head), |&at| listed(self.links[at as usize].next)));
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
                        index.insert(superblock, valid);
                        model[superblock as usize] = Some(valid);
                    }
                    Some(0) => {
                        index.remove(superblock, 0);
                        model[superblock as usize] = None;
                    }
                    Some(held) => {
                        index.decrease(superblock, held, held - 1);
                        model[superblock as usize] = Some(held - 1);
                    }
                }
                let least = model.iter().flatten().min();
                let found = index.least().map(|superblock| model[superblock as usize].expect("only listed ones"));
                prop_assert_eq!(found.as_ref(), least);
            }
        }
    }

    proptest! {
        #[test]
        fn equals_are_picked_in_the_order_in_which_they_came_to_their_count(
            steps in prop::collection::vec((0_u32..12, 1_u32..5), 1..200), oldest_first: bool,
        ) {
            let ties = if oldest_first { VictimTies::OldestFirst } else { VictimTies::NewestFirst };
            let mut index = VictimIndex::new(12, 8, ties);
            // Superblocks of each count, in the order in which they came to it.
            let mut model = vec![Vec::new(); 9];
            for (superblock, valid) in steps {
                match model.iter().position(|listed: &Vec<u32>| listed.contains(&superblock)) {
                    None => {
                        index.insert(superblock, valid);
                        model[valid as usize].push(superblock);
                    }
                    Some(held) => {
                        model[held].retain(|&listed| listed != superblock);
                        if held == 0 {
                            index.remove(superblock, 0);
                        } else {
                            index.decrease(superblock, held as u32, held as u32 - 1);
                            model[held - 1].push(superblock);
                        }
                    }
                }
                let least = model.iter().find(|listed| !listed.is_empty());
                let expected = least.and_then(|listed| if oldest_first { listed.first() } else { listed.last() });
                prop_assert_eq!(index.least(), expected.copied());
            }
            // The order outlives a restart.
            let mut again = VictimIndex::new(12, 8, ties);
            let valid = |number: u32| model.iter().position(|listed| listed.contains(&number)).expect("it is listed");
            index.in_order().into_iter().for_each(|number| again.insert(number, valid(number) as u32));
            while let Some(least) = index.least() {
                prop_assert_eq!(again.least(), Some(least));
                index.remove(least, valid(least) as u32);
                again.remove(least, valid(least) as u32);
            }
            prop_assert_eq!(again.least(), None);
        }
    }

    #[test]
    fn in_a_bucket_of_several_counts_a_loss_changes_no_order() {
        // Four counts a bucket.
        let mut index = VictimIndex::new(8, 8192, VictimTies::NewestFirst);
        [(3, 103), (1, 101)].into_iter().for_each(|(superblock, valid)| index.insert(superblock, valid));
        index.decrease(3, 103, 100);
        assert_eq!(index.in_order(), [3, 1]);
        index.decrease(3, 100, 99);
        assert_eq!(index.least(), Some(3), "it is alone in the bucket below");
        index.remove(3, 99);
        assert_eq!(index.in_order(), [1]);
        let mut index = VictimIndex::new(8, 8192, VictimTies::OldestFirst);
        [(3, 103), (1, 101)].into_iter().for_each(|(superblock, valid)| index.insert(superblock, valid));
        index.remove(1, 101);
        index.insert(5, 102);
        assert_eq!(index.in_order(), [3, 5]);
    }

    #[test]
    fn the_oldest_of_equals_is_picked_if_asked_for() {
        let picked = |ties| {
            let mut index = VictimIndex::new(8, 16, ties);
            [3, 1, 5].into_iter().for_each(|superblock| index.insert(superblock, 4));
            index.insert(2, 5);
            index.decrease(2, 5, 4);
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
