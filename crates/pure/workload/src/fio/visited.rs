//! Which blocks of a pass were visited.

/// Bits in a word.
const WORD: u64 = 64;

/// One bit for each block, and above it one bit for each word that is full, up to a single word.
///
/// A block that is free is found from any other in as many steps as there are levels, however full the map is:
/// the tree of words of P. van Emde Boas, "Preserving order in a forest in less than logarithmic time" (1975), with
/// words of 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Visited {
    blocks: u64,
    levels: Vec<Vec<u64>>,
    /// Whether any block was visited. A map that is new touches no memory.
    is_used: bool,
}

impl Visited {
    /// A map of `blocks` blocks that are free.
    pub(super) fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut words = blocks;
        loop {
            words = words.div_ceil(WORD).max(1);
            levels.push(vec![0; words as usize]);
            if words == 1 {
                return Self { blocks, levels, is_used: false };
            }
        }
    }

    /// Frees every block.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.levels.iter_mut().for_each(|level| level.fill(0));
        }
    }

    #[inline]
    pub(super) fn is_visited(&self, block: u64) -> bool {
        self.levels[0].get((block / WORD) as usize).is_some_and(|word| word >> (block % WORD) & 1 == 1)
    }

    /// Visits up to `count` blocks from `block` on and stops at the first one that was visited before. Returns how many
    /// were free.
    #[inline]
    pub(super) fn visit(&mut self, block: u64, count: u64) -> u64 {
        self.is_used = true;
        let mut done = 0;
        while done < count {
            let (index, bit) = (((block + done) / WORD) as usize, (block + done) % WORD);
            let Some(word) = self.levels[0].get_mut(index) else { break };
            let room = (WORD - bit).min(count - done);
            let free = u64::from((*word >> bit).trailing_zeros()).min(room);
            if free > 0 {
                *word |= (u64::MAX >> (WORD - free)) << bit;
                if *word == u64::MAX {
                    self.fill(index as u64);
                }
            }
            done += free;
            if free < room {
                break;
            }
        }
        done
    }

    /// Notes that a word of the lowest level is full.
    fn fill(&mut self, mut index: u64) {
        for level in &mut self.levels[1..] {
            let word = &mut level[(index / WORD) as usize];
            *word |= 1 << (index % WORD);
            if *word != u64::MAX {
                break;
            }
            index /= WORD;
        }
    }

    /// The next free block after `block`, around at the end; `None` when there is none.
    #[inline]
    pub(super) fn next_free(&self, block: u64) -> Option<u64> {
        let next = if block + 1 >= self.blocks { 0 } else { block + 1 };
        self.free_from(next).or_else(|| if next == 0 { None } else { self.free_from(0) })
    }

    /// The first free block from `block` on.
    #[inline]
    fn free_from(&self, block: u64) -> Option<u64> {
        let mut index = block;
        for (height, level) in self.levels.iter().enumerate() {
            // A word of which the rest is full: the search goes on one level up, behind that word.
            let word = *level.get((index / WORD) as usize)?;
            let free = !word & (u64::MAX << (index % WORD));
            if free != 0 {
                return self.down(index / WORD * WORD + u64::from(free.trailing_zeros()), height);
            }
            index = index / WORD + 1;
        }
        None
    }

    /// The first free block below entry `index` of level `height`, which is not full.
    #[inline]
    fn down(&self, mut index: u64, height: usize) -> Option<u64> {
        for level in self.levels[..height].iter().rev() {
            // Beyond the end of a level that is no multiple of a word lies nothing.
            let word = *level.get(index as usize)?;
            index = index * WORD + u64::from((!word).trailing_zeros());
        }
        (index < self.blocks).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_map_does_what_a_list_of_flags_does(
            blocks in prop::sample::select(vec![1_u64, 3, 63, 64, 65, 130, 4096, 4097, 9000]),
            steps in prop::collection::vec((any::<u64>(), 1_u64..200), 1..300),
        ) {
            let mut map = Visited::new(blocks);
            let mut flags = vec![false; blocks as usize];
            for (place, count) in steps {
                let block = place % blocks;
                let count = count.min(blocks - block);
                let after = (1..=blocks).map(|step| (block + step) % blocks).find(|&other| !flags[other as usize]);
                prop_assert_eq!(map.next_free(block), after);
                prop_assert_eq!(map.is_visited(block), flags[block as usize]);
                let free = (block..block + count).take_while(|&other| !flags[other as usize]).count() as u64;
                prop_assert_eq!(map.visit(block, count), free);
                flags[block as usize..(block + free) as usize].fill(true);
            }
            map.clear();
            prop_assert!((0..blocks).all(|block| !map.is_visited(block)));
        }
    }

    #[test]
    fn a_map_takes_a_bit_a_block_and_little_more() {
        let words: usize = Visited::new(1 << 20).levels.iter().map(Vec::len).sum();
        assert_eq!(words, 16_384 + 256 + 4 + 1);
    }
}
