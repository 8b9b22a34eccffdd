//! Training: a huge page's touched blocks as pieces of straight lines.
//!
//! 1. Take the touched blocks of the page in order: x is the offset, y the rank.
//! 2. Begin with one line from the first touched block to the last.
//! 3. While a line departs from a rank by more than its bound, divide the line that departs most at the block from which it departs most,
//!    as long as the function may have more segments. These are the blocks where the slope of the whole function changes most.
//! 4. A stretch behind the last touched block is a segment without places.
//! 5. From the first on, neighbours that one line serves within its bound become one segment.
//!
//! The bound is what chance makes of blocks that are as likely as each other: see [`SPREAD`]. Contiguous and evenly spread blocks depart by
//! less than a block from their line, blocks at random by less than the bound, and both have one segment.
//!
//! Source: \[P\] sheet micro-ginkgo §3.2 for a function of few lines whose borders are where its slope changes; the article does not
//! say when to stop. \[X\] division at the greatest departure is the algorithm of Ramer, and of Douglas and Peucker. The learned map of
//! arrays (`flashyard_array`) fits runs that lie exactly on a line, greedily and as far as a line goes without error; this function may be
//! wrong within a bound and has few pieces. The two share no step.

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

/// Ranks may depart from a line by a block, and by this many times √(n (1 - n/m)) where n of m blocks are touched: the departure that n
/// blocks drawn from m stay below in 99 of 100 cases. \[X\] Kolmogorov's distribution at 1 %, with the variance of draws without return
const SPREAD: f64 = 1.63;

impl Segment {
    /// Offsets.
    pub const fn span(&self) -> u32 {
        (self.to - self.from) as u32
    }
}

/// A line from `from` to `to`, and the ranks of the blocks that it stands for.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: u16,
    to: u16,
    first: usize,
    end: usize,
}

/// How far a rank departs from its line.
#[derive(Clone, Copy, Debug)]
struct Departure {
    rank: usize,
    blocks: f64,
    is_within_bound: bool,
}

impl Line {
    /// The greatest departure of a rank from the line.
    fn departure(&self, offsets: &[u16]) -> Departure {
        let span = i64::from(self.to - self.from);
        let touched = (self.end - self.first) as i64;
        // In blocks times the span, so that it is a whole number.
        let at = |rank: usize| {
            (touched * i64::from(offsets[rank] - self.from) - (rank - self.first) as i64 * span).unsigned_abs()
        };
        // Of equal departures the first offset is taken.
        let farther = |most: (u64, usize), rank: usize| {
            let departure = at(rank);
            if departure > most.0 { (departure, rank) } else { most }
        };
        let (departure, rank) = (self.first..self.end).fold((0, self.first), farther);
        let beyond_one = departure.saturating_sub(span as u64) as f64;
        let (span, touched) = (span as f64, touched as f64);
        let is_within_bound = beyond_one * beyond_one <= SPREAD * SPREAD * touched * (span - touched) * span;
        Departure { rank, blocks: departure as f64 / span, is_within_bound }
    }

