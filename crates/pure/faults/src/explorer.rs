//! Choice of crash points.
//!
//! 1. Run without faults: the number of its events bounds the points.
//! 2. *Single* faults: every fault before every event.
//! 3. *Pairs*: after every single fault that led to a recovery, every fault before each of its first events.
//! 4. *Random*: other seeds, with plans of up to `faults_max` faults, near to each other and far apart.
//!
//! Where there are more points than asked for, 2 takes at most half of them and 3 half of the rest, spread evenly.

use crate::plan::{At, Case, Fault, FaultPlan};
use crate::report::{Report, Stage};
use crate::world::{Outcome, World};
use flashyard_kernel::Rng;
use std::ops::Range;

/// Jobs given out at once: enough to keep many threads busy, and little memory.
const BATCH: u64 = 16_384;

/// Limits of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Crash points: runs with at least one planned fault.
    pub points: u64,
    /// First events of each recovery before which a second fault is tried.
    pub recovery_events: u64,
    /// Faults of a random plan at most. Above zero.
    pub faults_max: u32,
    /// Failing cases to keep for shrinking; the others are counted.
    pub failures_kept: usize,
}

/// Gives out the runs of an exploration and takes their outcomes in.
///
/// The owner runs [`Self::jobs`], on as many threads as it likes, and hands the outcomes in the order of the jobs to
/// [`Self::absorb`], until there are no jobs. The exploration depends on the arguments and the outcomes only.
#[derive(Clone, Debug)]
pub struct Explorer {
    base: Case,
    faults: Vec<Fault>,
    limits: Limits,
    stage: Stage,
    /// Jobs of the stage given out before, and in all.
    begun: u64,
    planned: u64,
    jobs: Vec<Case>,
    recoveries: Vec<Recovery>,
    report: Report,
}

/// A recovery that a single fault led to.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    at: At,
    fault: Fault,
    /// Events from the fault to the first event of the recovery.
    begins: u64,
    /// Pairs of this recovery and of all before it.
    pairs_through: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { points: 100_000, recovery_events: 64, faults_max: 4, failures_kept: 8 }
    }
}

impl Explorer {
    /// An exploration of the world with this name and these faults. `base` has the seed and the size; its own faults
    /// are not used.
    pub fn new(name: String, faults: Vec<Fault>, base: Case, limits: Limits) -> Self {
        let base = Case { plan: FaultPlan::NONE, ..base };
        Self {
            jobs: vec![base.clone()],
            report: Report::new(name, base.seed),
            base,
            faults,
            limits,
            stage: Stage::NoFault,
            begun: 1,
            planned: 1,
            recoveries: Vec::new(),
        }
    }

    /// The runs to do next; none when the exploration is over.
    pub fn jobs(&self) -> &[Case] {
        &self.jobs
    }

