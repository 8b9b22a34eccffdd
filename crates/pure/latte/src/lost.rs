//! Blocks whose newest version was lost with the front end: they are not read until they are written again.

/// A bit for each block.
#[derive(Clone, Debug)]
pub(crate) struct LostBlocks {
    words: Vec<u64>,
    count: u32,
}

impl LostBlocks {
    pub(crate) fn new(blocks: u32) -> Self {
        Self { words: vec![0; blocks.div_ceil(64) as usize], count: 0 }
    }

    pub(crate) fn insert(&mut self, block: u32) {
        let (word, bit) = (&mut self.words[block as usize / 64], 1 << (block % 64));
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
    }

    pub(crate) fn remove(&mut self, block: u32) {
        if self.count == 0 {
            return;
        }
        let (word, bit) = (&mut self.words[block as usize / 64], 1 << (block % 64));
        self.count -= u32::from(*word & bit != 0);
        *word &= !bit;
    }

    /// The first lost block of `first..end`.
    pub(crate) fn first_in(&self, first: u32, end: u32) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        (first..end).find(|&block| self.words[block as usize / 64] >> (block % 64) & 1 == 1)
    }

    /// The first lost block.
    pub(crate) fn first(&self) -> Option<u32> {
        self.first_in(0, self.words.len() as u32 * 64)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_lost_until_they_are_written() {
        let mut lost = LostBlocks::new(130);
        assert_eq!(lost.first_in(0, 130), None);
        [129, 64, 64].into_iter().for_each(|block| lost.insert(block));
        assert_eq!((lost.first_in(0, 64), lost.first_in(0, 130), lost.first_in(65, 130)), (None, Some(64), Some(129)));
        lost.remove(64);
        lost.remove(3);
        assert_eq!(lost.first_in(0, 130), Some(129));
        lost.remove(129);
        assert_eq!(lost.first_in(0, 130), None);
    }
}
