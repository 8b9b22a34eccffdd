//! The mirror as a world for the explorer of faults.
//!
//! A client keeps some requests under way, half of them at a few blocks where reads, writes and trims meet. Every write
//! has a stamp of its own, and the oracle hears of everything that the client sees. At the end, once everything is back
//! and copied, every block that was ever asked for is compared on both drives.

use crate::config::{MirrorConfig, MirrorError};
use crate::live::LiveMirror;
use flashyard_blk::Operation;
use flashyard_faults::{
    Action, Case, Extent, Fault, Fingerprint, Injector, OperationId, Oracle, OracleCounters, Outcome, World,
};
use flashyard_kernel::{FreeRun, Rng};
use flashyard_served::{Answer, Effect, Served};
use flashyard_units::{Named, SimSpan, SimTime};
use std::collections::BTreeSet;

/// Events that a run may take for each request, before it counts as stuck. [A]
const EVENTS_PER_REQUEST: u64 = 5_000;
/// Blocks where half of the requests meet. [A]
const HOT_BLOCKS: u64 = 24;
/// Blocks of a request at most. [A]
const REQUEST_BLOCKS: u64 = 6;
/// How long power stays away: within a command, some commands, until most is written elsewhere. [A]
const AWAY: [SimSpan; 3] = [SimSpan::from_us(100), SimSpan::from_us(900), SimSpan::from_ms(7)];

/// A mirror to break.
pub struct MirrorWorld {
    config: MirrorConfig,
    /// Requests under way.
    depth: u32,
    requests: u32,
    #[cfg(test)]
    pub(crate) bug: Option<crate::small::Bug>,
}

impl MirrorWorld {
    /// A mirror whose client keeps `depth` requests under way, `requests` in all unless a case says how many.
    ///
    /// Errors: parameters outside their ranges; drives without power-loss protection, whose losses a mirror does not copy
    /// back.
    pub fn new(mut config: MirrorConfig, depth: u32, requests: u32) -> Result<Self, MirrorError> {
        config.drives.iter_mut().for_each(|drive| drive.ftl.stamps = true);
        config.validate()?;
        let protected = config.drives.iter().filter(|drive| drive.power_loss_protection).count() as u64;
        if protected < 2 {
            let name = "drives with power-loss protection";
            return Err(MirrorError::Range { name, value: protected, least: 2, most: 2 });
        }
        Ok(Self {
            config,
            depth: depth.max(1),
            requests,
            #[cfg(test)]
            bug: None,
        })
    }

    fn try_run(&self, case: &Case) -> Result<Outcome, MirrorError> {
        let requests = case.size.unwrap_or(self.requests);
        let mut mirror = LiveMirror::new(self.config, case.seed, None)?;
        mirror.book_mut().reads = Some(Vec::new());
        #[cfg(test)]
        {
            mirror.world.bug = self.bug;
        }
        let mut client = Client::new(case.seed, &self.config, self.depth, requests);
        let mut injector = Injector::new(&case.plan);
        let events_max = (u64::from(requests) + 100) * EVENTS_PER_REQUEST;
        client.issue_more(&mut mirror, SimTime::ZERO);
        while injector.events() < events_max {
            let next = mirror.world.runner.queue.next_time();
            if let Some((fault, at)) = injector.due(next.unwrap_or(SimTime::MAX)) {
                let now = at.map_or(client.now, |at| at.max(client.now));
                client.now = now;
                mirror.strike(now, fault);
            } else if next.is_some() {
                mirror.run(&mut FreeRun, 1);
                injector.handled();
                client.now = mirror.world.runner.now();
            } else {
                break;
            }
            client.hear(&mut mirror, injector.events());
        }
        Ok(client.end(&mirror, injector))
    }
}

impl World for MirrorWorld {
    fn name(&self) -> String {
        format!("mirror ({})", self.config.policy.name())
    }

    fn faults(&self) -> Vec<Fault> {
        let of = |away: SimSpan| {
            let drive = move |drive| Fault::LoseDrive { drive, gone_for: Some(away) };
            [Fault::PowerLoss { off_for: away }, drive(0), drive(1)]
        };
        AWAY.into_iter().flat_map(of).collect()
    }

    fn size(&self) -> u32 {
        self.requests
    }

    fn run(&self, case: &Case) -> Outcome {
        self.try_run(case).unwrap_or_else(|error| Outcome { violation: Some(error.to_string()), ..Outcome::default() })
    }
}

