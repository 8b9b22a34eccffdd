//! The learned index: lines of DRAM given to huge pages by how much of them is touched, and found by a function of each.
//!
//! Huge pages that share a page of DRAM under the direct map are a group. Where their touched blocks fit into that page, each gets a region
//! of it, the regions follow each other, and all segments grow so that the page is used up; elsewhere the direct map stays. Inside a
//! segment the line is the offset modulo the segment's lines, or by predicted rank.
//!
//! Source: \[P\] sheet micro-ginkgo §3.3 and §3.4 in words; the rule of groups and of growth is \[A\]. Modulo is the article's, rank the sheet's
//! remedy for its collisions.

use super::index::{Granules, Index, Mapping, direct, page_of_dram};
use super::pages::HUGE_PAGE_BLOCKS;
use super::record::{HEADER_BYTES, LINES_MAX, Piece, Record, SEGMENT_BYTES, SEGMENTS_MAX};
use super::segments::{Segment, train};
use super::touched::TouchedBlocks;
use flashyard_memory::MemoryError;

/// Bytes of a granule of metadata.
const GRANULE: u32 = 64;

/// How a segment gives its lines to offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceBy {
    /// Offset modulo lines: the article's rule.
    Modulo,
    /// Predicted rank.
    Rank,
}

/// A page's record, and the byte of the metadata area at which it begins.
#[derive(Clone, Debug)]
struct Learned {
    record: Record,
    begin: u32,
}

/// The index with all its records.
#[derive(Clone, Debug)]
pub struct LearnedIndex {
    pages: Vec<Learned>,
    dram_pages: u64,
    place_by: PlaceBy,
    surplus_pages: u64,
    metadata_bytes: u64,
}

impl LearnedIndex {
    /// An index of `dram_pages` that is trained on touched blocks, with functions of so many segments at most. Sensitivity tests may have
    /// more than records can say; the controller then goes by what it could not have read.
    ///
    /// Errors: DRAM that records cannot address, or a number of segments that is no function.
    pub fn train(
        touched: &TouchedBlocks,
        dram_pages: u64,
        segments: usize,
        place_by: PlaceBy,
    ) -> Result<Self, MemoryError> {
        let lines = dram_pages * HUGE_PAGE_BLOCKS;
        if lines == 0 || lines > LINES_MAX {
            return Err(MemoryError::Range { name: "lines of DRAM", value: lines, range: "one huge page to 4 GiB" });
        }
        if !(2..=1 << 15).contains(&segments) {
            let range = "2 to 32768";
            return Err(MemoryError::Range { name: "segments of a page", value: segments as u64, range });
        }
        let mut records = vec![Record::direct(); touched.pages() as usize];
        let mut surplus_pages = 0;
        for dram_page in 0..dram_pages {
            let group = || (dram_page..touched.pages()).step_by(dram_pages as usize);
            let need: u64 = group().map(|page| touched.count_of(page)).sum();
            if need > HUGE_PAGE_BLOCKS {
                continue;
            }
            surplus_pages += 1;
            let mut base = (dram_page * HUGE_PAGE_BLOCKS) as u32;
            for page in group() {
                debug_assert_eq!(page_of_dram(page, dram_pages), dram_page);
                let segments = train(&touched.offsets(page), segments);
                let (record, lines) = record(base, &segments, need.max(1));
                // The controller goes by the record that lies in memory.
                let read = if segments.len() <= SEGMENTS_MAX { Record::decode(&record.encode()) } else { None };
                records[page as usize] = read.unwrap_or(record);
                base += lines;
            }
        }
        let (pages, metadata_bytes) = laid_out(records);
        Ok(Self { pages, dram_pages, place_by, surplus_pages, metadata_bytes })
    }

    /// Share of the pages of DRAM whose groups fit into them.
    pub fn surplus(&self) -> f64 {
        self.surplus_pages as f64 / self.dram_pages as f64
    }

    /// Bytes of a record, mean over pages that have a function; 0 where none has.
    pub fn mean_record_bytes(&self) -> f64 {
        let bytes = || self.pages.iter().filter(|page| !page.record.pieces.is_empty()).map(|page| page.record.bytes());
        let (sum, count) = bytes().fold((0, 0_u32), |(sum, count), bytes| (sum + u64::from(bytes), count + 1));
        sum as f64 / f64::from(count.max(1))
    }
}

/// The record of a page whose region begins at line `base`, and the lines of the region. `need` is that of the whole group, of which
/// segments grow to a page.
fn record(base: u32, segments: &[Segment], need: u64) -> (Record, u32) {
    let mut place = 0;
    let piece = |segment: &Segment| {
        // No segment needs more lines than it has offsets.
        let grown = u64::from(segment.touched) * HUGE_PAGE_BLOCKS / need;
        let lines = grown.min(segment.span().into()) as u32;
        let slope = u64::from(lines) * (1 << 16) / u64::from(segment.span());
        let piece = Piece { from: segment.from, place: place as u16, slope: slope as u32 };
        place += lines;
        piece
    };
    let pieces = segments.iter().map(piece).collect();
    (Record { base, pieces }, place)
}

/// Records in the metadata area, in the order of pages, and its bytes. None straddles granules without need.
fn laid_out(records: Vec<Record>) -> (Vec<Learned>, u64) {
    let mut end = 0_u32;
    let place = |record: Record| {
        let bytes = record.bytes();
        let left = GRANULE - end % GRANULE;
        if bytes > left && left < GRANULE {
            end += left;
        }
        let begin = end;
        end += bytes;
        Learned { record, begin }
    };
    let pages: Vec<Learned> = records.into_iter().map(place).collect();
    (pages, end.into())
}