    /// Two lines in place of one, the second of which begins at the block of `rank`.
    fn divided(&self, rank: usize, offsets: &[u16]) -> [Self; 2] {
        let border = offsets[rank];
        [Self { to: border, end: rank, ..*self }, Self { from: border, first: rank, ..*self }]
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
    let mut lines = divided(Line { from: first, to: behind, first: 0, end: offsets.len() }, offsets, most - 1);
    if behind < end {
        lines.push(Line { from: behind, to: end, first: offsets.len(), end: offsets.len() });
    }
    let segment = |line: Line| Segment { from: line.from, to: line.to, touched: (line.end - line.first) as u16 };
    merged(lines, offsets).into_iter().map(segment).collect()
}

/// Lines in place of `whole`, in order and at most so many, that stay within their bounds as far as their number allows.
fn divided(whole: Line, offsets: &[u16], most: usize) -> Vec<Line> {
    let mut lines = vec![(whole, whole.departure(offsets))];
    while lines.len() < most {
        let beyond = lines.iter().enumerate().filter(|(_, (_, departure))| !departure.is_within_bound);
        let worst = beyond.max_by(|(_, (_, one)), (_, (_, other))| one.blocks.total_cmp(&other.blocks));
        let Some((place, (line, departure))) = worst else { break };
        let halves = line.divided(departure.rank, offsets).map(|half| (half, half.departure(offsets)));
        lines.splice(place..=place, halves);
    }
    lines.into_iter().map(|(line, _)| line).collect()
}

/// Lines, each put together with those behind it that it serves within its bound.
fn merged(lines: Vec<Line>, offsets: &[u16]) -> Vec<Line> {
    let mut merged: Vec<Line> = Vec::with_capacity(lines.len());
    for line in lines {
        let both = merged.last().map(|before| Line { to: line.to, end: line.end, ..*before });
        match (merged.last_mut(), both) {
            (Some(before), Some(both)) if both.departure(offsets).is_within_bound => *before = both,
            _ => merged.push(line),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_kernel::Rng;
    use proptest::prelude::*;

    const ALL: usize = HUGE_PAGE_BLOCKS as usize;

    /// The greatest departure of a predicted rank in each segment, and what its bound is.
    fn departures(segments: &[Segment], offsets: &[u16]) -> Vec<(f64, f64)> {
        let of = |segment: &Segment| {
            let inside = offsets.iter().filter(|offset| (segment.from..segment.to).contains(offset));
            let (touched, span) = (f64::from(segment.touched), f64::from(segment.span()));
            let predicted = |offset: u16| touched * f64::from(offset - segment.from) / span;
            let departure = |(rank, offset): (usize, &u16)| (predicted(*offset) - rank as f64).abs();
            let bound = 1.0 + SPREAD * (touched * (1.0 - touched / span)).sqrt();
            (inside.enumerate().map(departure).fold(0.0, f64::max), bound)
        };
        segments.iter().map(of).collect()
    }

    #[test]
    fn evenly_spread_and_contiguous_blocks_are_exact() {
        let spread: Vec<u16> = (0..1000).map(|rank| 100 + 7 * rank).collect();
        let found = train(&spread, 32);
        assert_eq!(found[0], Segment { from: 100, to: 7094, touched: 1000 });
        assert_eq!(found[1], Segment { from: 7094, to: 32_768, touched: 0 });
        let whole: Vec<u16> = (0..32_768).map(|offset| offset as u16).collect();
        assert_eq!(train(&whole, 32), [Segment { from: 0, to: 32_768, touched: 32_768 }]);
        let fourth: Vec<u16> = (0..8192).map(|rank| 4 * rank).collect();
        assert_eq!(
            train(&fourth, 32),
            [Segment { from: 0, to: 32_768, touched: 8192 }],
            "three offsets behind the last"
        );
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

    #[test]
    fn blocks_at_random_are_one_line_and_a_change_of_their_density_is_another() {
        let mut rng = Rng::named(1, "test");
        let mut drawn = |shares: [u64; 2]| -> Vec<u16> {
            let share = |offset: u64| shares[usize::from(offset >= HUGE_PAGE_BLOCKS / 2)];
            (0..HUGE_PAGE_BLOCKS).filter(|&offset| rng.below(100) < share(offset)).map(|offset| offset as u16).collect()
        };
        // A page in a hundred may depart further.
        let alike = [2, 10, 50, 90, 98].map(|share| drawn([share, share])).map(|page| train(&page, 32).len());
        assert!(alike.iter().filter(|segments| **segments == 1).count() >= 4, "{alike:?}");
        let found = train(&drawn([20, 40]), 32);
        assert!((2..=3).contains(&found.len()), "{found:?}");
        assert!(found[1].from.abs_diff(1 << 14) < 1000, "{found:?}");
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
        fn ranks_of_touched_blocks_are_within_the_bound_of_their_segment(
            parts in prop::collection::vec((1_u16..300, 1_u16..12, 1_u16..400), 1..12),
            holes in prop::collection::btree_set(0_usize..2000, 0..300),
        ) {
            // Patterns of a stride each, with holes and with a gap behind.
            let mut offsets = Vec::new();
            let mut at = 0_u16;
            for (count, stride, gap) in parts {
                offsets.extend((0..count).map(|number| at + number * stride).take_while(|offset| *offset < 32_768));
                at = at.saturating_add((count - 1) * stride + gap).min(32_767);
            }
            offsets.sort_unstable();
            offsets.dedup();
            let kept: Vec<u16> =
                offsets.iter().enumerate().filter(|(rank, _)| !holes.contains(rank)).map(|(_, offset)| *offset).collect();
            for (departure, bound) in departures(&train(&kept, ALL), &kept) {
                prop_assert!(departure <= bound * (1.0 + 1e-12), "{departure} of {bound}");
            }
            prop_assert!(train(&kept, 5).len() <= 5);
        }
    }
}
