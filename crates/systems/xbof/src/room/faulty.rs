//! The enclosure of a scenario as a world for the explorer of faults.
//!
//! Its busy drives run a mix that is made to hurt: few hot slots that reads, writes and trims meet at, and requests
//! all over the drive that keep mapping pages and garbage collection moving. Every write has a stamp of its own, and
//! the oracle hears of everything that a client sees. At the end everything settles, power is cut once more, and every
//! slot that was ever asked for is compared.

use super::designs::{designs, models_failures};
use super::section::JbofScenario;
use super::{assemble, keyed};
use crate::jbof::{
    Asked, Design, Fault, FaultTime, Jbof, JbofConfig, Pacing, RunPlan, Source, StopRule, StreamSpec, Witness,
};
use flashyard_blk::{BlockRequest, Operation, TraceRecord};
use flashyard_describe::{Scenario, ScenarioError, listed};
use flashyard_faults::{
    Action, At, Case, Extent, Fault as Planned, Fingerprint, Moment, OperationId, Oracle, Outcome, Violation, World,
};
use flashyard_flash::SLOT_BYTES;
use flashyard_kernel::Rng;
use flashyard_ssd::DriveConfig;
use flashyard_units::{DriveId, SimSpan, SimTime, VolumeId};
use flashyard_workload::{RequestSource, SourceError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Events that a run may take for each request, before it counts as stuck. [A]
const EVENTS_PER_REQUEST: u64 = 2_000;
/// Hot slots of each drive. [A]
const HOT_SLOTS: u64 = 24;
/// Slots of a request at most. [A]
const REQUEST_SLOTS: u64 = 6;
/// Slots that one lane of sources has in a row. [A]
const LANE_BLOCK: u64 = 16;
/// How long things stay away: shorter than a period, some periods, longer than a time-out. [A]
const AWAY: [SimSpan; 3] = [SimSpan::from_us(100), SimSpan::from_us(900), SimSpan::from_ms(7)];

/// An enclosure of drives to break.
pub struct JbofWorld {
    name: String,
    config: JbofConfig,
    depth: u32,
    requests: u32,
    /// Whether it can be broken. In an enclosure that cannot, no two writes under way overlap: hosts order those
    /// themselves.
    breaks: bool,
}

/// The mechanism that keeps something in the memory of a drive without protection that must survive a power cut. Where there is
/// none, a cut takes data that was not flushed, and nothing else.
pub(super) fn needs_protection(design: Design, drive: &DriveConfig) -> Option<String> {
    if drive.power_loss_protection {
        None
    } else if matches!(design, Design::ProcH | Design::Xbof) {
        Some(format!("{} keeps descriptors, logs and names of commands", design.name()))
    } else {
        drive.stripe.is_some().then(|| "drives with parity keep that of open stripes".to_owned())
    }
}

impl JbofWorld {
    /// The enclosure of a scenario, of the first design that it names.
    ///
    /// Errors: values outside their ranges; a design whose failures are not modelled; drives without power-loss
    /// protection whose design, or whose parity, needs it.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let design = designs(scenario)?[0];
        let value = |key, message: &str| ScenarioError::Value { key, message: message.to_owned() };
        if !models_failures(design) {
            let modelled = Design::ALL.into_iter().filter(|&design| models_failures(design));
            let names = listed(&modelled.map(Design::name).collect::<Vec<_>>());
            let message = format!("give {names} first: failures of the others are not modelled");
            return Err(value("designs", &message));
        }
        let world = Self::unbroken(scenario, design)?;
        if let Some(keeper) = needs_protection(design, &world.config.drive) {
            let message = format!("give true: {keeper} in memory that must survive a power cut");
            return Err(value("drive.power_loss_protection", &message));
        }
        let mut config = world.config;
        config.drive.expects_power_cuts = true;
        Ok(Self { breaks: true, config, ..world })
    }

    /// The enclosure of a scenario, of any design, in which nothing breaks: for the question whether reads find what
    /// was written.
    ///
    /// Errors: values outside their ranges.
    pub fn unbroken(scenario: &Scenario, design: Design) -> Result<Self, ScenarioError> {
        let scenario = &JbofScenario::of(scenario)?;
        let mut config = assemble::jbof(scenario, design)?;
        config.drive.ftl.stamps = true;
        config.validate().map_err(keyed::of)?;
        let requests = scenario.run.requests_per_drive.unwrap_or(150).min(100_000) as u32;
        let depth = scenario.workload.depth.unwrap_or(8).max(1);
        Ok(Self { name: scenario.name.clone(), config, depth, requests, breaks: false })
    }

    fn build(&self, case: &Case, witness: &Rc<RefCell<Clients>>) -> Result<Jbof, ScenarioError> {
        let requests = u64::from(case.size.unwrap_or(self.requests));
        let plan = RunPlan {
            warmup: SimSpan::ZERO,
            stop: StopRule::Requests(requests),
            ends_together: false,
            depth: Some(self.depth),
            seed: case.seed,
        };
        let slots = u64::from(self.config.drive.ftl.logical_slots);
        let drives = 0..self.config.busy_drives;
        let jbof = if self.breaks {
            let source = |drive: u32| -> Source {
                Box::new(Mix { rng: Rng::named(case.seed, &format!("faults.mix.{drive}")), slots, lane: None })
            };
            Jbof::new(self.config, plan, drives.map(source).collect()).map_err(keyed::of)?
        } else {
            let plan = RunPlan { stop: StopRule::Requests(requests.div_ceil(u64::from(self.depth))), ..plan };
            let stream = |drive: u32, lane: u32| {
                let rng = Rng::named(case.seed, &format!("faults.mix.{drive}.{lane}"));
                let mix = Mix { rng, slots, lane: Some((lane.into(), self.depth.into())) };
                StreamSpec::new(VolumeId::new(drive as u16), Box::new(mix), Pacing::Closed { depth: 1 })
            };
            let streams = drives.flat_map(|drive| (0..self.depth).map(move |lane| stream(drive, lane)));
            Jbof::with_streams(self.config, plan, streams.collect()).map_err(keyed::of)?
        };
        let faults = case.plan.faults.iter().filter_map(|&(at, fault)| Some((moment(at), physical(fault)?))).collect();
        Ok(jbof.with_faults(faults, Box::new(Told(Rc::clone(witness)))))
    }

    fn try_run(&self, case: &Case) -> Result<Outcome, ScenarioError> {
        let drives = vec![u64::from(self.config.drive.ftl.logical_slots); self.config.drives as usize];
        let witness = Rc::new(RefCell::new(Clients::of(&drives, !self.config.drive.power_loss_protection)));
        let mut jbof = self.build(case, &witness)?;
        let requests = u64::from(case.size.unwrap_or(self.requests)) * u64::from(self.config.busy_drives);
        let run = jbof.run_with_faults(requests * EVENTS_PER_REQUEST).map_err(keyed::of)?;
        let mut outcome =
            Outcome { events: run.events, taken: run.taken, recoveries: run.recoveries, ..Outcome::default() };
        let mut clients = witness.borrow_mut();
        outcome.violation = clients.violation.take();
        if let Some(fault) = run.faults.first() {
            outcome.violation.get_or_insert_with(|| fault.clone());
        }
        outcome.note(clients.oracle.finish(jbof.now()));
        outcome.note(clients.compare(&jbof));
        let [records, flushes, replays, waits] = jbof.offsite_work();
        let [redirected, processors, memories] = jbof.lending_work();
        let counters = run.counters;
        let mut fingerprint = Fingerprint::default();
        for (name, count) in [
            ("drives given up", counters.given_up),
            ("drives reset", counters.resets),
            ("commands sent again", counters.resubmitted),
            ("commands drained before that", counters.drained),
            ("commands timed out", counters.timed_out),
            ("logs replayed", replays),
            ("logs flushed", flushes),
            ("waits for a log", waits),
            ("processors taken", processors),
            ("memories taken", memories),
        ] {
            fingerprint.step(count);
            outcome.counters.insert(name, count);
        }
        outcome.counters.insert("log records", records);
        outcome.counters.insert("commands redirected", redirected);
        outcome.counters.insert("copies made", counters.copied_back);
        outcome.counters.insert("slots reverted", run.reverted_slots);
        outcome.counters.insert("slots checked", clients.oracle.counters().slots_read);
        outcome.fingerprint = fingerprint.get();
        Ok(outcome)
    }
}

