//! `flashyard trace` as a user meets it: the contract of `info`, converted files read by other readers, fio among
//! them, and outputs that are whole or not there.

use flashyard_columns::{TableReader, Values};
use flashyard_conformance::has_program;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

/// Milliseconds, volume, offset, size, read or not: two volumes, one row out of order.
const ROWS: &str = "0.0 0 0 8192 1\n100.0 1 8192 4096 0\n90.5 0 512 512 0\n400.0 0 1024 4096 1\n";

fn flashyard(directory: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_flashyard");
    Command::new(program).args(arguments).current_dir(directory).output().expect("the program starts")
}

/// A directory with `trace.txt`, of these rows.
fn directory(rows: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    std::fs::write(directory.path().join("trace.txt"), rows).expect("it can be written");
    directory
}

/// Asserts exit status 2, one error that contains all of `parts`, and that only `files` are in the directory.
fn refused(directory: &Path, arguments: &[&str], parts: &[&str], files: &[&str]) {
    let output = flashyard(directory, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.matches("error: ").count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
    let entries = std::fs::read_dir(directory).expect("the directory can be listed");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, files);
}

#[test]
fn info_says_what_a_trace_is_like() {
    let directory = directory(ROWS);
    let output = flashyard(directory.path(), &["trace", "info", "trace.txt"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["format          replay", "requests/s", "MiB/s", "p99", "most frequent", "sequential", "(exact)", "█"]
    {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

#[test]
fn the_json_contract_of_info_holds() {
    let directory = directory(ROWS);
    let output = flashyard(directory.path(), &["trace", "info", "trace.txt", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((info["rows"].as_u64(), info["reordered_rows"].as_u64()), (Some(4), Some(1)));
    let numbers = [
        "/rate/bin_seconds",
        "/rate/requests_per_s_mean",
        "/rate/bytes_per_s_mean",
        "/rate/requests_per_s/0",
        "/rate/bytes_per_s/0",
        "/read_sizes/p50_bytes",
        "/read_sizes/p90_bytes",
        "/read_sizes/p99_bytes",
        "/write_sizes/max_bytes",
        "/write_sizes/aligned_percent",
        "/write_sizes/frequent/0/bytes",
        "/write_sizes/frequent/0/requests",
        "/sequential_percent",
        "/arrival_gaps/mean_us",
        "/arrival_gaps/p99_us",
        "/arrival_gaps/simultaneous_percent",
        "/arrival_gaps/variation",
        "/reuse/sampling_rate",
        "/reuse/page_references",
        "/reuse/first_percent",
        "/reuse/distance_p50_bytes",
        "/reuse/miss_ratio_curve/0/cache_bytes",
        "/reuse/miss_ratio_curve/0/miss_ratio",
    ];
    for number in numbers {
        assert!(info.pointer(number).is_some_and(serde_json::Value::is_number), "{number} is part of the contract");
    }
    assert_eq!(info["reuse"]["method"], "exact");
}

#[test]
fn caches_are_compared_as_a_table_and_as_json() {
    let directory = directory(ROWS);
    let output = flashyard(directory.path(), &["trace", "caches", "trace.txt", "--sizes", "8KiB,100%"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["accesses        6 to 4 KiB pages, 50.0 %", "w-tinylfu", "       8 KiB  66.7 %      83.3", "all alike"]
    {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
    let output = flashyard(directory.path(), &["trace", "caches", "trace.txt", "--json", "--threads", "3"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((found["rows"].as_u64(), found["page_accesses"].as_u64()), (Some(4), Some(6)));
    assert_eq!((found["footprint_bytes"].as_u64(), found["caches"].as_array().map(Vec::len)), (Some(12_288), Some(5)));
    assert_eq!(found["caches"][0]["cache_bytes"].as_u64(), Some(4096));
    for policy in ["fifo", "lru", "clock", "sieve", "arc", "lirs", "s3-fifo", "w-tinylfu"] {
        assert!(found["caches"][4]["miss_ratios"][policy].is_number(), "{policy} is part of the contract");
    }
}

#[test]
fn caches_that_cannot_be_are_refused() {
    let directory = directory(ROWS);
    let wrong = |sizes: &str, part: &str| {
        refused(directory.path(), &["trace", "caches", "trace.txt", "--sizes", sizes], &[part], &["trace.txt"]);
    };
    wrong("0%", "a percentage is above 0");
    wrong("10 rooms", "give B, KiB");
    refused(directory.path(), &["trace", "caches", "no.txt"], &["no.txt", "cannot be opened"], &["trace.txt"]);
}

#[test]
fn a_converted_trace_holds_the_rows_and_the_counts() {
    let directory = directory(ROWS);
    let output = flashyard(directory.path(), &["trace", "convert", "trace.txt", "trace.parquet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "trace.parquet: 4 rows\n");
    let info = flashyard(directory.path(), &["trace", "info", "trace.parquet"]);
    let said = String::from_utf8_lossy(&info.stderr);
    assert!(info.status.code() == Some(2) && said.contains("this is Parquet, which `trace convert` writes"), "{said}");
    let table = TableReader::new(File::open(directory.path().join("trace.parquet")).expect("it was written"))
        .expect("it is a table");
    let text = |values: [&str; 4]| Values::Text(values.map(str::to_owned).to_vec());
    let expected = [
        Values::U64(vec![0, 100_000_000, 100_000_000, 400_000_000]),
        text(["read", "write", "write", "read"]),
        Values::U64(vec![0, 8192, 512, 1024]),
        Values::U32(vec![8192, 4096, 512, 4096]),
        Values::U32(vec![0, 1, 0, 0]),
    ];
    assert_eq!(table.row_group(0).expect("it reads"), expected);
    assert_eq!(table.metadata("flashyard.trace.format"), Some("replay"));
    assert_eq!(table.metadata("flashyard.trace.reordered_rows"), Some("1"));
}

#[test]
fn a_conversion_that_fails_leaves_the_old_file_and_nothing_else() {
    let directory = directory(&format!("{ROWS}this is no row\n"));
    let path = directory.path();
    std::fs::write(path.join("old.parquet"), "old").expect("it can be written");
    let files = ["old.parquet", "trace.txt"];
    refused(path, &["trace", "convert", "trace.txt", "old.parquet"], &["trace.txt:5", "a row is"], &files);
    refused(path, &["trace", "convert", "trace.txt", "new.iolog"], &["trace.txt:5"], &files);
    assert_eq!(std::fs::read(path.join("old.parquet")).expect("it is there"), b"old");
    refused(path, &["trace", "convert", "trace.txt", "new.csv"], &["new.csv", "--to", "parquet, iolog"], &files);
    refused(path, &["trace", "convert", "trace.txt", "new", "--to", "csv"], &["--to csv", "parquet, iolog"], &files);
    refused(path, &["trace", "convert", "nowhere.txt", "new.iolog"], &["nowhere.txt", "cannot be opened"], &files);
    refused(path, &["trace", "convert", "trace.txt", ".", "--to", "iolog"], &["no regular file"], &files);
    refused(
        path,
        &["trace", "convert", "trace.txt", "no/where.iolog"],
        &["no/where.iolog", "cannot be written"],
        &files,
    );
}

#[test]
fn fio_replays_a_converted_trace() {
    if !has_program("fio", "a converted trace was not replayed") {
        return;
    }
    let directory = directory(ROWS);
    let path = directory.path();
    assert!(flashyard(path, &["trace", "convert", "trace.txt", "trace.log", "--to", "iolog"]).status.success());
    for volume in 0..2 {
        let file = File::create(path.join(format!("volume-{volume}"))).expect("it can be made");
        file.set_len(1 << 20).expect("it can be long");
    }
    let mut fio = Command::new("fio");
    fio.args(["--name=replay", "--read_iolog=trace.log", "--ioengine=psync", "--output-format=json"]);
    let output = fio.current_dir(path).output().expect("fio starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // Notes may stand before the report.
    let report = said.find('{').map_or("", |begin| &said[begin..]);
    let report: serde_json::Value = serde_json::from_str(report).expect("fio reports in JSON");
    let job = &report["jobs"][0];
    let figures = |kind: &str| (job[kind]["total_ios"].as_u64(), job[kind]["io_bytes"].as_u64());
    assert_eq!(figures("read"), (Some(2), Some(12_288)), "{job}");
    assert_eq!(figures("write"), (Some(2), Some(4_608)), "{job}");
    assert_eq!(job["error"], 0);
    // The waits, 400 ms in all, were kept. A loaded machine takes longer.
    let runtime_ms = job["job_runtime"].as_u64().unwrap_or(0);
    assert!(runtime_ms >= 395, "{runtime_ms} ms");
}
