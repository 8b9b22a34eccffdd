//! Builds a life and lives it.

use super::course::Follower;
use super::record::record;
use super::section::{CapacityName, LifeScenario};
use crate::ffssd::{Acceleration, ForwardConfig, Prediction};
use crate::lifetime::{Capacity, ForwardPlan, Life, LifeConfig, LifeError, fast_forward};
use flashyard_describe::drive::drive;
use flashyard_describe::{Aged, AgedDrive, Files, LifeStop, Scenario, ScenarioError, keyed, load, traces};
use flashyard_flash::SLOT_BYTES;
use flashyard_ftl::{Frontiers, FtlConfigError, ProgressiveReading, VictimTies};
use flashyard_measure::Source;
use flashyard_report::{LifeCourse, LifeRecord};

/// Defaults of the study. Source: [P] sheet wear-leveling §4, but for the last two, which are [A].
const ENDURANCE: u32 = 500;
const RANDOM_FILLS: u32 = 3;
const SAMPLE_DRIVE_WRITES: f64 = 5.0;
const PERIOD_DRIVE_WRITES: f64 = 0.5;

/// Speed of a recorded trace. A life has no time, but thousands of rounds of a week must end before simulated time
/// does. Source: [A]
const TRACE_SPEED: f64 = 1e9;

/// Times that a life is looked at: for each drive write, and at least of one to a given end. [A] what a chart needs
const STEPS_PER_DRIVE_WRITE: u64 = 16;
const STEPS_MIN: u64 = 100;

/// The parameters of the scenario's drive and its life.
///
/// Errors: a key outside its range, named.
pub(crate) fn config(scenario: &LifeScenario) -> Result<LifeConfig, ScenarioError> {
    let section = &scenario.life;
    let drive = drive(&scenario.drive)?;
    let endurance = section.endurance.unwrap_or(ENDURANCE);
    let mut ftl = drive.ftl;
    ftl.endurance = Some(endurance);
    let worn = section.retire.unwrap_or(true).then_some(endurance);
    // The earlier of two: nominal erases, or those after which the flash errs too often.
    ftl.retire_at = worn.into_iter().chain(ftl.retire_at).min();
    // Source: [P] sheet wear-leveling §2; what the drive says takes precedence.
    ftl.frontiers = scenario.drive.frontiers.map_or(Frontiers::Shared, |choice| choice.0);
    // Source: [C] the greedy victim of the study's public simulator is the head of its list, where superblocks enter at
    // the tail.
    ftl.ties = section.ties.map_or(VictimTies::OldestFirst, |choice| choice.0);
    ftl.progressive = ProgressiveReading::Heap;
    ftl.seed = scenario.seed;
    let bound = section.relocation_bound.map(|size| size.0.get() / u64::from(SLOT_BYTES));
    let capacity = match (section.capacity.unwrap_or_default(), bound) {
        (CapacityName::Fixed, None) => Capacity::Fixed,
        (CapacityName::Variable, None) => Capacity::Variable,
        (CapacityName::Variable, Some(slots)) => Capacity::Bounded { slots },
        (CapacityName::Fixed, Some(_)) => {
            let message = "a fixed capacity relocates nothing, give capacity = \"variable\" or leave the bound out";
            return Err(ScenarioError::value("life.relocation_bound", message.to_owned()));
        }
    };
    let extent_slots =
        section.extent.map(|size| (size.0.get() / u64::from(SLOT_BYTES)).min(u64::from(u32::MAX)) as u32);
    let capacity_bytes = u64::from(ftl.logical_slots) * u64::from(SLOT_BYTES);
    let footprint_slots = if traces::are_given(&scenario.workload) {
        ftl.logical_slots
    } else {
        let span = load::spec(&without_time(scenario).workload, capacity_bytes)?.span_bytes;
        // At most the drive, whose slots are a u32.
        (span / u64::from(SLOT_BYTES)) as u32
    };
    let sample = section.sample_drive_writes.unwrap_or(SAMPLE_DRIVE_WRITES);
    Ok(LifeConfig {
        geometry: drive.data_geometry(),
        ftl,
        capacity,
        filled: section.filled.unwrap_or(true),
        random_fills: section.random_fills.unwrap_or(RANDOM_FILLS),
        extent_slots,
        footprint_slots,
        sample_slots: (sample * f64::from(ftl.logical_slots)) as u64,
        seed: scenario.seed,
    })
}

