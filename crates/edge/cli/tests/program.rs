//! The program as a user meets it: every kind of bad input, the JSON contract, and the same results from any
//! number of threads.

use flashyard_columns::{TableReader, Values};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("the crate is three levels deep").to_owned()
}

fn flashyard(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_flashyard");
    Command::new(program).args(arguments).current_dir(root()).output().expect("the program starts")
}

/// Runs the demo, small, with more arguments.
fn demo(arguments: &[&str]) -> Output {
    let small =
        ["run", "scenarios/demo/scenario.toml", "--set", "run.requests_per_drive=300", "--set", "run.warmup=0 ms"];
    flashyard(&[&small[..], arguments].concat())
}

/// Runs the small demo with maps that are hardly warm: warming them takes ten times as long as all else.
fn quick_demo(arguments: &[&str]) -> Output {
    demo(&[&["--set", "run.warm_mapping_requests=100000"], arguments].concat())
}

/// Asserts exit status 2 and one error that contains all of `parts`.
fn refused(output: &Output, parts: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: ") && error.matches("error: ").count() == 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
    assert!(output.stdout.is_empty(), "nothing is printed besides the error");
}

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("it can be written");
    let path = path.to_str().expect("the path is text").to_owned();
    (directory, path)
}

#[test]
fn a_missing_scenario_is_named() {
    refused(&flashyard(&["run", "nowhere.toml"]), &["nowhere.toml", "cannot be read"]);
}

#[test]
fn an_unknown_key_is_named_with_file_and_line() {
    let text = std::fs::read_to_string(root().join("scenarios/demo/scenario.toml")).expect("the demo is there");
    let (_keep, path) = file("bad.toml", text.replace("busy_drives", "bsy_drives").as_bytes());
    refused(&flashyard(&["run", &path]), &["bad.toml", "line 9", "bsy_drives"]);
}

#[test]
fn a_bad_unit_names_the_accepted_ones() {
    refused(&demo(&["--set", "drive.read_rate=14 GB"]), &["14 GB", "GB/s"]);
    refused(&demo(&["--set", "drive.read_lsb=30"]), &["--set drive.read_lsb=30: ", "without a unit", "ns, us, ms, s"]);
}

#[test]
fn numbers_outside_their_range_say_what_is_possible() {
    refused(&demo(&["--set", "jbof.drives=0"]), &["jbof.drives is 0; give a whole number from 1 to 4096"]);
    refused(&demo(&["--set", "jbof.busy_drives=13"]), &["--set jbof.busy_drives=13: jbof.busy_drives: 13", "1 to 12"]);
    refused(&demo(&["--set", "drive.channels=0"]), &["drive.channels is 0; give a whole number from 1 to 256"]);
    refused(
        &demo(&["--set", "drive.over_provisioning=0.0"]),
        &["--set drive.over_provisioning=0.0: ", "give drive.over_provisioning at least 0.0059"],
    );
    let long = demo(&["--set", "run.warmup=9 s", "--set", "designs=[\"conv\"]"]);
    refused(&long, &["warm-up of 9.000 s", "nothing was measured"]);
    refused(&demo(&["--set", "workload.depth=0"]), &["workload.depth"]);
    refused(&demo(&["--set", "designs=[\"best\"]"]), &["best", "conv, oc, shrunk"]);
    refused(&demo(&["--set", "workload.table2=Ali-9"]), &["Ali-9", "Ali-0"]);
}

#[test]
fn a_trace_that_cannot_be_read_is_named_with_its_line() {
    let row = "128166385295514663,hm,0,Write,9056014336,2048,2833\n";
    refused(&demo(&["--set", "workload.trace=nowhere.csv"]), &["nowhere.csv", "cannot be opened"]);
    let (_one, mixed) = file("mixed.csv", format!("{row}{row}0.000 0 200626176 4096 0\n").as_bytes());
    refused(&demo(&["--set", &format!("workload.trace={mixed}")]), &["mixed.csv:3", "a row is"]);
    let compressed = std::fs::read(root().join("LICENSE")).expect("the licence is there");
    let (_two, junk) = file("junk.csv", &compressed);
    refused(&demo(&["--set", &format!("workload.trace={junk}")]), &["junk.csv:", "no known format"]);
    refused(&flashyard(&["trace", "info", "nowhere.csv"]), &["nowhere.csv"]);
    refused(&flashyard(&["trace", "info", &mixed, "--format", "tape"]), &["tape", "msr"]);
}