impl World for JbofWorld {
    fn name(&self) -> String {
        format!("{} ({})", self.name, self.config.design.name())
    }

    fn faults(&self) -> Vec<Planned> {
        let mut faults = Vec::new();
        if !self.breaks {
            return faults;
        }
        for away in AWAY {
            faults.push(Planned::PowerLoss { off_for: away });
            for drive in 0..self.config.drives {
                faults.push(Planned::LoseDrive { drive, gone_for: Some(away) });
                faults.push(Planned::LinkDown { drive, down_for: Some(away) });
                faults.push(Planned::StallDrive { drive, held_for: away });
            }
        }
        faults.extend((0..self.config.drives).map(|drive| Planned::Withdraw { drive }));
        faults
    }

    fn size(&self) -> u32 {
        self.requests
    }

    fn run(&self, case: &Case) -> Outcome {
        self.try_run(case).unwrap_or_else(|error| Outcome { violation: Some(error.to_string()), ..Outcome::default() })
    }
}

fn moment(at: At) -> FaultTime {
    match at {
        At::Event(number) => FaultTime::Event(number),
        At::Time(time) => FaultTime::At(time),
        At::After(events) => FaultTime::AfterLast(events),
    }
}

/// The fault as planned, but a drive or link away for good comes back after the longest time: a run must end. Nothing where drives of this world have no
/// such fault.
fn physical(fault: Planned) -> Option<Fault> {
    let longest = AWAY[AWAY.len() - 1];
    Some(match fault {
        Planned::PowerLoss { off_for } => Fault::BoxPower { off: off_for },
        Planned::LoseDrive { drive, gone_for } => {
            Fault::DrivePower { drive: DriveId::new(drive as u16), off: gone_for.unwrap_or(longest) }
        }
        Planned::LinkDown { drive, down_for } => {
            Fault::Link { drive: DriveId::new(drive as u16), down: down_for.unwrap_or(longest) }
        }
        Planned::Withdraw { drive } => Fault::Withdraw { drive: DriveId::new(drive as u16) },
        Planned::StallDrive { drive, held_for } => Fault::Hang { drive: DriveId::new(drive as u16), span: held_for },
        Planned::Spoil { .. } => return None,
    })
}

