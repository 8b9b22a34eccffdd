//! Runs with faults: to the end of the requests, then until everything has settled, then once more without power; and
//! what can be asked of the world afterwards.

use super::config::JbofError;
use super::enclosure::Enclosure;
use super::resilience::FaultCounters;
use super::world::Jbof;
use flashyard_kernel::FreeRun;
use flashyard_units::{DriveId, SimSpan, SimTime};
use std::ops::Range;

/// Periods that everything has to settle after the last request.
const SETTLING_PERIODS: u64 = 40;
/// Events that settling and the last recovery may take at least.
const SETTLING_EVENTS: u64 = 100_000;
/// How long the last power cut lasts.
const LAST_CUT: SimSpan = SimSpan::from_ms(1);

/// Outcome of a run with faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultedRun {
    /// Events until the last request completed.
    pub events: u64,
    /// For each fault that took effect, how many events came before it.
    pub taken: Vec<u64>,
    /// Events from the moment that something was lost until everything was back.
    pub recoveries: Vec<Range<u64>>,
    /// Counters of its faults.
    pub counters: FaultCounters,
    /// Logical slots that power cuts gave older data, up to the last one.
    pub reverted_slots: u64,
    /// Errors apart from data: requests that never complete, loans and descriptors without an owner.
    pub faults: Vec<String>,
}

impl Jbof {
    /// Runs a world with faults to its end, at most `events_max` events. Payload is then that of [`Jbof::stamp`].
    ///
    /// Errors: a source that fails, a request beyond the drive.
    pub fn run_with_faults(&mut self, events_max: u64) -> Result<FaultedRun, JbofError> {
        self.start();
        let mut run = FaultedRun::default();
        self.run_until(events_max, &mut run, Self::is_over)?;
        run.events = self.steps;
        if !self.is_over() {
            run.faults
                .push(format!("{} requests have not completed after {events_max} events", self.bench.in_flight()));
            self.enclosure.tell(&mut run);
            return Ok(run);
        }
        let Enclosure { config, runner, .. } = &self.enclosure;
        let period = config.harvest.period.max(config.driver.period.unwrap_or(SimSpan::ZERO));
        let settled = runner.now() + period * SETTLING_PERIODS;
        let events_max = self.steps + events_max.max(SETTLING_EVENTS);
        self.run_until(events_max, &mut run, |world| {
            world.enclosure.runner.now() >= settled && world.enclosure.is_whole()
        })?;
        run.faults.extend(self.policy.lending().map(|lending| lending.leaks(&self.enclosure)).unwrap_or_default());
        self.enclosure.tell(&mut run);
        for drive in DriveId::first(self.enclosure.drives.len() as u16) {
            self.enclosure.cut_power(&mut self.policy, self.enclosure.runner.now(), drive, LAST_CUT);
        }
        self.run_until(events_max, &mut run, |world| world.enclosure.is_whole())?;
        if !self.enclosure.is_whole() {
            run.faults.push("the last power cut was not recovered from".to_owned());
        }
        Ok(run)
    }

    #[inline(never)]
    fn run_until(
        &mut self,
        events_max: u64,
        run: &mut FaultedRun,
        over: impl Fn(&Self) -> bool,
    ) -> Result<(), JbofError> {
        while self.steps < events_max && !over(self) {
            // The plan is for the run: what comes after it only looks whether anything was left behind.
            if !self.is_over() {
                self.enclosure.break_what_is_due(&mut self.policy, self.enclosure.runner.now(), self.steps);
            }
            let Some(now) = self.enclosure.runner.advance(&mut FreeRun) else { break };
            let event = self.enclosure.runner.take();
            self.handle(now, event);
            self.steps += 1;
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            match (run.recoveries.last_mut(), self.enclosure.is_whole()) {
                (Some(range), false) if range.end + 1 >= self.steps => range.end = self.steps,
                (_, false) => run.recoveries.push(self.steps - 1..self.steps),
                (_, true) => {}
            }
        }
        Ok(())
    }

    /// The payload stamp that a read of this slot would find; zero for data from before the run.
    pub fn stamp(&self, drive: DriveId, slot: u32) -> u64 {
        let holder = self.policy.spread().map_or(drive, |spread| spread.holder(drive, slot));
        let ftl = &self.enclosure.drives[holder.index()].data.ftl;
        let place = ftl.lookup(slot);
        let stamp = if place.is_some() { ftl.stamp(place) } else { 0 };
        self.enclosure.resilience.as_ref().map_or(stamp, |state| state.original(stamp, slot))
    }

    /// The time of the last event.
    pub fn now(&self) -> SimTime {
        self.enclosure.runner.now()
    }

    /// Work of all drives to keep their borrowed memory safe: records, flushes, replays, waits.
    pub fn offsite_work(&self) -> [u64; 4] {
        self.enclosure.drives.iter().fold([0; 4], |[records, flushes, replays, waits], drive| {
            let work = drive.data.offsite_counters();
            [records + work.records, flushes + work.flushes, replays + work.replays, waits + work.waits]
        })
    }

    /// Commands that lenders took, and processors and memories that were lent.
    pub fn lending_work(&self) -> [u64; 3] {
        let counters = self.policy.lending().map(|lending| *lending.harvest.counters()).unwrap_or_default();
        [self.policy.redirected(), counters.processors_taken, counters.memories_taken]
    }
}

impl Enclosure {
    /// Whether every drive is ready, known to be, and not busy with recovery.
    fn is_whole(&self) -> bool {
        self.resilience.as_ref().is_none_or(|state| state.is_whole())
            && self.drives.iter().all(|drive| drive.is_ready())
    }

    /// Adds what broke so far, and what the driver did about it.
    fn tell(&self, run: &mut FaultedRun) {
        if let Some(state) = &self.resilience {
            run.counters = state.counters();
            run.taken = state.taken().to_vec();
        }
        run.reverted_slots = self.drives.iter().map(|drive| drive.data.counters().reverted_slots).sum();
    }
}
