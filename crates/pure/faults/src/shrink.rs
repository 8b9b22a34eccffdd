//! The smallest case that still fails.
//!
//! Tried until nothing helps: fewer faults, a shorter workload, simpler faults, earlier moments. A smaller case may
//! fail in another way than the first did: it is a failure all the same.

use crate::plan::{At, Case, Fault};
use crate::report::Failure;
use crate::world::{Outcome, World};
use flashyard_units::SimTime;
use std::fmt;

/// Values up to which every smaller one is tried.
const SCANNED: u64 = 256;

/// A failing case that no step makes smaller: it passes without any of its faults, with a simpler fault, or with one
/// event number or the size anywhere below, up to 256. Above, and for times, only halvings are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The case and its violation.
    pub failure: Failure,
    /// Runs that it took to find.
    pub runs: u64,
    /// Whether the runs sufficed: without it, a smaller one may be a step away.
    pub minimal: bool,
}

struct Shrinker<'a, W: World + ?Sized> {
    world: &'a W,
    best: Case,
    outcome: Outcome,
    runs: u64,
    runs_max: u64,
}

/// Shrinks a failing case with at most `runs_max` runs; `None` when it does not fail.
pub fn shrink<W: World + ?Sized>(world: &W, case: &Case, runs_max: u64) -> Option<Shrunk> {
    let outcome = world.run(case);
    outcome.violation.as_ref()?;
    let best = Case { size: Some(case.size.unwrap_or_else(|| world.size())), ..case.clone() };
    let mut shrinker = Shrinker { world, best, outcome, runs: 1, runs_max };
    while shrinker.drop_faults() | shrinker.shorten() | shrinker.simplify() | shrinker.move_earlier() {}
    let Shrinker { best, outcome, runs, .. } = shrinker;
    let failure = Failure { case: best, violation: outcome.violation? };
    Some(Shrunk { failure, runs, minimal: runs < runs_max })
}

impl<W: World + ?Sized> Shrinker<'_, W> {
    /// Takes `candidate` if it fails.
    fn accept(&mut self, candidate: Case) -> bool {
        if self.runs >= self.runs_max || candidate == self.best {
            return false;
        }
        self.runs += 1;
        let outcome = self.world.run(&candidate);
        let fails = outcome.violation.is_some();
        if fails {
            (self.best, self.outcome) = (candidate, outcome);
        }
        fails
    }

    fn drop_faults(&mut self) -> bool {
        let before = self.best.plan.faults.len();
        // Faults that the run never reached go first, and all at once.
        let mut reached = self.best.clone();
        reached.plan.faults.truncate(self.outcome.taken.len());
        self.accept(reached);
        let mut index = self.best.plan.faults.len();
        while index > 0 {
            index -= 1;
            let mut without = self.best.clone();
            without.plan.faults.remove(index);
            let accepted = self.accept(without.clone());
            // The one after it may have counted its events from it: try it where it struck, too.
            if let (false, Some((at, _)), Some(&taken)) =
                (accepted, without.plan.faults.get_mut(index), self.outcome.taken.get(index + 1))
            {
                *at = At::Event(taken);
                self.accept(without);
            }
        }
        self.best.plan.faults.len() < before
    }

    fn shorten(&mut self) -> bool {
        let size = self.best.size.unwrap_or_default();
        let shortened = |this: &mut Self, size: u64| {
            let candidate = Case { size: u32::try_from(size).ok(), ..this.best.clone() };
            this.accept(candidate)
        };
        lower(u64::from(size), |size| shortened(self, size)) < u64::from(size)
    }

    fn simplify(&mut self) -> bool {
        let simpler = self.world.faults();
        let mut changed = false;
        for index in 0..self.best.plan.faults.len() {
            let fault = self.best.plan.faults[index].1;
            let rank = simpler.iter().position(|other| *other == fault).unwrap_or(simpler.len());
            changed |= simpler[..rank].iter().any(|&other| self.with_fault(index, |_, fault| *fault = other));
        }
        changed
    }

    fn move_earlier(&mut self) -> bool {
        let mut changed = false;
        for index in 0..self.best.plan.faults.len() {
            let (value, wrap): (u64, fn(u64) -> At) = match self.best.plan.faults[index].0 {
                At::Event(event) => (event, At::Event),
                At::After(events) => (events, At::After),
                At::Time(time) => (time.as_ps(), |ps| At::Time(SimTime::from_ps(ps))),
            };
            changed |= lower(value, |value| self.with_fault(index, |at, _| *at = wrap(value))) < value;
        }
        changed
    }

    fn with_fault(&mut self, index: usize, change: impl FnOnce(&mut At, &mut Fault)) -> bool {
        let mut candidate = self.best.clone();
        let (at, fault) = &mut candidate.plan.faults[index];
        change(at, fault);
        self.accept(candidate)
    }
}

/// A value below `value` that `accept` takes: by ever shorter steps down, and then the least of all where there are
/// few. What fails at 9 may pass at 8, 6 and 4 and fail at 1. `value` when it takes none of them.
fn lower(mut value: u64, mut accept: impl FnMut(u64) -> bool) -> u64 {
    let mut step = value;
    while step > 0 {
        if step <= value && accept(value - step) {
            value -= step;
        } else {
            step /= 2;
        }
    }
    if value > SCANNED {
        return value;
    }
    (0..value).find(|&least| accept(least)).unwrap_or(value)
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "violation: {}", self.failure.violation)?;
        let end = if self.minimal { "smallest case" } else { "smallest case so far" };
        write!(f, "  {end}, after {} runs: --replay '{}'", self.runs, self.failure.case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lowered_also_where_failing_is_not_monotone() {
        assert_eq!(lower(9, |value| value == 1), 1);
        assert_eq!(lower(200, |value| value >= 150 || value == 3), 3);
        assert_eq!(lower(5, |_| false), 5);
        assert_eq!(lower(1 << 60, |value| value >= 1 << 50), 1 << 50);
    }
}