impl Index for LearnedIndex {
    #[inline]
    fn map(&self, block: u64) -> Mapping {
        let (page, offset) = ((block / HUGE_PAGE_BLOCKS) as usize, (block % HUGE_PAGE_BLOCKS) as u16);
        let Learned { record, begin } = &self.pages[page];
        let first = begin / GRANULE;
        let up_to = |segments: usize| {
            let last = begin + HEADER_BYTES + SEGMENT_BYTES * segments as u32 - 1;
            Granules { first, count: last / GRANULE - first + 1 }
        };
        if record.pieces.is_empty() {
            let set = Some(direct(block, self.dram_pages));
            return Mapping { set, metadata: up_to(0), is_computed: false };
        }
        let Some(segment) = record.segment_of(offset) else {
            return Mapping { set: None, metadata: up_to(1), is_computed: true };
        };
        let lines = record.lines_of(segment);
        let line = match self.place_by {
            PlaceBy::Modulo if lines > 0 => u32::from(record.pieces[segment].place) + u32::from(offset) % lines,
            _ => record.by_rank(segment, offset),
        };
        let set = (lines > 0).then(|| u64::from(record.base + line));
        // The next segment's place says how many lines this one has.
        Mapping { set, metadata: up_to((segment + 2).min(record.pieces.len())), is_computed: true }
    }

    fn metadata_bytes(&self) -> u64 {
        self.metadata_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn touched(pages: u64, blocks: impl IntoIterator<Item = u64>) -> TouchedBlocks {
        let mut touched = TouchedBlocks::new(pages);
        for block in blocks {
            touched.touch(block);
        }
        touched
    }

    fn trained(touched: &TouchedBlocks, dram_pages: u64, place_by: PlaceBy) -> LearnedIndex {
        LearnedIndex::train(touched, dram_pages, 32, place_by).expect("it is possible")
    }

    /// Misses beyond the first that a round of all touched blocks would have.
    fn shared(index: &LearnedIndex, blocks: &[u64]) -> usize {
        let mut lines = BTreeMap::new();
        for block in blocks {
            *lines.entry(index.map(*block).set).or_insert(0) += 1;
        }
        lines.values().filter(|count| **count > 1).sum()
    }

    #[test]
    fn a_stride_collides_by_modulo_and_not_by_rank() {
        // Of 32,768 offsets every fourth: four pages share one, and their 32,768 touched blocks fill it.
        let blocks: Vec<u64> = (0..4 * HUGE_PAGE_BLOCKS).step_by(4).collect();
        let touched = touched(4, blocks.iter().copied());
        assert_eq!(shared(&trained(&touched, 1, PlaceBy::Rank), &blocks), 0);
        // 8,192 lines by offsets that are multiples of four: a quarter of the lines have all blocks.
        let modulo = trained(&touched, 1, PlaceBy::Modulo);
        assert_eq!(shared(&modulo, &blocks), blocks.len());
        assert_eq!(modulo.surplus(), 1.0);
        // Four records of one segment.
        assert_eq!((modulo.mean_record_bytes(), modulo.metadata_bytes()), (10.0, 40));
    }

    #[test]
    fn pages_that_do_not_fit_keep_the_direct_map() {
        let touched = touched(3, 0..2 * HUGE_PAGE_BLOCKS);
        let index = trained(&touched, 1, PlaceBy::Modulo);
        assert_eq!((index.surplus(), index.metadata_bytes()), (0.0, 12));
        assert!((0..3 * HUGE_PAGE_BLOCKS).step_by(77).all(|block| index.map(block).set == Some(direct(block, 1))));
        assert!(LearnedIndex::train(&touched, 1 << 12, 32, PlaceBy::Rank).is_err(), "26 bits name 4 GiB of lines");
        assert!(LearnedIndex::train(&touched, 1, 1, PlaceBy::Rank).is_err());
    }

    proptest! {
        #[test]
        fn regions_lie_in_their_page_and_apart_from_each_other(
            parts in prop::collection::vec((0_u64..8, 0_u64..32_000, 1_u64..700, 1_u64..40), 1..24),
            dram_pages in 1_u64..4, by_rank in any::<bool>(),
        ) {
            let run = |(page, at, count, stride): (u64, u64, u64, u64)| {
                let offsets = (0..count).map(move |number| at + number * stride).filter(|at| *at < HUGE_PAGE_BLOCKS);
                offsets.map(move |offset| page * HUGE_PAGE_BLOCKS + offset)
            };
            let touched = touched(8, parts.into_iter().flat_map(run));
            let place_by = if by_rank { PlaceBy::Rank } else { PlaceBy::Modulo };
            let index = trained(&touched, dram_pages, place_by);
            let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
            for page in 0..8 {
                let learned = !index.pages[page as usize].record.pieces.is_empty();
                for offset in 0..HUGE_PAGE_BLOCKS {
                    let block = page * HUGE_PAGE_BLOCKS + offset;
                    let Mapping { set, metadata, is_computed } = index.map(block);
                    prop_assert_eq!(is_computed, learned, "pages of the direct map have no function");
                    prop_assert!(metadata.count >= 1);
                    let last = u64::from(metadata.first + metadata.count - 1);
                    prop_assert!(last * 64 < index.metadata_bytes());
                    prop_assert!(set.is_some() || !touched.has(block), "a touched block has a line");
                    let Some(line) = set else { continue };
                    prop_assert_eq!(line / HUGE_PAGE_BLOCKS, page_of_dram(page, dram_pages));
                    if learned {
                        prop_assert_eq!(*owners.entry(line).or_insert(page), page, "line {} of two pages", line);
                    }
                }
            }
        }
    }
}
