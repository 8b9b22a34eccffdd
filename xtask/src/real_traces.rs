//! Recorded traces through the built program: all seven designs must serve every trace that a reader accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::Repository;

/// Traces the program reads: a directory of the shared traces, and the beginning and end of its files' names. Of binary
/// traces by processor one file stands for its siblings.
const SUPPORTED: [(&str, &str, &str); 18] = [
    ("msr-cambridge", "", ""),
    ("microsoft-servers", "", ""),
    ("umass-spc", "", ""),
    ("disksim-ssd", "", ""),
    ("llm", "trace_opt", ""),
    ("blkparse-text", "", ""),
    ("ycsb-rocksdb", "", ""),
    ("tencent-cbs", "", ""),
    ("tencent-flashnet", "", ""),
    ("cloudphysics", "", ""),
    ("fiu", "", ""),
    ("nexus5", "", ""),
    ("netapp", "", ""),
    ("arc", "", ""),
    ("tectonic", "", ""),
    ("hadoop-eternity", "", ""),
    ("ec2-spark-wordcount/150520220958", "", "blktrace.0.zst"),
    ("ec2-spark-wordcount/150520220958", "", "rmem.log.zst"),
];
/// Where the traces lie, beside the repository: they are too large to be part of it.
const TRACES: &str = "../shared/traces";
const SCENARIO: &str = "scenarios/demo/scenario.toml";
/// Long enough to reach every design's mechanisms, short enough for five dozen traces in a few minutes.
const REQUESTS_PER_DRIVE: &str = "2000";
/// Conv, OC, Shrunk, VH, VH(ideal), ProcH and XBOF.
const DESIGNS: usize = 7;

/// How a run over all traces ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The repository has no traces beside it.
    Skipped,
    /// Files were driven, and some may have failed.
    Driven {
        /// Trace files found.
        files: usize,
        /// Files that the program refused, or answered wrongly.
        failed: usize,
    },
}

/// Drives `flashyard trace info` and the demo scenario over every supported trace file; prints one line each.
///
/// Errors: a program that is not built, or an unreadable directory. A trace that fails is counted, not an error.
pub fn drive_real_traces(repository: &Repository) -> Result<Outcome> {
    let traces = repository.root.join(TRACES);
    if !traces.is_dir() {
        println!("SKIPPED: no recorded traces at {TRACES}; readers and designs were not tried on real ones");
        return Ok(Outcome::Skipped);
    }
    let program = program(repository)?;
    let files = supported_files(&traces)?;
    ensure!(!files.is_empty(), "{TRACES} holds none of the supported traces");
    let mut failed = 0;
    for file in &files {
        let name = file.strip_prefix(&traces).unwrap_or(file).display();
        let start = Instant::now();
        match drive(&repository.root, &program, file) {
            Ok(summary) => println!("ok      {name}: {summary} ({:.1} s)", start.elapsed().as_secs_f64()),
            Err(error) => {
                failed += 1;
                println!("FAILED  {name}: {error:#}");
            }
        }
    }
    println!("{} trace files, {failed} failed", files.len());
    Ok(Outcome::Driven { files: files.len(), failed })
}

/// The built program, of the profile that the environment names with `PROFILE`, of the release without it.
pub(crate) fn program(repository: &Repository) -> Result<PathBuf> {
    let profile = std::env::var("PROFILE").unwrap_or_else(|_| "release".to_owned());
    let program = repository.target_directory.join(directory_of(&profile)).join("flashyard");
    ensure!(program.is_file(), "{} is not built; run cargo build --profile {profile} first", program.display());
    Ok(program)
}

/// Where Cargo puts what a profile makes.
fn directory_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

fn supported_files(traces: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (directory, beginning, end) in SUPPORTED {
        let directory = traces.join(directory);
        // A copy may hold some of the collections only.
        if !directory.is_dir() {
            println!("SKIPPED: {} is absent", directory.display());
            continue;
        }
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && name.starts_with(beginning) && name.ends_with(end) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn drive(root: &Path, program: &Path, file: &Path) -> Result<String> {
    let path = file.to_str().context("the path is not valid UTF-8")?;
    let info = answer(root, program, &["trace", "info", path, "--json"]).context("trace info")?;
    ensure!(info.is_object(), "trace info: the answer is not one JSON object");
    let trace = format!("workload.trace={path}");
    let requests = format!("run.requests_per_drive={REQUESTS_PER_DRIVE}");
    let short = ["--set", "run.warmup=0 ms", "--set", "run.warm_mapping_requests=0"];
    let arguments = [&["run", SCENARIO, "--set", &trace, "--set", &requests, "--json"][..], &short].concat();
    check_run(&answer(root, program, &arguments).context("run")?)
}

/// Runs the program and reads its one JSON value.
pub(crate) fn answer(root: &Path, program: &Path, arguments: &[&str]) -> Result<Value> {
    let output =
        Command::new(program).args(arguments).current_dir(root).output().context("cannot start the program")?;
    // Status 1 is an answer too: a reproduced number outside its tolerance.
    if !output.status.success() && output.status.code() != Some(1) {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", output.status, words.lines().last().unwrap_or("nothing on standard error"));
    }
    serde_json::from_slice(&output.stdout).context("standard output is not one JSON value")
}

/// Whether a run served requests in all seven designs; the result counts them.
fn check_run(result: &Value) -> Result<String> {
    let designs = result["designs"].as_array().context("run: the answer has no list of designs")?;
    let mut names = Vec::new();
    let mut ios_total = 0;
    for design in designs {
        let name = design["name"].as_str().context("run: a design has no name")?;
        let ios = design["ios"].as_u64().with_context(|| format!("run: {name} has no count of I/Os"))?;
        ensure!(ios > 0, "run: {name} served nothing");
        ensure!(!names.contains(&name), "run: {name} is listed twice");
        ios_total += ios;
        names.push(name);
    }
    ensure!(names.len() == DESIGNS, "run: {} designs instead of {DESIGNS}: {}", names.len(), names.join(", "));
    Ok(format!("{ios_total} I/Os in {DESIGNS} designs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run_of(ios: &[u64]) -> Value {
        let designs = ios.iter().enumerate().map(|(index, ios)| json!({ "name": format!("d{index}"), "ios": ios }));
        json!({ "designs": designs.collect::<Vec<_>>() })
    }

    #[test]
    fn a_build_lies_where_cargo_puts_it() {
        assert_eq!(["dev", "release", "quick"].map(directory_of), ["debug", "release", "quick"]);
    }

    #[test]
    fn seven_designs_that_served_something_pass() {
        assert_eq!(check_run(&run_of(&[5; 7])).unwrap(), "35 I/Os in 7 designs");
    }

    #[test]
    fn every_other_answer_is_explained() {
        for (answer, expected) in [
            (json!([]), "no list of designs"),
            (json!({ "designs": [{ "ios": 1 }] }), "has no name"),
            (json!({ "designs": [{ "name": "conv" }] }), "conv has no count"),
            (json!({ "designs": [{ "name": "conv", "ios": 1 }, { "name": "conv", "ios": 1 }] }), "listed twice"),
            (run_of(&[1, 1, 0, 1, 1, 1, 1]), "d2 served nothing"),
            (run_of(&[1; 6]), "6 designs instead of 7"),
        ] {
            let error = check_run(&answer).unwrap_err().to_string();
            assert!(error.contains(expected), "{answer} gave {error:?}");
        }
    }
}