impl LiveMirror {
    /// Breaks something. A drive that is away for good comes back after the longest time: a run must end.
    fn strike(&mut self, now: SimTime, fault: Fault) {
        match fault {
            Fault::PowerLoss { off_for } => (0..2).for_each(|drive| self.world.cut_power(now, drive, now + off_for)),
            Fault::LoseDrive { drive, gone_for } if drive < 2 => {
                let away = gone_for.unwrap_or(AWAY[AWAY.len() - 1]);
                self.world.cut_power(now, drive as usize, now + away);
            }
            Fault::LoseDrive { .. }
            | Fault::LinkDown { .. }
            | Fault::Withdraw { .. }
            | Fault::StallDrive { .. }
            | Fault::Spoil { .. } => {}
        }
        self.after(now);
    }

    /// The stamp of a block on one drive; zero for data from before the run and for none.
    fn stamp(&self, drive: usize, block: u32) -> u64 {
        let ftl = &self.world.drives[drive].data.ftl;
        let place = ftl.lookup(block);
        if place.is_some() { ftl.stamp(place) } else { 0 }
    }
}

/// The client and what it has seen.
struct Client {
    now: SimTime,
    rng: Rng,
    blocks: u64,
    left: u32,
    /// By token: the operation under way.
    under_way: Vec<Option<Operation>>,
    oracle: Oracle,
    touched: BTreeSet<u64>,
    effects: Vec<Effect>,
    outcome: Outcome,
    fingerprint: Fingerprint,
    /// The state of the mirror that was last noted.
    state: u64,
}

impl Client {
    fn new(seed: u64, config: &MirrorConfig, depth: u32, requests: u32) -> Self {
        let blocks = u64::from(config.blocks());
        Self {
            now: SimTime::ZERO,
            rng: Rng::named(seed, "mirror.client"),
            blocks,
            left: requests,
            under_way: vec![None; depth as usize],
            oracle: Oracle::new(&[blocks]),
            touched: BTreeSet::new(),
            effects: Vec::new(),
            outcome: Outcome::default(),
            fingerprint: Fingerprint::default(),
            state: 0,
        }
    }

    fn issue_more(&mut self, mirror: &mut LiveMirror, now: SimTime) {
        for token in 0..self.under_way.len() {
            if self.left > 0 && self.under_way[token].is_none() {
                self.left -= 1;
                self.issue(mirror, now, token as u32);
            }
        }
    }

    fn issue(&mut self, mirror: &mut LiveMirror, now: SimTime, token: u32) {
        let operation = match self.rng.below(100) {
            0..44 => Operation::Write,
            44..90 => Operation::Read,
            90..97 => Operation::Trim,
            _ => Operation::Flush,
        };
        self.under_way[token as usize] = Some(operation);
        let count = 1 + self.rng.below(REQUEST_BLOCKS);
        let area = if self.rng.below(2) == 0 { HOT_BLOCKS.min(self.blocks) } else { self.blocks };
        let first = self.rng.below(area - count + 1);
        if operation == Operation::Flush {
            return mirror.take_in(now, token, operation, 0, 0);
        }
        mirror.take_in(now, token, operation, first as u32, count as u32);
        let action = match operation {
            Operation::Read => Action::Read,
            Operation::Write => Action::Write(mirror.world.last_stamp),
            _ => Action::Trim,
        };
        self.touched.extend(first..first + count);
        self.oracle.issue(now, OperationId(token), action, Extent { drive: 0, first, count: count as u32 });
    }

    /// Hears of answers, issues what comes next, and notes what the mirror is doing.
    fn hear(&mut self, mirror: &mut LiveMirror, event: u64) {
        mirror.take_effects(&mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            if let Effect::Answered { token, answer, .. } = effect {
                self.answered(mirror, token, answer);
            }
        }
        self.issue_more(mirror, self.now);
        if !mirror.is_whole() {
            match self.outcome.recoveries.last_mut() {
                Some(range) if range.end + 1 >= event => range.end = event,
                _ => self.outcome.recoveries.push(event.saturating_sub(1)..event),
            }
        }
        let held = u64::from(!mirror.world.held.is_empty());
        let sides = mirror.world.sides.iter();
        let state = sides.fold(held, |state, side| {
            state << 4 | u64::from(side.off) << 2 | u64::from(side.serves) << 1 | u64::from(!side.stale.is_empty())
        });
        if state != self.state {
            self.state = state;
            self.fingerprint.step(state);
        }
    }

