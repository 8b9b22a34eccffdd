//! Runs one design of a scenario.

use super::design_called;
use super::result::{detail, disks, result};
use super::section::{config, of_mirror};
use crate::Mirror;
use flashyard_describe::{Files, JobFiles, Measured, Observer, Scenario, ScenarioError, fio_report, load};
use flashyard_measure::Source;
use flashyard_report::Equipment;

/// Makes the seed of warming another one than that of the run.
const WARMING_SEED: u64 = 0x5741_524D;

/// Runs the design called `name` of a scenario. `observer` hears of progress and may stop the run.
///
/// Errors: values outside their ranges, sources that fail, an observer that stops.
pub(super) fn run(
    scenario: &Scenario,
    name: &str,
    files: &'static dyn Files,
    observer: Observer<'_>,
) -> Result<Measured, ScenarioError> {
    let config = config(scenario, design_called(name)?)?;
    let capacity = config.capacity();
    let jobs = JobFiles::load(scenario, 1, files)?;
    let (plan, streams) = match &jobs {
        Some(jobs) => (jobs.plan(scenario), jobs.streams(scenario, capacity)?),
        None => {
            let plan = load::plan(scenario)?;
            (plan, plan.streams(load::sources(scenario, 1, capacity, files)?))
        }
    };
    let mut mirror = Mirror::with_streams(config, plan, streams).map_err(of_mirror)?;
    if scenario.run.warm_mapping_requests > 0 {
        let source = warming_source(scenario, jobs.as_ref(), capacity, files)?;
        mirror.warm_mapping(source, scenario.run.warm_mapping_requests).map_err(of_mirror)?;
    }
    let figures = mirror.run(observer).map_err(of_mirror)?;
    let result = result(&figures);
    let window = figures.window.as_secs_f64();
    let first_end = figures.first_end.map(|end| end.since(figures.measured_from).as_secs_f64());
    Ok(Measured {
        design: name.to_owned(),
        detail: detail(&figures, &result.name),
        fio: fio_report(figures.simulated, &figures.streams, jobs.as_ref(), disks(&figures)),
        equipment: Equipment {
            design: name.to_owned(),
            computes_on_host: false,
            load: Vec::new(),
            cores: config.drives.iter().map(|drive| drive.cores).sum(),
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

/// A source that warms mapping caches: the same description with other random numbers, a trace at most once.
fn warming_source(
    scenario: &Scenario,
    jobs: Option<&JobFiles>,
    capacity: u64,
    files: &'static dyn Files,
) -> Result<Source, ScenarioError> {
    let mut warming = scenario.clone();
    warming.seed ^= WARMING_SEED;
    warming.workload.repetitions = Some(1);
    let mut sources = match jobs {
        Some(jobs) => jobs.warming_sources(&warming, capacity)?,
        None => load::sources(&warming, 1, capacity, files)?,
    };
    sources.pop().ok_or_else(|| ScenarioError::value("workload", "there is nothing to warm with"))
}