    /// Stage of these runs, for progress bars.
    pub fn stage(&self) -> &'static str {
        self.stage.name()
    }

    /// Takes in the outcomes of the jobs, in their order. Fewer than there were jobs end the exploration.
    ///
    /// Panics when there are more: that is a bug of the owner.
    pub fn absorb(&mut self, outcomes: Vec<Outcome>) {
        assert!(outcomes.len() <= self.jobs.len(), "every outcome has its job");
        let jobs = std::mem::take(&mut self.jobs);
        let interrupted = outcomes.len() < jobs.len();
        for (case, outcome) in jobs.into_iter().zip(outcomes) {
            if self.stage == Stage::Single {
                self.keep_recovery(&case, &outcome);
            }
            self.report.add(self.stage, case, outcome, self.limits.failures_kept);
        }
        if interrupted {
            self.report.interrupt();
        } else if self.stage != Stage::NoFault || self.report.violations() == 0 {
            // A workload that fails without faults is not worth breaking.
            self.next_batch();
        }
    }

    /// Findings so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn keep_recovery(&mut self, case: &Case, outcome: &Outcome) {
        let (Some(&(at, fault)), Some(&taken)) = (case.plan.faults.first(), outcome.taken.first()) else { return };
        // Nothing is broken any more in the recovery that the last check of a run makes.
        let strikes = |range: &&Range<u64>| range.start >= taken && range.start < outcome.events;
        let Some(range) = outcome.recoveries.iter().find(strikes) else { return };
        let events = (range.end.saturating_sub(range.start)).min(self.limits.recovery_events);
        let before = self.recoveries.last().map_or(0, |recovery| recovery.pairs_through);
        let pairs_through = before + events * self.faults.len() as u64;
        if pairs_through > before {
            self.recoveries.push(Recovery { at, fault, begins: range.start - taken, pairs_through });
        }
    }

    fn next_batch(&mut self) {
        while self.begun < self.planned || self.next_stage() {
            let end = self.planned.min(self.begun + BATCH);
            self.jobs = (self.begun..end).map(|index| self.case(index)).collect();
            self.begun = end;
            if !self.jobs.is_empty() {
                return;
            }
        }
    }

    /// Whether there is a stage after this one.
    fn next_stage(&mut self) -> bool {
        let Some(next) = self.stage.next().filter(|_| !self.faults.is_empty()) else { return false };
        let left = self.limits.points.saturating_sub(self.report.points());
        let possible = match next {
            Stage::NoFault | Stage::Random => u64::MAX,
            Stage::Single => self.report.events().saturating_mul(self.faults.len() as u64),
            Stage::Pair => self.recoveries.last().map_or(0, |recovery| recovery.pairs_through),
        };
        self.planned = match next {
            Stage::Single | Stage::Pair => possible.min(left.div_ceil(2)),
            Stage::NoFault | Stage::Random => left,
        };
        self.report.plan(next, possible);
        (self.stage, self.begun) = (next, 0);
        true
    }

    /// Job `index` of the stage.
    fn case(&self, index: u64) -> Case {
        let kinds = self.faults.len() as u64;
        let spread = |possible: u64| (u128::from(index) * u128::from(possible) / u128::from(self.planned)) as u64;
        let fault = |number: u64| self.faults[(number % kinds) as usize];
        let plan = match self.stage {
            Stage::NoFault => FaultPlan::NONE,
            Stage::Single => {
                let number = spread(self.report.events() * kinds);
                FaultPlan::one(At::Event(number / kinds), fault(number))
            }
            Stage::Pair => {
                let number = spread(self.recoveries.last().map_or(0, |last| last.pairs_through));
                let place = self.recoveries.partition_point(|recovery| recovery.pairs_through <= number);
                let before = place.checked_sub(1).map_or(0, |before| self.recoveries[before].pairs_through);
                let first = &self.recoveries[place];
                let within = first.begins + (number - before) / kinds;
                FaultPlan::one(first.at, first.fault).then(At::After(within), fault(number))
            }
            Stage::Random => return self.random_case(index),
        };
        Case { plan, ..self.base.clone() }
    }

    fn random_case(&self, index: u64) -> Case {
        let seed = self.base.seed.wrapping_add(1).wrapping_add(index);
        let mut rng = Rng::named(seed, "faults.plan");
        let events = self.report.events().max(1);
        let count = 1 + rng.below(u64::from(self.limits.faults_max.max(1)));
        let mut plan = FaultPlan::NONE;
        for number in 0..count {
            let fault = self.faults[rng.below(self.faults.len() as u64) as usize];
            let at = match (number, rng.below(2)) {
                (0, _) => At::Event(rng.below(events)),
                // Half of the faults hit the aftermath of the one before.
                (_, 0) => At::After(rng.below(self.limits.recovery_events.max(1))),
                _ => At::After(rng.below(events)),
            };
            plan = plan.then(at, fault);
        }
        Case { seed, plan, ..self.base.clone() }
    }
}

/// Explores a world on this thread. `base` has the seed and the size.
pub fn explore(world: &impl World, base: Case, limits: Limits) -> Report {
    let mut explorer = Explorer::new(world.name(), world.faults(), base, limits);
    while !explorer.jobs().is_empty() {
        let outcomes = explorer.jobs().iter().map(|case| world.run(case)).collect();
        explorer.absorb(outcomes);
    }
    explorer.report().clone()
}
