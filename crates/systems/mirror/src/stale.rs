//! Blocks of one drive whose copy is not current.

/// A set of blocks, a bit each. Its memory reaches as far as the last block that was ever in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSet {
    words: Vec<u64>,
    len: u64,
}

impl BlockSet {
    /// How many blocks there are in it.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `count` blocks from `first` in.
    pub(crate) fn insert(&mut self, first: u32, count: u32) {
        let words = (first + count).div_ceil(64) as usize;
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
        for block in first..first + count {
            let word = &mut self.words[(block / 64) as usize];
            self.len += u64::from(*word >> (block % 64) & 1 == 0);
            *word |= 1 << (block % 64);
        }
    }

    /// Takes `count` blocks from `first` out.
    #[inline]
    pub(crate) fn remove(&mut self, first: u32, count: u32) {
        if self.is_empty() {
            return;
        }
        for block in first..(first + count).min(self.words.len() as u32 * 64) {
            let word = &mut self.words[(block / 64) as usize];
            self.len -= *word >> (block % 64) & 1;
            *word &= !(1 << (block % 64));
        }
    }

    pub(crate) fn contains(&self, block: u32) -> bool {
        self.words.get((block / 64) as usize).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Whether any of `count` blocks from `first` is in it.
    #[inline]
    pub(crate) fn overlaps(&self, first: u32, count: u32) -> bool {
        !self.is_empty() && (first..first + count).any(|block| self.contains(block))
    }

    /// The blocks in it from `first` on, in order.
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().enumerate().skip((first / 64) as usize);
        words.flat_map(move |(number, &word)| {
            let number = number as u32;
            let skipped = if number == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let mut left = word & skipped;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(number * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_blocks_is_a_set(
            steps in prop::collection::vec((any::<bool>(), 0_u32..500, 0_u32..130), 0..60), from in 0_u32..640,
        ) {
            let (mut set, mut model) = (BlockSet::default(), BTreeSet::new());
            for (puts_in, first, count) in steps {
                if puts_in {
                    set.insert(first, count);
                    model.extend(first..first + count);
                } else {
                    set.remove(first, count);
                    (first..first + count).for_each(|block| { model.remove(&block); });
                }
                prop_assert_eq!((set.len(), set.is_empty()), (model.len() as u64, model.is_empty()));
                let overlaps = model.range(first / 2..first / 2 + count).next().is_some();
                prop_assert_eq!(set.overlaps(first / 2, count), overlaps);
            }
            prop_assert!(set.from(from).eq(model.range(from..).copied()));
            prop_assert!((0..700).all(|block| set.contains(block) == model.contains(&block)));
        }
    }
}
