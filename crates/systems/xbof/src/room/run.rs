//! Runs one design of a scenario.

use super::aged::{self, Overwritten};
use super::assemble;
use super::groups::{self, OneDrive};
use super::keyed;
use super::programs;
use super::result::design_result;
use super::section::JbofScenario;
use crate::jbof::{Design, DriveModel, Jbof, JbofConfig, JbofFigures, drive_of, with_programs};
use flashyard_describe::{Files, JobFiles, Observer, Scenario, ScenarioError, load};
use flashyard_report::{DesignResult, Equipment};

/// A design that was run, with its raw figures.
pub struct JbofRun {
    /// Figures as the world gives them.
    pub figures: JbofFigures,
    /// Figures as reports give them.
    pub result: DesignResult,
    /// The job files that drove it, if any did.
    pub(crate) jobs: Option<JobFiles>,
    /// Equipment of its drives.
    pub(crate) equipment: Equipment,
}

/// Runs `design` of a scenario. `observer` hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub fn run_design(
    scenario: &Scenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<JbofRun, ScenarioError> {
    let scenario = &JbofScenario::of(scenario)?;
    let (jbof, drives, jobs) = enclosure(scenario, design, files, observer)?;
    let figures = jbof.run(observer).map_err(keyed::of)?;
    let result = design_result(&figures, &drives);
    Ok(JbofRun { figures, result, jobs, equipment: equipment(&assemble::jbof(scenario, design)?) })
}

/// Runs `design` of a scenario and makes no report of its figures.
///
/// Errors: as [`run_design`].
pub fn measure_design(
    scenario: &Scenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<JbofFigures, ScenarioError> {
    figures(&JbofScenario::of(scenario)?, design, files, observer)
}

/// Like [`measure_design`], of a scenario whose sections are read.
///
/// Errors: as [`run_design`].
pub(crate) fn figures(
    scenario: &JbofScenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<JbofFigures, ScenarioError> {
    let (jbof, ..) = enclosure(scenario, design, files, observer)?;
    jbof.run(observer).map_err(keyed::of)
}

/// An enclosure with its drives and its job files.
type Built = (Jbof, Vec<OneDrive>, Option<JobFiles>);

/// The enclosure of a scenario, ready to run.
fn enclosure(
    scenario: &JbofScenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Built, ScenarioError> {
    let config = assemble::jbof(scenario, design)?;
    // Wrong groups are named before the enclosure that follows from them.
    let drives = groups::drives(scenario, design)?;
    config.validate().map_err(keyed::of)?;
    let busy = scenario.jbof.busy_drives;
    let jobs = if scenario.program.is_some() { None } else { JobFiles::load(scenario, busy, files)? };
    // Every busy drive is asked for what the smallest one has.
    let capacity = drives.iter().map(OneDrive::capacity_bytes).min().unwrap_or(0);
    let mut models: Vec<DriveModel> = drives.iter().map(|drive| drive.model).collect();
    let overwritten = Overwritten::find(&config, &mut models, scenario.seed, files);
    let jbof = match (&scenario.program, &jobs) {
        (Some(program), _) => {
            let programs = programs::of(scenario, program, capacity)?;
            with_programs(config, models, load::plan(scenario)?, programs)
        }
        (None, Some(jobs)) => Jbof::with_models(config, models, jobs.plan(scenario), jobs.streams(scenario, capacity)?),
        (None, None) => {
            let plan = load::plan(scenario)?;
            let streams = plan.streams(load::sources(scenario, busy, capacity, files)?);
            Jbof::with_models(config, models, plan, streams)
        }
    };
    let mut jbof = jbof.map_err(keyed::of)?;
    overwritten.restore(|drive, aged| jbof.restore(drive, aged)).map_err(keyed::of)?;
    overwritten.keep(|drive| drive_of(&jbof, drive), files);
    aged::restore(&drives, files, |drive, aged| jbof.restore(drive, aged))?;
    if scenario.run.warm_mapping_requests > 0 && scenario.program.is_none() {
        let warming = assemble::warming_sources(scenario, design, jobs.as_ref(), capacity, files)?;
        jbof.warm_mapping(warming, scenario.run.warm_mapping_requests, observer).map_err(keyed::of)?;
    }
    Ok((jbof, drives, jobs))
}

/// Equipment of a drive by `config`, at a point of a sweep that is filled in later.
fn equipment(config: &JbofConfig) -> Equipment {
    let drive = config.placed_drive();
    let pages = config.map_pages().max(1);
    Equipment {
        design: config.design.name().to_owned(),
        computes_on_host: config.design.computes_on_host(),
        load: Vec::new(),
        cores: drive.cores,
        memory_share: f64::from(drive.mapping_cache_pages.min(pages)) / f64::from(pages),
        lenders_per_busy: f64::from(config.drives - config.busy_drives) / f64::from(config.busy_drives),
    }
}

/// The load of the scenario's runs in words.
pub(super) fn load_in_words(scenario: &Scenario) -> String {
    let own = JbofScenario::of(scenario).ok();
    let busy = own.as_ref().map_or(0, |scenario| scenario.jbof.busy_drives);
    if let Some(program) = own.and_then(|scenario| scenario.program) {
        return programs::in_words(&program, busy);
    }
    let drive = flashyard_describe::drive::drive(&scenario.drive);
    let capacity = drive.map_or(0, |drive| u64::from(drive.ftl.logical_slots) * u64::from(flashyard_flash::SLOT_BYTES));
    load::in_words(scenario, busy, capacity)
}
