//! A drive of a model is measured with fio's job files and fitted from the results, as a user would do with a real one.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn flashyard(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flashyard")).current_dir(directory).args(arguments).output().expect("it starts")
}

/// The drive that is measured: small, with the dies of a large one.
const DRIVE: &str = r#"
name = "measured"
seed = 11
designs = ["conv"]
[jbof]
drives = 1
busy_drives = 1
[drive]
capacity = "1 TB"
channels = 8
dies_per_channel = 8
pages_per_block = 192
filled = 1.0
read_time = "83 us"
commands_per_second = 520000
read_rate = "3.4 GB/s"
over_provisioning = 0.2
program_rate = "1.3 GB/s"
[host]
profile = "linux"
[prices]
profile = "2025"
[workload]
fio = "five.fio"
"#;

const GLOBAL: &str =
    "[global]\nioengine=libaio\ndirect=1\ntime_based=1\nruntime=100ms\nramp_time=50ms\nnorandommap=1\n";

const FIVE: &str = "\
[read-alone]\nrw=randread\nbs=4k\niodepth=1\nstonewall=1\n\
[read-many]\nrw=randread\nbs=4k\niodepth=256\nstonewall=1\n\
[read-sequential]\nrw=read\nbs=128k\niodepth=32\nstonewall=1\n\
[write-alone]\nrw=randwrite\nbs=4k\niodepth=1\nstonewall=1\n\
[write-sequential]\nrw=write\nbs=128k\niodepth=32\nstonewall=1\n";

const STEADY: &str = "[write-many]\nrw=randwrite\nbs=4k\niodepth=128\nruntime=800ms\n";

#[test]
fn a_drive_that_was_measured_with_fio_has_its_profile_again() {
    let directory = tempfile::tempdir().expect("there is room");
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("it can be written");
    write("scenario.toml", DRIVE);
    write("five.fio", &format!("{GLOBAL}{FIVE}"));
    write("steady.fio", &format!("{GLOBAL}{STEADY}"));
    let measure = |jobs: &str, result: &str, more: &[&str]| {
        let run = flashyard(directory.path(), &[&["run", "scenario.toml", "--fio", jobs, "--json-fio"], more].concat());
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        std::fs::write(directory.path().join(result), run.stdout).expect("it can be written");
    };
    measure("five.fio", "five.json", &[]);
    measure("steady.fio", "steady.json", &["--set", "drive.drawn=true"]);
    let known = ["--capacity", "1 TB", "--set", "channels=8", "--set", "dies_per_channel=8"];
    let fit =
        flashyard(directory.path(), &[&["fit", "mine", "five.json", "steady.json", "--json"], &known[..]].concat());
    assert!(fit.status.success(), "{}", String::from_utf8_lossy(&fit.stderr));
    let found: Value = serde_json::from_slice(&fit.stdout).expect("it is JSON");
    let figures = found["figures"].as_array().expect("it has figures");
    assert_eq!(figures.len(), 6);
    for figure in figures {
        let ratio = figure["fitted"].as_f64().expect("a number") / figure["measured"].as_f64().expect("a number");
        assert!((0.9..1.1).contains(&ratio), "{figure}");
    }
    let key = |name: &str| found["parameters"].as_array().and_then(|all| all.iter().find(|one| one["key"] == name));
    let read = key("drive.read_time").expect("it is fitted");
    let ns: f64 = read["value"]
        .as_str()
        .and_then(|text| text.strip_suffix(" ns"))
        .and_then(|text| text.parse().ok())
        .expect("a time");
    assert!((ns / 83_000.0 - 1.0).abs() < 0.05 && read["verdict"] == "determined", "{read}");
    // The profile is one that runs.
    let run = flashyard(
        directory.path(),
        &[
            "run",
            "scenario.toml",
            "--fio",
            "steady.fio",
            "--json",
            "--set",
            "drive={profile=\"mine\",drawn=true,filled=1.0}",
        ],
    );
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let again = flashyard(directory.path(), &[&["fit", "mine", "five.json"], &known[..]].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
}

#[test]
fn a_drive_of_a_data_sheet_has_the_figures_that_it_states() {
    let directory = tempfile::tempdir().expect("there is room");
    let figures =
        ["--figure", "read-alone=115 us", "--figure", "read-sequential=3.2 GB/s", "--figure", "write-alone=20 us"];
    let fit = flashyard(directory.path(), &[&["fit", "stated", "--capacity", "4 TB", "--json"], &figures[..]].concat());
    assert!(fit.status.success(), "{}", String::from_utf8_lossy(&fit.stderr));
    let found: Value = serde_json::from_slice(&fit.stdout).expect("it is JSON");
    let measured: Vec<f64> =
        found["figures"].as_array().into_iter().flatten().filter_map(|one| one["measured"].as_f64()).collect();
    assert_eq!(measured, [115.0, 3.2e9, 20.0]);
    assert!(directory.path().join("profiles/drives/stated.toml").is_file());
}

#[test]
fn results_that_are_none_and_missing_options_are_told() {
    let directory = tempfile::tempdir().expect("there is room");
    std::fs::write(directory.path().join("noise.json"), "{\"jobs\": []}").expect("it can be written");
    let refused = |arguments: &[&str], part: &str| {
        let output = flashyard(directory.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "{part} is missing in {error}");
    };
    refused(&["fit", "mine", "noise.json", "--capacity", "1 TB"], "noise.json: this is no result of fio");
    refused(&["fit", "mine", "not-there.json", "--capacity", "1 TB"], "not-there.json: cannot be read");
    refused(&["fit", "mine", "noise.json"], "--capacity");
    refused(&["fit", "mine", "--capacity", "1 TB", "--figure", "read-alone=115"], "the unit is missing");
    let twice = ["--figure", "read-alone=115 us", "--figure", "read-alone=92 us"];
    refused(
        &[&["fit", "mine", "--capacity", "1 TB"], &twice[..]].concat(),
        "random reads, one at a time are there already",
    );
    let jobs = flashyard(directory.path(), &["fit", "--jobs"]);
    assert!(jobs.status.success() && String::from_utf8_lossy(&jobs.stdout).contains("[write-many]"));
}
