//! Files that scenarios and flags name: where they are looked up, what of them ends a run, and what is said of them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A run of these tests takes a second; one that never ends is ended by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// The least that a run needs; its workload and its length follow.
const BASE: &str = r#"
name = "s"
seed = 1
designs = ["conv"]
jbof = { drives = 2, busy_drives = 1 }
drive = { profile = "xbof-4tb" }
host = { profile = "dpu" }
prices = { profile = "2025" }
"#;

const THREE: &str = "time_us,op,offset_bytes,size_bytes\n0,write,0,65536\n150,read,4096,4096\n400,read,1048576,16384\n";
const ONE: &str = "time_us,op,offset_bytes,size_bytes\n5,read,0,4096\n";

/// A directory with files, in which commands run.
struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary directory can be made"));
        files.iter().for_each(|(name, text)| place.write(name, text));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }

    /// A scenario called `name`: what every run needs, and `more`.
    fn scenario(&self, name: &str, more: &str) {
        self.write(name, &format!("{BASE}{more}\n"));
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run_in(self.0.path(), arguments)
    }

    /// The output of a command that ends well.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    fn refused(&self, arguments: &[&str], part: &str) {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{part:?} is missing in: {error}");
        assert!(!error.contains("a mistake in the program"), "{error}");
    }

    fn report(&self, directory: &str) -> Value {
        let text = std::fs::read_to_string(self.path(directory).join("report.json")).expect("it is written");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// Names in a directory that begin so.
    fn names(&self, directory: &str, begin: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).expect("it is there");
        let names = entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
        names.sort();
        names
    }
}

