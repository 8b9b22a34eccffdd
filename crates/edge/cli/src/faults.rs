//! `flashyard faults`.

use crate::arguments::FaultsOptions;
use crate::{Outcome, output, parallel};
use anyhow::{Result, ensure};
use flashyard_faults::{Case, Explorer, Fault, FaultPlan, Limits, Outcome as RunOutcome, Report, World, shrink};
use flashyard_scenario::{
    AnyWorld, FaultWorld, MadeOf, Overrides, Purpose, SYSTEMS, Scenario, ScenarioError, resolve_with,
};
use flashyard_workbench::Panicked;
use flashyard_workbench::Source;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

/// Runs that one thread does in a row: a run may take microseconds.
const RUNS_TOGETHER: usize = 32;
/// Failing cases that are shrunk and shown; the others are counted.
const SHOWN: usize = 4;
/// Runs that shrinking one case may take.
const SHRINK_RUNS: u64 = 10_000;

/// A function that makes a world of a scenario.
type Make = fn(&Scenario) -> Result<AnyWorld, ScenarioError>;

/// The world of the scenario that the command line names, or of the one carried as `carried`.
fn of_scenario(options: &FaultsOptions, world: &str, carried: &str, make: Make) -> Result<AnyWorld> {
    let Source { text, origin, files, .. } =
        Source::open(options.scenario.as_deref().unwrap_or(Path::new(carried)), None)?;
    let overrides = Overrides { settings: options.set.clone(), ..Overrides::default() };
    let resolved = resolve_with(&text, &origin, &overrides, files)?;
    let own = resolved.room.world().map(|world| world.name);
    ensure!(
        own == Some(world),
        "{origin}: the scenario is of {}, and --world {world} is of another system{}",
        resolved.room.name(),
        own.map_or(String::new(), |own| format!("; give --world {own}"))
    );
    resolved.refuse_idle_flags(Purpose::Faults)?;
    make(&resolved.scenario).map_err(|error| resolved.locate(error, &[]).into())
}

pub(crate) fn faults(options: &FaultsOptions) -> Result<Outcome> {
    let FaultWorld { name, made_of, .. } = SYSTEMS.fault_world(&options.world)?;
    let world = match made_of {
        MadeOf::Scenario { carried, make } => of_scenario(options, name, carried, make)?,
        MadeOf::Nothing(make) => {
            ensure!(options.scenario.is_none() && options.set.is_empty(), "--world {name} takes no scenario");
            make()
        }
    };
    break_it(&*world, options)
}

fn break_it(world: &(dyn World + Sync), options: &FaultsOptions) -> Result<Outcome> {
    if let Some(case) = &options.replay {
        check_plan(world, case)?;
        return Ok(replay(world, case));
    }
    parallel::catch_interrupt()?;
    // Panics are findings here: thousands of them would bury the report. `--replay` shows one in full.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = explore_and_shrink(&Guarded(world), options);
    std::panic::set_hook(hook);
    Ok(outcome)
}

fn explore_and_shrink(world: &(impl World + Sync), options: &FaultsOptions) -> Outcome {
    let base = Case { seed: options.seed, size: options.size, plan: FaultPlan::NONE };
    let limits = Limits { points: options.points, failures_kept: SHOWN, ..Limits::default() };
    let began = Instant::now();
    let report = explore(world, base, limits, options.threads);
    let seconds = began.elapsed().as_secs_f64();
    output::line(&report.to_string());
    output::line(&format!("{:.0} points a second, {seconds:.1} s", report.points() as f64 / seconds.max(1e-9)));
    for shrunk in shrink_all(world, &report, options.threads) {
        output::line(&shrunk);
    }
    match (report.is_complete(), report.violations()) {
        (false, _) => Outcome::Interrupted,
        (true, 0) => Outcome::Done,
        (true, _) => Outcome::Violated,
    }
}

