//! Runs one stack of a scenario.

use super::result::{detail, disks, result};
use super::section::{config, of_server, stack_called};
use crate::stack::Stack;
use crate::{Server, ServerConfig, ServerFigures};
use flashyard_describe::{Files, JobFiles, Measured, Observer, Scenario, ScenarioError, fio_report, load};
use flashyard_report::Equipment;

/// Runs the stack called `name` of a scenario. `observer` hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub(super) fn run(
    scenario: &Scenario,
    name: &str,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let config = config(scenario, stack_called(name)?)?;
    let jobs = JobFiles::load(scenario, config.drives, files)?;
    let figures = figures(scenario, config, jobs.as_ref(), files, observer)?;
    let result = result(&figures);
    let window = figures.window.as_secs_f64();
    let first_end = figures.first_end.map(|end| end.since(figures.measured_from).as_secs_f64());
    Ok(Measured {
        design: name.to_owned(),
        detail: detail(&figures, &result.name),
        fio: fio_report(figures.simulated, &figures.streams, jobs.as_ref(), disks(&figures)),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: figures.host_cores > 0.0,
            load: Vec::new(),
            cores: config.drive.cores,
            memory_share: 1.0,
            lenders_per_busy: 0.0,
        },
        result,
        jobs: jobs.map(|jobs| jobs.in_words()),
        scaling: Vec::new(),
        closed_loop: figures.closed_loop,
        first_end_seconds: first_end.map(|end| (end, window)),
        simulated_seconds: figures.simulated.as_secs_f64(),
    })
}

/// Runs a stack of a scenario and makes no report of its figures.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub fn measure_stack(
    scenario: &Scenario,
    stack: Stack,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<ServerFigures, ScenarioError> {
    figures(scenario, config(scenario, stack)?, None, files, observer)
}

/// The figures of a server under the job files, the traces or the synthetic load of a scenario.
///
/// Errors: as [`run`].
pub(super) fn figures(
    scenario: &Scenario,
    config: ServerConfig,
    jobs: Option<&JobFiles>,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<ServerFigures, ScenarioError> {
    let capacity = config.capacity();
    let (plan, streams) = match jobs {
        Some(jobs) => (jobs.plan(scenario), jobs.streams(scenario, capacity)?),
        None => {
            let plan = load::plan(scenario)?;
            (plan, plan.streams(load::sources(scenario, config.drives, capacity, files)?))
        }
    };
    Server::new(config, plan, streams).map_err(of_server)?.run(observer).map_err(of_server)
}
