//! `flashyard run`.

use crate::arguments::RunOptions;
use crate::scenarios::Source;
use crate::{Outcome, out, output, parallel};
use anyhow::{Context, Result, bail};
use flashyard_report::{
    ReportDocument, RunReport, explorer_text, html_page, lending_table, run_table, split_table, verdict_sentence,
    wear_table,
};
use flashyard_scenario::{
    DesignRun, Overrides, ScenarioError, document, fio_report, resolve_with, run_design, summarize, tasks,
};
use flashyard_systems::jbof::JbofError;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(options: &RunOptions) -> Result<Outcome> {
    let Source { text, origin, files, .. } = Source::open(&options.scenario, options.fio.as_deref())?;
    let mut overrides = Overrides {
        settings: options.set.clone(),
        sweeps: options.sweep.clone(),
        jobs: options.fio.as_deref().map(|jobs| jobs.to_string_lossy().into_owned()),
    };
    overrides.settings.extend(options.seed.map(|seed| format!("seed={seed}")));
    let resolved = resolve_with(&text, &origin, &overrides, files)?;
    let scenario = &resolved.scenario;
    let tasks = tasks(scenario, |point| {
        let mut here = overrides.clone();
        here.settings.extend(point.iter().cloned());
        let at_point = resolve_with(&text, &origin, &here, files)?.scenario;
        Ok((at_point.design_list()?, Arc::new(at_point)))
    })?;
    if options.json_fio && options.out.is_none() && tasks.len() != 1 {
        bail!(
            "--json-fio prints one design, not {}; give --set 'designs=[\"{}\"]', or --out DIR for a file of each",
            tasks.len(),
            tasks[0].0.name()
        );
    }
    // Before a run whose files could not be written.
    if let Some(directory) = &options.out {
        FILES.iter().try_for_each(|name| output::refuse_input(&directory.join(name)))?;
    }
    parallel::catch_interrupt()?;
    let began = Instant::now();
    let results = parallel::run_all(tasks.len(), options.threads, "designs", |index, observer| {
        let (design, point, at_point) = &tasks[index];
        Ok(run_design(at_point, *design, files, observer)?.at_point(point))
    });
    let mut runs = Vec::new();
    for result in results.into_iter().flatten() {
        match result {
            Ok(run) => runs.push(run),
            Err(ScenarioError::World(JbofError::Interrupted)) => {}
            Err(error) => return Err(error).with_context(|| origin.clone()),
        }
    }
    let complete = runs.len() == tasks.len();
    if options.json_fio {
        write_fio(&runs, options)?;
    }
    let report = summarize(scenario, &runs, began.elapsed().as_secs_f64(), complete);
    let document = document(report, &runs, &resolved.text, env!("CARGO_PKG_VERSION"));
    if let Some(directory) = &options.out {
        write_files(&document, directory)?;
    }
    print_report(&document.report, options)?;
    Ok(if complete { Outcome::Done } else { Outcome::Interrupted })
}

/// Runs at most whose figures are printed one by one; those of a larger sweep are in the files of `--out`.
const ROWS_MAX: usize = 24;

/// Prints the one design in fio's layout, or writes a file for each.
fn write_fio(runs: &[DesignRun], options: &RunOptions) -> Result<()> {
    for run in runs {
        let text = serde_json::to_string_pretty(&fio_report(run))?;
        match &options.out {
            Some(directory) => {
                output::write_file(directory, &format!("fio-{}.json", run.result.name), &format!("{text}\n"))?
            }
            None => output::line(&text),
        }
    }
    Ok(())
}

/// Files of `--out` that could be what a scenario is read from.
const FILES: [&str; 3] = ["report.json", "resolved.toml", "report.html"];

/// The files of `--out`: page, figures, tables and the scenario that made them.
fn write_files(document: &ReportDocument, directory: &Path) -> Result<()> {
    let value = serde_json::to_value(&document.report)?;
    output::write_file(directory, FILES[0], &format!("{value:#}\n"))?;
    output::write_file(directory, FILES[1], &document.resolved)?;
    output::write_file(directory, FILES[2], &html_page(document)?)?;
    out::write_parquet(directory, document)
}

fn print_report(report: &RunReport, options: &RunOptions) -> Result<()> {
    if options.json {
        output::json(&serde_json::to_value(report)?);
    }
    if options.json || options.json_fio {
        return Ok(());
    }
    output::line(&format!("{}, seed {}", report.scenario, report.seed));
    output::line(&format!("workload: {}", report.workload));
    report.scaling.iter().for_each(|note| output::line(&format!("scaling: {note}")));
    if report.designs.len() <= ROWS_MAX {
        output::line(&run_table(report));
        output::line(&verdict_sentence(report));
        output::line("where the time of a request goes, us:");
        output::line(&split_table(report));
    }
    if let Some(table) = lending_table(report) {
        output::line("what lending did; others are busy drives that borrow nothing:");
        output::line(&table);
    }
    if let Some(table) = wear_table(report) {
        output::line("what wear has made of the busy drives and of reading them:");
        output::line(&table);
    }
    if let Some(explorer) = &report.explorer {
        output::line(&explorer_text(explorer));
    }
    for design in report.designs.iter().filter(|design| !design.laws.hold) {
        output::line(&format!("BROKEN LAW in {}: {}", design.name, design.laws.broken.join("; ")));
    }
    output::line(&format!("simulated {:.3} s in {:.2} s of wall time", report.simulated_seconds, report.wall_seconds));
    Ok(())
}
