//! `flashyard run`.

use crate::arguments::RunOptions;
use crate::parallel::Terminal;
use crate::{Outcome, output, parallel};
use anyhow::{Error, Result, anyhow, bail};
use flashyard_report::{FioReport, RunReport};
use flashyard_workbench::{
    RunPlan, RunRequest, RunResults, Source, prepare_directory, refuse_run_directory, run_text, write_file, write_run,
};
use std::path::Path;

pub(crate) fn run(options: &RunOptions) -> Result<Outcome> {
    let source = Source::open(&options.scenario, options.fio.as_deref())?;
    let request = request(options);
    let plan = RunPlan::new(&source, &request).map_err(|error| meant_for(error.into(), &options.scenario))?;
    if options.json_fio && options.out.is_none() && plan.runs() != 1 {
        bail!(
            "--json-fio prints one design, not {}; give --set 'designs=[\"{}\"]', or --out DIR for a file of each",
            plan.runs(),
            plan.first_design()
        );
    }
    // Before a run whose files could not be written.
    if let Some(directory) = &options.out {
        refuse_run_directory(directory)?;
        prepare_directory(directory)?;
    }
    parallel::catch_interrupt()?;
    let command = request.command(&options.scenario);
    let results = plan.carry_out(options.threads, &Terminal::default(), env!("CARGO_PKG_VERSION"), command)?;
    // The report is told also where it cannot be written.
    let written = write_files(&results, options);
    print_report(&results.document.report, options)?;
    // Where standard output is for a program, a person reads this beside it.
    let for_program = options.json || options.json_fio;
    let broken = &results.broken_laws;
    broken.iter().for_each(|line| if for_program { eprintln!("{line}") } else { output::line(line) });
    written?;
    if !results.failures.is_empty() {
        let told: Vec<String> =
            results.failures.iter().map(|failure| format!("{}: {}", failure.run, failure.error)).collect();
        bail!("{} of {} runs failed:\n  {}", told.len(), plan.runs(), told.join("\n  "));
    }
    Ok(outcome(results.complete, broken))
}

/// Carried scenarios whose keys other commands read, and these.
const FOR_OTHERS: [(&str, &str); 2] = [("live", "flashyard serve live"), ("faults", "flashyard faults")];

/// Says beside an error what to run, where a carried scenario is not for runs.
fn meant_for(error: Error, scenario: &Path) -> Error {
    match FOR_OTHERS.iter().find(|(name, _)| scenario == Path::new(name)) {
        Some((name, command)) => anyhow!("{}; the scenario {name} is for `{command}`", output::told(&error)),
        None => error,
    }
}

fn outcome(complete: bool, broken: &[String]) -> Outcome {
    match (broken, complete) {
        ([_, ..], _) => Outcome::Violated,
        ([], true) => Outcome::Done,
        ([], false) => Outcome::Interrupted,
    }
}

/// Where output goes, and on how many threads it ran, changes no result.
fn request(options: &RunOptions) -> RunRequest {
    RunRequest {
        settings: options.set.clone(),
        sweeps: options.sweep.clone(),
        jobs: options.fio.clone(),
        seed: options.seed,
        seeds: options.seeds,
    }
}

/// Writes the files of `--out`, and those in fio's layout.
fn write_files(results: &RunResults, options: &RunOptions) -> Result<()> {
    if let Some(directory) = &options.out {
        write_run(directory, &results.document)?;
    }
    if options.json_fio { write_fio(&results.fio, options) } else { Ok(()) }
}

/// Prints the one design in fio's layout, or writes a file for each.
fn write_fio(runs: &[(String, FioReport)], options: &RunOptions) -> Result<()> {
    for (name, run) in runs {
        let text = serde_json::to_string_pretty(run)?;
        match &options.out {
            Some(directory) => write_file(directory, &fio_file(name), &format!("{text}\n"))?,
            None => output::line(&text),
        }
    }
    Ok(())
}

/// The file of a run in fio's layout. A swept value may be a path, and names stay different from each other.
fn fio_file(name: &str) -> String {
    format!("fio-{}.json", name.replace('%', "%25").replace('/', "%2F"))
}

fn print_report(report: &RunReport, options: &RunOptions) -> Result<()> {
    if options.json {
        output::json(&serde_json::to_value(report)?);
    }
    if !options.json && !options.json_fio {
        run_text(report, output::width()).iter().for_each(|paragraph| output::line(paragraph));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_fios_layout_stays_in_its_directory() {
        let names = ["xbof depth=4", "conv trace=../a.csv", "conv trace=..%2Fa.csv"].map(fio_file);
        assert_eq!(names[0], "fio-xbof depth=4.json");
        assert!(names.iter().all(|name| !name.contains('/')) && names[1] != names[2], "{names:?}");
    }

    #[test]
    fn a_broken_law_is_no_success_and_an_end_before_the_last_run_is_said() {
        let broken = ["BROKEN LAW in xbof: bytes: 1 against 2".to_owned()];
        assert_eq!([outcome(true, &broken), outcome(false, &broken)], [Outcome::Violated; 2]);
        assert_eq!([outcome(true, &[]), outcome(false, &[])], [Outcome::Done, Outcome::Interrupted]);
    }
}
