//! Mechanisms of other designs that any flash over CXL may have besides its own.

use crate::tiered::{
    DirectIndex, HUGE_PAGE_BLOCKS, Index, LearnedIndex, MappedCache, Metadata, PlaceBy, SetIndex, Sram, TouchedBlocks,
};
use flashyard_cache::PolicyKind;
use flashyard_memory::{LentConfig, LookUp, MemoryError, PageCache, ReadAhead};
use flashyard_units::Named;
use std::sync::Arc;

/// How a device finds the pages of its internal DRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageIndex {
    /// Anywhere, under the device's policy: the controller knows all places.
    #[default]
    Policy,
    /// Anywhere, under the policy, by a table of pages of which SRAM has a part.
    Table,
    /// By the page's number; tags lie beside data.
    Direct,
    /// In sets of four, by metadata of which SRAM has a part.
    Sets,
    /// By a function of each 128 MiB that was learned from the program, of which SRAM has a part.
    Learned,
}

impl Named for PageIndex {
    const ALL: &'static [Self] = &[Self::Policy, Self::Table, Self::Direct, Self::Sets, Self::Learned];

    fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Table => "table",
            Self::Direct => "direct",
            Self::Sets => "sets",
            Self::Learned => "learned",
        }
    }
}

/// Mechanisms that flash over CXL has besides its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Combine {
    /// Whether requests are annotated, and the device reads that, in designs that do not by themselves. From CXL-SSD.
    pub annotated: bool,
    /// Hints that the root port gives ahead of loads. From CXL-GPU.
    pub read_ahead: ReadAhead,
    /// How pages of the internal DRAM are found. From Ginkgo.
    pub index: PageIndex,
    /// Bytes of SRAM for metadata of that.
    pub sram: u64,
    /// Segments of a learned function at most.
    pub segments: u32,
    /// DRAM that idle drives lend. From XBOF.
    pub lent: Option<LentConfig>,
}

/// Entries of a table of pages in a granule of 64 bytes. \[A\] four bytes each
const ENTRIES_OF_GRANULE: u64 = 16;

impl Combine {
    /// The pages of an internal DRAM of `slots` before a medium of `medium_pages`; `touched` are those that an index learns from.
    ///
    /// Errors: SRAM outside its range, too little DRAM for a learned index.
    pub(crate) fn pages(
        &self,
        policy: PolicyKind,
        slots: u32,
        medium_pages: u32,
        touched: &[u32],
    ) -> Result<PageCache, MemoryError> {
        let lines = u64::from(slots);
        let index: Arc<dyn Index + Send + Sync> = match self.index {
            PageIndex::Policy => return Ok(PageCache::of_policy(policy, slots)),
            PageIndex::Table => {
                let of = |page| crate::tiered::Granules { first: (page / ENTRIES_OF_GRANULE) as u32, count: 1 };
                let look_up = Metadata::new(Box::new(of), Sram::new(self.sram)?);
                return Ok(PageCache { look_up: Some(Box::new(look_up)), ..PageCache::of_policy(policy, slots) });
            }
            PageIndex::Direct => Arc::new(DirectIndex { lines }),
            PageIndex::Sets => Arc::new(SetIndex { lines: lines / 4 * 4, ways: 4 }),
            PageIndex::Learned => Arc::new(self.learned(lines, medium_pages, touched)?),
        };
        let look_up = match self.index {
            PageIndex::Direct => None,
            _ => {
                let index = Arc::clone(&index);
                let of = move |page| index.map(page).metadata;
                Some(Box::new(Metadata::new(Box::new(of), Sram::new(self.sram)?)) as Box<dyn LookUp + Send>)
            }
        };
        Ok(PageCache { pages: Box::new(MappedCache::new(index, slots)), look_up })
    }

    fn learned(&self, lines: u64, medium_pages: u32, touched: &[u32]) -> Result<LearnedIndex, MemoryError> {
        let mut blocks = TouchedBlocks::new(u64::from(medium_pages).div_ceil(HUGE_PAGE_BLOCKS));
        for page in touched {
            blocks.touch(u64::from(page % medium_pages));
        }
        let dram_pages = lines / HUGE_PAGE_BLOCKS;
        if dram_pages == 0 {
            let range = "at least 32768, which are 128 MiB: a learned index maps no less";
            return Err(MemoryError::Range { name: "pages worth keeping of internal DRAM", value: lines, range });
        }
        LearnedIndex::train(&blocks, dram_pages, self.segments as usize, PlaceBy::Modulo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_finds_the_pages_that_it_took() {
        let touched: Vec<u32> = (0..40_000).step_by(3).collect();
        for &index in PageIndex::ALL {
            let combine = Combine { index, sram: 1 << 10, segments: 32, ..Combine::default() };
            let PageCache { mut pages, look_up } =
                combine.pages(PolicyKind::Lru, 40_000, 100_000, &touched).expect("it is possible");
            assert_eq!(look_up.is_some(), !matches!(index, PageIndex::Policy | PageIndex::Direct), "{index:?}");
            for page in [0, 3, 99_999, 1] {
                let inserted = pages.insert(page);
                assert_eq!(pages.slot_of(page), Some(inserted.slot), "{index:?}");
            }
            let mut reads = 0;
            if let Some(mut look_up) = look_up {
                (0..2).for_each(|_| look_up.reads(17, &mut |_| reads += 1));
                assert!(reads > 0, "{index:?} reads metadata once, and has it then");
            }
        }
        let small = Combine { index: PageIndex::Learned, sram: 64, segments: 32, ..Combine::default() };
        let refused =
            small.pages(PolicyKind::Lru, 1000, 100_000, &touched).err().expect("it is too little").to_string();
        assert!(refused.contains("128 MiB"), "{refused}");
    }
}