/// The scenario with a load that asks one request after the other where it makes them: a life has no time, and arrivals none of its own.
fn without_time(scenario: &LifeScenario) -> LifeScenario {
    let mut alone = scenario.clone();
    let workload = &mut alone.workload;
    if !traces::are_given(workload) && workload.fio.is_none() {
        workload.depth = Some(1);
        (workload.requests_per_second, workload.burst, workload.pause) = (None, None, None);
    }
    alone
}

/// The drive's load.
pub(crate) fn source(
    scenario: &LifeScenario,
    config: &LifeConfig,
    files: &'static dyn Files,
) -> Result<Source, ScenarioError> {
    let mut alone = without_time(scenario);
    if traces::are_given(&alone.workload) {
        alone.workload.speed = Some(TRACE_SPEED);
    }
    let capacity_bytes = u64::from(config.ftl.logical_slots) * u64::from(SLOT_BYTES);
    load::endless_source(&alone, capacity_bytes, files)
}

/// Lives the scenario's life to `drive_writes` or to death; `None` when the observer stopped it.
pub(crate) fn live(
    name: &str,
    scenario: &LifeScenario,
    drive_writes: Option<f64>,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<LifeRecord>, ScenarioError> {
    let life = live_on(scenario, drive_writes, files, &mut |_, part| observer(part))?;
    Ok(life.map(|life| record(name, &life.figures())))
}

/// Like `live`, but returns the drive.
fn live_on(
    scenario: &LifeScenario,
    drive_writes: Option<f64>,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(&Life, f64) -> bool,
) -> Result<Option<Life>, ScenarioError> {
    let config = config(scenario)?;
    let source = source(scenario, &config, files)?;
    let mut life = Life::new(config, source).map_err(of_life)?;
    if !observer(&life, 0.0) {
        return Ok(None);
    }
    let end = drive_writes.map_or(u64::MAX, |writes| (writes * f64::from(life.drive_slots())) as u64);
    let step = u64::from(life.drive_slots()).div_ceil(STEPS_PER_DRIVE_WRITE).min(end.div_ceil(STEPS_MIN));
    while life.death().is_none() && life.host_slots() < end {
        life.live_until((life.host_slots() + step).min(end)).map_err(of_life)?;
        if !observer(&life, progress(&life, end)) {
            return Ok(None);
        }
    }
    Ok(Some(life))
}

/// A life as far as it was lived.
pub struct AgedLife {
    /// Its record.
    pub record: LifeRecord,
    /// The drive on its way there.
    pub course: LifeCourse,
    life: Life,
}

impl Aged for AgedLife {
    fn record(&self) -> &LifeRecord {
        &self.record
    }

    fn course(&self) -> &LifeCourse {
        &self.course
    }

    fn save(&self, scenario: &str) -> Vec<u8> {
        let ftl = self.life.ftl();
        let drive_writes = self.life.host_slots() as f64 / f64::from(self.life.drive_slots());
        let note = format!("{} after {drive_writes:.1} drive writes", self.record.name);
        AgedDrive::new(self.life.geometry(), ftl.config().logical_slots, scenario, note, ftl.aged_state()).encode()
    }
}

/// Ages the scenario's drive as a person asks for it.
///
/// Errors: a wrong key, a workload that ends; `None` when the observer stopped it.
pub fn age(
    scenario: &Scenario,
    stop: LifeStop,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<AgedLife>, ScenarioError> {
    let scenario = &LifeScenario::of(scenario)?;
    let wear = drive(&scenario.drive)?.nand.wear;
    let mut follower = Follower::new(scenario, &config(scenario)?, wear);
    let mut observer = |life: &Life, part| {
        follower.look(life);
        observer(part)
    };
    let life = match acceleration(stop)? {
        None => live_on(scenario, stop.drive_writes, files, &mut observer)?,
        Some(acceleration) => forward_on(scenario, stop.drive_writes, acceleration, files, &mut observer)?,
    };
    Ok(life.map(|life| AgedLife {
        record: record(&scenario.name, &life.figures()),
        course: follower.finish(&life),
        life,
    }))
}

/// Ages in fast-forward to `drive_writes` or to death; `None` when the observer stopped it.
fn forward_on(
    scenario: &LifeScenario,
    drive_writes: Option<f64>,
    acceleration: Acceleration,
    files: &'static dyn Files,
    observer: &mut dyn FnMut(&Life, f64) -> bool,
) -> Result<Option<Life>, ScenarioError> {
    let config = config(scenario)?;
    let source = source(scenario, &config, files)?;
    let endurance = config.ftl.retire_at;
    let footprint = f64::from(config.footprint_slots);
    let mut life = Life::new(config, source).map_err(of_life)?;
    let mut stopped = !observer(&life, 0.0);
    let drive = f64::from(life.drive_slots());
    let period_slots = period_slots(scenario, footprint, drive);
    let end = drive_writes.map_or(u64::MAX, |writes| (writes * drive) as u64);
    let plan = ForwardPlan {
        config: ForwardConfig {
            prediction: scenario.life.prediction.map_or(Prediction::TwoPoint, |choice| choice.0),
            acceleration,
            endurance,
        },
        period_slots,
        // Whole periods; what is left of the last one is lived slot by slot.
        periods: if stopped { 0 } else { u32::try_from(end / period_slots).unwrap_or(u32::MAX) },
    };
    fast_forward(&mut life, plan, &[], &mut |life, _| {
        stopped = !observer(life, progress(life, end));
        !stopped
    })
    .map_err(of_life)?;
    if !stopped && drive_writes.is_some() && life.death().is_none() {
        life.live_until(end).map_err(of_life)?;
    }
    Ok((!stopped).then_some(life))
}

/// Slots of an observation period: those asked for, or those of a pass of the workload where it repeats one. Source: [C] sheet ff-ssd §9, a
/// period is one pass of the trace.
pub(crate) fn period_slots(scenario: &LifeScenario, footprint_slots: f64, drive_slots: f64) -> u64 {
    let pass = scenario.workload.pass.map(|times| times * footprint_slots);
    let asked = scenario.life.period_drive_writes.map(|writes| writes * drive_slots);
    (asked.or(pass).unwrap_or(PERIOD_DRIVE_WRITES * drive_slots) as u64).max(1)
}

fn acceleration(stop: LifeStop) -> Result<Option<Acceleration>, ScenarioError> {
    match (stop.acceleration, stop.adaptive) {
        (None, None) => Ok(None),
        (None, Some(0)) => {
            Err(ScenarioError::value("--adaptive", "a jump of 0 periods is none; give at least 1".to_owned()))
        }
        (None, Some(ahead_max)) => Ok(Some(Acceleration::Adaptive { ahead_max })),
        (Some(factor), _) => Acceleration::by_factor(factor).map(Some).ok_or_else(|| {
            ScenarioError::value(
                "--fast-forward",
                format!("there is no factor {factor}; give 1.5 or a whole number from 1 to 1000"),
            )
        }),
    }
}

/// How much of the way is gone: of the writes asked for, or of the erases that the drive is made for.
fn progress(life: &Life, end: u64) -> f64 {
    let written = life.host_slots() as f64 / end as f64;
    let worn = life.ftl().config().retire_at.map_or(0.0, |limit| {
        let superblocks = f64::from(life.ftl().layout().superblocks);
        let erases: f64 = life.ftl().erase_counts().map(f64::from).sum();
        erases / (superblocks * f64::from(limit))
    });
    written.max(worn).min(1.0)
}

/// An error of a life, as one of its scenario.
pub(crate) fn of_life(error: LifeError) -> ScenarioError {
    match error {
        LifeError::Ftl(FtlConfigError::Range { name: "retire_at", value: given, range }) => {
            ScenarioError::value("life.endurance", format!("{given} is out of range; give {range}"))
        }
        LifeError::Ftl(error) => keyed::translation(error),
        LifeError::StillBorn => ScenarioError::value("life.endurance", LifeError::StillBorn.to_string()),
        other => ScenarioError::of_world(other),
    }
}
