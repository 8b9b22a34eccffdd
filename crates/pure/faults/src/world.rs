//! Worlds to explore.

use crate::oracle::Violation;
use crate::plan::{Case, Fault};
use std::collections::BTreeMap;
use std::ops::Range;

/// A world runs a workload under faults and checks the result.
///
/// A run is a function of its [`Case`]: same case, same [`Outcome`], on every machine and thread.
pub trait World {
    /// Its name, for reports.
    fn name(&self) -> String;

    /// The faults to try, the simplest first: shrinking moves towards the front.
    fn faults(&self) -> Vec<Fault>;

    /// Length of the workload of a case that gives none, in a unit of the world's own: requests, say.
    fn size(&self) -> u32;

    /// Runs one case to its end. A fault that the world does not know changes nothing.
    fn run(&self, case: &Case) -> Outcome;
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events handled.
    pub events: u64,
    /// For each fault that took effect, in the order of the plan, the number of the event before which it did.
    pub taken: Vec<u64>,
    /// Numbers of the events that belonged to a recovery, one range for each, in their order.
    pub recoveries: Vec<Range<u64>>,
    /// The violation, in a sentence.
    pub violation: Option<String>,
    /// Way of the run through recovery: see [`Fingerprint`].
    pub fingerprint: u64,
    /// Counters of the world, by name. Explorations add them up.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Outcome {
    /// Notes a violation, unless an earlier one is noted.
    pub fn note(&mut self, checked: Result<(), Violation>) {
        if let Err(violation) = checked {
            self.violation.get_or_insert_with(|| violation.to_string());
        }
    }
}

/// A hash over the steps that a recovery took: distinct ones tell how many ways were covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Fingerprint {
    /// Takes in a step. Steps should name states and decisions, not times or addresses: those make every run distinct.
    #[inline]
    pub fn step(&mut self, step: u64) {
        // The finisher of SplitMix64 over a running sum.
        let mut mixed = self.0.wrapping_add(step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }

    /// The hash so far.
    pub fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_depends_on_steps_and_their_order() {
        let of = |steps: &[u64]| {
            let mut fingerprint = Fingerprint::default();
            steps.iter().for_each(|&step| fingerprint.step(step));
            fingerprint.get()
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        let distinct: std::collections::BTreeSet<u64> = [of(&[]), of(&[1]), of(&[1, 2]), of(&[2, 1])].into();
        assert_eq!(distinct.len(), 4);
    }
}