    fn answered(&mut self, mirror: &mut LiveMirror, token: u32, answer: Answer) {
        let Some(operation) = self.under_way[token as usize].take() else { return };
        let reads = mirror.book_mut().reads.get_or_insert_default();
        let place = reads.iter().position(|read| read.0 == token);
        let stamps = place.map(|place| reads.swap_remove(place).1);
        if answer != Answer::Done {
            self.outcome.violation.get_or_insert_with(|| format!("request {token} ended as {answer:?}"));
        }
        let id = OperationId(token);
        let checked = match operation {
            Operation::Read => self.oracle.returned(self.now, id, &stamps.unwrap_or_default()),
            Operation::Write | Operation::Trim => self.oracle.acknowledged(self.now, id),
            _ => Ok(()),
        };
        self.outcome.note(checked);
    }

    /// With nothing under way any more: everything was answered, and both drives hold what they should.
    fn end(mut self, mirror: &LiveMirror, injector: Injector<'_>) -> Outcome {
        self.outcome.note(self.oracle.finish(self.now));
        let unanswered = self.under_way.iter().flatten().count();
        if unanswered > 0 || !mirror.is_whole() {
            let violation = || format!("{unanswered} requests have not completed, or blocks were not copied");
            self.outcome.violation.get_or_insert_with(violation);
        }
        if self.outcome.violation.is_none() {
            for (&block, drive) in self.touched.iter().flat_map(|block| [(block, 0), (block, 1)]) {
                self.oracle.issue(self.now, OperationId(0), Action::Read, Extent::slot(0, block));
                let found = mirror.stamp(drive, block as u32);
                let checked = self.oracle.returned(self.now, OperationId(0), &[found]);
                self.outcome.note(checked);
            }
        }
        let outages = mirror.world.outages;
        let OracleCounters { slots_read, .. } = self.oracle.counters();
        self.outcome.counters.extend([
            ("drives lost", outages.breaks),
            ("requests sent again", outages.sent_again),
            ("blocks copied", outages.blocks_copied),
            ("blocks checked", slots_read),
        ]);
        Outcome {
            events: injector.events(),
            taken: injector.into_taken(),
            fingerprint: self.fingerprint.get(),
            ..self.outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ReadPolicy;
    use crate::small::{Bug, config};
    use flashyard_faults::{FaultPlan, Limits, explore, shrink};

    fn world(policy: ReadPolicy, bug: Option<Bug>) -> MirrorWorld {
        let mut world = MirrorWorld::new(config(policy), 6, 60).expect("it can be built");
        world.bug = bug;
        world
    }

    fn base(seed: u64) -> Case {
        Case { seed, size: None, plan: FaultPlan::NONE }
    }

    #[test]
    fn nothing_acknowledged_is_lost_at_any_of_some_thousand_points() {
        for (&policy, seed) in ReadPolicy::ALL.iter().zip(1..) {
            let report = explore(&world(policy, None), base(seed), Limits { points: 1_500, ..Limits::default() });
            assert_eq!(report.violations(), 0, "{report}\n{:?}", report.failures());
            assert!(report.points() == 1_500 && report.counters()["blocks copied"] > 10_000, "{report}");
            assert!(report.fingerprints() > 50 && report.counters()["requests sent again"] > 1_000, "{report}");
        }
    }

    #[test]
    fn a_drive_that_returns_without_what_it_missed_is_found() {
        let world = world(ReadPolicy::ShorterQueue, Some(Bug::ForgetsStale));
        let report = explore(&world, base(1), Limits { points: 1_000, ..Limits::default() });
        let failure = report.failures().first().unwrap_or_else(|| panic!("not found:\n{report}"));
        let shrunk = shrink(&world, &failure.case, 2_000).expect("it failed before");
        assert!(shrunk.failure.case.plan.faults.len() == 1, "{shrunk}");
        let repaired = MirrorWorld { bug: None, ..world };
        assert_eq!(repaired.run(&shrunk.failure.case).violation, None);
    }

    #[test]
    fn writes_that_overtake_each_other_are_found_without_any_fault() {
        let outcome = |seed, bug| world(ReadPolicy::Turns, bug).run(&base(seed));
        let found = (0..20).find(|&seed| outcome(seed, Some(Bug::Overlaps)).violation.is_some());
        let seed = found.expect("some run has two writes that reach the drives in different orders");
        assert_eq!(outcome(seed, None).violation, None);
    }

    #[test]
    fn a_case_is_all_that_determines_an_outcome() {
        let world = world(ReadPolicy::ShorterQueue, None);
        let case: Case = "seed=5;size=40;lose0@e300+900us;power@r40+100us".parse().expect("a case");
        assert_eq!(world.run(&case), world.run(&case));
        assert_eq!(world.run(&case).taken.len(), 2);
    }
}