#[test]
fn a_key_without_effect_is_refused_with_what_would_use_it() {
    let share = demo(&["--sweep", "workload.read_share=0.0,1.0"]);
    refused(&share, &["--sweep workload.read_share=0.0,1.0: ", "has no effect", "workload.pattern", "workload.table2"]);
    let rate = demo(&["--set", "workload.requests_per_second=10"]);
    refused(&rate, &["--set workload.requests_per_second=10: ", "has no effect", "workload.depth"]);
    let age = ["age", "scenarios/wear-leveling/scenario.toml", "--to-death", "--set", "run.warmup=1 ms"];
    refused(&flashyard(&age), &["flashyard age does not use it; flashyard run does"]);
    let faults = flashyard(&["faults", "--points", "1", "--set", "workload.size=4 KiB"]);
    refused(&faults, &["flashyard faults does not use it"]);
    let serve = flashyard(&["serve", "scenarios/live/scenario.toml", "--set", "life.endurance=3"]);
    refused(&serve, &["flashyard serve does not use it; flashyard age does"]);
}

#[test]
fn a_design_that_cannot_be_run_does_not_lose_the_others() {
    let text = std::fs::read_to_string(root().join("scenarios/mixed/scenario.toml")).expect("it is there");
    let unequal = text.replace("drive.cores = 2 ", "drive.blocks_per_plane = 512 # [A] unequal\ndrive.cores = 2 ");
    let (_keep, path) = file("unequal.toml", unequal.as_bytes());
    let run = ["run", &path, "--fio", "scenarios/mixed/borrower.fio", "--set", "designs=[\"vh\", \"shrunk\"]"];
    let output = flashyard(&[&run[..], &["--set", "run.measure=2 ms"]].concat());
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("1 of 2 runs failed") && error.contains("vh: --set designs="), "{error}");
    assert!(text.contains("shrunk") && text.contains("simulated"), "{text}");
}

#[test]
fn flags_say_what_they_accept() {
    refused(&flashyard(&["age", "scenarios/ageing/life.toml"]), &["--drive-writes <N>|--to-death"]);
    refused(&demo(&["--threads", "0"]), &["--threads", "from 1 to 4096"]);
    refused(&flashyard(&["faults", "--points", "0"]), &["--points"]);
    let serve = |address: &str| flashyard(&["serve", "scenarios/live/scenario.toml", "--listen", address]);
    refused(&serve("127.0.0.1"), &["the port is missing; give ADDRESS:PORT, for example 127.0.0.1:4420"]);
    refused(&serve("127.0.0.1:99999"), &["\"99999\" is no port from 0 to 65535"]);
    let age = flashyard(&["age", "scenarios/demo/scenario.toml", "--to-death"]);
    refused(&age, &["scenarios/demo/scenario.toml, profile xbof-4tb, line ", "give drive.coalesce_writes = true"]);
}

