//! A table with open addressing, from a number to a number: chunks that lie elsewhere than their leaf says, stripes that are in use.

/// The number of an empty slot.
const EMPTY: u64 = u64::MAX;

/// A table of numbers by number. It is at most three quarters full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    slots: Vec<(u64, u64)>,
    filled: usize,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    fn home(&self, key: u64) -> usize {
        // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
        let bits = self.slots.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    /// The slot of a key, or the empty one that it would have.
    fn slot(&self, key: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut at = self.home(key) & last;
        while self.slots[at].0 != key && self.slots[at].0 != EMPTY {
            at = (at + 1) & last;
        }
        at
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u64> {
        if self.filled == 0 {
            return None;
        }
        let (found, value) = self.slots[self.slot(key)];
        (found == key).then_some(value)
    }

    pub(crate) fn insert(&mut self, key: u64, value: u64) {
        if self.filled * 4 >= self.slots.len() * 3 {
            let larger = vec![(EMPTY, 0); (2 * self.slots.len()).max(16)];
            let old = std::mem::replace(&mut self.slots, larger);
            for (key, value) in old.into_iter().filter(|&(key, _)| key != EMPTY) {
                let at = self.slot(key);
                self.slots[at] = (key, value);
            }
        }
        let at = self.slot(key);
        self.filled += usize::from(self.slots[at].0 == EMPTY);
        self.slots[at] = (key, value);
    }

    pub(crate) fn remove(&mut self, key: u64) {
        if self.filled == 0 {
            return;
        }
        let last = self.slots.len() - 1;
        let mut hole = self.slot(key);
        if self.slots[hole].0 == EMPTY {
            return;
        }
        self.filled -= 1;
        let mut at = hole;
        // Those behind it move up unless they would come before their home.
        loop {
            self.slots[hole].0 = EMPTY;
            loop {
                at = (at + 1) & last;
                let (key, _) = self.slots[at];
                if key == EMPTY {
                    return;
                }
                let from_home = at.wrapping_sub(self.home(key)) & last;
                if from_home >= (at.wrapping_sub(hole) & last) {
                    break;
                }
            }
            self.slots[hole] = self.slots[at];
            hole = at;
        }
    }

    /// All that it has, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.slots.iter().copied().filter(|&(key, _)| key != EMPTY)
    }

    /// All that it has, by key.
    pub(crate) fn sorted(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..40, prop::option::weighted(0.6, 0_u64..9)), 0..300)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (key, value) in steps {
                let key = key << 8;
                match value {
                    Some(value) => {
                        table.insert(key, value);
                        model.insert(key, value);
                    }
                    None => {
                        table.remove(key);
                        model.remove(&key);
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                (0..40).for_each(|key| assert_eq!(table.get(key << 8), model.get(&(key << 8)).copied()));
            }
            prop_assert_eq!(table.sorted(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
