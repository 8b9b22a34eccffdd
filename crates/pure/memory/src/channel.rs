//! A channel by the intervals that are booked on it: a transfer takes the first gap that is long enough.
//!
//! A program that waits for its die books its transfer far ahead, and reads of other dies use the channel until then.

use flashyard_units::{SimSpan, SimTime};

/// Intervals that are remembered, and as many again before the earliest are forgotten. \[A\] beyond what programs of a full buffer
/// and of a round of collection book ahead
const REMEMBERED: usize = 256;

/// Transfers of a channel. The memory is bounded: the earliest intervals are forgotten, and nothing is booked before their end.
#[derive(Debug)]
pub(crate) struct Channel {
    /// From and to, in their order; those that touch are one.
    booked: Vec<[SimTime; 2]>,
    /// End of what was forgotten.
    opens: SimTime,
}

impl Channel {
    /// An idle channel.
    pub(crate) fn new() -> Self {
        Self { booked: Vec::with_capacity(2 * REMEMBERED), opens: SimTime::ZERO }
    }

    /// Books the first gap of this length at or after a time; returns its end.
    #[inline]
    pub(crate) fn book(&mut self, from: SimTime, span: SimSpan) -> SimTime {
        match self.booked.last_mut() {
            Some(last) if from < last[1] => self.book_between(from, span),
            Some(last) if from == last[1] => {
                last[1] = from + span;
                last[1]
            }
            _ => {
                let begins = from.max(self.opens);
                self.insert(self.booked.len(), [begins, begins + span]);
                begins + span
            }
        }
    }

    /// As [`Self::book`], where something is booked that ends later.
    fn book_between(&mut self, from: SimTime, span: SimSpan) -> SimTime {
        let ahead = self.booked.iter().rev().take_while(|booked| booked[1] > from).count();
        let mut at = self.booked.len() - ahead;
        let mut begins = from.max(self.opens);
        while let Some(&[next, ends]) = self.booked.get(at)
            && next < begins + span
        {
            begins = begins.max(ends);
            at += 1;
        }
        let ends = begins + span;
        let follows = at > 0 && self.booked[at - 1][1] == begins;
        let precedes = self.booked.get(at).is_some_and(|next| next[0] == ends);
        match (follows, precedes) {
            (true, true) => {
                self.booked[at - 1][1] = self.booked[at][1];
                self.booked.remove(at);
            }
            (true, false) => self.booked[at - 1][1] = ends,
            (false, true) => self.booked[at][0] = begins,
            (false, false) => self.insert(at, [begins, ends]),
        }
        ends
    }

    /// Gives back what was booked: the channel is idle then.
    pub(crate) fn release(&mut self, [begins, ends]: [SimTime; 2]) {
        let Some(at) = self.booked.iter().rposition(|booked| booked[0] <= begins) else { return };
        let [first, last] = self.booked[at];
        if begins == ends || last < ends {
            return;
        }
        match (first == begins, last == ends) {
            (true, true) => drop(self.booked.remove(at)),
            (true, false) => self.booked[at][0] = ends,
            (false, true) => self.booked[at][1] = begins,
            (false, false) => {
                self.booked[at][1] = begins;
                self.insert(at + 1, [ends, last]);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn busy(&self) -> SimSpan {
        self.booked.iter().fold(SimSpan::ZERO, |busy, [begins, ends]| busy + ends.since(*begins))
    }

    fn insert(&mut self, at: usize, interval: [SimTime; 2]) {
        self.booked.insert(at, interval);
        if self.booked.len() == 2 * REMEMBERED {
            self.opens = self.booked[REMEMBERED - 1][1];
            self.booked.drain(..REMEMBERED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NS: fn(u64) -> SimSpan = SimSpan::from_ns;
    const AT: fn(u64) -> SimTime = |ns| SimTime::ZERO + NS(ns);

    #[test]
    fn a_transfer_takes_the_first_gap_that_is_long_enough() {
        let mut channel = Channel::new();
        assert_eq!(channel.book(AT(100), NS(10)), AT(110), "far ahead");
        assert_eq!(channel.book(AT(0), NS(60)), AT(60), "before it");
        assert_eq!(channel.book(AT(55), NS(50)), AT(160), "the gap of 40 ns is too short");
        assert_eq!(channel.book(AT(0), NS(40)), AT(100), "and just long enough for this");
        assert_eq!(channel.booked, [[AT(0), AT(160)]], "what touches is one");
        assert_eq!(channel.book(AT(10), NS(5)), AT(165));
    }

    #[test]
    fn what_is_forgotten_is_closed() {
        let mut channel = Channel::new();
        let room = channel.booked.capacity();
        let mut last = AT(0);
        for number in 0..3 * REMEMBERED as u64 {
            last = channel.book(AT(10 * number + 5), NS(1));
        }
        assert_eq!((channel.booked.len(), channel.booked.capacity()), (REMEMBERED, room), "no memory was taken");
        assert_eq!(channel.booked.last().map(|booked| booked[1]), Some(last));
        let opens = AT(10 * (2 * REMEMBERED as u64 - 1) + 6);
        assert_eq!(channel.book(AT(0), NS(2)), opens + NS(2));
    }

    /// The first gap, by a search among all intervals in any order.
    fn naive(booked: &[[SimTime; 2]], from: SimTime, span: SimSpan) -> SimTime {
        let fits = |begins: SimTime| booked.iter().all(|[next, ends]| *ends <= begins || begins + span <= *next);
        let ends = booked.iter().map(|booked| booked[1]).filter(|ends| *ends > from);
        ends.chain([from]).filter(|begins| fits(*begins)).min().expect("the end of the last one fits")
    }

    proptest! {
        #[test]
        fn transfers_never_overlap_and_take_the_earliest_gap(
            asked in prop::collection::vec((0_u64..40, 0_u64..300, 1_u64..30, any::<prop::sample::Index>()), 1..300),
        ) {
            let mut channel = Channel::new();
            let (mut all, mut now, mut sum) = (Vec::new(), 0, SimSpan::ZERO);
            for (gap, ahead, length, other) in asked {
                now += gap;
                let (from, span) = (AT(now + ahead), NS(length));
                let begins = naive(&all, from, span);
                prop_assert_eq!(channel.book(from, span), begins + span);
                all.push([begins, begins + span]);
                sum += span;
                if length % 4 == 0 {
                    let [begins, ends]: [SimTime; 2] = all.swap_remove(other.index(all.len()));
                    channel.release([begins, ends]);
                    sum = SimSpan::from_ps(sum.as_ps() - ends.since(begins).as_ps());
                }
                prop_assert_eq!(channel.busy(), sum);
                let order: Vec<_> = channel.booked.iter().flatten().collect();
                prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "in order, and apart");
            }
        }
    }
}
