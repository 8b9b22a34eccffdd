//! Reporting free blocks to the device, and when.
//!
//! A freed block becomes a candidate once the checkpoint that no longer needs it is durable. Candidates that are
//! written again are candidates no longer.

use flashyard_units::{SimSpan, SimTime};
use std::collections::BTreeMap;

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

/// Disjoint ranges that do not touch, by their first number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges(BTreeMap<u32, u32>);

impl Ranges {
    /// Adds `first..end`, which is in none of the ranges.
    fn insert(&mut self, mut first: u32, mut end: u32) {
        if let Some((&before, _)) = self.0.range(..first).next_back().filter(|&(_, &ends)| ends == first) {
            self.0.remove(&before);
            first = before;
        }
        if let Some(after) = self.0.remove(&end) {
            end = after;
        }
        self.0.insert(first, end);
    }

    fn remove(&mut self, number: u32) {
        let Some((&first, &end)) = self.0.range(..=number).next_back().filter(|&(_, &end)| number < end) else {
            return;
        };
        self.0.remove(&first);
        if first < number {
            self.0.insert(first, number);
        }
        if number + 1 < end {
            self.0.insert(number + 1, end);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(first, end)| u64::from(end - first)).sum()
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

    /// A block is about to be written: a trim that comes later would destroy it.
    pub(crate) fn written(&mut self, block: u32) {
        self.ready.remove(block);
    }

    /// Makes blocks freed before a durable checkpoint ready for a trim.
    pub(crate) fn commit(&mut self) {
        for (first, end) in std::mem::take(&mut self.freed).0 {
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

    /// Takes the first range of candidates: its first block and its end.
    pub(crate) fn take(&mut self) -> Option<(u32, u32)> {
        self.ready.0.pop_first()
    }

    /// Forgets candidates from a block on: they are beyond the end, and trimmed with it.
    pub(crate) fn forget_from(&mut self, block: u32) {
        if let Some((&first, &end)) = self.ready.0.range(..block).next_back().filter(|&(_, &end)| end > block) {
            self.ready.0.insert(first, block);
            self.ready.0.insert(block, end);
        }
        self.ready.0.split_off(&block);
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
            let mut set = std::collections::BTreeSet::new();
            for (number, add) in numbers {
                if !add {
                    ranges.remove(number);
                    set.remove(&number);
                } else if set.insert(number) {
                    ranges.insert(number, number + 1);
                }
                let held: Vec<u32> = ranges.0.iter().flat_map(|(&first, &end)| first..end).collect();
                prop_assert_eq!(held, set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.count(), set.len() as u64);
                let ends: Vec<u32> = ranges.0.values().copied().collect();
                prop_assert!(ranges.0.keys().all(|first| !ends.contains(first)), "{:?}", ranges);
            }
        }
    }
}
