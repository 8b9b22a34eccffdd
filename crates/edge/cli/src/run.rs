//! `flashyard run`.

use crate::arguments::{RunOptions, SEED_MAX};
use crate::scenarios::Source;
use crate::{Outcome, out, output, parallel};
use anyhow::{Context, Result, bail};
use flashyard_report::{
    DesignResult, ReportDocument, RunReport, SeededRun, component_tables, explorer_text, extra_tables, html_page,
    over_seeds, run_table, seeds_sentences, seeds_table, split_table, verdict_sentence,
};
use flashyard_scenario::{
    Measured, Overrides, Resolved, Scenario, ScenarioError, Task, document, plan_runs, summarize,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(options: &RunOptions) -> Result<Outcome> {
    let Source { text, origin, files, .. } = Source::open(&options.scenario, options.fio.as_deref())?;
    let mut overrides = Overrides {
        settings: options.set.clone(),
        sweeps: options.sweep.clone(),
        jobs: options.fio.as_deref().map(|jobs| jobs.to_string_lossy().into_owned()),
        ..Overrides::default()
    };
    overrides.settings.extend(options.seed.map(|seed| format!("seed={seed}")));
    let (resolved, tasks) = plan_runs(&text, &origin, &overrides, files)?;
    let scenario = &resolved.scenario;
    let seeds = seeds(scenario, options)?;
    let mut tasks: Vec<(u64, Task<Arc<Scenario>>)> = tasks.into_iter().map(|task| (scenario.seed, task)).collect();
    for &seed in &seeds[1..] {
        let mut overrides = overrides.clone();
        overrides.settings.push(format!("seed={seed}"));
        let (_, more) = plan_runs(&text, &origin, &overrides, files)?;
        tasks.extend(more.into_iter().map(|task| (seed, task)));
    }
    if options.json_fio && options.out.is_none() && tasks.len() != 1 {
        bail!(
            "--json-fio prints one design, not {}; give --set 'designs=[\"{}\"]', or --out DIR for a file of each",
            tasks.len(),
            tasks[0].1.0.name
        );
    }
    // Before a run whose files could not be written.
    if let Some(directory) = &options.out {
        FILES.iter().try_for_each(|name| output::refuse_input(&directory.join(name)))?;
    }
    parallel::catch_interrupt()?;
    let began = Instant::now();
    let run = resolved.room.run().context("runs of this system were planned, and it has none")?;
    let results = parallel::run_each(tasks.len(), options.threads, "designs", |index, observer| {
        let (seed, (design, point, at_point)) = &tasks[index];
        let measured = (run.design)(at_point, &design.name, files, observer)?.at_point(point, resolved.room);
        Ok(Finished::new(*seed, measured, *seed == scenario.seed))
    });
    let (finished, failures) = sorted(&resolved, &tasks, results);
    let (runs, seeded): (Vec<_>, Vec<_>) = finished.into_iter().map(|run| (run.whole, run.seeded)).unzip();
    let runs: Vec<Measured> = runs.into_iter().flatten().collect();
    if let (true, Some((_, error))) = (runs.is_empty(), failures.first()) {
        bail!("{error}");
    }
    let complete = seeded.len() + failures.len() == tasks.len();
    if options.json_fio {
        write_fio(&runs, options)?;
    }
    let report = summarize(scenario, resolved.room, &runs, began.elapsed().as_secs_f64(), complete);
    let over = (seeds.len() > 1).then(|| over_seeds(&report, &seeds, &seeded));
    let report = RunReport { command: command(options), seeds: over, ..report };
    let document = document(run.declaration, report, runs, &resolved.text, env!("CARGO_PKG_VERSION"));
    if let Some(directory) = &options.out {
        write_files(&document, directory)?;
    }
    print_report(&document.report, options)?;
    let broken = broken_laws(&seeded, scenario.seed);
    // Where standard output is for a program, a person reads this beside it.
    let for_program = options.json || options.json_fio;
    broken.iter().for_each(|line| if for_program { eprintln!("{line}") } else { output::line(line) });
    if !failures.is_empty() {
        let told: Vec<String> = failures.iter().map(|(run, error)| format!("{run}: {error}")).collect();
        bail!("{} of {} runs failed:\n  {}", failures.len(), tasks.len(), told.join("\n  "));
    }
    Ok(outcome(complete, &broken))
}

/// The seeds to run, that of the scenario first.
fn seeds(scenario: &Scenario, options: &RunOptions) -> Result<Vec<u64>> {
    let Some(count) = options.seeds else { return Ok(vec![scenario.seed]) };
    if scenario.sweep.contains_key("seed") {
        bail!("--seeds and a sweep of seed say two things; give one of them");
    }
    let last = scenario.seed.checked_add(count - 1).filter(|last| *last <= SEED_MAX);
    let last = last.with_context(|| format!("--seeds {count}: no {count} seeds follow seed {}", scenario.seed))?;
    Ok((scenario.seed..=last).collect())
}

/// A run that was finished: whole where it is shown, and as far as means go by it.
struct Finished {
    whole: Option<Measured>,
    seeded: SeededRun,
}

impl Finished {
    fn new(seed: u64, measured: Measured, is_shown: bool) -> Self {
        let DesignResult { name, figures, laws, .. } = measured.result.clone();
        // Distributions and series of many seeds would fill the memory.
        Self { whole: is_shown.then_some(measured), seeded: SeededRun { name, seed, figures, laws } }
    }
}

/// A line for each run whose figures cannot be trusted; `first` is the seed that goes without saying.
fn broken_laws(runs: &[SeededRun], first: u64) -> Vec<String> {
    let told = |run: &SeededRun| {
        let under = if run.seed == first { String::new() } else { format!(" under seed {}", run.seed) };
        format!("BROKEN LAW in {}{under}: {}", run.name, run.laws.broken.join("; "))
    };
    runs.iter().filter(|run| !run.laws.hold).map(told).collect()
}

fn outcome(complete: bool, broken: &[String]) -> Outcome {
    match (broken, complete) {
        ([_, ..], _) => Outcome::Violated,
        ([], true) => Outcome::Done,
        ([], false) => Outcome::Interrupted,
    }
}

/// A run that failed: its name, and why.
type Failure = (String, String);

/// The runs that were finished, and those that failed; what was interrupted is neither.
fn sorted(
    resolved: &Resolved,
    tasks: &[(u64, Task<Arc<Scenario>>)],
    results: Vec<Option<Result<Finished, ScenarioError>>>,
) -> (Vec<Finished>, Vec<Failure>) {
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for ((seed, (design, point, _)), result) in tasks.iter().zip(results) {
        match result {
            Some(Ok(run)) => runs.push(run),
            None | Some(Err(ScenarioError::Interrupted)) => {}
            Some(Err(error)) => {
                let name = std::iter::once(design.name.as_str()).chain(point.iter().map(String::as_str));
                let under = (*seed != resolved.scenario.seed).then(|| format!("under seed {seed}"));
                let name = name.chain(under.as_deref()).collect::<Vec<_>>().join(" ");
                failures.push((name, resolved.locate(error, point).to_string()));
            }
        }
    }
    (runs, failures)
}

/// Runs at most whose figures are printed one by one; those of a larger sweep are in the files of `--out`.
const ROWS_MAX: usize = 24;

/// Prints the one design in fio's layout, or writes a file for each.
fn write_fio(runs: &[Measured], options: &RunOptions) -> Result<()> {
    for run in runs {
        let text = serde_json::to_string_pretty(&run.fio)?;
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

/// The command line that repeats the run. Where output goes, and on how many threads it ran, changes no result.
fn command(options: &RunOptions) -> String {
    let mut words = vec!["flashyard".to_owned(), "run".to_owned(), options.scenario.display().to_string()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    options.set.iter().for_each(|setting| option("--set", setting.clone()));
    options.sweep.iter().for_each(|sweep| option("--sweep", sweep.clone()));
    options.fio.iter().for_each(|file| option("--fio", file.display().to_string()));
    options.seed.iter().for_each(|seed| option("--seed", seed.to_string()));
    options.seeds.iter().for_each(|seeds| option("--seeds", seeds.to_string()));
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn print_report(report: &RunReport, options: &RunOptions) -> Result<()> {
    if options.json {
        output::json(&serde_json::to_value(report)?);
    }
    if options.json || options.json_fio {
        return Ok(());
    }
    let title = if report.title.is_empty() { String::new() } else { format!(": {}", report.title) };
    output::line(&format!("{}{title}, seed {}", report.scenario, report.seed));
    output::line(&format!("workload: {}", report.workload));
    report.scaling.iter().for_each(|note| output::line(&format!("scaling: {note}")));
    let width = output::width();
    if let Some(seeds) = report.seeds.as_ref().filter(|_| report.designs.len() <= ROWS_MAX) {
        let last = seeds.seeds.last().unwrap_or(&report.seed);
        output::line(&format!("means over seeds {} to {last}, ± half of a 95 % confidence interval:", report.seed));
        output::line(&seeds_table(report, seeds, width));
        seeds_sentences(seeds).iter().for_each(|line| output::line(line));
        output::line(&format!("seed {} alone:", report.seed));
    }
    if report.designs.len() <= ROWS_MAX {
        output::line(&run_table(report, width));
        if let Some(verdict) = verdict_sentence(report).filter(|_| report.seeds.is_none()) {
            output::line(&verdict);
        }
        report.notes.iter().for_each(|note| output::line(note));
        output::line("where the time of a request goes, us; near p99 is the mean of the requests about there:");
        output::line(&split_table(report, width));
    }
    for (about, table) in component_tables(report, width).into_iter().chain(extra_tables(report, width)) {
        output::line(about);
        output::line(&table);
    }
    if let Some(text) = report.explorer.as_ref().and_then(|explorer| explorer_text(explorer, width)) {
        output::line(&text);
    }
    output::line(&format!("simulated {:.3} s in {:.2} s of wall time", report.simulated_seconds, report.wall_seconds));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::tests::document;

    #[test]
    fn the_command_of_a_report_is_one_that_a_shell_takes() {
        let options = RunOptions {
            scenario: "my scenario.toml".into(),
            set: vec!["designs=[\"conv\"]".to_owned(), "run.warmup=0 ms".to_owned()],
            sweep: vec!["drive.cores=2,6".to_owned()],
            fio: Some("it's.fio".into()),
            seed: Some(7),
            out: Some("elsewhere".into()),
            json: true,
            json_fio: false,
            seeds: Some(3),
            threads: Some(2),
        };
        let expected = r#"flashyard run 'my scenario.toml' --set 'designs=["conv"]' --set 'run.warmup=0 ms' --sweep drive.cores=2,6 --fio 'it'\''s.fio' --seed 7 --seeds 3"#;
        assert_eq!(command(&options), expected);
    }

    #[test]
    fn a_broken_law_is_printed_and_is_not_a_success() {
        let report = document(&["conv", "xbof", "xbof"]).report;
        let run = |(seed, design): (u64, &DesignResult)| {
            let DesignResult { name, figures, laws, .. } = design.clone();
            SeededRun { name, seed, figures, laws }
        };
        let mut runs: Vec<SeededRun> = [7, 7, 8].into_iter().zip(&report.designs).map(run).collect();
        assert_eq!(broken_laws(&runs, 7), Vec::<String>::new());
        for run in &mut runs[1..] {
            run.laws.hold = false;
            run.laws.broken = vec!["bytes: 1 against 2".to_owned(), "time: 3 against 4".to_owned()];
        }
        let broken = broken_laws(&runs, 7);
        let told = "bytes: 1 against 2; time: 3 against 4";
        assert_eq!(broken, [format!("BROKEN LAW in xbof: {told}"), format!("BROKEN LAW in xbof under seed 8: {told}")]);
        assert_eq!([outcome(true, &broken), outcome(false, &broken)], [Outcome::Violated; 2]);
        assert_eq!([outcome(true, &[]), outcome(false, &[])], [Outcome::Done, Outcome::Interrupted]);
    }
}
