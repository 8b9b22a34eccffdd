//! Runs of a scenario: its designs, at the points of its sweep, under one seed or several.

use crate::parallel::{Watch, run_each};
use crate::scenarios::Source;
use crate::{DiskFiles, WorkbenchError};
use flashyard_report::{DesignResult, FailedRun, FioReport, ReportDocument, RunReport, SeededRun, over_seeds};
use flashyard_scenario::{
    Measured, Overrides, Resolved, Run, Scenario, ScenarioError, Task, document, plan_runs, summarize, with_emission,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The largest seed: a scenario file has no larger whole numbers.
pub const SEED_MAX: u64 = i64::MAX as u64;

/// Changes to a scenario, and seeds.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// Keys that are set, as `section.key=value`.
    pub settings: Vec<String>,
    /// Axes of a sweep, as `section.key=value,value`.
    pub sweeps: Vec<String>,
    /// A job file of fio in place of the scenario's workload.
    pub jobs: Option<PathBuf>,
    /// The seed in place of the scenario's.
    pub seed: Option<u64>,
    /// So many seeds, from that one on.
    pub seeds: Option<u64>,
}

impl RunRequest {
    /// The command line that asks for this of a scenario.
    pub fn command(&self, scenario: &Path) -> String {
        let mut words = vec!["flashyard".to_owned(), "run".to_owned(), scenario.display().to_string()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        self.settings.iter().for_each(|setting| option("--set", setting.clone()));
        self.sweeps.iter().for_each(|sweep| option("--sweep", sweep.clone()));
        self.jobs.iter().for_each(|file| option("--fio", file.display().to_string()));
        self.seed.iter().for_each(|seed| option("--seed", seed.to_string()));
        self.seeds.iter().for_each(|seeds| option("--seeds", seeds.to_string()));
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A scenario and the runs that are to be carried out.
pub struct RunPlan {
    resolved: Resolved,
    run: Run,
    files: &'static DiskFiles,
    seeds: Vec<u64>,
    tasks: Vec<(u64, Task<Arc<Scenario>>)>,
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct RunFailure {
    /// Its design, point and, beside other seeds than the first, its seed.
    pub run: String,
    /// Its error, with file and line.
    pub error: String,
}

/// Results of runs.
pub struct RunResults {
    /// The report with all of its tables.
    pub document: ReportDocument,
    /// Each run as fio would print it, by its name.
    pub fio: Vec<(String, FioReport)>,
    /// Runs that failed.
    pub failures: Vec<RunFailure>,
    /// A line for each run whose figures cannot be trusted.
    pub broken_laws: Vec<String>,
    /// Whether every run has ended, in success or not; false where its watcher stopped it.
    pub complete: bool,
}

impl RunPlan {
    /// Reads a scenario and says what to run.
    ///
    /// Errors: a mistake in it or in the request; a key that none of the runs uses; a system that is not run.
    pub fn new(source: &Source, request: &RunRequest) -> Result<Self, WorkbenchError> {
        let files = source.files;
        let mut overrides = Overrides {
            settings: request.settings.clone(),
            sweeps: request.sweeps.clone(),
            jobs: request.jobs.as_deref().map(|jobs| jobs.to_string_lossy().into_owned()),
            ..Overrides::default()
        };
        overrides.settings.extend(request.seed.map(|seed| format!("seed={seed}")));
        let (resolved, tasks) = plan_runs(&source.text, &source.origin, &overrides, files)?;
        let first = resolved.scenario.seed;
        let seeds = seeds(&resolved.scenario, request.seeds)?;
        let mut tasks: Vec<(u64, Task<Arc<Scenario>>)> = tasks.into_iter().map(|task| (first, task)).collect();
        for &seed in &seeds[1..] {
            let mut overrides = overrides.clone();
            overrides.settings.push(format!("seed={seed}"));
            let (_, more) = plan_runs(&source.text, &source.origin, &overrides, files)?;
            tasks.extend(more.into_iter().map(|task| (seed, task)));
        }
        let none = || ScenarioError::Program("runs of this system were planned, and it has none".to_owned());
        let run = resolved.room.run().ok_or_else(none)?;
        Ok(Self { resolved, run, files, seeds, tasks })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.tasks.len()
    }

    /// The design that is run first.
    pub fn first_design(&self) -> &str {
        &self.tasks[0].1.0.name
    }

    /// Carries the runs out on `threads` threads, all cores without it. `version` is that of the caller's program; `command` repeats the
    /// runs, if a command does.
    ///
    /// Errors: the error of the first run where none came to an end.
    pub fn carry_out(
        &self,
        threads: Option<usize>,
        watch: &dyn Watch,
        version: &str,
        command: String,
    ) -> Result<RunResults, WorkbenchError> {
        let scenario = &self.resolved.scenario;
        let began = Instant::now();
        let results = run_each(self.tasks.len(), threads, "designs", watch, |index, observer| {
            let (seed, (design, point, at_point)) = &self.tasks[index];
            let measured = (self.run.design)(at_point, &design.name, self.files, observer)?;
            let measured = with_emission(at_point, self.resolved.room, measured)?.at_point(point, self.resolved.room);
            Ok(Finished::new(*seed, measured, *seed == scenario.seed))
        });
        let (finished, mut failures) = self.sorted(results);
        let (runs, seeded): (Vec<_>, Vec<_>) = finished.into_iter().map(|run| (run.whole, run.seeded)).unzip();
        let runs: Vec<Measured> = runs.into_iter().flatten().collect();
        if runs.is_empty() && !failures.is_empty() {
            return Err(failures.swap_remove(0).1.into());
        }
        let failures: Vec<RunFailure> =
            failures.into_iter().map(|(run, error)| RunFailure { run, error: error.to_string() }).collect();
        let complete = seeded.len() + failures.len() == self.tasks.len();
        let fio = runs.iter().map(|run| (run.result.name.clone(), run.fio.clone())).collect();
        let wall_seconds = began.elapsed().as_secs_f64();
        let is_whole = complete && failures.is_empty();
        let report = summarize(scenario, self.resolved.room, &runs, wall_seconds, is_whole);
        let over = (self.seeds.len() > 1).then(|| over_seeds(&report, &self.seeds, &seeded));
        let told = |failure: &RunFailure| FailedRun { run: failure.run.clone(), error: failure.error.clone() };
        let failed = failures.iter().map(told).collect();
        let report = RunReport { command, seeds: over, failed, interrupted: !complete, ..report };
        Ok(RunResults {
            document: document(self.run.declaration, report, runs, &self.resolved.placed(self.files), version),
            fio,
            failures,
            broken_laws: broken_laws(&seeded, scenario.seed),
            complete,
        })
    }

    /// The runs that were finished, and those that failed; what was interrupted is neither.
    fn sorted(
        &self,
        results: Vec<Option<Result<Finished, ScenarioError>>>,
    ) -> (Vec<Finished>, Vec<(String, ScenarioError)>) {
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for ((seed, (design, point, _)), result) in self.tasks.iter().zip(results) {
            match result {
                Some(Ok(run)) => runs.push(run),
                None | Some(Err(ScenarioError::Interrupted)) => {}
                Some(Err(error)) => {
                    let name = std::iter::once(design.name.as_str()).chain(point.iter().map(String::as_str));
                    let under = (*seed != self.resolved.scenario.seed).then(|| format!("under seed {seed}"));
                    let name = name.chain(under.as_deref()).collect::<Vec<_>>().join(" ");
                    failures.push((name, self.resolved.locate(error, point)));
                }
            }
        }
        (runs, failures)
    }
}

/// The seeds to run, that of the scenario first.
fn seeds(scenario: &Scenario, count: Option<u64>) -> Result<Vec<u64>, WorkbenchError> {
    let seed = scenario.seed;
    let Some(count) = count else { return Ok(vec![seed]) };
    if scenario.sweep.contains_key("seed") {
        return Err(WorkbenchError::SeedsTwice);
    }
    let too_many = WorkbenchError::TooManySeeds { count, seed };
    let last = count.checked_sub(1).and_then(|more| seed.checked_add(more)).filter(|last| *last <= SEED_MAX);
    Ok((seed..=last.ok_or(too_many)?).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::tests::Unwatched;
    use flashyard_report::{Figures, Laws};

    /// The shortest run that is one.
    fn request(designs: &str) -> RunRequest {
        let settings = [&format!("designs=[{designs}]"), "run.warmup=\"1 ms\"", "run.measure=\"2 ms\""];
        RunRequest { settings: settings.map(str::to_owned).into(), ..RunRequest::default() }
    }

    fn report(request: &RunRequest, threads: usize) -> String {
        let source = Source::open(Path::new("demo"), None).expect("it is carried");
        let plan = RunPlan::new(&source, request).expect("it is right");
        let mut results = plan.carry_out(Some(threads), &Unwatched, "1", String::new()).expect("it runs");
        assert!(results.complete && results.failures.is_empty() && results.broken_laws.is_empty());
        results.document.report.wall_seconds = 0.0;
        serde_json::to_string(&results.document.report).expect("it is plain data")
    }

    #[test]
    fn the_number_of_threads_changes_no_byte() {
        let request = RunRequest { seeds: Some(2), ..request("\"conv\",\"xbof\"") };
        assert_eq!(report(&request, 1), report(&request, 4));
    }

    #[test]
    fn the_command_of_a_report_is_one_that_a_shell_takes() {
        let request = RunRequest {
            settings: vec!["designs=[\"conv\"]".to_owned(), "run.warmup=0 ms".to_owned()],
            sweeps: vec!["drive.cores=2,6".to_owned()],
            jobs: Some("it's.fio".into()),
            seed: Some(7),
            seeds: Some(3),
        };
        let expected = r#"flashyard run 'my scenario.toml' --set 'designs=["conv"]' --set 'run.warmup=0 ms' --sweep drive.cores=2,6 --fio 'it'\''s.fio' --seed 7 --seeds 3"#;
        assert_eq!(request.command(Path::new("my scenario.toml")), expected);
    }

    #[test]
    fn a_broken_law_is_told_with_its_run() {
        let run = |seed: u64, broken: &[&str]| SeededRun {
            name: "xbof".to_owned(),
            seed,
            figures: Figures::default(),
            laws: Laws { hold: broken.is_empty(), broken: broken.iter().map(|law| (*law).to_owned()).collect() },
        };
        let laws = ["bytes: 1 against 2", "time: 3 against 4"];
        let told = "bytes: 1 against 2; time: 3 against 4";
        assert_eq!(
            broken_laws(&[run(7, &[]), run(7, &laws), run(8, &laws)], 7),
            [format!("BROKEN LAW in xbof: {told}"), format!("BROKEN LAW in xbof under seed 8: {told}")]
        );
    }

    #[test]
    fn mistakes_have_their_place() {
        let source = Source::open(Path::new("demo"), None).expect("it is carried");
        let told = |request: &RunRequest| RunPlan::new(&source, request).err().expect("it is wrong").to_string();
        assert!(told(&request("\"convx\"")).contains("convx"), "{}", told(&request("\"convx\"")));
        let twice = RunRequest { seeds: Some(2), sweeps: vec!["seed=1,2".to_owned()], ..request("\"conv\"") };
        assert!(told(&twice).contains("say two things"));
        let beyond = RunRequest { seeds: Some(2), seed: Some(SEED_MAX), ..request("\"conv\"") };
        assert!(told(&beyond).contains("no 2 seeds follow"), "{}", told(&beyond));
        assert!(RunPlan::new(&source, &RunRequest { seeds: Some(0), ..request("\"conv\"") }).is_err());
    }
}
