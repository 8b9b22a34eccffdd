//! Laws that every run must obey, whatever the system: Little's law and the conservation of requests and of their time.
//! They hold exactly, in integers: over the whole run once nothing is in flight, and over the measured window with what
//! is under way at its two ends. A system has laws of its own beside them.

use crate::bench::Bench;
use crate::ledger::{Ledger, LedgerMark, Totals};
use crate::stream::Stream;

/// One law and both of its sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanityCheck {
    /// The law.
    pub law: &'static str,
    /// The value that the law predicts.
    pub expected: u128,
    /// The value counted.
    pub counted: u128,
}

impl SanityCheck {
    /// A law with what it predicts and what was counted.
    pub fn new(law: &'static str, expected: impl Into<u128>, counted: impl Into<u128>) -> Self {
        Self { law, expected: expected.into(), counted: counted.into() }
    }

    /// Whether the law holds.
    pub fn holds(&self) -> bool {
        self.expected == self.counted
    }
}

impl std::fmt::Display for SanityCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} against {}", self.law, self.expected, self.counted)
    }
}

/// The laws on one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanityReport {
    /// One entry a law.
    pub checks: Vec<SanityCheck>,
}

impl SanityReport {
    /// Whether all laws hold.
    pub fn holds(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The laws that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &SanityCheck> {
        self.checks.iter().filter(|check| !check.holds())
    }
}

impl Ledger {
    /// The laws about a run in which nothing is under way any more.
    pub fn laws(&self) -> [SanityCheck; 3] {
        [
            SanityCheck::new("requests issued = requests finished", self.issued, self.finished),
            SanityCheck::new(
                "Little's law: integral of requests in flight = sum of latencies",
                self.latencies,
                self.level,
            ),
            SanityCheck::new("time of requests = sum of its causes", self.latencies, self.accounted),
        ]
    }
}

impl LedgerMark {
    /// The laws about a window that began here and ended with `ended`.
    pub fn laws_until(&self, ended: &Self) -> [SanityCheck; 2] {
        [
            SanityCheck::new(
                "measured window: requests under way at its beginning and issued = finished and under way at its end",
                self.under_way + (ended.issued - self.issued),
                ended.finished - self.finished + ended.under_way,
            ),
            SanityCheck::new(
                "Little's law in the measured window: integral of requests in flight = time that requests spent in it",
                ended.latencies - self.latencies + ended.ages - self.ages,
                ended.level - self.level,
            ),
        ]
    }
}

impl<M, R, const CAUSES: usize> Bench<M, R, CAUSES> {
    /// The laws about what figures count of the measured window; none where a stream with a ramp or a late start counts
    /// less than the window, or where there was no window.
    pub fn figure_laws(&self) -> Vec<SanityCheck> {
        let (Some(begun), Some(ended)) = (&self.begun, &self.ended) else { return Vec::new() };
        if !self.streams.iter().all(|stream| stream.counts(begun.at)) {
            return Vec::new();
        }
        let sum = |figure: fn(&Stream<CAUSES>) -> u128| self.streams.iter().map(figure).sum::<u128>();
        let totals = |figure: fn(&Totals) -> u128| figure(&ended.ledger.totals) - figure(&begun.ledger.totals);
        vec![
            SanityCheck::new(
                "measured window: requests completed = requests in figures",
                totals(|totals| totals.ios.into()),
                sum(|stream| stream.ios.into()),
            ),
            SanityCheck::new(
                "measured window: bytes read = bytes read in figures",
                totals(|totals| totals.read_bytes.into()),
                sum(|stream| stream.read_bytes.into()),
            ),
            SanityCheck::new(
                "measured window: bytes written = bytes written in figures",
                totals(|totals| totals.write_bytes.into()),
                sum(|stream| stream.write_bytes.into()),
            ),
            SanityCheck::new(
                "measured window: latencies of requests completed = latencies in figures",
                totals(|totals| totals.latency_ps),
                sum(|stream| stream.latency().sum_ps()),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_blk::Operation;
    use flashyard_units::{SimSpan, SimTime};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn laws_hold_of_any_requests_and_break_with_one_that_is_lost(
            requests in prop::collection::vec((0_u64..1000, 1_u64..1000), 1..40), window in 0_u64..2000,
        ) {
            let mut steps: Vec<_> = requests.iter().map(|&(at, _)| (at, 0, at)).collect();
            steps.extend(requests.iter().map(|&(at, latency)| (at + latency, 1, at)));
            steps.sort_unstable();
            let (mut ledger, mut under_way, mut begun) = (Ledger::default(), Vec::new(), None);
            for &(at, ends, issued) in &steps {
                let (now, begin) = (SimTime::from_ps(at), SimTime::from_ps(window));
                if begun.is_none() && now >= begin {
                    begun = Some(ledger.mark(begin, &[], under_way.iter().copied()));
                }
                let issued = SimTime::from_ps(issued);
                if ends == 0 {
                    ledger.issued(now, Operation::Read, 1);
                    under_way.push(issued);
                } else {
                    ledger.finished(now, issued, now.since(issued));
                    under_way.remove(under_way.iter().position(|&other| other == issued).unwrap());
                }
            }
            let end = SimTime::from_ps(4000);
            prop_assert!(ledger.laws().iter().all(SanityCheck::holds), "{:?}", ledger.laws());
            let ended = ledger.mark(end, &[], under_way.iter().copied());
            if let Some(begun) = begun {
                prop_assert!(begun.laws_until(&ended).iter().all(SanityCheck::holds));
            }
            ledger.issued(end, Operation::Read, 1);
            ledger.advance(end + SimSpan::from_ps(1));
            prop_assert!(!ledger.laws()[0].holds() && !ledger.laws()[1].holds() && ledger.laws()[2].holds());
            let lost = ledger.mark(end + SimSpan::from_ps(1), &[], std::iter::empty());
            prop_assert!(!ended.laws_until(&lost)[0].holds() && !ended.laws_until(&lost)[1].holds());
        }
    }
}
