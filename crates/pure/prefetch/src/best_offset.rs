//! Best-Offset: the offset in lines that would have been in time most often.
//!
//! Each request tests one offset of a list in turn: had the line that far before been requested when a prefetch for this one would have had
//! to start, the offset scores. A phase ends at the highest score or after so many rounds over the list; its best offset is used in the next
//! phase, unless even that scored too little. A request is noted when the line that was read ahead for it has arrived, so that offsets that
//! are too short score nothing; while nothing is read ahead, each line is noted when it arrives.
//!
//! Source: [X] Michaud, "Best-Offset Hardware Prefetching", HPCA 2016, with its defaults; [A] sheet micro-expand §5.

use crate::predictor::{Cost, Predicted, Predictor, Seen};

/// Entries of the table of recent requests. [X]
const RECENT: usize = 256;
/// Score that ends a phase. [X]
const SCORE_MAX: u32 = 31;
/// Rounds of a phase. [X]
const ROUNDS_MAX: u32 = 100;
/// Score at or below which nothing is prefetched. [X]
const SCORE_BAD: u32 = 1;
/// Largest offset. [X]
const OFFSET_MAX: u64 = 256;
/// An entry that no request has.
const EMPTY: u64 = u64::MAX;

/// The prefetcher.
#[derive(Clone, Debug)]
pub struct BestOffset {
    offsets: Vec<u64>,
    scores: Vec<u32>,
    recent: Vec<u64>,
    tested: usize,
    round: u32,
    /// The offset in use; `None` while prefetching is off.
    best: Option<u64>,
    inferences: u64,
}

impl Default for BestOffset {
    fn default() -> Self {
        Self::new()
    }
}

impl BestOffset {
    /// A prefetcher that has learned nothing.
    pub fn new() -> Self {
        let smooth = |mut number: u64| {
            for prime in [2, 3, 5] {
                while number.is_multiple_of(prime) {
                    number /= prime;
                }
            }
            number == 1
        };
        let offsets: Vec<u64> = (1..=OFFSET_MAX).filter(|&offset| smooth(offset)).collect();
        Self {
            scores: vec![0; offsets.len()],
            offsets,
            recent: vec![EMPTY; RECENT],
            tested: 0,
            round: 0,
            best: Some(1),
            inferences: 0,
        }
    }

    /// The offset in use; `None` while prefetching is off.
    pub fn offset(&self) -> Option<u64> {
        self.best
    }

    fn slot(line: u64) -> usize {
        (line ^ line >> 8) as usize % RECENT
    }

    fn learn(&mut self, line: u64) {
        let offset = self.offsets[self.tested];
        if let Some(base) = line.checked_sub(offset)
            && self.recent[Self::slot(base)] == base
        {
            self.scores[self.tested] += 1;
        }
        let full = self.scores[self.tested] >= SCORE_MAX;
        self.tested += 1;
        if self.tested == self.offsets.len() {
            self.tested = 0;
            self.round += 1;
        }
        if full || self.round == ROUNDS_MAX {
            let most = self.scores.iter().copied().max().unwrap_or(0);
            let place = self.scores.iter().position(|&score| score == most);
            self.best = place.filter(|_| most > SCORE_BAD).map(|place| self.offsets[place]);
            self.scores.fill(0);
            (self.tested, self.round) = (0, 0);
        }
    }
}

impl Predictor for BestOffset {
    fn observe(&mut self, seen: Seen, _ahead: u32, predicted: &mut Vec<Predicted>) {
        self.inferences += 1;
        self.learn(seen.line);
        if let Some(offset) = self.best {
            predicted.push(Predicted { line: seen.line + offset, after: 1 });
        }
    }

    /// Of a line that was read ahead the request was as far before it as the offset in use.
    fn filled(&mut self, line: u64, read_ahead: bool) {
        let base = match self.best {
            Some(offset) if read_ahead => line.checked_sub(offset),
            None => Some(line),
            Some(_) => None,
        };
        if let Some(base) = base {
            self.recent[Self::slot(base)] = base;
        }
    }

    /// [D] twelve bits a recent request, five a score; an offset's test is some fifteen operations
    fn cost(&self) -> Cost {
        let bits = RECENT as u64 * 12 + self.offsets.len() as u64 * (8 + 5);
        Cost { bytes: bits.div_ceil(8), operations: 15, inferences: self.inferences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn there_are_the_52_offsets_of_the_paper() {
        assert_eq!(BestOffset::new().offsets.len(), 52);
    }

    #[test]
    fn a_stride_is_learned_far_enough_ahead() {
        for (stride, delay, least) in [(1_u64, 0_usize, 1), (3, 0, 3), (1, 20, 20), (4, 10, 40)] {
            let mut prefetcher = BestOffset::new();
            let (mut predicted, mut on_the_way) = (Vec::new(), VecDeque::new());
            for request in 0..20_000 {
                predicted.clear();
                prefetcher.observe(Seen { line: 1000 + request * stride, counter: 0 }, 1, &mut predicted);
                // Lines that are read ahead arrive so many requests later.
                on_the_way.extend(predicted.iter().map(|predicted| predicted.line));
                if on_the_way.len() > delay {
                    on_the_way.pop_front().into_iter().for_each(|line| prefetcher.filled(line, true));
                }
            }
            let offset = prefetcher.offset().expect("the stride is regular");
            assert!(offset.is_multiple_of(stride) && offset >= least, "{stride} {delay}: {offset}");
            assert_eq!(predicted, [Predicted { line: 1000 + 19_999 * stride + offset, after: 1 }]);
        }
    }

    #[test]
    fn lines_that_were_asked_for_are_noted_while_nothing_is_read_ahead() {
        let mut prefetcher = BestOffset { best: None, ..BestOffset::new() };
        for line in 0..20_000 {
            prefetcher.observe(Seen { line, counter: 0 }, 1, &mut Vec::new());
            if prefetcher.best.is_none() {
                prefetcher.filled(line, false);
            }
        }
        assert!(prefetcher.offset().is_some(), "it begins again");
    }

    #[test]
    fn nothing_is_fetched_where_nothing_is_regular() {
        let mut prefetcher = BestOffset::new();
        let mut rng = flashyard_kernel::Rng::named(1, "test");
        let mut predicted = Vec::new();
        for _ in 0..30_000 {
            predicted.clear();
            prefetcher.observe(Seen { line: rng.below(1 << 40), counter: 0 }, 1, &mut predicted);
            predicted.iter().for_each(|predicted| prefetcher.filled(predicted.line, true));
        }
        assert_eq!(prefetcher.offset(), None);
    }
}
