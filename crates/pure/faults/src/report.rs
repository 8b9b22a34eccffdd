//! Findings of an exploration.

use crate::plan::Case;
use crate::world::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The kinds of points, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    NoFault,
    Single,
    Pair,
    Random,
}

/// Findings and coverage. Equal explorations make equal reports, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    world: String,
    seed: u64,
    complete: bool,
    /// Events of the run without faults.
    events: u64,
    events_of_all: u64,
    stages: BTreeMap<Stage, StageCount>,
    taken_by_kind: BTreeMap<&'static str, u64>,
    untouched: u64,
    fingerprints: BTreeSet<u64>,
    counters: BTreeMap<&'static str, u64>,
    violations: u64,
    failures: Vec<Failure>,
}

/// Points of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCount {
    /// Points explored.
    pub explored: u64,
    /// Points that there are; `u64::MAX` where there is no end to them.
    pub possible: u64,
}

/// A case that a world does not survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The case.
    pub case: Case,
    /// The violation, in a sentence.
    pub violation: String,
}

impl Stage {
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::NoFault => Some(Self::Single),
            Self::Single => Some(Self::Pair),
            Self::Pair => Some(Self::Random),
            Self::Random => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoFault => "no fault",
            Self::Single => "single faults",
            Self::Pair => "faults in recovery",
            Self::Random => "random plans",
        }
    }
}

impl Report {
    pub(crate) fn new(world: String, seed: u64) -> Self {
        Self {
            world,
            seed,
            complete: true,
            events: 0,
            events_of_all: 0,
            stages: BTreeMap::new(),
            taken_by_kind: BTreeMap::new(),
            untouched: 0,
            fingerprints: BTreeSet::new(),
            counters: BTreeMap::new(),
            violations: 0,
            failures: Vec::new(),
        }
    }

    pub(crate) fn plan(&mut self, stage: Stage, possible: u64) {
        self.stages.insert(stage, StageCount { explored: 0, possible });
    }

    pub(crate) fn interrupt(&mut self) {
        self.complete = false;
    }

    pub(crate) fn add(&mut self, stage: Stage, case: Case, outcome: Outcome, failures_kept: usize) {
        self.events_of_all += outcome.events;
        if stage == Stage::NoFault {
            self.events = outcome.events;
        } else {
            self.stages.entry(stage).or_default().explored += 1;
            self.untouched += u64::from(outcome.taken.is_empty() && outcome.violation.is_none());
            self.fingerprints.insert(outcome.fingerprint);
            for ((_, fault), _) in case.plan.faults.iter().zip(&outcome.taken) {
                *self.taken_by_kind.entry(fault.kind()).or_default() += 1;
            }
        }
        for (name, count) in outcome.counters {
            *self.counters.entry(name).or_default() += count;
        }
        if let Some(violation) = outcome.violation {
            self.violations += 1;
            if self.failures.len() < failures_kept {
                self.failures.push(Failure { case, violation });
            }
        }
    }

    /// Crash points explored: runs with at least one planned fault.
    pub fn points(&self) -> u64 {
        self.stages.values().map(|stage| stage.explored).sum()
    }

    /// Whether the exploration ran to its end.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Events of the run without faults.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Single faults, faults in recovery, and random plans.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, StageCount)> {
        self.stages.iter().map(|(stage, count)| (stage.name(), *count))
    }

    /// Faults that took effect, by kind.
    pub fn taken_by_kind(&self) -> &BTreeMap<&'static str, u64> {
        &self.taken_by_kind
    }

    /// Points at which no fault took effect and nothing went wrong: the run was over before.
    pub fn untouched(&self) -> u64 {
        self.untouched
    }

    /// Distinct fingerprints: ways through recovery that were seen.
    pub fn fingerprints(&self) -> u64 {
        self.fingerprints.len() as u64
    }

    /// Counters of the world, over all runs.
    pub fn counters(&self) -> &BTreeMap<&'static str, u64> {
        &self.counters
    }

    /// Runs with a violation.
    pub fn violations(&self) -> u64 {
        self.violations
    }

    /// The first of these runs.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.complete { "" } else { ", interrupted" };
        writeln!(f, "{}, seed {}: {} crash points{end}", self.world, self.seed, self.points())?;
        for (name, StageCount { explored, possible }) in self.stages() {
            match possible {
                u64::MAX => writeln!(f, "  {name}: {explored}")?,
                _ if possible == explored => writeln!(f, "  {name}: {explored}, which are all")?,
                _ => writeln!(f, "  {name}: {explored} of {possible}")?,
            }
        }
        writeln!(f, "events: {} without faults, {} in all runs", self.events, self.events_of_all)?;
        let listed = |counts: &BTreeMap<&'static str, u64>| {
            let each: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            if each.is_empty() { "none".to_owned() } else { each.join(", ") }
        };
        writeln!(f, "faults that took effect: {}", listed(&self.taken_by_kind))?;
        writeln!(f, "points that no fault reached: {}", self.untouched)?;
        writeln!(f, "distinct ways through recovery: {}", self.fingerprints())?;
        writeln!(f, "counted: {}", listed(&self.counters))?;
        write!(f, "violations: {}", self.violations)
    }
}
