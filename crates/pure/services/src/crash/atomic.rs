//! Atomic writes as a world for the explorer of faults: a client, the service, and a leg whose write cache is volatile.
//!
//! The rules are those of any client, and at every moment each write is there whole or not at all, in what is read at once and in all
//! blocks after a loss of power. Orders to the leg may fail for a while or be held; nothing is lost by it.

use super::client::{Client, Habits};
use super::drill::Drill;
use super::machine::{AWAY, Machine, faults};
use crate::AtomicWrites;
use flashyard_faults::{Case, Fault, Fingerprint, Injector, Outcome, World};
use flashyard_kernel::Rng;
use flashyard_service::contract::stamp_of;

/// Blocks of the volume: few, so that requests meet. \[A\]
const BLOCKS: u64 = 24;
/// Blocks that half of all runs ask for alone. \[A\]
const HOT_BLOCKS: u64 = 9;
/// Blocks of the log, which takes requests of five: full all the time, often, and seldom. \[A\]
const LOGS: [u64; 3] = [23, 40, 90];
/// Requests of a run that says nothing else. \[A\]
const REQUESTS: u32 = 60;
/// Events of a request at most, before a run counts as stuck. \[A\]
const EVENTS_PER_REQUEST: u64 = 2000;

/// Atomic writes to break.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtomicWorld;

impl World for AtomicWorld {
    fn name(&self) -> String {
        "atomic".to_owned()
    }

    fn faults(&self) -> Vec<Fault> {
        faults(1)
    }

    fn size(&self) -> u32 {
        REQUESTS
    }

    fn run(&self, case: &Case) -> Outcome {
        let requests = case.size.unwrap_or(REQUESTS);
        Run::new(case.seed, requests).run(case, (u64::from(requests) + 10) * EVENTS_PER_REQUEST)
    }
}

struct Run {
    client: Client,
    log: u64,
    machine: Machine<AtomicWrites>,
    fingerprint: Fingerprint,
    /// Counts of services that a power cut has ended, and power cuts.
    homes: u64,
    replayed: u64,
    waited: u64,
    cuts: u64,
    is_recovering: bool,
}

impl Run {
    fn new(seed: u64, requests: u32) -> Self {
        let log = LOGS[seed as usize % LOGS.len()];
        let span = [BLOCKS, HOT_BLOCKS][seed as usize / 3 % 2];
        let (has_trims, protected) = (seed / 6 % 2 == 1, seed / 12 % 4 == 3);
        let habits = Habits { requests, blocks: BLOCKS, span, has_trims, whole: true, protected };
        Self {
            client: Client::new(habits, Rng::named(seed, "atomic.client")),
            log,
            machine: Machine::new(AtomicWrites::new(log), BLOCKS + log, protected, Rng::named(seed, "atomic.leg")),
            fingerprint: Fingerprint::default(),
            homes: 0,
            replayed: 0,
            waited: 0,
            cuts: 0,
            is_recovering: true,
        }
    }

    /// All blocks at home, when none is in the log.
    fn look_at_all(&mut self) {
        let stamps: Vec<u64> = (0..BLOCKS).map(|block| stamp_of(self.machine.get(block))).collect();
        self.client.saw_all(self.machine.now, &stamps);
    }

    fn cut_power(&mut self, event: u64) {
        self.cuts += 1;
        let counters = self.machine.service.counters();
        self.homes += counters.homes;
        self.replayed += counters.replayed;
        self.waited += counters.waited;
        self.machine.cut_power(AtomicWrites::new(self.log));
        self.client.lost_power(self.machine.now);
        self.is_recovering = true;
        self.client.outcome.recoveries.push(event..event + 1);
        self.fingerprint.step(99);
    }
}

impl Drill for Run {
    type Service = AtomicWrites;

    fn parts(&mut self) -> (&mut Client, &mut Machine<AtomicWrites>) {
        (&mut self.client, &mut self.machine)
    }

    fn step(&mut self, event: u64) {
        let name = self.machine.step();
        if self.is_recovering {
            self.fingerprint.step(name);
            if self.machine.service.has_recovered() {
                self.is_recovering = false;
                self.look_at_all();
                if let Some(recovery) = self.client.outcome.recoveries.last_mut() {
                    recovery.end = event + 1;
                }
            }
        }
        self.take_answers();
    }

    fn strike(&mut self, fault: Fault, event: u64) {
        let now = self.machine.now;
        match fault {
            Fault::PowerLoss { .. } => self.cut_power(event),
            Fault::LinkDown { down_for, .. } => self.machine.fail(0, now + down_for.unwrap_or(AWAY[2])),
            Fault::StallDrive { held_for, .. } => self.machine.hold(0, now + held_for),
            _ => {}
        }
    }

    /// Power is cut once more, and every block is looked at.
    fn end(mut self, injector: Injector<'_>) -> Outcome {
        if !self.client.is_over() {
            self.client.violate(format!("requests have no answer at {:?}", self.machine.now));
        }
        let events = injector.events();
        self.cut_power(events);
        self.client.outcome.recoveries.pop();
        let mut steps = 0;
        while !self.machine.service.has_recovered() && steps < EVENTS_PER_REQUEST {
            self.machine.step();
            steps += 1;
        }
        if !self.machine.service.has_recovered() {
            self.client.violate("the last recovery has no end".to_owned());
        }
        self.look_at_all();
        let blocks = self.client.finish(self.machine.now);
        let replayed = self.replayed + self.machine.service.counters().replayed;
        let mut outcome = self.client.outcome;
        outcome.counters.extend([
            ("power cuts", self.cuts),
            ("records that went home", self.homes),
            ("records replayed", replayed),
            ("requests that waited for room", self.waited),
            ("reads held against all writes", self.client.checked),
            ("blocks checked", blocks),
        ]);
        Outcome { events, taken: injector.into_taken(), fingerprint: self.fingerprint.get(), ..outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashyard_faults::{FaultPlan, Limits, explore};

    #[test]
    fn writes_are_whole_at_some_thousand_points() {
        // The last of them has a leg that keeps what it has carried out.
        for seed in [1, 7, 41] {
            let base = Case { seed, size: None, plan: FaultPlan::NONE };
            let report = explore(&AtomicWorld, base, Limits { points: 3_000, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            let counters = report.counters();
            for name in ["power cuts", "records that went home", "records replayed", "requests that waited for room"] {
                assert!(counters[name] > 1000, "{name}: {report}");
            }
        }
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let case: Case = "seed=5;size=40;power@e30+20us;link0@r10+20us".parse().expect("a case");
        assert_eq!(AtomicWorld.run(&case), AtomicWorld.run(&case));
        assert_eq!(AtomicWorld.run(&case).taken.len(), 2);
    }
}