/// Explores on several threads; the report does not depend on their number.
fn explore(world: &(impl World + Sync), base: Case, limits: Limits, threads: Option<usize>) -> Report {
    let mut explorer = Explorer::new(world.name(), world.faults(), base, limits);
    while !explorer.jobs().is_empty() {
        let jobs: Vec<&[Case]> = explorer.jobs().chunks(RUNS_TOGETHER).collect();
        let results = parallel::run_all(jobs.len(), threads, explorer.stage(), |index, observer| {
            let together = jobs[index].len() as f64;
            let goes_on = |done: usize, observer: &mut dyn FnMut(f64) -> bool| observer(done as f64 / together);
            let each = jobs[index].iter().enumerate();
            let outcomes = each.map_while(|(done, case)| goes_on(done, observer).then(|| world.run(case))).collect();
            goes_on(jobs[index].len(), observer);
            Ok::<Vec<RunOutcome>, Panicked>(outcomes)
        });
        // Ctrl-C leaves gaps: what comes after the first one is not told, so that the report is that of a prefix.
        let mut outcomes = Vec::new();
        for (jobs, result) in jobs.iter().zip(results) {
            let Some(Ok(done)) = result else { break };
            let whole = done.len() == jobs.len();
            outcomes.extend(done);
            if !whole {
                break;
            }
        }
        explorer.absorb(outcomes);
    }
    explorer.report().clone()
}

/// The smallest case for each failure, as text; equal ones once.
fn shrink_all(world: &(impl World + Sync), report: &Report, threads: Option<usize>) -> Vec<String> {
    let failures = report.failures();
    let shrunk = parallel::run_all(failures.len(), threads, "shrinking", |index, _| {
        Ok::<_, Panicked>(shrink(world, &failures[index].case, SHRINK_RUNS))
    });
    let mut cases = Vec::new();
    let mut texts = Vec::new();
    for shrunk in shrunk.into_iter().flatten().flatten().flatten() {
        if !cases.contains(&shrunk.failure.case) {
            texts.push(shrunk.to_string());
            cases.push(shrunk.failure.case);
        }
    }
    texts
}

/// Errors: a fault of a kind that the world does not know, or of a drive that it does not have.
fn check_plan(world: &(dyn World + Sync), case: &Case) -> Result<()> {
    let known = world.faults();
    let last = known.iter().filter_map(Fault::drive).max().unwrap_or_default();
    for (number, (_, fault)) in (1..).zip(&case.plan.faults) {
        let kind = fault.kind();
        let kinds: BTreeSet<_> = known.iter().map(Fault::kind).collect();
        ensure!(
            kinds.contains(kind),
            "--replay, fault {number}: {} has no fault {kind:?}; it has {}",
            world.name(),
            kinds.into_iter().collect::<Vec<_>>().join(", ")
        );
        if let Some(drive) = fault.drive() {
            ensure!(drive <= last, "--replay, fault {number}: there is no drive {drive}, give 0 to {last}");
        }
    }
    Ok(())
}

/// Runs one case and tells all about it.
fn replay(world: &(dyn World + Sync), case: &Case) -> Outcome {
    let outcome = Guarded(world).run(case);
    output::line(&format!("{}, {case}: {} events", world.name(), outcome.events));
    for ((_, fault), event) in case.plan.faults.iter().zip(&outcome.taken) {
        output::line(&format!("{} took effect before event {event}", fault.kind()));
    }
    for range in &outcome.recoveries {
        output::line(&format!("recovery: events {} to {}", range.start, range.end.saturating_sub(1)));
    }
    for (name, count) in &outcome.counters {
        output::line(&format!("{name}: {count}"));
    }
    match outcome.violation {
        Some(violation) => {
            output::line(&format!("violation: {violation}"));
            Outcome::Violated
        }
        None => {
            output::line("no violation");
            Outcome::Done
        }
    }
}

/// A world whose panics are violations: a broken assertion of a model is a finding, with its replay text.
struct Guarded<'a, W: World + ?Sized>(&'a W);

impl<W: World + ?Sized> World for Guarded<'_, W> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn faults(&self) -> Vec<Fault> {
        self.0.faults()
    }

    fn size(&self) -> u32 {
        self.0.size()
    }

    fn run(&self, case: &Case) -> RunOutcome {
        // A run owns all that it changes, so nothing half changed outlives it.
        catch_unwind(AssertUnwindSafe(|| self.0.run(case))).unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            RunOutcome { violation: Some(format!("panic: {text}")), ..RunOutcome::default() }
        })
    }
}

#[cfg(test)]
mod tests;
