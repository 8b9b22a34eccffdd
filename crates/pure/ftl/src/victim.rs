//! Closed superblocks ordered by how little they hold, so that the greedy victim costs no search.

const NIL: u32 = u32::MAX;
const BUCKETS_MAX: u32 = 4096;

/// Closed superblocks in buckets of valid count: doubly linked lists in arrays.
///
/// With more slots in a superblock than buckets, a bucket spans a power of two of counts, so the pick
/// is within that of the least.
pub(crate) struct VictimIndex {
    shift: u32,
    heads: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    lowest: u32,
}

impl VictimIndex {
    pub(crate) fn new(superblocks: u32, slots_per_superblock: u32) -> Self {
        let mut shift = 0;
        while (slots_per_superblock >> shift) >= BUCKETS_MAX {
            shift += 1;
        }
        let buckets = (slots_per_superblock >> shift) + 1;
        Self {
            shift,
            heads: vec![NIL; buckets as usize],
            next: vec![NIL; superblocks as usize],
            previous: vec![NIL; superblocks as usize],
            lowest: buckets,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, superblock: u32, valid: u32) {
        let bucket = valid >> self.shift;
        let head = self.heads[bucket as usize];
        self.next[superblock as usize] = head;
        self.previous[superblock as usize] = NIL;
        if head != NIL {
            self.previous[head as usize] = superblock;
        }
        self.heads[bucket as usize] = superblock;
        self.lowest = self.lowest.min(bucket);
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
            steps in prop::collection::vec((0_u32..20, 1_u32..16), 1..300),
        ) {
            let mut index = VictimIndex::new(20, 16);
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
}
