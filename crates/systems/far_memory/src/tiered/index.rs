//! Ways to find the line of DRAM that may have a block: the interface, and those that need no learning.
//!
//! Source: \[P\] sheet micro-ginkgo §5.

use super::pages::HUGE_PAGE_BLOCKS;
use super::touched::TouchedBlocks;

/// Metadata that a look-up reads: granules of 64 bytes that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granules {
    /// Number of the first one.
    pub first: u32,
    /// How many; 0 where no metadata is read.
    pub count: u32,
}

/// The answer of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The set of lines that may have the block; `None` where no line may, and CXL memory is asked at once.
    pub set: Option<u64>,
    /// Metadata that the answer took.
    pub metadata: Granules,
    /// Whether a learned function was computed.
    pub is_computed: bool,
}

/// Says where a block may be.
pub trait Index {
    /// The set of lines for a block of CXL memory, and the metadata touched.
    fn map(&self, block: u64) -> Mapping;

    /// Lines of a set.
    fn ways(&self) -> u32 {
        1
    }

    /// Bytes of all metadata.
    fn metadata_bytes(&self) -> u64 {
        0
    }

    /// Whether metadata have the tags of a set, so that they say which line has the block, or that none has it. Elsewhere a tag lies beside
    /// its data, and a line is read to know.
    fn has_tags(&self) -> bool {
        false
    }
}

/// The direct map: block address modulo lines, and tags beside data. Alloy Cache.
#[derive(Clone, Copy, Debug)]
pub struct DirectIndex {
    /// Lines of DRAM.
    pub lines: u64,
}

impl Index for DirectIndex {
    #[inline]
    fn map(&self, block: u64) -> Mapping {
        Mapping { set: Some(block % self.lines), ..Mapping::default() }
    }
}

/// Four bytes of metadata for each line, by which a block is found in its set. Unison Cache, its predictors switched off.
#[derive(Clone, Copy, Debug)]
pub struct SetIndex {
    /// Lines of DRAM.
    pub lines: u64,
    /// Lines of a set: 1, 2, 4, 8 or 16, which have their metadata in one granule.
    pub ways: u32,
}

/// Lines whose metadata a granule has. \[D\] 64 bytes by 4
const LINES_OF_GRANULE: u64 = 16;

impl Index for SetIndex {
    #[inline]
    fn map(&self, block: u64) -> Mapping {
        let ways = u64::from(self.ways);
        let set = block % (self.lines / ways);
        let first = (set * ways / LINES_OF_GRANULE) as u32;
        Mapping { set: Some(set), metadata: Granules { first, count: 1 }, is_computed: false }
    }

    fn ways(&self) -> u32 {
        self.ways
    }

    fn metadata_bytes(&self) -> u64 {
        4 * self.lines
    }

    /// \[P\] sheet §5: metadata "identify the exact position of a cache block within a given set"
    fn has_tags(&self) -> bool {
        true
    }
}

/// The rank of each block among all that are ever touched, modulo lines: no conflicts while they fit. No hardware has it.
#[derive(Clone, Debug)]
pub struct RankIndex {
    lines: u64,
    touched: TouchedBlocks,
    before: Vec<u64>,
}

impl RankIndex {
    /// Ranks among `touched` blocks.
    pub fn new(lines: u64, touched: TouchedBlocks) -> Self {
        let before = touched.before();
        Self { lines, touched, before }
    }
}

impl Index for RankIndex {
    #[inline]
    fn map(&self, block: u64) -> Mapping {
        let rank = || self.before[(block / 64) as usize] + self.touched.before_in_word(block);
        let set = self.touched.has(block).then(|| rank() % self.lines);
        Mapping { set, ..Mapping::default() }
    }
}

/// The page of DRAM that the direct map gives to a huge page, of so many.
#[inline]
pub(super) const fn page_of_dram(page: u64, dram_pages: u64) -> u64 {
    page % dram_pages
}

/// The line that the direct map gives to a block.
#[inline]
pub(super) const fn direct(block: u64, dram_pages: u64) -> u64 {
    block % (dram_pages * HUGE_PAGE_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_lie_in_dram_and_metadata_beside_the_set(block in 0_u64..1 << 30, pages in 1_u64..64) {
            let lines = pages * HUGE_PAGE_BLOCKS;
            let direct_set = DirectIndex { lines }.map(block).set;
            prop_assert_eq!(direct_set, Some(direct(block, pages)));
            prop_assert_eq!(direct(block, pages) / HUGE_PAGE_BLOCKS, page_of_dram(block / HUGE_PAGE_BLOCKS, pages));
            let unison = SetIndex { lines, ways: 4 };
            let Mapping { set, metadata, is_computed } = unison.map(block);
            prop_assert!(!is_computed);
            prop_assert!(set.is_some_and(|set| set < lines / 4));
            prop_assert_eq!(metadata, Granules { first: (set.unwrap_or(0) / 4) as u32, count: 1 });
            prop_assert!(u64::from(metadata.first) * 64 < unison.metadata_bytes());
        }

        #[test]
        fn ranks_are_those_of_a_sorted_list(
            blocks in prop::collection::btree_set(0_u64..3 * HUGE_PAGE_BLOCKS, 1..300), lines in 1_u64..400,
        ) {
            let mut touched = TouchedBlocks::new(3);
            for block in &blocks {
                touched.touch(*block);
            }
            let index = RankIndex::new(lines, touched);
            for (rank, block) in blocks.iter().enumerate() {
                prop_assert_eq!(index.map(*block).set, Some(rank as u64 % lines));
            }
            prop_assert!((0..500).filter(|block| !blocks.contains(block)).all(|block| index.map(block).set.is_none()));
        }
    }
}