#[test]
fn an_address_beyond_the_drive_is_folded_for_traces_and_refused_for_spans() {
    let far = "1,hm,0,Read,99999999999999,4096,1\n";
    let (_keep, path) = file("far.csv", far.as_bytes());
    let output = demo(&["--set", &format!("workload.trace={path}"), "--set", "designs=[\"conv\"]", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let scaling = report["scaling"].as_array().expect("a list");
    assert_eq!(scaling.len(), 6);
    let mut issued = 0;
    for line in scaling {
        let line = line.as_str().expect("words");
        let requests = line.split_once(" requests in ").expect("it counts").0.rsplit(' ').next().expect("a number");
        assert!(line.contains(&format!("{requests} (100.0 %) folded")), "{line}");
        issued += requests.parse::<u64>().expect("a number");
    }
    // The run ends when the first of six streams has issued its 300 requests; 64 of each may be under way then.
    let answered = report["designs"][0]["ios"].as_u64().expect("a number");
    assert!((300..=6 * 300).contains(&issued), "{issued}");
    assert!(
        answered <= issued && issued - answered < 6 * 64,
        "{answered} of {issued} were read somewhere on the drive"
    );
    refused(&demo(&["--set", "workload.span=9 TiB"]), &["workload.span"]);
}

#[test]
fn several_traces_are_given_out_and_the_result_says_how_each_was_scaled() {
    let rows: String = (0..400).map(|row| format!("{} 8 0 {row}\n", row % 7 * 8)).collect();
    let (_one, first) = file("first.csv", b"time_us,op,offset_bytes,size_bytes\n0,R,0,4096\n9,W,99999999999999,4096\n");
    let (_two, second) = file("second.lis", rows.as_bytes());
    let traces = format!("workload.traces=[\"{first}\", \"{second}#arc\"]");
    let short = ["--set", &traces, "--set", "workload.size_factor=2.0", "--set", "run.warm_mapping_requests=0"];
    let output = demo(&[&short[..], &["--set", "designs=[\"conv\", \"oc\"]"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in ["given out again from the first", "sizes x2", "scaling: drive-5", "no directions: all read"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let output = demo(&[&short[..], &["--set", "designs=[\"conv\"]", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let scaling: Vec<&str> =
        report["scaling"].as_array().expect("a list").iter().filter_map(|line| line.as_str()).collect();
    assert_eq!(scaling.len(), 6);
    for part in
        ["drive-0: ", "300 requests in 150 rounds", "300 (100.0 %) resized", "150 (50.0 %) folded", "read as csv"]
    {
        assert!(scaling[0].contains(part), "{part} is not in {}", scaling[0]);
    }
    refused(&demo(&["--set", &traces, "--set", "workload.size_factor=0.0"]), &["workload.size_factor", "above 0"]);
    refused(&demo(&["--set", &traces, "--set", "jbof.busy_drives=1"]), &["workload.traces", "2 traces for 1 busy"]);
    refused(&demo(&["--set", &traces, "--set", "workload.trace=x"]), &["workload.traces", "not both"]);
}

#[test]
fn an_unknown_system_or_number_is_refused() {
    refused(&flashyard(&["reproduce", "ybof"]), &["ybof", "xbof"]);
    refused(&flashyard(&["reproduce", "xbof", "no-such-row"]), &["no-such-row", "bom-saving"]);
}

#[test]
fn a_case_that_cannot_be_read_says_which_part_and_what_belongs_there() {
    let bad = flashyard(&["faults", "--replay", "seed=7;power@e3"]);
    refused(&bad, &["--replay", "part 2", "power@e3", "expected + and how long it lasts"]);
    let both = flashyard(&["faults", "--replay", "seed=7", "--points", "10"]);
    refused(&both, &["--replay", "--points"]);
}

#[test]
fn a_box_is_broken_at_its_events_and_the_report_does_not_depend_on_threads() {
    let explore = |threads: &str| {
        let output = flashyard(&["faults", "--points", "60", "--threads", threads]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().filter(|line| !line.contains("points a second")).collect::<Vec<_>>().join("\n")
    };
    let report = explore("1");
    assert!(report.contains("60 crash points") && report.contains("violations: 0"), "{report}");
    assert_eq!(report, explore("2"));
}

#[test]
fn designs_whose_failures_are_not_modelled_are_refused() {
    let refused_design = flashyard(&["faults", "--set", "designs=[\"oc\"]", "--points", "1"]);
    refused(&refused_design, &["designs", "conv, shrunk, proch or xbof"]);
}

#[test]
fn a_life_is_written_as_a_page_and_as_tables() {
    let out = tempfile::tempdir().expect("a temporary directory can be made");
    let small = ["drive.blocks_per_plane=120", "drive.pages_per_block=32", "life.random_fills=1"];
    let mut arguments = vec!["age", "scenarios/wear-leveling/scenario.toml", "--drive-writes", "2"];
    small.iter().for_each(|setting| arguments.extend(["--set", setting]));
    arguments.extend(["--out", out.path().to_str().expect("the path is text")]);
    let output = flashyard(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.path().join("report.html")).expect("the page was written");
    for words in ["How evenly does it wear?", "alive after 2.0 drive writes", "life.random_fills=1"] {
        assert!(page.contains(words), "{words}");
    }
    let resolved = std::fs::read_to_string(out.path().join("resolved.toml")).expect("the scenario was written");
    assert!(resolved.contains("blocks_per_plane"));
    let record = std::fs::read(out.path().join("life.json")).expect("the record was written");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("it is JSON");
    let last = |key: &str| record["last"][key].clone();
    let [written, slots] =
        [&record["last"]["host_slots"], &record["drive_slots"]].map(|one| one.as_u64().expect("a number"));
    // The last request is carried out whole.
    assert!((2 * slots..2 * slots + 16).contains(&written), "{written} of {slots}");
    let [life, erases] = ["life.parquet", "erase_counts.parquet"].map(|name| {
        let file = std::fs::File::open(out.path().join(name)).expect("the table was written");
        TableReader::new(file).expect("it is a table")
    });
    assert_eq!([life.fields().len(), erases.fields().len()], [23, 3]);
    let column = |table: &TableReader, name| table.column(name).expect("it reads").expect("it is there");
    for key in ["host_slots", "moved_slots", "erases_min", "erases_max"] {
        let Values::U64(values) = column(&life, key) else { panic!("{key} is a whole number") };
        assert!(values.len() > 2, "{key} has a course");
        assert_eq!(last(key), *values.last().expect("it has a last moment"), "{key}");
    }
    let Values::F64(written) = column(&erases, "host_written_bytes") else { panic!("bytes are a number") };
    let [Values::U64(times), Values::U64(blocks)] = ["erases", "superblocks"].map(|name| column(&erases, name)) else {
        panic!("they are whole numbers")
    };
    let end = written.iter().copied().fold(0.0, f64::max);
    let of_the_end = written.iter().zip(times.iter().zip(&blocks)).filter(|(at, _)| **at == end);
    let (sum, count) =
        of_the_end.fold((0, 0), |(sum, count), (_, (erases, blocks))| (sum + erases * blocks, count + blocks));
    assert_eq!(count, 120, "every superblock has a number of erases");
    assert_eq!(last("erases_mean").as_f64().map(|mean| (mean * 120.0).round()), Some(sum as f64));
}

#[test]
fn a_reproduction_is_written_as_a_page() {
    let out = tempfile::tempdir().expect("a temporary directory can be made");
    let directory = out.path().to_str().expect("the path is text");
    let output = flashyard(&["reproduce", "cvss", "zipf-30-tb-bound", "--json", "--out", directory]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let page = std::fs::read_to_string(out.path().join("report.html")).expect("the page was written");
    assert!(page.contains("How close does it come to what is published?"));
    // The number's row in the table of the page: its id, what it is, and the figure that standard output gives, rounded.
    let begin = page.find("[\"zipf-30-tb-bound\",\"").expect("the table has the number's row");
    let row = &page[begin..begin + page[begin..].find(']').expect("the row ends")];
    let measured = rows[0]["measured"].as_f64().expect("a number");
    let rounded = format!("{measured:.3}");
    for cell in [rows[0]["metric"].as_str().expect("a text"), rounded.trim_end_matches('0'), "agrees"] {
        assert!(row.contains(cell), "{cell} is missing in {row}");
    }
}

#[test]
fn an_interrupted_study_goes_on_with_the_runs_that_it_kept() {
    let out = tempfile::tempdir().expect("a temporary directory can be made");
    let directory = out.path().to_str().expect("the path is text");
    let number = |id: &str| {
        let output = flashyard(&["reproduce", "xbof", id, "--json", "--out", directory]);
        // 1 where our number does not agree with the published one.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let kept = || {
        let files = std::fs::read_dir(out.path()).expect("the directory was made");
        let mut files = files.map(|file| file.expect("the directory can be read").path());
        let file = files.find(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        std::fs::read_to_string(file.expect("runs are kept")).expect("it is text").lines().count()
    };
    let first = number("shrunk-4k-flash");
    assert_eq!(kept(), 2, "the build and a run");
    assert_ne!(number("shrunk-4k-processor"), first);
    assert_eq!((number("shrunk-4k-flash"), kept()), (first, 2), "both numbers are made of one run");
    let records = std::fs::read_to_string(out.path().join("runs.json")).expect("the records were written");
    let records: serde_json::Value = serde_json::from_str(&records).expect("it is JSON");
    assert_eq!(records[0]["design"], "shrunk");
    assert!(records[0]["throughput_bytes_per_s"].as_f64().is_some_and(|rate| rate > 1e9), "{records}");
}

#[test]
fn closed_forms_reproduce_without_a_run() {
    let output = flashyard(&["reproduce", "xbof", "bom-saving", "bom-compute-share-pcie5", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    let known = ["id", "where", "metric", "unit", "published", "measured", "tolerance", "at_most", "ok", "note"];
    for key in known.into_iter().chain(["kind", "relation", "fitted_by", "fitted_to", "reading_of"]) {
        assert!(rows[0].get(key).is_some(), "{key} is part of the contract");
    }
    assert_eq!((rows[0]["kind"].as_str(), rows[0]["relation"].as_str()), (Some("arithmetic"), Some("about")));
}

#[test]
fn a_fitted_number_names_its_constant_and_all_that_it_was_fitted_to() {
    let output = flashyard(&["reproduce", "xbof", "bom-compute-share-pcie4", "controller-evolution", "--json"]);
    assert!(output.status.success(), "what is cited is not measured: {output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let of = |kind: &str| rows.as_array().expect("a list").iter().find(|row| row["kind"] == kind).expect(kind).clone();
    let fitted = of("fitted");
    assert_eq!(fitted["fitted_to"], serde_json::json!(["bom-compute-share-pcie4"]));
    assert_eq!(fitted["fitted_by"].as_array().map(Vec::len), Some(1));
    assert_eq!(of("cited")["measured"], serde_json::Value::Null);
    let text = flashyard(&["reproduce", "xbof", "bom-compute-share-pcie4", "controller-evolution"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for words in ["0 of 0 predicted numbers", "not counted: fitted (1 of 1 agree), cited (1)"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn the_json_contract_holds_and_results_do_not_depend_on_threads() {
    let run = |threads: &str| {
        let output = quick_demo(&["--json", "--threads", threads, "--seed", "7"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        report["wall_seconds"] = 0.into();
        report
    };
    let report = run("1");
    assert_eq!(report, run("2"));
    assert_eq!((report["scenario"].as_str(), report["seed"].as_u64()), (Some("demo"), Some(7)));
    let designs = report["designs"].as_array().expect("designs are a list");
    assert_eq!(designs.len(), 7);
    for design in designs {
        assert_eq!(design["laws"]["hold"], true, "{}", design["laws"]);
        // The run ends when the first of six drives has been asked for 300; at most 64 of those are still in flight.
        let ios = |of: &serde_json::Value| of["ios"].as_u64().expect("it is a number");
        let most = design["drives"].as_array().into_iter().flatten().map(ios).max();
        assert!(most.is_some_and(|most| (236..=300).contains(&most)), "{most:?}");
        assert!((300..1800).contains(&ios(design)), "{}", design["ios"]);
        assert_eq!(design["drives"].as_array().map(Vec::len), Some(12));
        for of in [design, &design["drives"][0]] {
            for key in [
                "ios",
                "read_bytes",
                "write_bytes",
                "throughput_bytes_per_s",
                "iops",
                "processor_utilization",
                "flash_utilization",
                "mapping_miss_ratio",
                "write_amplification",
                "energy_joules",
                "bom_dollars",
            ] {
                assert!(of[key].is_number(), "{key} is part of the contract");
            }
            for key in ["mean", "p50", "p99", "p999", "max"] {
                assert!(of["latency_us"][key].is_number(), "latency_us.{key} is part of the contract");
            }
        }
        // The other half of the drives serves nothing: there was nothing to measure.
        let idle = &design["drives"][11];
        assert!(idle["ios"] == 0 && idle["latency_us"]["mean"].is_null() && idle["latency_us"]["p99"].is_null());
        // Some designs borrow flash from them.
        if design["name"] == "conv" {
            assert!(idle["write_amplification"].is_null() && idle["mapping_miss_ratio"].is_null(), "{idle}");
        }
    }
}

#[test]
fn out_writes_a_report_and_a_scenario_that_runs_again() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let out = directory.path().to_str().expect("the path is text");
    assert!(demo(&["--out", out, "--set", "designs=[\"conv\"]"]).status.success());
    let again = flashyard(&["run", &format!("{out}/resolved.toml"), "--json"]);
    let first: serde_json::Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("report.json")).expect("it was written"))
            .expect("it is JSON");
    let second: serde_json::Value = serde_json::from_slice(&again.stdout).expect("it is JSON");
    assert_eq!(first["designs"], second["designs"]);
}

#[test]
fn the_schema_is_json_and_names_every_section() {
    let output = flashyard(&["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    for section in ["jbof", "drive", "host", "workload", "run", "harvest"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}

#[test]
fn a_sweep_ends_with_its_fronts_and_the_cheapest_of_the_same_service() {
    let directory = tempfile::tempdir().expect("it can be made");
    let out = directory.path().to_str().expect("the path is text");
    let output = quick_demo(&[
        "--set",
        "designs=[\"conv\", \"shrunk\", \"xbof\"]",
        "--set",
        "explore.within_percent=30",
        "--sweep",
        "jbof.shrunk_cores=0.167,0.5",
        "--out",
        out,
    ]);
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.contains(" of 5 runs are dominated"), "conv has no cores to give up: {text}");
    assert!(text.contains("within 30 % of the throughput and p99 of conv"), "{text}");
    let report = std::fs::read_to_string(directory.path().join("report.json")).expect("it is there");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let points = report["explorer"]["points"].as_array().expect("there are points");
    let cores: Vec<_> = points.iter().map(|point| point["cores"].as_u64()).collect();
    assert_eq!(cores, [Some(6), Some(1), Some(1), Some(3), Some(3)]);
    assert_eq!(points.len(), report["designs"].as_array().map_or(0, Vec::len));
    let on_front = points.iter().filter(|point| {
        point["fronts"].as_array().is_some_and(|fronts| fronts.iter().any(|front| front == "cost_p99_throughput"))
    });
    let load = &report["explorer"]["loads"][0];
    assert_eq!(on_front.count() as u64 + load["dominated"].as_u64().expect("a number"), 5);
    assert_eq!(load["reference"], 0);
    let page = std::fs::read_to_string(directory.path().join("report.html")).expect("it is there");
    assert!(page.contains("\"cost_p99_throughput\""), "the page has the explorer");
}

#[test]
fn a_sweep_runs_every_point_and_its_files_do_not_depend_on_threads() {
    let directories = [tempfile::tempdir().expect("it can be made"), tempfile::tempdir().expect("it can be made")];
    for (threads, directory) in ["1", "2"].iter().zip(&directories) {
        let out = directory.path().to_str().expect("the path is text");
        let output = quick_demo(&[
            "--set",
            "designs=[\"shrunk\", \"xbof\"]",
            "--sweep",
            "drive.cores=2,6",
            "--threads",
            threads,
            "--out",
            out,
            "--json",
        ]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let designs = report["designs"].as_array().expect("there are designs");
        let names: Vec<&str> = designs.iter().filter_map(|design| design["name"].as_str()).collect();
        assert_eq!(names, ["shrunk cores=2", "xbof cores=2", "shrunk cores=6", "xbof cores=6"]);
        assert_eq!(designs[3]["point"][0], "drive.cores=6");
        let parts = |row: &serde_json::Value| {
            row["parts_us"]
                .as_array()
                .expect("there are parts")
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .sum::<f64>()
        };
        let mean = &designs[0]["latency_split"][0];
        assert!((parts(mean) - mean["latency_us"].as_f64().expect("a number")).abs() < 1e-6);
    }
    let resolved = std::fs::read_to_string(directories[0].path().join("resolved.toml")).expect("it is there");
    assert!(resolved.contains("\"drive.cores\" = [2, 6]"), "the sweep is part of what runs again: {resolved}");
    for name in ["timeline", "latency_histogram", "latency_split", "lending", "drives", "explorer"] {
        let [serial, parallel] = [0, 1].map(|index| {
            std::fs::read(directories[index].path().join(format!("{name}.parquet"))).expect("the table is there")
        });
        assert!(serial == parallel, "{name}.parquet depends on the number of threads");
    }
}

#[test]
fn several_seeds_give_means_with_intervals_and_files_that_do_not_depend_on_threads() {
    let directories = [tempfile::tempdir().expect("it can be made"), tempfile::tempdir().expect("it can be made")];
    let mut reports = Vec::new();
    for (threads, directory) in ["1", "2"].iter().zip(&directories) {
        let out = directory.path().to_str().expect("the path is text");
        let designs = "designs=[\"conv\", \"shrunk\", \"xbof\"]";
        let output = quick_demo(&[
            "--set",
            designs,
            "--seed",
            "5",
            "--seeds",
            "3",
            "--threads",
            threads,
            "--out",
            out,
            "--json",
        ]);
        let mut report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        report["wall_seconds"] = 0.into();
        report["command"] = "".into();
        reports.push(report);
    }
    assert!(reports[0] == reports[1], "the report depends on the number of threads");
    let seeds = &reports[0]["seeds"];
    assert_eq!(seeds["seeds"], serde_json::json!([5, 6, 7]));
    for design in 0..2 {
        let figure = &seeds["designs"][design]["figures"][0];
        let values: Vec<f64> =
            figure["values"].as_array().expect("three").iter().filter_map(|one| one.as_f64()).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        assert!((figure["mean"].as_f64().expect("a number") / mean - 1.0).abs() < 1e-9 && values.len() == 3);
        let key = figure["key"].as_str().expect("a name");
        assert_eq!(figure["values"][0], reports[0]["designs"][design][key], "the report is of the first seed");
        assert!(values[0] != values[1] && figure["half_width"].as_f64().is_some_and(|half| half > 0.0));
    }
    let [serial, parallel] =
        [0, 1].map(|index| std::fs::read(directories[index].path().join("seeds.parquet")).expect("the table is there"));
    assert!(serial == parallel, "seeds.parquet depends on the number of threads");
    let page = std::fs::read_to_string(directories[0].path().join("report.html")).expect("it is there");
    assert!(page.contains("half_width_percent"), "the page has the differences");
    let text = String::from_utf8(quick_demo(&["--set", "designs=[\"conv\", \"shrunk\"]", "--seeds", "2"]).stdout)
        .expect("text");
    assert!(text.contains("means over seeds 1 to 2, ") && text.contains("Throughput: conv has the most; "), "{text}");
    refused(&quick_demo(&["--seeds", "1"]), &["--seeds", "from 2 to 1000"]);
    refused(&quick_demo(&["--seeds", "2", "--sweep", "seed=1,2"]), &["--seeds", "seed"]);
    refused(
        &quick_demo(&["--seed", "9223372036854775807", "--seeds", "2"]),
        &["--seeds 2", "follow seed 9223372036854775807"],
    );
}

/// Lines of a table: they begin with a space or are its rule.
fn table_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.starts_with([' ', '─'])).map(str::to_owned).collect()
}

#[test]
fn tables_fit_80_columns_where_the_terminal_is_not_known_and_have_the_longest_latency() {
    let output = demo(&["--set", "designs=[\"conv\", \"oc\"]"]);
    let lines = table_lines(&output);
    assert!(lines.len() > 12, "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    assert!(lines[0].split_whitespace().any(|name| name == "max"), "{lines:#?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("energy and price do not rank oc"), "{text}");
}

#[test]
fn one_design_wins_nothing_and_a_sweep_of_its_load_has_no_explorer() {
    let output = demo(&["--set", "designs=[\"conv\"]", "--sweep", "workload.depth=1,8"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("serve different loads") && !text.contains("explorer:"), "{text}");
    let alone = demo(&["--set", "designs=[\"conv\"]"]);
    let text = String::from_utf8_lossy(&alone.stdout);
    assert!(text.contains("conv") && !text.contains("most throughput"), "{text}");
}

#[test]
fn a_report_tells_its_title_its_designs_and_the_command_that_repeats_it() {
    let output = demo(&["--set", "designs=[\"conv\"]", "--seed", "3", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["title"], "Seven JBOF designs under a read-mostly cloud workload");
    assert_eq!(report["about"][0]["name"], "conv");
    let command = "flashyard run scenarios/demo/scenario.toml --set run.requests_per_drive=300 \
                   --set 'run.warmup=0 ms' --set 'designs=[\"conv\"]' --seed 3";
    assert_eq!(report["command"], command);
}

#[test]
fn the_resolved_scenario_says_where_each_number_comes_from() {
    let directory = tempfile::tempdir().expect("it can be made");
    demo(&["--set", "designs=[\"conv\"]", "--set", "jbof.drives=7", "--out", directory.path().to_str().expect("text")]);
    let resolved = std::fs::read_to_string(directory.path().join("resolved.toml")).expect("it is there");
    let line =
        |start: &str| resolved.lines().find(|line| line.starts_with(start)).expect("the key is there").to_owned();
    assert!(line("drives = ").contains("[A] set by --set"), "{resolved}");
    assert!(line("busy_drives = ").contains("[P] xbof"), "{resolved}");
    assert!(line("erase = ").contains("(profile xbof-4tb)"), "{resolved}");
    // The names of profiles and workloads are no quantities.
    let named = |line: &&str| line.starts_with("profile") || line.starts_with("table2");
    let unmarked: Vec<&str> = resolved
        .lines()
        .filter(|line| !named(line))
        .filter(|line| line.contains(" = ") && line.bytes().any(|byte| byte.is_ascii_digit()) && !line.contains("# ["))
        .collect();
    assert!(unmarked.is_empty(), "numbers without a source: {unmarked:?}");
}