/// Runs a command in a directory, at most for a minute.
fn run_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashyard"));
    command.args(arguments).current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let began = Instant::now();
    while child.try_wait().expect("it is ours").is_none() {
        if began.elapsed() > PATIENCE {
            child.kill().expect("it is ours");
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("it is ours")
}

#[test]
fn a_trace_is_replayed_once_where_nothing_says_how_long() {
    let place = Place::new(&[("three.csv", THREE)]);
    for (depth, repeat, told) in [
        ("", "", "replayed 1 times: 3 requests in 1 rounds"),
        ("depth = 4", "", "replayed 1 times: 3 requests in 1 rounds"),
        ("", "repeat = 2", "replayed 2 times: 6 requests in 2 rounds"),
    ] {
        place.scenario("s.toml", &format!("[workload]\ntrace = \"three.csv\"\n{depth}\n{repeat}"));
        let text = place.done(&["run", "s.toml"]);
        assert!(text.contains(told), "{text}");
    }
    let text = place.done(&["run", "s.toml", "--set", "run.requests_per_drive=7"]);
    assert!(text.contains("6 requests in 2 rounds"), "{text}");
}

#[test]
fn a_trace_that_takes_no_time_is_not_repeated_by_its_times() {
    let two = format!("{ONE}5,read,4096,4096\n");
    let place = Place::new(&[("one.csv", ONE), ("two.csv", &two)]);
    place.scenario("s.toml", "[workload]\ntrace = \"one.csv\"");
    for length in ["run.measure=1 ms", "run.requests_per_drive=5"] {
        place.refused(&["run", "s.toml", "--set", length], "all requests of the trace arrive together");
    }
    // As many as there are need no second round, and a closed loop has no times.
    let two = ["run", "s.toml", "--set", "workload.trace=two.csv"];
    let text = place.done(&[&two[..], &["--set", "run.requests_per_drive=2"]].concat());
    assert!(text.contains("2 requests in 1 rounds"), "{text}");
    let text = place.done(&[&two[..], &["--set", "run.requests_per_drive=5", "--set", "workload.depth=1"]].concat());
    assert!(text.contains("5 requests in 3 rounds"), "{text}");
}

#[test]
fn a_drive_does_not_age_by_a_trace_that_writes_nothing() {
    let place = Place::new(&[("one.csv", ONE), ("three.csv", THREE)]);
    place.write("s.toml", &BASE.replace("xbof-4tb", "r8"));
    let small = ["--set", "drive.blocks_per_plane=64", "--set", "drive.pages_per_block=32"];
    let age = |trace: &'static str| [&["age", "s.toml", "--drive-writes", "0.01", "--set", trace], &small[..]].concat();
    place.refused(&age("workload.trace=one.csv"), "the workload ended before the drive");
    place.done(&age("workload.trace=three.csv"));
}

#[test]
fn the_resolved_scenario_runs_again_from_anywhere() {
    let place = Place::new(&[("sub/near.csv", THREE), ("near.csv", ONE), ("elsewhere/near.csv", ONE)]);
    place.scenario("sub/s.toml", "[workload]\ntraces = [\"near.csv#csv\"]\nrepeat = 2");
    let text = place.done(&["run", "sub/s.toml", "--out", "first"]);
    assert!(text.contains("trace near.csv#csv (") && text.contains("6 requests in 2 rounds"), "{text}");
    let again = run_in(&place.path("elsewhere"), &["run", "../first/resolved.toml", "--out", "../second"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(place.report("first")["designs"], place.report("second")["designs"]);
    // A flag means the directory in which it is given.
    let text = place.done(&["run", "sub/s.toml", "--set", "workload.traces=[\"near.csv\"]", "--out", "first"]);
    assert!(text.contains("2 requests in 2 rounds"), "{text}");
    let again = run_in(&place.path("sub"), &["run", "../first/resolved.toml", "--out", "../second"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(place.report("first")["designs"], place.report("second")["designs"]);
    let text = place.done(&["run", "sub/s.toml", "--sweep", "workload.trace=near.csv,sub/near.csv"]);
    assert!(text.contains("conv trace=sub/near.csv"), "{text}");
}

#[test]
fn resolved_scenarios_find_their_job_files() {
    let job = "[a]\nrw=randread\nnumber_ios=20\n";
    let place = Place::new(&[("sub/a.fio", job), ("sub/b.fio", "no job"), ("b.fio", job)]);
    place.scenario("sub/s.toml", "[workload]\nfio = \"a.fio\"");
    let carried = ["--set", "run.measure=1 ms", "--set", "run.warmup=0 ms", "--set", "designs=[\"conv\"]"];
    for arguments in [
        &["run", "sub/s.toml"][..],
        &["run", "sub/s.toml", "--fio", "b.fio"],
        &["run", "sub/s.toml", "--set", "workload.fio=b.fio"],
        &[&["run", "fio"], &carried[..]].concat(),
    ] {
        place.done(&[arguments, &["--out", "first"]].concat());
        place.done(&["run", "first/resolved.toml", "--out", "second"]);
        assert_eq!(place.report("first")["designs"], place.report("second")["designs"], "{arguments:?}");
    }
}

#[test]
fn figures_of_jobs_in_parts_of_units_say_so() {
    let place = Place::new(&[("s.fio", "[tiny]\nrw=randread\nbs=512\nnumber_ios=20\n")]);
    place.scenario("s.toml", "[workload]\nfio = \"s.fio\"");
    place.done(&["run", "s.toml", "--out", "out"]);
    let report = place.report("out");
    let notes = report["notes"].as_array().expect("it is a list");
    let told = "job tiny: requests of 512 bytes are no whole units of 4 KiB";
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(told))), "{notes:?}");
}

#[test]
fn a_key_has_one_name_in_sweeps_too() {
    let place = Place::new(&[("three.csv", THREE)]);
    let trace = "[workload]\ntrace = \"three.csv\"\ndepth = 1\n";
    place.scenario("s.toml", trace);
    place.refused(
        &["run", "s.toml", "--sweep", "workload.repeat=4,6", "--sweep", "workload.repetitions=2,3"],
        "this key is swept already",
    );
    let text = place.done(&["run", "s.toml", "--sweep", "workload.repeat=4,6"]);
    assert!(text.contains("conv repetitions=4"), "{text}");
    let both = "workload.repeat is another name of workload.repetitions; give one of the two";
    for more in ["repeat = 2\nrepetitions = 3", "[sweep]\n\"workload.repeat\" = [2, 3]\n\"workload.repetitions\" = [4]"]
    {
        place.scenario("s.toml", &format!("{trace}{more}"));
        place.refused(&["run", "s.toml"], both);
    }
    place.scenario("s.toml", &format!("{trace}[sweep]\n\"workload.repeat\" = [2, 3]"));
    assert!(place.done(&["run", "s.toml"]).contains("conv repetitions=3"));
}

#[test]
fn times_of_jobs_may_lie_beyond_the_end_of_time() {
    let job = "[a]\nrw=read\nsize=4k\nstartdelay=65d\nramp_time=99d\nruntime=50d\n";
    let place = Place::new(&[("s.fio", job)]);
    place.scenario("s.toml", "[workload]\nfio = \"s.fio\"");
    let output = place.run(&["run", "s.toml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("a mistake in the program"), "{error}");
}

#[test]
fn runs_in_fios_layout_are_all_of_the_last_run() {
    let own = "{\n  \"fio version\": \"fio-3.33\"\n}\n";
    let place = Place::new(&[("out/fio-own.json", own)]);
    place.scenario("s.toml", "[workload]\npattern = \"uniform\"\nsize = \"4 KiB\"\ndepth = 4");
    let run = ["run", "s.toml", "--set", "run.requests_per_drive=50", "--out", "out"];
    let names = || place.names("out", "fio-");
    place.done(&[&run[..], &["--json-fio", "--sweep", "drive.cores=3,6"]].concat());
    assert_eq!(names(), ["fio-conv cores=3.json", "fio-conv cores=6.json", "fio-own.json"]);
    place.done(&[&run[..], &["--json-fio"]].concat());
    assert_eq!(names(), ["fio-conv.json", "fio-own.json"]);
    place.done(&[&run[..], &["--seeds", "2"]].concat());
    assert_eq!(place.names("out", "seeds"), ["seeds.parquet"]);
    place.done(&run);
    assert_eq!(names(), ["fio-own.json"]);
    assert!(place.names("out", "seeds").is_empty());
    assert_eq!(std::fs::read_to_string(place.path("out/fio-own.json")).expect("it is kept"), own);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let marked = |text: &str| format!("\u{feff}{text}");
    let quoted = "\"time_us\",\"op\",\"offset_bytes\",\"size_bytes\"\n\"5\",\"read\",\"0\",\"4096\"\n";
    let place = Place::new(&[
        ("s.fio", &marked("[global]\nrw=randread\n[a]\nnumber_ios=20\n")),
        ("q.csv", &marked(quoted)),
        ("a.csv", &marked("\"op\",\"address\"\n\"load\",\"0x1000\"\n\"store\",\"8200\"\n")),
        ("m.csv", &marked("128166372003061629,hm,1,Read,383496192,32768,100\n")),
    ]);
    place.scenario("s.toml", "[workload]\nfio = \"s.fio\"");
    place.done(&["run", "s.toml"]);
    place.done(&["run", "ginkgo", "--set", "tiering.trace=a.csv"]);
    assert!(place.done(&["trace", "info", "q.csv"]).contains("format          csv"));
    assert!(place.done(&["trace", "info", "m.csv"]).contains("format          msr"));
}
