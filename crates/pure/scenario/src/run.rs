//! Runs one design of a scenario and turns its figures into the result schema.

use crate::aged;
use crate::assemble;
use crate::detail::detail;
use crate::explore::{equipment, explorer, load};
use crate::fio::JobFiles;
use crate::groups::{self, OneDrive};
use crate::names::Unknown;
use crate::parse::ScenarioError;
use crate::result::design_result;
use crate::sweep::{label, swept};
use crate::{Files, Scenario, traces};
use flashyard_flash::SLOT_BYTES;
use flashyard_report::{
    CAUSES, Compute, DesignAbout, DesignResult, Equipment, Prices, ReportDocument, RunReport, Shares,
    bill_of_materials, unsteady_sentence,
};
use flashyard_systems::jbof::{Design, Jbof, JbofFigures, Observer};
use flashyard_units::Named;

/// A design that was run, with its raw figures.
pub struct DesignRun {
    /// Figures as the world gives them.
    pub figures: JbofFigures,
    /// Figures as reports give them.
    pub result: DesignResult,
    /// The job files that drove it, if any did.
    pub(crate) jobs: Option<JobFiles>,
    /// Equipment of its drives.
    pub(crate) equipment: Equipment,
}

/// The designs that a scenario names.
pub(crate) fn designs(scenario: &Scenario) -> Result<Vec<Design>, ScenarioError> {
    if scenario.designs.is_empty() {
        let known = Design::ALL.map(Design::name).join(", ");
        return Err(ScenarioError::Value { key: "designs", message: format!("none given, give some of {known}") });
    }
    scenario.designs.iter().map(|name| design_called(name)).collect()
}

/// The design called `name`.
///
/// Errors: a name that is no design.
pub(crate) fn design_called(name: &str) -> Result<Design, ScenarioError> {
    let unknown = || Unknown::new("design", name, Design::names()).to_string();
    Design::by_name(name).ok_or_else(|| ScenarioError::Value { key: "designs", message: unknown() })
}

impl Scenario {
    /// The designs to run, in order.
    ///
    /// Errors: a name that is no design.
    pub fn design_list(&self) -> Result<Vec<Design>, ScenarioError> {
        designs(self)
    }
}

impl DesignRun {
    /// Names the run after its point of a sweep, too.
    pub fn at_point(mut self, point: &[String]) -> Self {
        self.result.name.push_str(&label(point));
        self.result.point = point.to_vec();
        self.equipment.load = load(point);
        self
    }
}

/// Runs `design` of a scenario. `observer` hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub fn run_design(
    scenario: &Scenario,
    design: Design,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<DesignRun, ScenarioError> {
    let config = assemble::jbof(scenario, design)?;
    // Wrong groups are named before the enclosure that follows from them.
    let drives = groups::drives(scenario, design)?;
    config.validate()?;
    let jobs = JobFiles::load(scenario, files)?;
    // Every busy drive is asked for what the smallest one has.
    let capacity = drives.iter().map(OneDrive::capacity_bytes).min().unwrap_or(0);
    let (plan, streams) = match &jobs {
        Some(jobs) => (jobs.plan(scenario), jobs.streams(scenario, capacity)?),
        None => {
            let plan = assemble::plan(scenario)?;
            (plan, plan.streams(assemble::sources(scenario, capacity, files)?))
        }
    };
    let models = drives.iter().map(|drive| drive.model).collect();
    let mut jbof = Jbof::with_models(config, models, plan, streams)?;
    aged::restore(&drives, files, |drive, aged| jbof.restore(drive, aged))?;
    if scenario.run.warm_mapping_requests > 0 {
        let warming = assemble::warming_sources(scenario, design, jobs.as_ref(), capacity, files)?;
        jbof.warm_mapping(warming, scenario.run.warm_mapping_requests)?;
    }
    let figures = jbof.run(observer)?;
    let result = design_result(&figures, &drives);
    Ok(DesignRun { figures, result, jobs, equipment: equipment(&config) })
}

/// Each design of the report in words, once.
fn about(runs: &[DesignRun]) -> Vec<DesignAbout> {
    let shown = |design: &Design| runs.iter().any(|run| run.figures.design == *design);
    let about = |design: Design| DesignAbout { name: design.name().to_owned(), text: design.about().to_owned() };
    Design::ALL.into_iter().filter(shown).map(about).collect()
}

/// Doubts about one number for the whole window of a run.
fn doubts(run: &DesignRun) -> Vec<String> {
    let figures = &run.figures;
    let ended = figures.first_end.map(|end| {
        format!(
            "{}: the first stream ended {:.3} s into the measured window of {:.3} s; the others went on without it, \
             so figures of the window cover less and less load",
            run.result.name,
            end.since(figures.measured_from).as_secs_f64(),
            figures.window.as_secs_f64(),
        )
    });
    // A load that ends bit by bit is not steady anyway.
    let unsteady = if ended.is_none() { unsteady_sentence(&run.result) } else { None };
    ended.into_iter().chain(unsteady).collect()
}

/// Price of one drive as `design` builds it.
pub(crate) fn drive_price(prices: &Prices, terabytes: f64, design: Design, kept: Shares) -> f64 {
    let compute = match design {
        Design::Conv => Compute::Full,
        Design::Oc => Compute::OpenChannel,
        Design::Shrunk | Design::Vh | Design::VhIdeal => Compute::Shrunk,
        Design::ProcH | Design::Xbof => Compute::ShrunkCxl,
    };
    bill_of_materials(prices, terabytes, compute, kept)
}

/// All that the report of a run shows; `resolved` is the scenario with its profiles, `version` the program's.
pub fn document(report: RunReport, runs: &[DesignRun], resolved: &str, version: &str) -> ReportDocument {
    ReportDocument {
        report,
        details: runs.iter().map(detail).collect(),
        causes: CAUSES,
        resolved: resolved.to_owned(),
        version: version.to_owned(),
    }
}

/// The figures of a whole run.
pub fn summarize(scenario: &Scenario, runs: &[DesignRun], wall_seconds: f64, complete: bool) -> RunReport {
    let config = assemble::drive(&scenario.drive);
    let capacity = config.map_or(0, |drive| u64::from(drive.ftl.logical_slots) * u64::from(SLOT_BYTES));
    let longest = runs.iter().map(|run| run.figures.simulated.as_secs_f64()).fold(0.0, f64::max);
    let notes: Vec<_> = runs.iter().map(|run| (run.figures.design.name(), &run.figures.scaling[..])).collect();
    let scaling = traces::scaling(&notes);
    let workload = match runs.first().and_then(|run| run.jobs.as_ref()) {
        Some(jobs) => jobs.describe(scenario.jbof.busy_drives),
        None => assemble::describe(scenario, capacity),
    };
    let closed_loop = runs.iter().any(|run| run.figures.closed_loop);
    RunReport {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        command: String::new(),
        about: about(runs),
        closed_loop,
        notes: runs.iter().flat_map(doubts).collect(),
        seed: scenario.seed,
        simulated_seconds: longest,
        wall_seconds,
        workload: workload + &swept(&scenario.sweep),
        scaling,
        complete,
        designs: runs.iter().map(|run| run.result.clone()).collect(),
        explorer: explorer(&scenario.explore, runs),
    }
}
