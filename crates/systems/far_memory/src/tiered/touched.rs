//! Which blocks of huge pages were touched.

use super::pages::HUGE_PAGE_BLOCKS;

/// Words of 64 blocks in a huge page.
const WORDS: usize = (HUGE_PAGE_BLOCKS / 64) as usize;

/// Words of 64 blocks in a page of 4 KiB: one.
const SMALL_PAGES: u64 = HUGE_PAGE_BLOCKS / 64;

/// A bit for each block of CXL memory.
#[derive(Clone, Debug)]
pub struct TouchedBlocks {
    words: Vec<u64>,
}

impl TouchedBlocks {
    /// So many huge pages, untouched.
    pub fn new(pages: u64) -> Self {
        Self { words: vec![0; pages as usize * WORDS] }
    }

    /// Huge pages.
    pub fn pages(&self) -> u64 {
        (self.words.len() / WORDS) as u64
    }

    /// Makes room for so many huge pages.
    pub fn grow(&mut self, pages: u64) {
        self.words.resize(self.words.len().max(pages as usize * WORDS), 0);
    }

    /// Notes a touch; returns whether it was the first one of its block.
    #[inline]
    pub fn touch(&mut self, block: u64) -> bool {
        let word = &mut self.words[(block / 64) as usize];
        let before = *word;
        *word |= 1 << (block % 64);
        before != *word
    }

    /// Whether a block was touched.
    #[inline]
    pub fn has(&self, block: u64) -> bool {
        self.words[(block / 64) as usize] >> (block % 64) & 1 != 0
    }

    /// Blocks that were touched.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Blocks of a huge page that were touched.
    pub fn count_of(&self, page: u64) -> u64 {
        self.words_of(page).iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Offsets of touched blocks in a huge page, in order.
    pub fn offsets(&self, page: u64) -> Vec<u16> {
        let of_word = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| (word * 64 + bit) as u16)
        };
        self.words_of(page).iter().enumerate().flat_map(of_word).collect()
    }

    /// How many times as much memory as the touched blocks the touched pages take: pages of 4 KiB, and of 2 MiB.
    pub fn bloat(&self) -> [f64; 2] {
        let small = self.words.iter().filter(|word| **word != 0).count() as u64;
        let huge = self.words.chunks_exact(WORDS).filter(|page| page.iter().any(|word| *word != 0)).count() as u64;
        let blocks = self.count().max(1) as f64;
        [(small * HUGE_PAGE_BLOCKS / SMALL_PAGES) as f64 / blocks, (huge * HUGE_PAGE_BLOCKS) as f64 / blocks]
    }

    /// These touches where each huge page lies at its place among `places`.
    pub(super) fn placed(&self, places: &[u64]) -> Self {
        let mut placed = Self::new(self.pages());
        for (page, place) in (0..).zip(places) {
            let begin = *place as usize * WORDS;
            placed.words[begin..begin + WORDS].copy_from_slice(self.words_of(page));
        }
        placed
    }

    /// For each word of 64 blocks the number that were touched before it.
    pub(super) fn before(&self) -> Vec<u64> {
        let mut sum = 0;
        let before = |word: &u64| {
            let before = sum;
            sum += u64::from(word.count_ones());
            before
        };
        self.words.iter().map(before).collect()
    }

    /// Touched blocks of the word of `block` that lie before it.
    #[inline]
    pub(super) fn before_in_word(&self, block: u64) -> u64 {
        let word = self.words[(block / 64) as usize];
        u64::from((word & ((1 << (block % 64)) - 1)).count_ones())
    }

    fn words_of(&self, page: u64) -> &[u64] {
        &self.words[page as usize * WORDS..(page as usize + 1) * WORDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_are_counted_by_block_and_by_page() {
        let mut touched = TouchedBlocks::new(2);
        for block in [0, 1, 65, HUGE_PAGE_BLOCKS - 1, 0] {
            touched.touch(block);
        }
        assert_eq!((touched.count(), touched.count_of(0), touched.count_of(1)), (4, 4, 0));
        assert_eq!(touched.offsets(0), [0, 1, 65, 32_767]);
        assert_eq!(touched.bloat(), [3.0 * 64.0 / 4.0, 32_768.0 / 4.0]);
        assert!(touched.touch(2) && !touched.touch(2) && touched.has(2) && !touched.has(3));
        touched.grow(5);
        assert_eq!((touched.pages(), touched.count()), (5, 5));
    }
}