/// Requests of one busy drive.
struct Mix {
    rng: Rng,
    slots: u64,
    /// This source's number and that of all sources of the drive, each of which writes in slots of its own.
    lane: Option<(u64, u64)>,
}

impl Mix {
    /// The first slot of a request of `count` slots in the part of one lane, near `first`.
    fn in_lane(&mut self, operation: Operation, first: u64, count: u64) -> u64 {
        let Some((own, lanes)) = self.lane else { return first };
        let lane = if operation == Operation::Read { self.rng.below(lanes) } else { own };
        // The lanes have the blocks of the drive in turn.
        let turns = self.slots / (lanes * LANE_BLOCK);
        let turn = (first / (lanes * LANE_BLOCK)).min(turns - 1);
        (turn * lanes + lane) * LANE_BLOCK + (first % LANE_BLOCK).min(LANE_BLOCK - count)
    }
}

impl RequestSource for Mix {
    fn next_request(&mut self) -> Result<Option<TraceRecord>, SourceError> {
        let operation = match self.rng.below(100) {
            0..44 => Operation::Write,
            44..88 => Operation::Read,
            88..95 => Operation::Trim,
            _ => Operation::Flush,
        };
        let count = 1 + self.rng.below(REQUEST_SLOTS);
        let first = match self.rng.below(2) {
            // Hot slots lie in different translation pages, and requests of several slots overlap there.
            0 => self.rng.below(HOT_SLOTS) * (self.slots / HOT_SLOTS) + self.rng.below(4),
            _ => self.rng.below(self.slots),
        };
        let first = first.min(self.slots - count);
        let first = self.in_lane(operation, first, count);
        let bytes = |slots: u64| slots * u64::from(SLOT_BYTES);
        let len_bytes = if operation == Operation::Flush { 0 } else { bytes(count) as u32 };
        let request = BlockRequest { operation, offset_bytes: bytes(first), len_bytes };
        Ok(Some(TraceRecord { arrival: SimTime::ZERO, volume: 0, request }))
    }
}

