//! All tests of the workspace, several programs at a time: many wait for servers and clocks, and leave processors idle.

use std::collections::VecDeque;
use std::io::BufReader;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cargo_metadata::Message;

use crate::Repository;

/// A built program of tests.
struct TestProgram {
    /// The names of its package and of its target, as cargo has them.
    name: String,
    file: PathBuf,
    /// Directory of its package, where cargo runs it.
    directory: PathBuf,
}

/// Builds all tests, runs their programs and then the tests in documentation. A line for each program that passes, everything it
/// printed for one that fails.
///
/// Errors: tests that do not compile, a program that cannot be started.
pub fn run_tests(repository: &Repository) -> Result<bool> {
    let programs = build(&repository.root)?;
    let jobs = thread::available_parallelism().map_or(2, NonZero::get) + 1;
    let failed = run_all(programs, jobs)?;
    let documented =
        cargo().args(["test", "--workspace", "--doc", "--quiet"]).current_dir(&repository.root).status()?;
    for name in &failed {
        println!("FAILED {name}");
    }
    Ok(failed.is_empty() && documented.success())
}

/// The cargo that runs us.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn build(root: &Path) -> Result<VecDeque<TestProgram>> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let mut child = command.current_dir(root).stdout(Stdio::piped()).spawn().context("cargo cannot be run")?;
    let messages = child.stdout.take().context("cargo has no output")?;
    let mut programs = VecDeque::new();
    for message in Message::parse_stream(BufReader::new(messages)) {
        let Message::CompilerArtifact(artifact) = message.context("cargo's messages cannot be read")? else { continue };
        let (true, Some(file)) = (artifact.profile.test, artifact.executable) else { continue };
        let directory = artifact.manifest_path.parent().context("a manifest has a directory")?;
        let package = directory.file_name().unwrap_or_default();
        let name = format!("{package} {}", artifact.target.name);
        programs.push_back(TestProgram { name, file: file.into(), directory: directory.into() });
    }
    ensure!(child.wait()?.success(), "the tests do not compile");
    ensure!(!programs.is_empty(), "cargo has built no tests");
    Ok(programs)
}

/// Runs programs, `jobs` at a time. Returns the names of those that fail.
fn run_all(programs: VecDeque<TestProgram>, jobs: usize) -> Result<Vec<String>> {
    let (waiting, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let next = waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
            let Some(program) = next else { return Ok(()) };
            let begin = Instant::now();
            let output = run(&program)?;
            if !report(&program.name, &output, begin.elapsed().as_secs_f64())
                && let Ok(mut failed) = failed.lock()
            {
                failed.push(program.name);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(failed.into_inner().unwrap_or_default())
}

fn run(program: &TestProgram) -> Result<Output> {
    Command::new(&program.file)
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", program.file.display()))
}

/// Prints how a program ended, in one call, so that lines of two do not mix. Returns whether it passed.
fn report(name: &str, output: &Output, seconds: f64) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.lines().rev().find(|line| line.starts_with("test result: "));
    let passed = output.status.success() && summary.is_some();
    let errors = String::from_utf8_lossy(&output.stderr);
    if passed {
        let counts = summary.unwrap_or_default().trim_start_matches("test result: ok. ");
        let counts = counts.split("; finished").next().unwrap_or(counts);
        // Reasons of tests that checked nothing are on standard error.
        println!("{}", format!("{name}: {counts}; {seconds:.1} s\n{errors}").trim_end());
    } else {
        println!("{text}\n{errors}\n{name}: failed, {}", output.status);
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of tests that prints a line and ends with a status.
    fn program(folder: &Path, name: &str, line: &str, status: i32) -> TestProgram {
        use std::os::unix::fs::PermissionsExt as _;
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\necho '{line}'\nexit {status}\n")).expect("it can be written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        TestProgram { name: name.to_owned(), file, directory: folder.to_owned() }
    }

    #[test]
    fn a_program_fails_by_its_status_and_without_a_result() {
        let folder = tempfile::tempdir().expect("a directory can be made");
        let passed = "test result: ok. 3 passed; 0 failed; finished in 0.1s";
        let programs = [
            program(folder.path(), "passes", passed, 0),
            program(folder.path(), "fails", "test result: FAILED. 0 passed; 1 failed", 101),
            program(folder.path(), "ends", "something else", 0),
            program(folder.path(), "passes-too", passed, 0),
        ];
        let mut failed = run_all(programs.into(), 3).expect("they start");
        failed.sort();
        assert_eq!(failed, ["ends", "fails"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let gone = TestProgram { name: "a".to_owned(), file: "/nowhere/a".into(), directory: "/".into() };
        let error = run_all([gone].into(), 1).expect_err("it is not there").to_string();
        assert!(error.contains("/nowhere/a cannot be started"), "{error}");
    }
}
