//! Training: a huge page's touched blocks as pieces of straight lines.
//!
//! 1. Take the touched blocks of the page in order: x is the offset, y the rank.
//! 2. Between two of them the slope is one over their distance; at each, the second difference is the change of slope.
//! 3. The blocks with the largest changes are borders of segments, so many that the function has at most as many segments as allowed.
//! 4. Neighbours whose slopes differ by less than a twentieth are one segment.
//! 5. A stretch behind the last touched block is a segment without places.
//!
//! Source: \[P\] sheet micro-ginkgo §3.2; 4 and 5 are \[A\]. The learned map of arrays (`flashyard_array`) fits runs that lie exactly on a line,
//! greedily and as far as a line goes without error; this function may be wrong and has a bounded number of pieces, chosen by curvature.
//! The two share no step.

use super::pages::HUGE_PAGE_BLOCKS;

/// A piece of the function: its first offset, and touched blocks from there to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First offset in blocks.
    pub from: u16,
    /// Offset behind its last.
    pub to: u16,
    /// Touched blocks.
    pub touched: u16,
}

/// The second difference below which a slope counts as unchanged.
const UNCHANGED: f64 = 1e-9;

/// Neighbours with slopes as near as this share are merged. \[A\] sheet §3.2: 5 %
const ALIKE: f64 = 0.05;

impl Segment {
    /// Offsets.
    pub const fn span(&self) -> u32 {
        (self.to - self.from) as u32
    }

    fn slope(&self) -> f64 {
        f64::from(self.touched) / f64::from(self.span())
    }
}

/// The function of a page with these touched offsets, in order, of at most `most` segments. It covers all offsets from the first touched
/// one on; a page that was not touched has one segment without places.
///
/// Panics where `most` is 0 or 1.
pub fn train(offsets: &[u16], most: usize) -> Vec<Segment> {
    assert!(most >= 2, "a function needs a segment, and one behind it");
    let end = HUGE_PAGE_BLOCKS as u16;
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return vec![Segment { from: 0, to: end, touched: 0 }];
    };
    let behind = last + 1;
    let pieces = most - usize::from(behind < end);
    let mut borders = borders(offsets, pieces);
    borders.push(offsets.len());
    let mut from = 0;
    let mut segments: Vec<Segment> = Vec::with_capacity(most);
    for &border in &borders {
        let to = offsets.get(border).copied().unwrap_or(behind);
        let segment = Segment { from: offsets[from], to, touched: (border - from) as u16 };
        match segments.last_mut() {
            Some(before) if are_alike(before, &segment) => {
                before.to = to;
                before.touched += segment.touched;
            }
            _ => segments.push(segment),
        }
        from = border;
    }
    debug_assert_eq!(segments[0].from, first);
    if behind < end {
        segments.push(Segment { from: behind, to: end, touched: 0 });
    }
    segments
}

fn are_alike(one: &Segment, other: &Segment) -> bool {
    let (one, other) = (one.slope(), other.slope());
    (one - other).abs() < ALIKE * one.max(other)
}

/// Ranks at which segments begin, but for the first: those of the largest second differences, in order, one less than `pieces` at most.
fn borders(offsets: &[u16], pieces: usize) -> Vec<usize> {
    let slope = |rank: usize| 1.0 / f64::from(offsets[rank + 1] - offsets[rank]);
    let change = |rank: usize| (slope(rank) - slope(rank - 1)).abs();
    let inner = 1..offsets.len().saturating_sub(1);
    let mut changes: Vec<(f64, usize)> =
        inner.map(|rank| (change(rank), rank)).filter(|(change, _)| *change > UNCHANGED).collect();
    // Of equal changes the first offsets are taken.
    changes.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut ranks: Vec<usize> = changes.into_iter().take(pieces - 1).map(|(_, rank)| rank).collect();
    ranks.sort_unstable();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rank that the function predicts.
    fn predicted(segments: &[Segment], offset: u16) -> f64 {
        let at = segments.partition_point(|segment| segment.from <= offset) - 1;
        let before: u32 = segments[..at].iter().map(|segment| u32::from(segment.touched)).sum();
        f64::from(before) + segments[at].slope() * f64::from(offset - segments[at].from)
    }

    #[test]
    fn evenly_spread_and_contiguous_blocks_are_exact() {
        let spread: Vec<u16> = (0..1000).map(|rank| 100 + 7 * rank).collect();
        let found = train(&spread, 32);
        assert_eq!(found[0], Segment { from: 100, to: 7094, touched: 1000 });
        assert_eq!(found[1], Segment { from: 7094, to: 32_768, touched: 0 });
        let whole: Vec<u16> = (0..32_768).map(|offset| offset as u16).collect();
        assert_eq!(train(&whole, 32), [Segment { from: 0, to: 32_768, touched: 32_768 }]);
        assert_eq!(train(&[], 32), [Segment { from: 0, to: 32_768, touched: 0 }]);
    }

    #[test]
    fn runs_with_gaps_cost_two_borders_each() {
        let runs: Vec<u16> = (0..5).flat_map(|run| (0..40).map(move |offset| run * 1000 + offset)).collect();
        let found = train(&runs, 32);
        let dense = found.iter().filter(|segment| segment.span() == u32::from(segment.touched)).count();
        assert_eq!(dense, 5, "{found:?}");
        assert_eq!(found.len(), 5 + 4 + 1, "a line from the end of each run to the next, and the rest of the page");
        assert!(train(&runs, 4).len() <= 4);
    }

    proptest! {
        #[test]
        fn a_function_counts_every_touched_block_once(
            offsets in prop::collection::btree_set(0_u16..32_768, 1..400), most in 2_usize..40,
        ) {
            let offsets: Vec<u16> = offsets.into_iter().collect();
            let segments = train(&offsets, most);
            prop_assert!(segments.len() <= most);
            prop_assert_eq!(segments[0].from, offsets[0]);
            prop_assert_eq!(segments.last().map(|segment| segment.to), Some(32_768));
            prop_assert!(segments.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].from < pair[1].from));
            for segment in &segments {
                let inside = offsets.iter().filter(|offset| (segment.from..segment.to).contains(offset)).count();
                prop_assert_eq!(inside, usize::from(segment.touched));
            }
        }

        #[test]
        fn ranks_of_pages_of_few_patterns_are_exact_within_one(
            parts in prop::collection::vec((1_u16..60, 1_u16..12, 1_u16..200), 1..9),
        ) {
            // Patterns of a stride each, with a gap behind.
            let mut offsets = Vec::new();
            let mut at = 0;
            for (count, stride, gap) in parts {
                offsets.extend((0..count).map(|number| at + number * stride));
                at += (count - 1) * stride + gap;
            }
            let segments = train(&offsets, 32);
            for (rank, offset) in offsets.iter().enumerate() {
                let error = predicted(&segments, *offset) - rank as f64;
                // Two patterns are merged where their slopes differ by less than a twentieth.
                let merged = ALIKE * offsets.len() as f64;
                prop_assert!(error.abs() <= 1.0 + merged, "rank {rank}: off by {error}");
            }
        }
    }
}
