//! Reporting free blocks to the device, and when.
//!
//! A freed block becomes a candidate once the checkpoint that no longer needs it is durable. Candidates that are
//! written again are candidates no longer. After a mount all free blocks are candidates: what was reported before is
//! written nowhere.

use flashyard_units::{SimSpan, SimTime};
use std::collections::{BTreeMap, BTreeSet};

/// When free blocks are reported to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardPolicy {
    /// A round every `interval` while there are candidates, and a look every `rest` otherwise.
    Aggressive {
        /// Between rounds.
        interval: SimSpan,
        /// Between looks that found nothing.
        rest: SimSpan,
    },
    /// A round every `interval`, but only after `quiet` without a request.
    IdleOnly {
        /// Between rounds.
        interval: SimSpan,
        /// Time without a request before a round.
        quiet: SimSpan,
    },
    /// Never.
    Never,
}

impl DiscardPolicy {
    /// 50 ms while there are candidates, 10 s otherwise. Source: [P] sheet `cvss` §3.3.
    pub const AGGRESSIVE: Self = Self::Aggressive { interval: SimSpan::from_ms(50), rest: SimSpan::from_ms(10_000) };
    /// After 5 s without a request [A]. Source for the rule: [P] sheet `cvss` §3.3.
    pub const IDLE_ONLY: Self = Self::IdleOnly { interval: SimSpan::from_ms(50), quiet: SimSpan::from_ms(5_000) };
}

/// Disjoint ranges that do not touch, by their first number and by their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges {
    ends: BTreeMap<u32, u32>,
    /// Length and first number of each, for the longest one.
    lengths: BTreeSet<(u32, u32)>,
}

impl Ranges {
    /// Adds `first..end`, which is in none of the ranges.
    fn insert(&mut self, mut first: u32, mut end: u32) {
        if let Some((&before, _)) = self.ends.range(..first).next_back().filter(|&(_, &ends)| ends == first) {
            self.take(before);
            first = before;
        }
        if let Some(after) = self.take(end) {
            end = after;
        }
        self.put(first, end);
    }

    fn remove(&mut self, number: u32) {
        let Some((&first, &end)) = self.ends.range(..=number).next_back().filter(|&(_, &end)| number < end) else {
            return;
        };
        self.take(first);
        if first < number {
            self.put(first, number);
        }
        if number + 1 < end {
            self.put(number + 1, end);
        }
    }

    fn put(&mut self, first: u32, end: u32) {
        self.ends.insert(first, end);
        self.lengths.insert((end - first, first));
    }

    /// Takes the range with this first number out; its end.
    fn take(&mut self, first: u32) -> Option<u32> {
        let end = self.ends.remove(&first)?;
        self.lengths.remove(&(end - first, first));
        Some(end)
    }

    fn count(&self) -> u64 {
        self.ends.iter().map(|(first, end)| u64::from(end - first)).sum()
    }
}

/// A round of reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Until the next one.
    pub(crate) interval: SimSpan,
    /// Until the next one if this one finds nothing.
    pub(crate) rest: SimSpan,
}

/// Candidates, and when the next round is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discards {
    /// Freed since the last checkpoint.
    freed: Ranges,
    ready: Ranges,
    next_round: SimTime,
    asked_last: SimTime,
}

impl Discards {
    pub(crate) fn freed(&mut self, block: u32) {
        self.freed.insert(block, block + 1);
    }

    /// Blocks that are free and may hold something, after a mount.
    pub(crate) fn found(&mut self, first: u32, end: u32) {
        self.ready.insert(first, end);
    }

    /// A block is about to be written: a trim that comes later would destroy it.
    pub(crate) fn written(&mut self, block: u32) {
        self.ready.remove(block);
        self.freed.remove(block);
    }

    /// Makes blocks freed before a durable checkpoint ready for a trim.
    pub(crate) fn commit(&mut self) {
        for (first, end) in std::mem::take(&mut self.freed).ends {
            self.ready.insert(first, end);
        }
    }

    pub(crate) fn pending(&self) -> u64 {
        self.freed.count() + self.ready.count()
    }

    /// A request came.
    pub(crate) fn asked(&mut self, now: SimTime) {
        self.asked_last = now;
    }

    /// The round that is due, if one is.
    pub(crate) fn due(&self, now: SimTime, policy: DiscardPolicy) -> Option<Round> {
        let (interval, rest, quiet) = match policy {
            DiscardPolicy::Aggressive { interval, rest } => (interval, rest, SimSpan::ZERO),
            DiscardPolicy::IdleOnly { interval, quiet } => (interval, interval, quiet),
            DiscardPolicy::Never => return None,
        };
        (now >= self.next_round && now >= self.asked_last + quiet).then_some(Round { interval, rest })
    }

    /// The next round is not before `when`.
    pub(crate) fn go_on(&mut self, when: SimTime) {
        self.next_round = when;
    }

    /// Takes the longest range of candidates, the highest one of equals, if it has `least` blocks: its first block and its
    /// end. Source: [X] F2FS goes from long candidates to short ones.
    pub(crate) fn take(&mut self, least: u32) -> Option<(u32, u32)> {
        let &(length, first) = self.ready.lengths.last().filter(|&&(length, _)| length >= least)?;
        self.ready.take(first);
        Some((first, first + length))
    }

    /// Forgets candidates from a block on: they are beyond the end, and trimmed with it.
    pub(crate) fn forget_from(&mut self, block: u32) {
        let over = self.ready.ends.range(..block).next_back().filter(|&(_, &end)| end > block).map(|(&first, _)| first);
        if let Some(first) = over {
            self.ready.take(first);
            self.ready.put(first, block);
        }
        while let Some((&first, _)) = self.ready.ends.range(block..).next() {
            self.ready.take(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(numbers in prop::collection::vec((0_u32..40, any::<bool>()), 0..200)) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (number, add) in numbers {
                if !add {
                    ranges.remove(number);
                    set.remove(&number);
                } else if set.insert(number) {
                    ranges.insert(number, number + 1);
                }
                let held: Vec<u32> = ranges.ends.iter().flat_map(|(&first, &end)| first..end).collect();
                prop_assert_eq!(held, set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.count(), set.len() as u64);
                let ends: Vec<u32> = ranges.ends.values().copied().collect();
                prop_assert!(ranges.ends.keys().all(|first| !ends.contains(first)), "{:?}", ranges);
                let lengths: BTreeSet<(u32, u32)> =
                    ranges.ends.iter().map(|(&first, &end)| (end - first, first)).collect();
                prop_assert_eq!(&ranges.lengths, &lengths);
            }
        }
    }

    #[test]
    fn the_longest_candidate_is_reported_first_and_short_ones_not_at_all() {
        let mut discards = Discards::default();
        [3, 10, 11, 12, 20, 21].iter().for_each(|&block| discards.freed(block));
        assert_eq!(discards.take(1), None, "no checkpoint yet");
        discards.commit();
        assert_eq!(discards.take(2), Some((10, 13)));
        discards.forget_from(21);
        assert_eq!((discards.take(2), discards.pending()), (None, 2));
        assert_eq!((discards.take(1), discards.take(1), discards.take(1)), (Some((20, 21)), Some((3, 4)), None));
    }
}