/// The clients' observations.
struct Clients {
    oracle: Oracle,
    violation: Option<String>,
    touched: BTreeSet<(u32, u64)>,
    /// Flushes under way: when each was issued, and the drive.
    flushes: BTreeMap<u64, (Moment, u32)>,
}

impl Clients {
    fn of(drives: &[u64], are_volatile: bool) -> Self {
        let mut oracle = Oracle::new(drives);
        if are_volatile {
            (0..drives.len() as u32).for_each(|drive| oracle.make_volatile(drive));
        }
        Self { oracle, violation: None, touched: BTreeSet::new(), flushes: BTreeMap::new() }
    }

    fn note(&mut self, checked: Result<(), Violation>) {
        if let Err(violation) = checked {
            self.violation.get_or_insert_with(|| violation.to_string());
        }
    }

    /// Reads every slot that was ever asked for, at the end.
    fn compare(&mut self, jbof: &Jbof) -> Result<(), Violation> {
        let now = jbof.now();
        for (drive, slot) in std::mem::take(&mut self.touched) {
            let id = OperationId(0);
            self.oracle.issue(now, id, Action::Read, Extent::slot(drive, slot));
            self.oracle.returned(now, id, &[jbof.stamp(DriveId::new(drive as u16), slot as u32)])?;
        }
        Ok(())
    }
}

/// The clients, shared with the world that tells them.
struct Told(Rc<RefCell<Clients>>);

impl Witness for Told {
    fn issued(&mut self, now: SimTime, asked: &Asked) {
        let extent = Extent { drive: u32::from(asked.drive.get()), first: u64::from(asked.first), count: asked.count };
        let action = match asked.operation {
            Operation::Read => Action::Read,
            Operation::Write => Action::Write(asked.number),
            Operation::Trim => Action::Trim,
            Operation::Flush => {
                let mut clients = self.0.borrow_mut();
                let issued = clients.oracle.flush(now);
                clients.flushes.insert(asked.number, (issued, extent.drive));
                return;
            }
            _ => return,
        };
        let mut clients = self.0.borrow_mut();
        clients.touched.extend((extent.first..extent.first + u64::from(asked.count)).map(|slot| (extent.drive, slot)));
        clients.oracle.issue(now, OperationId(asked.number as u32), action, extent);
    }

    fn completed(&mut self, now: SimTime, number: u64, operation: Operation, found: &[u64]) {
        let mut clients = self.0.borrow_mut();
        let id = OperationId(number as u32);
        let checked = match operation {
            Operation::Read => clients.oracle.returned(now, id, found),
            Operation::Write | Operation::Trim => clients.oracle.acknowledged(now, id),
            Operation::Flush => {
                if let Some((issued, drive)) = clients.flushes.remove(&number) {
                    clients.oracle.flushed(now, drive, issued);
                }
                return;
            }
            _ => return,
        };
        clients.note(checked);
    }

    fn power_lost(&mut self, now: SimTime, drive: DriveId) {
        self.0.borrow_mut().oracle.power_lost(now, u32::from(drive.get()));
    }
}
